//! How large the tables get, from the layout of PostgreSQL's pages. Pure; counts the main files,
//! not the maps beside them, which are a few thousandths.

use super::rows::FilledTable;
use super::statements::has_wide_accounts;

/// A page of a server with its default block size.
const PAGE: u64 = 8192;
/// Page header.
const PAGE_HEADER: u64 = 24;
/// Line pointer of a row or index entry.
const POINTER: u64 = 4;
/// Row header with the bitmap of NULLs of up to eight columns.
const ROW_HEADER: u64 = 24;
/// Rows and index entries begin at multiples of this.
const ALIGNMENT: u64 = 8;
/// Special space at the end of an index page.
const INDEX_SPECIAL: u64 = 16;
/// An index entry: header and a key of up to eight bytes.
const INDEX_ENTRY: u64 = 16;
/// Leaf pages are filled to 90 % when an index is built, inner pages to 70 %.
const LEAF_FILL: u64 = 90;
const INNER_FILL: u64 = 70;

/// Bytes of `table` at `scale`.
pub fn table_bytes(table: FilledTable, scale: u32, fillfactor: u32) -> u64 {
    let row = (ROW_HEADER + columns_bytes(table, scale)).next_multiple_of(ALIGNMENT);
    let kept_free = PAGE * u64::from(100 - fillfactor) / 100;
    // However empty pages are to be left, one row always goes in.
    let rows_per_page = ((PAGE - PAGE_HEADER - kept_free) / (row + POINTER)).max(1);
    table.rows(scale).div_ceil(rows_per_page) * PAGE
}

/// Bytes of the primary key of `table` at `scale`: the leaves, the levels above and the first page.
pub fn key_bytes(table: FilledTable, scale: u32) -> u64 {
    let mut pages = 1;
    let mut level = table.rows(scale).div_ceil(entries_per_page(LEAF_FILL));
    pages += level;
    while level > 1 {
        level = level.div_ceil(entries_per_page(INNER_FILL));
        pages += level;
    }
    pages * PAGE
}

/// The copy of the key that bounds a page goes into the last bytes that were to be kept free.
fn entries_per_page(fill_percent: u64) -> u64 {
    let kept_free = PAGE * (100 - fill_percent) / 100;
    let usable = PAGE - PAGE_HEADER - INDEX_SPECIAL - kept_free;
    usable / (INDEX_ENTRY + POINTER)
}

/// The values of one row: integers, and the 84 blanks of an account's filler with their one byte
/// of length. The other fillers are NULL.
fn columns_bytes(table: FilledTable, scale: u32) -> u64 {
    match table {
        FilledTable::Branches => 8,
        FilledTable::Tellers => 12,
        FilledTable::Accounts if has_wide_accounts(scale) => 8 + 4 + 4 + 85,
        FilledTable::Accounts => 4 + 4 + 4 + 85,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `pg_relation_size` says of tables that PostgreSQL has made.
    #[test]
    fn sizes_are_those_of_real_tables() {
        use FilledTable::{Accounts, Branches, Tellers};
        for (table, scale, fillfactor, pages) in [
            (Branches, 1, 100, 1),
            (Tellers, 1, 100, 1),
            (Accounts, 1, 100, 1_640),
            (Accounts, 10, 100, 16_394),
            (Accounts, 1, 50, 3_334),
        ] {
            let bytes = table_bytes(table, scale, fillfactor);
            assert_eq!(bytes, pages * PAGE, "{table:?} {scale} {fillfactor}");
        }
        assert_eq!(key_bytes(Accounts, 1), 276 * PAGE);
        assert_eq!(key_bytes(Accounts, 10), 2_745 * PAGE);
    }

    #[test]
    fn no_size_is_too_large_for_64_bits() {
        let largest = i32::MAX as u32;
        assert!(table_bytes(FilledTable::Accounts, largest, 10) > 200_000_000_000_000_000);
        assert!(key_bytes(FilledTable::Accounts, largest) > 4_000_000_000_000_000);
    }
}
