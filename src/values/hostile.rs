//! Reads files of values that an enemy wrote, and hands their rows out. Property tests and the fuzz
//! target share it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::random::Generator;
use crate::script::{ValuesEnd, ValuesOrder};

use super::table::Table;
use super::{Asker, Position, Source};

/// The most that is told of a file.
const TOLD_BYTES_MAX: usize = 300;

/// Takes all but the first byte of `data` for a file, and lets up to eight clients use it up in each
/// of the orders. The first byte says how many they are.
///
/// # Panics
/// If a promise is broken: what is wrong is told, briefly; each row has as many cells as the header;
/// and each row is handed out once, whoever takes it.
pub fn drive_hostile(data: &[u8]) {
    let Some((first, file)) = data.split_first() else {
        return;
    };
    let (header, table) = match Table::read(file) {
        Ok(read) => read,
        Err(problem) => {
            assert!((1..=TOLD_BYTES_MAX).contains(&problem.len()), "{problem}");
            return;
        }
    };
    let rows = table.rows();
    for row in 0..rows {
        let cells: Vec<&[u8]> = table.row(row).collect();
        assert_eq!(cells.len(), header.len(), "cells of row {row}");
        assert!(cells.iter().all(|cell| !cell.contains(&0)));
    }
    let clients = 1 + u32::from(first % 8);
    let mut source = source_of(table);
    for order in [ValuesOrder::Sequential, ValuesOrder::Partitioned] {
        source.order = order;
        let mut given = rows_given(&source, clients);
        given.sort_unstable();
        assert!(
            given.into_iter().eq(0..rows),
            "{order:?}, {clients} clients"
        );
    }
}

fn source_of(table: Table) -> Source {
    Source {
        script: 0,
        command: 0,
        path: PathBuf::new(),
        order: ValuesOrder::Sequential,
        end: ValuesEnd::Stop,
        table,
        slots: Vec::new(),
        taken: AtomicU64::new(0),
        lacked: AtomicBool::new(false),
    }
}

/// All rows, as clients take one after the other in turn until there is none left for any.
fn rows_given(source: &Source, clients: u32) -> Vec<u64> {
    let mut generator = Generator::new(1);
    let mut positions = vec![Position::default(); clients as usize];
    let mut given = Vec::new();
    loop {
        let before = given.len();
        for (client, position) in (0..clients).zip(&mut positions) {
            let asker = Asker {
                script: 0,
                command: 0,
                client,
                clients,
            };
            position.row = None;
            given.extend(source.row_for(asker, position, &mut generator));
        }
        if given.len() == before {
            return given;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::drive_hostile;

    const PARTS: &[&str] = &[
        "id", ",", "\n", "\r\n", "\r", "\"", "\"\"", "\0", " ", "1", "\u{feff}", "é", ";", "\t",
        "a,b\n", "1,2\n",
    ];

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            drive_hostile(&data);
        }

        #[test]
        fn anything_like_csv_does_no_harm(
            clients in any::<u8>(),
            parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..40)
        ) {
            drive_hostile(&[&[clients], parts.concat().as_bytes()].concat());
        }

        #[test]
        fn every_row_of_a_good_file_is_handed_out(
            clients in any::<u8>(),
            columns in 1_usize..5,
            rows in proptest::collection::vec("[a-z\"\n]{0,5}", 1..40),
        ) {
            let mut writer = csv::Writer::from_writer(vec![clients]);
            writer.write_record((0..columns).map(|column| format!("c{column}"))).unwrap();
            for row in rows {
                writer.write_record(std::iter::repeat_n(row, columns)).unwrap();
            }
            drive_hostile(&writer.into_inner().unwrap());
        }
    }
}
