//! The order in which a server's addresses are tried, and what is said when none of them works.
//!
//! Pure: whoever opens sockets reports how each attempt ended. Resolving names is handed in.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::error::Report;
use crate::sqlstate::SqlState;

use super::{Endpoint, Host, HostName, Target};

/// The server is starting up or shutting down, or is a standby that takes no connections: another
/// host may do better.
const CANNOT_CONNECT_NOW: SqlState = SqlState(*b"57P03");

/// All addresses of a target, resolved once and shared by all who connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// In order; a name that could not be resolved keeps its place as an error.
    candidates: Arc<[Result<Endpoint, String>]>,
}

impl Addresses {
    /// Looks up the hosts in order; `resolve` is given name and port.
    pub fn look_up(
        hosts: &[Host],
        mut resolve: impl FnMut(&str, u16) -> io::Result<Vec<SocketAddr>>,
    ) -> Self {
        let mut candidates = Vec::new();
        for host in hosts {
            match &host.name {
                HostName::SocketDirectory(directory) => {
                    candidates.push(Ok(Endpoint::Unix(socket_path(directory, host.port))));
                }
                HostName::Network(name) => match resolve(name, host.port) {
                    Ok(addresses) if addresses.is_empty() => {
                        candidates.push(Err(unresolved(name, "it has no address")));
                    }
                    Ok(addresses) => candidates.extend(addresses.into_iter().map(|address| {
                        Ok(Endpoint::Tcp {
                            host: name.clone(),
                            address,
                        })
                    })),
                    Err(error) => candidates.push(Err(unresolved(name, error))),
                },
            }
        }
        Addresses {
            candidates: candidates.into(),
        }
    }

    /// A new row of attempts, from the first address on.
    pub fn attempts(&self) -> Attempts {
        let mut attempts = Attempts {
            addresses: self.clone(),
            place: 0,
            failures: Vec::new(),
            hint: None,
            refused_with: SqlState::NONE,
        };
        attempts.pass_unresolved();
        attempts
    }
}

/// One connection's attempts.
#[derive(Clone, Debug)]
pub struct Attempts {
    addresses: Addresses,
    place: usize,
    failures: Vec<String>,
    /// What to do about the last of them.
    hint: Option<&'static str>,
    /// The code with which the last server that answered refused.
    refused_with: SqlState,
}

/// How an attempt ended that did not give a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// There was no server, or no answer, or it made no sense.
    Unreachable(String),
    /// The server answered and refused, with this message as libpq prints it.
    Refused {
        /// Its SQLSTATE.
        sqlstate: SqlState,
        /// Its text.
        message: String,
    },
}

impl Attempts {
    /// The address to try now; `None` if there is none left.
    pub fn current(&self) -> Option<&Endpoint> {
        self.addresses.candidates.get(self.place)?.as_ref().ok()
    }

    /// Notes how the current attempt ended and gives the next address. A server that refuses ends
    /// the row: the next host would only hide, say, a wrong password.
    pub fn fail(&mut self, failure: AttemptFailure) -> Option<&Endpoint> {
        let (message, is_final, hint) = match failure {
            AttemptFailure::Unreachable(message) => (message, false, None),
            AttemptFailure::Refused { sqlstate, message } => {
                self.refused_with = sqlstate;
                (message, sqlstate != CANNOT_CONNECT_NOW, remedy(sqlstate))
            }
        };
        self.hint = hint;
        if let Some(endpoint) = self.current() {
            let told = format!("connection to {endpoint} failed: {message}");
            self.failures.push(told);
        }
        self.place = match is_final {
            true => self.addresses.candidates.len(),
            false => self.place + 1,
        };
        self.pass_unresolved();
        self.current()
    }

    /// All that failed, a line each, with the database and the user that were asked for, and what to
    /// do about it where that is known.
    pub fn report(&self, target: &Target) -> Report {
        let report = Report::new(self.failures.join("\n")).detail(format!(
            "Tried as user \"{}\" to database \"{}\".",
            target.user, target.database
        ));
        Report {
            sqlstate: self.refused_with,
            hint: self.hint.map(str::to_owned),
            ..report
        }
    }

    fn pass_unresolved(&mut self) {
        while let Some(Err(error)) = self.addresses.candidates.get(self.place) {
            self.failures.push(error.clone());
            self.place += 1;
        }
    }
}

/// What to do about a refusal, where the server's words do not say it.
fn remedy(sqlstate: SqlState) -> Option<&'static str> {
    (sqlstate == SqlState::TOO_MANY_CONNECTIONS).then_some(
        "Use fewer clients (-c), or raise max_connections of the server or the limit of the role or \
         database that is named.",
    )
}

