//! What a server that does not start complains of: the few lines of its log that say why, among
//! the many that do not.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The end of the log that is looked at; a server says why it ends just before it does.
const TAIL_BYTES: u64 = 16 * 1024;
/// The last lines that are told; the first cause is hardly further away.
const LINES_MAX: usize = 6;
/// How lines begin that name a cause, after time and process.
const CAUSES: [&str; 4] = ["PANIC:", "FATAL:", "ERROR:", "initdb: error:"];
/// How lines begin that say more about the cause before them.
const MORE: [&str; 2] = ["DETAIL:", "HINT:"];

/// The complaints at the end of `log`, else simply its end.
///
/// # Errors
/// Those of reading it.
pub fn last(mut log: &File) -> io::Result<String> {
    let length = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    log.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(among(&String::from_utf8_lossy(&bytes)))
}

fn among(log: &str) -> String {
    let mut complaints: Vec<&str> = Vec::new();
    for line in log.lines() {
        let more = MORE.iter().filter(|_| !complaints.is_empty());
        let begin = CAUSES.iter().chain(more).find_map(|word| line.find(word));
        complaints.extend(begin.map(|begin| &line[begin..]));
    }
    if complaints.is_empty() {
        complaints = log.trim().lines().collect();
    }
    complaints[complaints.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_causes_and_what_is_said_about_them_are_told() {
        for (log, told) in [
            (
                "creating subdirectories ... ok\n\
                 HINT:  nothing is wrong yet\n\
                 2026-11-30 21:00:00.123 UTC [17] LOG:  starting\n\
                 2026-11-30 21:00:00.124 UTC [17] FATAL:  invalid value for \"work_mem\": \"3XB\"\n\
                 2026-11-30 21:00:00.124 UTC [17] HINT:  Valid units are \"B\", \"kB\".\n\
                 2026-11-30 21:00:00.125 UTC [17] LOG:  shut down\n",
                "FATAL:  invalid value for \"work_mem\": \"3XB\"\nHINT:  Valid units are \"B\", \"kB\".",
            ),
            (
                "fixing permissions ... initdb: error: could not write\ninitdb: removing data\n",
                "initdb: error: could not write",
            ),
            ("\n1\n2\n3\n4\n5\n6\n7\n", "2\n3\n4\n5\n6\n7"),
            ("", ""),
        ] {
            assert_eq!(among(log), told);
        }
    }
}
