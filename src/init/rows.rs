//! The rows of the tables as COPY or INSERT want them, computed from their number alone. Pure: no
//! connection, no clock, no chance.

/// A table that is filled at the beginning; history starts empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilledTable {
    /// One row a unit of scale.
    Branches,
    /// Ten.
    Tellers,
    /// A hundred thousand.
    Accounts,
}

/// Tellers of one branch.
const TELLERS_PER_BRANCH: u64 = 10;
/// Accounts of one branch.
const ACCOUNTS_PER_BRANCH: u64 = 100_000;

impl FilledTable {
    /// In the order in which they are filled.
    pub const ALL: [FilledTable; 3] = [
        FilledTable::Branches,
        FilledTable::Tellers,
        FilledTable::Accounts,
    ];

    /// The table's name.
    pub fn name(self) -> &'static str {
        match self {
            FilledTable::Branches => "pgbench_branches",
            FilledTable::Tellers => "pgbench_tellers",
            FilledTable::Accounts => "pgbench_accounts",
        }
    }

    /// Its columns, as an INSERT lists them.
    pub fn columns(self) -> &'static str {
        match self {
            FilledTable::Branches => "bid, bbalance, filler",
            FilledTable::Tellers => "tid, bid, tbalance, filler",
            FilledTable::Accounts => "aid, bid, abalance, filler",
        }
    }

    /// How many rows it has at `scale`.
    pub fn rows(self, scale: u32) -> u64 {
        self.rows_per_branch() * u64::from(scale)
    }

    /// Appends row `k`, counted from 0, with its line end. Balances are 0; the filler is NULL,
    /// of accounts the empty string, which the server pads to 84 blanks.
    pub fn append_row(self, k: u64, out: &mut Vec<u8>) {
        append_number(k + 1, out);
        match self {
            FilledTable::Branches => out.extend_from_slice(b"\t0\t\\N\n"),
            FilledTable::Tellers => {
                self.append_branch(k, out);
                out.extend_from_slice(b"\t0\t\\N\n");
            }
            FilledTable::Accounts => {
                self.append_branch(k, out);
                out.extend_from_slice(b"\t0\t\n");
            }
        }
    }

    /// Appends row `k` as INSERT wants it, without a comma after it. The values are those of
    /// [`FilledTable::append_row`].
    pub fn append_values(self, k: u64, out: &mut String) {
        let branch = k / self.rows_per_branch() + 1;
        let text = match self {
            FilledTable::Branches => format!("({branch},0,null)"),
            FilledTable::Tellers => format!("({},{branch},0,null)", k + 1),
            FilledTable::Accounts => format!("({},{branch},0,'')", k + 1),
        };
        out.push_str(&text);
    }

    fn append_branch(self, k: u64, out: &mut Vec<u8>) {
        out.push(b'\t');
        append_number(k / self.rows_per_branch() + 1, out);
    }

    fn rows_per_branch(self) -> u64 {
        match self {
            FilledTable::Branches => 1,
            FilledTable::Tellers => TELLERS_PER_BRANCH,
            FilledTable::Accounts => ACCOUNTS_PER_BRANCH,
        }
    }
}

fn append_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_at_the_edges_of_branches() {
        let cases: &[(FilledTable, u64, &str)] = &[
            (FilledTable::Branches, 0, "1\t0\t\\N\n"),
            (FilledTable::Branches, 41, "42\t0\t\\N\n"),
            (FilledTable::Tellers, 0, "1\t1\t0\t\\N\n"),
            (FilledTable::Tellers, 9, "10\t1\t0\t\\N\n"),
            (FilledTable::Tellers, 10, "11\t2\t0\t\\N\n"),
            (FilledTable::Accounts, 0, "1\t1\t0\t\n"),
            (FilledTable::Accounts, 99_999, "100000\t1\t0\t\n"),
            (FilledTable::Accounts, 100_000, "100001\t2\t0\t\n"),
            (
                FilledTable::Accounts,
                3_799_999_999,
                "3800000000\t38000\t0\t\n",
            ),
        ];
        for &(table, k, expected) in cases {
            let mut out = Vec::new();
            table.append_row(k, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{table:?} {k}");
        }
    }

    #[test]
    fn inserted_rows_have_the_same_values() {
        for (table, k, expected) in [
            (FilledTable::Branches, 41, "(42,0,null)"),
            (FilledTable::Tellers, 10, "(11,2,0,null)"),
            (FilledTable::Accounts, 99_999, "(100000,1,0,'')"),
            (
                FilledTable::Accounts,
                3_799_999_999,
                "(3800000000,38000,0,'')",
            ),
        ] {
            let mut out = String::new();
            table.append_values(k, &mut out);
            assert_eq!(out, expected, "{table:?} {k}");
        }
    }

    #[test]
    fn rows_are_counted_in_64_bits() {
        assert_eq!(FilledTable::Branches.rows(3), 3);
        assert_eq!(FilledTable::Tellers.rows(3), 30);
        assert_eq!(FilledTable::Accounts.rows(3), 300_000);
        assert_eq!(FilledTable::Accounts.rows(u32::MAX), 429_496_729_500_000);
    }
}
