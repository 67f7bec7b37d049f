//! Files of values for scripts (`\values`): read once before the run, shared by all clients.
//!
//! Reading may block and complain; handing out rows does neither.

mod hostile;
mod table;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Report};
use crate::random::Generator;
use crate::script::{
    CommandKind, EvalError, ScriptSet, Slot, Value, Values, ValuesEnd, ValuesOrder, Variables,
    is_valid_name,
};

pub use hostile::drive_hostile;
use table::Table;

/// Where the `\values` commands of all scripts get their rows from.
#[derive(Debug, Default)]
pub struct ValueSources(Vec<Source>);

/// What one `\values` command draws from.
#[derive(Debug)]
struct Source {
    script: usize,
    command: usize,
    /// Where the table was read from.
    path: PathBuf,
    order: ValuesOrder,
    end: ValuesEnd,
    table: Table,
    /// The variables that the columns become. One that no script mentions has none.
    slots: Vec<Option<Slot>>,
    /// Rows handed out so far, where all clients take from one row.
    taken: AtomicU64,
    /// Whether a client asked for a row and there was none for it.
    lacked: AtomicBool,
}

/// How far a client has come in the files.
#[derive(Clone, Debug, Default)]
pub struct ValueCursor(Vec<Position>);

/// How far a client has come in one file.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// Rows taken of its own part.
    taken: u64,
    /// The row of the transaction under way. All its tries have the same: none is lost to a retry.
    row: Option<u64>,
}

impl ValueCursor {
    /// Another transaction begins: each file's next row is due.
    pub fn begin_transaction(&mut self) {
        for position in &mut self.0 {
            position.row = None;
        }
    }
}

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

/// The files that the `\values` commands of all scripts name.
pub fn files(scripts: &ScriptSet) -> impl Iterator<Item = PathBuf> {
    scripts.scripts.iter().flat_map(|weighted| {
        let kinds = weighted.script.commands.iter().map(|command| &command.kind);
        kinds.filter_map(|kind| match kind {
            CommandKind::Values(values) => Some(beside(&weighted.script.name, &values.file)),
            _ => None,
        })
    })
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
                    let (header, table) = read(&path, &place)?;
                    sources.push(Source {
                        script,
                        command,
                        order: values.order,
                        end: values.end,
                        slots: slots(&header, values, scripts, &place)?,
                        path,
                        table,
                        taken: AtomicU64::new(0),
                        lacked: AtomicBool::new(false),
                    });
                }
            }
        }
        Ok(ValueSources(sources))
    }

    /// Sets the variables of the transaction's row; false if there is none left.
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
            cursor.0.resize(self.0.len(), Position::default());
        }
        match source.row_for(asker, &mut cursor.0[index], generator) {
            Some(row) => source.set(row, variables).map(|()| true),
            None => {
                source.lacked.store(true, Ordering::Relaxed);
                Ok(false)
            }
        }
    }

    /// The files that had no row for a client that asked for one.
    pub fn exhausted(&self) -> Vec<PathBuf> {
        let lacking = |source: &&Source| source.lacked.load(Ordering::Relaxed);
        let sources = self.0.iter().filter(lacking);
        sources.map(|source| source.path.clone()).collect()
    }

    /// What is to be said of files that cannot give each of so many clients a part of its own.
    pub fn without_part(&self, clients: u32) -> Vec<String> {
        let partitioned = |source: &&Source| source.order == ValuesOrder::Partitioned;
        let too_short = |source: &Source| {
            let rows = source.table.rows();
            let without = u64::from(clients).checked_sub(rows).filter(|&n| n > 0)?;
            Some(format!(
                "of {clients} clients, {without} have no part of \"{}\" (order=partitioned), which \
                 has fewer rows ({rows}); they end when they want one",
                source.path.display()
            ))
        };
        let sources = self.0.iter().filter(partitioned);
        sources.filter_map(too_short).collect()
    }
}

impl Source {
    fn row_for(
        &self,
        asker: Asker,
        position: &mut Position,
        generator: &mut Generator,
    ) -> Option<u64> {
        if self.order == ValuesOrder::Random {
            // For a retry the stream is set back, so that this is the same row too.
            return Some(generator.range(0, self.table.rows() - 1));
        }
        if position.row.is_none() {
            position.row = self.next_row(asker, &mut position.taken);
        }
        position.row
    }