/// Where a server's socket lies in its directory. In an abstract name the directory begins with
/// `@`, and so does the path.
fn socket_path(directory: &Path, port: u16) -> std::path::PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

fn unresolved(name: &str, error: impl std::fmt::Display) -> String {
    format!("could not translate host name \"{name}\" to address: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Vec<Host> {
        names
            .iter()
            .map(|name| Host::new(HostName::parse(name), 5432))
            .collect()
    }

    /// Two addresses for "two", none for "empty", an error for "unknown", else the number itself.
    fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let address = |text: &str| SocketAddr::new(text.parse().unwrap(), port);
        match name {
            "two" => Ok(vec![address("::1"), address("127.0.0.1")]),
            "empty" => Ok(vec![]),
            "unknown" => Err(io::Error::other("Name or service not known")),
            number => Ok(vec![address(number)]),
        }
    }

    fn target() -> Target {
        Target::plain(hosts(&["two"]), "me", "bench")
    }

    fn unreachable(message: &str) -> AttemptFailure {
        AttemptFailure::Unreachable(message.to_owned())
    }

    #[test]
    fn addresses_are_tried_in_order_and_each_failure_is_told() {
        let names = ["/tmp", "unknown", "two", "@/abs", "empty", "127.0.0.2"];
        let mut attempts = Addresses::look_up(&hosts(&names), resolve).attempts();
        let mut tried = 0;
        while attempts.current().is_some() {
            tried += 1;
            attempts.fail(unreachable(&format!("reason {tried}")));
        }
        assert_eq!(tried, 5);
        let report = attempts.report(&target());
        let lines: Vec<&str> = report.message.lines().collect();
        assert_eq!(
            lines,
            [
                "connection to server on socket \"/tmp/.s.PGSQL.5432\" failed: reason 1",
                "could not translate host name \"unknown\" to address: Name or service not known",
                "connection to server at \"two\" (::1), port 5432 failed: reason 2",
                "connection to server at \"two\" (127.0.0.1), port 5432 failed: reason 3",
                "connection to server on socket \"@/abs/.s.PGSQL.5432\" failed: reason 4",
                "could not translate host name \"empty\" to address: it has no address",
                "connection to server at \"127.0.0.2\", port 5432 failed: reason 5",
            ]
        );
        assert_eq!(
            report.detail.as_deref(),
            Some("Tried as user \"me\" to database \"bench\".")
        );
    }

    #[test]
    fn a_refusal_ends_the_row_unless_the_server_is_only_not_ready() {
        for (sqlstate, goes_on) in [(*b"28P01", false), (*b"3D000", false), (*b"57P03", true)] {
            let mut attempts = Addresses::look_up(&hosts(&["two"]), resolve).attempts();
            let next = attempts.fail(AttemptFailure::Refused {
                sqlstate: SqlState(sqlstate),
                message: "FATAL:  no".to_owned(),
            });
            assert_eq!(next.is_some(), goes_on);
            let report = attempts.report(&target());
            assert_eq!(
                report.message,
                "connection to server at \"two\" (::1), port 5432 failed: FATAL:  no"
            );
            assert_eq!(report.sqlstate, SqlState(sqlstate));
        }
    }

    #[test]
    fn when_all_connections_are_taken_it_is_told_what_to_do() {
        for (sqlstate, hinted) in [(*b"53300", true), (*b"28P01", false)] {
            let mut attempts = Addresses::look_up(&hosts(&["two"]), resolve).attempts();
            attempts.fail(AttemptFailure::Refused {
                sqlstate: SqlState(sqlstate),
                message: "FATAL:  no".to_owned(),
            });
            let hint = attempts.report(&target()).hint;
            let told = hint.is_some_and(|hint| hint.contains("max_connections"));
            assert_eq!(told, hinted);
        }
    }

    #[test]
    fn with_no_address_at_all_there_is_nothing_to_try() {
        let mut attempts = Addresses::look_up(&hosts(&["unknown"]), resolve).attempts();
        assert_eq!(attempts.current(), None);
        assert_eq!(attempts.fail(unreachable("nobody asked")), None);
        assert_eq!(
            attempts.report(&target()).message,
            "could not translate host name \"unknown\" to address: Name or service not known"
        );
    }

    #[test]
    fn rows_of_attempts_are_independent() {
        let addresses = Addresses::look_up(&hosts(&["two"]), resolve);
        let mut first = addresses.attempts();
        first.fail(unreachable("x"));
        assert_ne!(first.current(), addresses.attempts().current());
    }
}
