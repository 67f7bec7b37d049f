//! Files of values for scripts (`\values`): read once before the run, shared by all clients.
//!
//! Reading may block and complain; handing out rows does neither.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Report};
use crate::random::Generator;
use crate::script::{
    CommandKind, EvalError, ScriptSet, Slot, Value, Values, ValuesEnd, ValuesOrder, Variables,
    is_valid_name,
};

/// Where the `\values` commands of all scripts get their rows from.
#[derive(Debug, Default)]
pub struct ValueSources(Vec<Source>);

/// What one `\values` command draws from.
#[derive(Debug)]
struct Source {
    script: usize,
    command: usize,
    order: ValuesOrder,
    end: ValuesEnd,
    table: Table,
    /// The variables that the columns become. One that no script mentions has none.
    slots: Vec<Option<Slot>>,
    /// Rows handed out so far, where all clients take from one row.
    taken: AtomicU64,
}

/// The rows of a file, one after the other in one buffer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    columns: usize,
    text: Vec<u8>,
    /// Where each cell ends in the text.
    ends: Vec<usize>,
}

/// How far a client has come in its own parts of the files.
#[derive(Clone, Debug, Default)]
pub struct ValueCursor(Vec<u64>);

/// Who asks for a row.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Index of the script.
    pub script: usize,
    /// Index of the command in it.
    pub command: usize,
    /// Number of the client.
    pub client: u32,
    /// Number of all clients.
    pub clients: u32,
}

impl ValueSources {
    /// Reads the files that `scripts` name.
    ///
    /// # Errors
    /// [`Error::Script`] where a file cannot be read, is no CSV file with a header and at least one
    /// row, or has a column whose name cannot be a variable.
    pub fn read(scripts: &ScriptSet) -> Result<Self, Error> {
        let mut sources = Vec::new();
        for (script, weighted) in scripts.scripts.iter().enumerate() {
            for (command, step) in weighted.script.commands.iter().enumerate() {
                if let CommandKind::Values(values) = &step.kind {
                    let place = format!("{}:{}", weighted.script.name, step.line);
                    let path = beside(&weighted.script.name, &values.file);
                    let (header, table) = Table::read(&path, &place)?;
                    sources.push(Source {
                        script,
                        command,
                        order: values.order,
                        end: values.end,
                        slots: slots(&header, values, scripts, &place)?,
                        table,
                        taken: AtomicU64::new(0),
                    });
                }
            }
        }
        Ok(ValueSources(sources))
    }

    /// Sets the variables of the next row; false if there is none left.
    ///
    /// # Errors
    /// A variable cannot be set.
    pub fn fill(
        &self,
        asker: Asker,
        cursor: &mut ValueCursor,
        generator: &mut Generator,
        variables: &mut Variables,
    ) -> Result<bool, EvalError> {
        let found = self
            .0
            .iter()
            .position(|source| (source.script, source.command) == (asker.script, asker.command));
        let Some(index) = found else {
            return Ok(false);
        };
        let source = &self.0[index];
        if cursor.0.len() <= index {
            cursor.0.resize(self.0.len(), 0);
        }
        match source.next_row(asker, &mut cursor.0[index], generator) {
            Some(row) => source.set(row, variables).map(|()| true),
            None => Ok(false),
        }
    }
}

impl Source {
    fn next_row(&self, asker: Asker, own: &mut u64, generator: &mut Generator) -> Option<u64> {
        let rows = self.table.rows();
        let (first, length, taken) = match self.order {
            ValuesOrder::Random => return Some(generator.range(0, rows - 1)),
            ValuesOrder::Sequential => (0, rows, self.taken.fetch_add(1, Ordering::Relaxed)),
            ValuesOrder::Partitioned => {
                let (client, clients) = (u64::from(asker.client), u64::from(asker.clients));
                let first = rows * client / clients;
                let length = rows * (client + 1) / clients - first;
                *own += 1;
                (first, length, *own - 1)
            }
        };
        let used_up = match self.end {
            ValuesEnd::Stop => taken >= length,
            // With more clients than rows some have no part of their own.
            ValuesEnd::Wrap => length == 0,
        };
        (!used_up).then(|| first + taken % length)
    }

    fn set(&self, row: u64, variables: &mut Variables) -> Result<(), EvalError> {
        for (slot, cell) in self.slots.iter().zip(self.table.row(row)) {
            match (slot, cell) {
                (None, _) => {}
                (Some(slot), []) => variables.set(*slot, Value::Null)?,
                (Some(slot), text) => variables.set_text(*slot, text)?,
            }
        }
        Ok(())
    }
}

impl Table {
    fn read(path: &Path, place: &str) -> Result<(csv::ByteRecord, Table), Error> {
        let complain = |what: String| {
            Error::Script(Report::new(format!(
                "{place}: \"{}\" {what}",
                path.display()
            )))
        };
        let mut reader = csv::ReaderBuilder::new()
            .from_path(path)
            .map_err(|error| complain(format!("cannot be read: {error}")))?;
        let header = reader
            .byte_headers()
            .map_err(|error| complain(format!("is no CSV file: {error}")))?
            .clone();
        let mut table = Table {
            columns: header.len(),
            ..Table::default()
        };
        for record in reader.byte_records() {
            let record = record.map_err(|error| complain(format!("is no CSV file: {error}")))?;
            for cell in &record {
                table.text.extend_from_slice(cell);
                table.ends.push(table.text.len());
            }
        }
        if table.ends.is_empty() {
            return Err(complain("has no row below its header".to_owned()));
        }
        Ok((header, table))
    }

    fn rows(&self) -> u64 {
        (self.ends.len() / self.columns) as u64
    }