    fn next_row(&self, asker: Asker, own: &mut u64) -> Option<u64> {
        let rows = self.table.rows();
        let (first, length, taken) = match self.order {
            ValuesOrder::Random | ValuesOrder::Sequential => {
                (0, rows, self.taken.fetch_add(1, Ordering::Relaxed))
            }
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

/// Reads the file of the command at `place`.
fn read(path: &Path, place: &str) -> Result<(csv::ByteRecord, Table), Error> {
    let read = match File::open(path) {
        Ok(file) => Table::read(file),
        Err(error) => Err(table::unreadable(error)),
    };
    read.map_err(|problem| {
        let file = path.display();
        Error::Script(Report::new(format!("{place}: \"{file}\" {problem}")))
    })
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
    let file = values.file.display();
    let shown = String::from_utf8_lossy;
    let refused = |what: String| Report::new(format!("{place}: {what}"));
    // A name that nothing is wrong with, but for what stands before it.
    if !is_valid_name(&[&values.prefix[..], b"x"].concat()) {
        let prefix = shown(&values.prefix);
        return Err(Error::Script(
            refused(format!(
                "no variable can begin with the prefix \"{prefix}\""
            ))
            .hint("A prefix is made of letters, digits and _, and does not begin with a digit."),
        ));
    }
    let mut slots = Vec::with_capacity(header.len());
    for (index, column) in header.iter().enumerate() {
        let name = [&values.prefix[..], column].concat();
        if !is_valid_name(&name) {
            return Err(Error::Script(
                refused(format!(
                    "column \"{}\" of \"{file}\" cannot be a variable",
                    shown(column)
                ))
                .hint("The first line of the file names the columns: letters, digits and _."),
            ));
        }
        if let Some(first) = header.iter().take(index).position(|other| other == column) {
            return Err(Error::Script(refused(format!(
                "columns {} and {} of \"{file}\" are both called \"{}\"",
                first + 1,
                index + 1,
                shown(column)
            ))));
        }
        slots.push(scripts.variables.slot(&name));
    }
    Ok(slots)
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
    fn automatic(client: u32) -> Automatic {
        Automatic {
            scale: 1,
            client_id: client,
            default_seed: None,
            random_seed: 1,
            thread_id: 0,
        }
    }

    fn asker(client: u32) -> Asker {
        Asker {
            script: 0,
            command: 0,
            client,
            clients: 2,
        }
    }

    fn ids(desk: &Desk, sources: &ValueSources, client: u32, times: usize) -> Vec<String> {
        let mut variables = desk.scripts.variables.initial(&automatic(client));
        let (mut cursor, mut generator) = (ValueCursor::default(), Generator::new(1));
        let id = desk.scripts.variables.slot(b"id").unwrap();
        let mut found = Vec::new();
        for _ in 0..times {
            cursor.begin_transaction();
            if !sources
                .fill(asker(client), &mut cursor, &mut generator, &mut variables)
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
            assert!(sources.exhausted().is_empty(), "{end}: nobody asked");
            assert_eq!(ids(&desk, &sources, 0, 3), [] as [&str; 0], "{end}");
            assert!(!ids(&desk, &sources, 1, 3).is_empty(), "{end}");
            let [path] = &sources.exhausted()[..] else {
                panic!("one file lacks rows");
            };
            assert!(path.ends_with("keys.csv"), "{path:?}");
        }
    }

    #[test]
    fn parts_for_more_clients_than_rows_are_told_of_beforehand() {
        for (options, clients, without) in [
            ("order=partitioned", 5, None),
            ("order=partitioned", 8, Some("of 8 clients, 3 have no part")),
            ("", 8, None),
        ] {
            let desk = desk(ODD, options);
            let sources = ValueSources::read(&desk.scripts).unwrap();
            let told = sources.without_part(clients);
            assert_eq!(told.len(), usize::from(without.is_some()), "{told:?}");
            assert!(told.iter().all(|text| text.starts_with(without.unwrap())));
        }
    }

    #[test]
    fn all_tries_of_a_transaction_have_the_same_row() {
        for options in ["", "order=partitioned"] {
            let desk = desk(ODD, options);
            let sources = ValueSources::read(&desk.scripts).unwrap();
            let mut cursor = ValueCursor::default();
            let id = desk.scripts.variables.slot(b"id").unwrap();
            let mut variables = desk.scripts.variables.initial(&automatic(0));
            let mut found = Vec::new();
            for _ in 0..2 {
                cursor.begin_transaction();
                for _ in 0..3 {
                    let mut generator = Generator::new(1);
                    sources
                        .fill(asker(0), &mut cursor, &mut generator, &mut variables)
                        .unwrap();
                    variables.append_text(id, &mut found);
                }
            }
            assert_eq!(found, b"111222", "{options}");
        }
    }

    #[test]
    fn lines_may_end_in_any_way_and_the_last_one_in_none() {
        for csv in [
            "id\n1\n2\n",
            "id\r\n1\r\n2\r\n",
            "id\n1\n\n2",
            "\u{feff}id\n\"1\"\n\"2\"",
        ] {
            let desk = desk(csv, "end=stop");
            let sources = ValueSources::read(&desk.scripts).unwrap();
            assert_eq!(ids(&desk, &sources, 0, 9), ["1", "2"], "{csv:?}");
        }
    }

    #[test]
    fn in_one_column_a_blank_line_is_no_row_and_quotes_make_a_null() {
        let one = desk("id\n1\n\n\"\"\n", "end=stop");
        let sources = ValueSources::read(&one.scripts).unwrap();
        let cells: Vec<&[u8]> = (0..sources.0[0].table.rows())
            .flat_map(|row| sources.0[0].table.row(row))
            .collect();
        assert_eq!(cells, [&b"1"[..], b""]);
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
            ("", "no row below its header"),
            (
                "id,name,id\n1,a,1\n",
                "columns 1 and 3 of \"keys.csv\" are both called \"id\"",
            ),
            ("id,name\n1,a\n2\n", "1 values in line 3"),
            ("id,name\n1,a\n2,b,c\n", "3 values in line 3"),
            ("id,name\n1,a\n2,\"b\n3,c\n", "quote in line 3"),
            ("id,name\n1,\"a\"\"", "quote in line 2"),
            ("id,\"name\n1,a\n", "quote in line 1"),
            ("id,name\n1,a\0b\n", "zero byte in line 2"),
        ] {
            let desk = desk(csv, "");
            let error = ValueSources::read(&desk.scripts).unwrap_err().to_string();
            assert!(error.contains(essence), "{error}");
            assert!(error.contains("script.sql:1"), "{error}");
        }
        let prefixed = desk("id,name\n1,a\n", "prefix=1-");
        let error = ValueSources::read(&prefixed.scripts).unwrap_err();
        assert!(error.to_string().contains("prefix \"1-\""), "{error}");
        let desk = desk("id\n1\n", "");
        std::fs::remove_file(desk._directory.path().join("keys.csv")).unwrap();
        let error = ValueSources::read(&desk.scripts).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
    }
}
