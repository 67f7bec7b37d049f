//! The builtin scripts.

/// A script that comes with the program.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name that selects it.
    pub name: &'static str,
    /// What reports and errors call it.
    pub display_name: &'static str,
    /// The script.
    pub text: &'static str,
}

/// All of them, the default one first.
pub static BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        display_name: "<builtin: TPC-B (sort of)>",
        text: "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
",
    },
    Builtin {
        name: "simple-update",
        display_name: "<builtin: simple update>",
        text: "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
",
    },
    Builtin {
        name: "select-only",
        display_name: "<builtin: select only>",
        text: "\
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
",
    },
];

/// The script that runs when none is asked for.
pub static DEFAULT: &Builtin = &BUILTINS[0];

/// Why a prefix selects no builtin script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// No name begins like that.
    #[error("no builtin script has this name")]
    Unknown,
    /// Several names begin like that.
    #[error("more than one builtin script begins with this name")]
    Ambiguous,
}

/// The builtin script whose name begins with `prefix`, if there is exactly one.
pub fn find(prefix: &str) -> Result<&'static Builtin, NotFound> {
    let mut found = BUILTINS
        .iter()
        .filter(|builtin| builtin.name.starts_with(prefix));
    match (found.next(), found.next()) {
        (Some(builtin), None) => Ok(builtin),
        (None, _) => Err(NotFound::Unknown),
        (Some(_), Some(_)) => Err(NotFound::Ambiguous),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_selects_if_it_is_unambiguous() {
        for (prefix, expected) in [
            ("tpcb-like", Ok("tpcb-like")),
            ("t", Ok("tpcb-like")),
            ("si", Ok("simple-update")),
            ("se", Ok("select-only")),
            ("s", Err(NotFound::Ambiguous)),
            ("", Err(NotFound::Ambiguous)),
            ("TPCB", Err(NotFound::Unknown)),
            ("select-only2", Err(NotFound::Unknown)),
        ] {
            assert_eq!(
                find(prefix).map(|builtin| builtin.name),
                expected,
                "{prefix:?}"
            );
        }
    }
}