    fn row(&self, row: u64) -> impl Iterator<Item = &[u8]> {
        let first = row as usize * self.columns;
        (first..first + self.columns).map(|cell| {
            let start = cell.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[start..self.ends[cell]]
        })
    }
}

/// A path in a script is relative to the script's directory.
fn beside(script: &str, file: &Path) -> PathBuf {
    match Path::new(script).parent() {
        Some(directory) => directory.join(file),
        None => file.to_owned(),
    }
}

fn slots(
    header: &csv::ByteRecord,
    values: &Values,
    scripts: &ScriptSet,
    place: &str,
) -> Result<Vec<Option<Slot>>, Error> {
    header
        .iter()
        .map(|column| {
            let name = [&values.prefix[..], column].concat();
            if is_valid_name(&name) {
                return Ok(scripts.variables.slot(&name));
            }
            Err(Error::Script(
                Report::new(format!(
                    "{place}: column \"{}\" of \"{}\" cannot be a variable",
                    String::from_utf8_lossy(column),
                    values.file.display()
                ))
                .hint("The first line of the file names the columns: letters, digits and _."),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Automatic, Dialect, ScriptSetBuilder};

    /// A script with one `\values` in a directory with its file.
    struct Desk {
        _directory: tempfile::TempDir,
        scripts: ScriptSet,
    }

    const ODD: &str = "id,name\n1,\"a, \"\"b\"\"\nc\"\n2,\n3,gr\u{fc}n\n4,d\n5,e\n";

    fn desk(csv: &str, options: &str) -> Desk {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("keys.csv"), csv).unwrap();
        let name = directory.path().join("script.sql");
        let text = format!("\\values keys.csv {options}\nSELECT :id, :name;");
        let mut builder = ScriptSetBuilder::new(Dialect::Extended);
        builder.add_file(name.to_string_lossy(), text.as_bytes(), 1);
        Desk {
            _directory: directory,
            scripts: builder.finish().unwrap(),
        }
    }

    /// What the client's `\values` gives, so many times: the texts of `id`.
    fn ids(desk: &Desk, sources: &ValueSources, client: u32, times: usize) -> Vec<String> {
        let automatic = Automatic {
            scale: 1,
            client_id: client,
            default_seed: None,
            random_seed: 1,
            thread_id: 0,
        };
        let mut variables = desk.scripts.variables.initial(&automatic);
        let (mut cursor, mut generator) = (ValueCursor::default(), Generator::new(1));
        let asker = Asker {
            script: 0,
            command: 0,
            client,
            clients: 2,
        };
        let id = desk.scripts.variables.slot(b"id").unwrap();
        let mut found = Vec::new();
        for _ in 0..times {
            if !sources
                .fill(asker, &mut cursor, &mut generator, &mut variables)
                .unwrap()
            {
                break;
            }
            let mut text = Vec::new();
            variables.append_text(id, &mut text);
            found.push(String::from_utf8(text).unwrap());
        }
        found
    }

    #[test]
    fn rows_come_in_order_over_all_clients_and_begin_again() {
        let desk = desk(ODD, "");
        let sources = ValueSources::read(&desk.scripts).unwrap();
        assert_eq!(ids(&desk, &sources, 0, 3), ["1", "2", "3"]);
        assert_eq!(ids(&desk, &sources, 1, 4), ["4", "5", "1", "2"]);
    }

    #[test]
    fn each_client_has_a_part_of_its_own() {
        let desk = desk(ODD, "order=partitioned end=stop");
        let sources = ValueSources::read(&desk.scripts).unwrap();
        assert_eq!(ids(&desk, &sources, 0, 9), ["1", "2"]);
        assert_eq!(ids(&desk, &sources, 1, 9), ["3", "4", "5"]);
    }

    #[test]
    fn a_client_whose_part_is_empty_has_no_row() {
        for end in ["wrap", "stop"] {
            let desk = desk("id,name\n1,a\n", &format!("order=partitioned end={end}"));
            let sources = ValueSources::read(&desk.scripts).unwrap();
            assert_eq!(ids(&desk, &sources, 0, 3), [] as [&str; 0], "{end}");
            assert!(!ids(&desk, &sources, 1, 3).is_empty(), "{end}");
        }
    }

    #[test]
    fn random_rows_come_from_the_clients_stream() {
        let desk = desk(ODD, "order=random");
        let sources = ValueSources::read(&desk.scripts).unwrap();
        let drawn = ids(&desk, &sources, 0, 20);
        assert_eq!(drawn, ids(&desk, &sources, 0, 20));
        assert!(
            (1..=5).all(|id| drawn.contains(&id.to_string())),
            "{drawn:?}"
        );
    }

    #[test]
    fn cells_arrive_unchanged_and_empty_ones_are_null() {
        let desk = desk(ODD, "");
        let sources = ValueSources::read(&desk.scripts).unwrap();
        let cells: Vec<&[u8]> = (0..3).flat_map(|row| sources.0[0].table.row(row)).collect();
        let expected: [&[u8]; 6] = [
            b"1",
            b"a, \"b\"\nc",
            b"2",
            b"",
            b"3",
            "gr\u{fc}n".as_bytes(),
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_the_place_in_the_script() {
        for (csv, essence) in [
            ("id,name\n", "no row below its header"),
            ("id,na me\n1,2\n", "\"na me\""),
            ("id,name\n1\n", "is no CSV file"),
        ] {
            let desk = desk(csv, "");
            let error = ValueSources::read(&desk.scripts).unwrap_err().to_string();
            assert!(error.contains(essence), "{error}");
            assert!(error.contains("script.sql:1"), "{error}");
        }
        let desk = desk("id\n1\n", "");
        std::fs::remove_file(desk._directory.path().join("keys.csv")).unwrap();
        let error = ValueSources::read(&desk.scripts).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
    }
}
