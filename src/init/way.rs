//! How rows get into a table, and what is tried instead when a server refuses it: COPY without
//! FREEZE, INSERT in place of COPY, several transactions in place of one. Sends nothing itself.

use super::session::Failure;
use crate::plan::{InitStep, LoadMode, Loading};

/// Rows after which is committed when one transaction was too much: few enough for the limits of
/// distributed databases (tens of thousands), many enough that committing costs little.
const FALLBACK_BATCH_ROWS: u64 = 10_000;

/// How rows get into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How they are sent.
    pub means: Means,
    /// Rows after which is committed; `None` loads a table, or a part of it, in one transaction.
    pub batch_rows: Option<u64>,
}

/// How rows are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// By COPY, as frozen rows where the server allows that.
    Copy {
        /// Whether to freeze.
        freeze: bool,
    },
    /// By INSERT with many rows in each.
    Insert,
    /// The server makes them.
    Series,
}

impl Way {
    /// What was asked for; `step` is one of those that generate.
    pub fn asked_for(step: InitStep, loading: Loading) -> Self {
        let batch_rows = loading.batch_rows.map(u64::from);
        let means = match (step, loading.mode) {
            (InitStep::GenerateServerSide, _) => Means::Series,
            (_, LoadMode::Insert) => Means::Insert,
            // A transaction that truncates comes first, and only in that one may rows be frozen.
            (_, LoadMode::Copy) => Means::Copy {
                freeze: batch_rows.is_none(),
            },
        };
        Way { means, batch_rows }
    }

    /// What to try after `failure` and what to say about it, unless the failure is one that
    /// another way would meet as well.
    pub fn after(self, failure: &Failure) -> Option<(Way, String)> {
        let Failure::Statement { statement, error } = failure else {
            return None;
        };
        let said = error.as_db_error()?;
        let (code, message) = (said.code().code(), said.message());
        let way = self.after_refusal(statement, code, message)?;
        Some((way, format!("{} ({message})", self.change_to(way))))
    }

    fn after_refusal(self, statement: &str, code: &str, message: &str) -> Option<Way> {
        let is_copy = statement.starts_with("copy ");
        let is_load = is_copy || statement.starts_with("insert ") || statement == "commit";
        if is_copy && statement.ends_with("(freeze on)") && refuses_freeze(code) {
            return Some(Way {
                means: Means::Copy { freeze: false },
                ..self
            });
        }
        if is_copy && refuses_copy(code) {
            return Some(Way {
                means: Means::Insert,
                ..self
            });
        }
        if is_load && self.batch_rows.is_none() && is_too_large(code, message) {
            let means = match self.means {
                Means::Copy { .. } => Means::Copy { freeze: false },
                Means::Insert | Means::Series => self.means,
            };
            return Some(Way {
                means,
                batch_rows: Some(FALLBACK_BATCH_ROWS),
            });
        }
        None
    }

    fn change_to(self, next: Way) -> String {
        if next.batch_rows != self.batch_rows {
            return format!(
                "the server refuses so large a transaction; loading again and committing every \
                 {FALLBACK_BATCH_ROWS} rows"
            );
        }
        match next.means {
            Means::Insert => "the server refuses COPY; loading by INSERT".to_owned(),
            Means::Copy { .. } | Means::Series => {
                "the server refuses COPY FREEZE; loading without FREEZE".to_owned()
            }
        }
    }
}

/// Not supported, unknown as an option, or not in this state of the transaction.
fn refuses_freeze(code: &str) -> bool {
    matches!(
        code,
        "0A000" | "42601" | "22023" | "55000" | "25000" | "25001"
    )
}

/// Not supported (by the server, or with row-level security), or no such syntax.
fn refuses_copy(code: &str) -> bool {
    matches!(code, "0A000" | "42601")
}

/// A limit of the server or of this configuration, a transaction that a distributed server asks
/// to repeat, or a time limit. A full disk (53100) and a cancel by somebody are none of these.
fn is_too_large(code: &str, message: &str) -> bool {
    code.starts_with("54")
        || matches!(code, "53200" | "53400" | "40001")
        || code == "57014" && message.contains("timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROZEN: Way = Way {
        means: Means::Copy { freeze: true },
        batch_rows: None,
    };
    const PLAIN: Way = Way {
        means: Means::Copy { freeze: false },
        batch_rows: None,
    };

    #[test]
    fn what_is_asked_for_is_tried_first() {
        use InitStep::{GenerateClientSide, GenerateServerSide};
        let loading = |mode, batch_rows| Loading {
            mode,
            batch_rows,
            connections: 1,
        };
        let way = |means, batch_rows| Way { means, batch_rows };
        for (step, mode, batch, expected) in [
            (GenerateClientSide, LoadMode::Copy, None, FROZEN),
            (
                GenerateClientSide,
                LoadMode::Copy,
                Some(7),
                way(Means::Copy { freeze: false }, Some(7)),
            ),
            (
                GenerateClientSide,
                LoadMode::Insert,
                None,
                way(Means::Insert, None),
            ),
            (
                GenerateServerSide,
                LoadMode::Copy,
                Some(7),
                way(Means::Series, Some(7)),
            ),
        ] {
            assert_eq!(Way::asked_for(step, loading(mode, batch)), expected);
        }
    }

    #[test]
    fn a_refusal_leads_to_the_next_way() {
        let frozen = "copy pgbench_accounts from stdin with (freeze on)";
        let plain = "copy pgbench_accounts from stdin";
        let batched = Way {
            batch_rows: Some(FALLBACK_BATCH_ROWS),
            ..PLAIN
        };
        let inserting = Way {
            means: Means::Insert,
            ..PLAIN
        };
        for (way, statement, code, message, expected) in [
            (FROZEN, frozen, "0A000", "", Some(PLAIN)),
            (FROZEN, frozen, "55000", "", Some(PLAIN)),
            (FROZEN, frozen, "54000", "", Some(batched)),
            (PLAIN, plain, "0A000", "", Some(inserting)),
            (PLAIN, plain, "53400", "", Some(batched)),
            (PLAIN, "commit", "40001", "", Some(batched)),
            (
                PLAIN,
                plain,
                "57014",
                "canceling statement due to statement timeout",
                Some(batched),
            ),
            (
                PLAIN,
                plain,
                "57014",
                "canceling statement due to user request",
                None,
            ),
            (PLAIN, plain, "53100", "could not extend file", None),
            (PLAIN, plain, "42501", "permission denied", None),
            (FROZEN, "truncate table pgbench_accounts", "0A000", "", None),
            (batched, plain, "54000", "", None),
        ] {
            assert_eq!(
                way.after_refusal(statement, code, message),
                expected,
                "{statement} {code}"
            );
        }
    }
}
