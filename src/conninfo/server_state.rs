//! Whether a server that let us in is one that `target_session_attrs` asks for: what it said of
//! itself in, a verdict or a question to it out. Sends nothing.

use super::SessionAttributes;

/// What a server has told about itself. Newer servers (14 and up) report both settings when a
/// session begins; older ones have to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    default_read_only: Option<bool>,
    in_recovery: Option<bool>,
}

/// Whether a session will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what was asked for.
    Suitable,
    /// It is not, for this reason: end the session and try another host.
    Unsuitable(&'static str),
    /// It cannot be told before the server has answered this.
    Ask(Question),
}

/// What an old server has to be asked. The answer is the first column of its only row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Whether transactions are read-only.
    ReadOnly,
    /// Whether it is in recovery.
    Recovery,
}

impl Question {
    /// The statement to send.
    pub fn sql(self) -> &'static str {
        match self {
            Question::ReadOnly => "SHOW transaction_read_only",
            Question::Recovery => "SELECT pg_catalog.pg_is_in_recovery()",
        }
    }
}

impl ServerState {
    /// Takes in a setting that the server reported; most say nothing here.
    pub fn note_parameter(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"default_transaction_read_only" => self.default_read_only = Some(value == b"on"),
            b"in_hot_standby" => self.in_recovery = Some(value == b"on"),
            _ => {}
        }
    }

    /// Takes in the answer to a question. A read-only session may be one for either reason, and
    /// it does not matter for which.
    pub fn note_answer(&mut self, question: Question, answer: &[u8]) {
        match question {
            Question::ReadOnly => {
                let read_only = answer.starts_with(b"on");
                self.default_read_only = Some(read_only);
                self.in_recovery = Some(read_only);
            }
            Question::Recovery => self.in_recovery = Some(answer.starts_with(b"t")),
        }
    }

    /// Whether this is what `wanted` asks for.
    pub(super) fn judge(self, wanted: SessionAttributes) -> Verdict {
        let (state, question, expected, complaint) = match wanted {
            SessionAttributes::Any => return Verdict::Suitable,
            SessionAttributes::ReadWrite => {
                let complaint = "session is read-only";
                (self.read_only(), Question::ReadOnly, false, complaint)
            }
            SessionAttributes::ReadOnly => {
                let complaint = "session is not read-only";
                (self.read_only(), Question::ReadOnly, true, complaint)
            }
            SessionAttributes::Primary => {
                let complaint = "server is in hot standby mode";
                (self.in_recovery, Question::Recovery, false, complaint)
            }
            SessionAttributes::Standby | SessionAttributes::PreferStandby => {
                let complaint = "server is not in hot standby mode";
                (self.in_recovery, Question::Recovery, true, complaint)
            }
        };
        match state {
            None => Verdict::Ask(question),
            Some(state) if state == expected => Verdict::Suitable,
            Some(_) => Verdict::Unsuitable(complaint),
        }
    }

    fn read_only(self) -> Option<bool> {
        Some(self.default_read_only? || self.in_recovery?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of `target_session_attrs` with each kind of server that reports its state.
    #[test]
    fn reported_state_decides() {
        use SessionAttributes::*;
        let (primary, forbidding, standby) = ((b"off", b"off"), (b"on", b"off"), (b"off", b"on"));
        let cases: [(SessionAttributes, [bool; 3]); 6] = [
            (Any, [true, true, true]),
            (ReadWrite, [true, false, false]),
            (ReadOnly, [false, true, true]),
            (Primary, [true, true, false]),
            (Standby, [false, false, true]),
            (PreferStandby, [false, false, true]),
        ];
        for (wanted, suitable) in cases {
            let servers: [(&[u8], &[u8]); 3] = [
                (primary.0, primary.1),
                (forbidding.0, forbidding.1),
                (standby.0, standby.1),
            ];
            for ((read_only, in_recovery), suitable) in servers.into_iter().zip(suitable) {
                let mut state = ServerState::default();
                state.note_parameter(b"server_version", b"18.0");
                state.note_parameter(b"default_transaction_read_only", read_only);
                state.note_parameter(b"in_hot_standby", in_recovery);
                let verdict = state.judge(wanted);
                assert_eq!(
                    verdict == Verdict::Suitable,
                    suitable,
                    "{wanted:?} {state:?}"
                );
                assert!(!matches!(verdict, Verdict::Ask(_)));
            }
        }
    }

    #[test]
    fn servers_that_report_nothing_are_asked_once() {
        use SessionAttributes::*;
        let cases: [(SessionAttributes, Question, &[u8], bool); 8] = [
            (ReadWrite, Question::ReadOnly, b"off", true),
            (ReadWrite, Question::ReadOnly, b"on", false),
            (ReadOnly, Question::ReadOnly, b"off", false),
            (ReadOnly, Question::ReadOnly, b"on", true),
            (Primary, Question::Recovery, b"f", true),
            (Primary, Question::Recovery, b"t", false),
            (Standby, Question::Recovery, b"t", true),
            (PreferStandby, Question::Recovery, b"f", false),
        ];
        for (wanted, question, answer, suitable) in cases {
            let mut state = ServerState::default();
            assert_eq!(state.judge(wanted), Verdict::Ask(question));
            state.note_answer(question, answer);
            assert_eq!(state.judge(wanted) == Verdict::Suitable, suitable);
        }
        assert_eq!(ServerState::default().judge(Any), Verdict::Suitable);
    }
}
