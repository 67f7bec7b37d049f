//! In which order a server's addresses are tried, encrypted or not, and what is said when none of
//! them works: hosts × addresses × encryption, once more if no standby was found.
//!
//! Pure: whoever opens sockets reports how each attempt ended. Resolving names is handed in, and so
//! is chance.
//!
//! How it is driven:
//!
//! 1. [`Addresses::look_up`] once; [`Addresses::attempts`] for each connection.
//! 2. [`Attempts::current`] says where to open a socket and whether to ask for encryption there.
//!    Under [`Encryption::Preferred`] a server that answers "no" is talked to in plain on the same
//!    socket, and [`Attempts::go_on_plain`] is told.
//! 3. Once the server is ready for commands, [`Attempts::judge`] says whether it is of the kind
//!    that is wanted, or what it has to be asked.
//! 4. Whatever goes wrong before goes to [`Attempts::fail`], which gives the next attempt; if
//!    there is none, [`Attempts::report`] tells of all.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::error::Report;
use crate::sqlstate::SqlState;

use super::{
    Endpoint, Host, HostName, HostOrder, ServerState, SessionAttributes, SslMode, Target, Verdict,
};

/// The server is starting up or shutting down, or is a standby that takes no connections: another
/// host may do better.
const CANNOT_CONNECT_NOW: SqlState = SqlState(*b"57P03");

/// Class of the codes by which a server does not let somebody in. It may do so by rules that tell
/// encrypted from plain connections.
const INVALID_AUTHORIZATION: &[u8] = b"28";

/// The password is wrong.
const INVALID_PASSWORD: SqlState = SqlState(*b"28P01");

/// All addresses of a target, resolved once and shared by all who connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// In order, all of a host in a row; a name that could not be resolved keeps its place as an
    /// error.
    candidates: Arc<[Candidate]>,
    order: HostOrder,
    mode: SslMode,
    wanted: SessionAttributes,
}

/// One address of one host.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    /// Its place in the target's list.
    host: usize,
    endpoint: Result<Endpoint, String>,
}

/// What to try now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// Which of the target's hosts it is, for [`Target::password_for`].
    pub host: usize,
    /// Where to open a socket.
    pub endpoint: &'a Endpoint,
    /// Whether to encrypt.
    pub encryption: Encryption,
}

/// Whether an attempt is to be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// No: nothing is asked.
    Plain,
    /// If the server can, else it goes on in plain on the same socket.
    Preferred,
    /// Yes, or the attempt has failed.
    Required,
}

/// One connection's attempts.
#[derive(Clone, Debug)]
pub struct Attempts {
    addresses: Addresses,
    /// Candidates in the order of this connection; empty for the given order.
    shuffled: Vec<usize>,
    place: usize,
    step: Step,
    /// No host was a standby, and now any will do.
    second_pass: bool,
    /// There once an attempt has failed: every client keeps its attempts.
    failures: Option<Box<Failures>>,
    /// They ended because no password is known.
    lacks_password: bool,
}

/// The attempts that failed.
#[derive(Clone, Debug, Default)]
struct Failures {
    told: Vec<String>,
    /// What to do about the last of them.
    hint: Option<&'static str>,
    /// Of the last server that answered: with which code it refused, and which host it is.
    refusal: Option<(SqlState, usize)>,
}

/// How far the attempts at one address are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// What the mode begins with.
    First,
    /// It began encrypted, and goes on in plain on the same socket.
    FirstWentPlain,
    /// On a new socket, with the other kind of encryption.
    Second,
}

/// How an attempt ended that did not give a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// There was no server, or no answer, or it made no sense, or the connection was lost.
    Unreachable(String),
    /// The time for an attempt is over.
    TimedOut,
    /// The server answered and refused, with this message as libpq prints it.
    Refused {
        /// Its SQLSTATE.
        sqlstate: SqlState,
        /// Its text.
        message: String,
    },
    /// The server does not encrypt, and it has to.
    NoTls,
    /// The TLS handshake failed, or the server's certificate is none to trust.
    Handshake(String),
    /// The server asks for a password, and none is known. All attempts may be made again with one.
    PasswordRequired,
    /// The server let us in, and is not of the kind that is wanted: the reason of
    /// [`Verdict::Unsuitable`].
    Unsuitable(&'static str),
    /// We refuse the server: it asks for a way to log in that is not allowed, is not run by whom it
    /// should be, or does not know the password that it asks for. Nothing else is tried, since that
    /// could be what an attacker hopes for.
    Unacceptable(String),
}

/// What an attempt's failure leaves to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The same address with the other kind of encryption, if the mode has two.
    OtherEncryption,
    Address,
    /// No further address of this host either.
    Host,
    Nothing,
}

impl Addresses {
    /// Looks up the hosts in order; `resolve` is given name and port.
    pub fn look_up(
        target: &Target,
        mut resolve: impl FnMut(&str, u16) -> io::Result<Vec<SocketAddr>>,
    ) -> Self {
        let mut candidates = Vec::new();
        for (number, host) in target.hosts.iter().enumerate() {
            let endpoints = endpoints(host, &mut resolve);
            candidates.extend(endpoints.into_iter().map(|endpoint| Candidate {
                host: number,
                endpoint,
            }));
        }
        Addresses {
            candidates: candidates.into(),
            order: target.host_order,
            mode: target.tls.mode,
            wanted: target.session_attributes,
        }
    }

    /// A new row of attempts, from the first address on. `draw` gives a random number below the
    /// one that it is given; it is asked only if hosts are to be tried in random order.
    pub fn attempts(&self, draw: impl FnMut(usize) -> usize) -> Attempts {
        let mut attempts = Attempts {
            addresses: self.clone(),
            shuffled: match self.order {
                HostOrder::Given => Vec::new(),
                HostOrder::Random => self.shuffle(draw),
            },
            place: 0,
            step: Step::First,
            second_pass: false,
            failures: None,
            lacks_password: false,
        };
        attempts.pass_unresolved();
        attempts
    }

    /// Places of the candidates: hosts in random order, and so the addresses of each.
    fn shuffle(&self, mut draw: impl FnMut(usize) -> usize) -> Vec<usize> {
        let mut hosts: Vec<Vec<usize>> = Vec::new();
        for (place, candidate) in self.candidates.iter().enumerate() {
            match hosts.last_mut() {
                Some(host) if self.candidates[host[0]].host == candidate.host => host.push(place),
                _ => hosts.push(vec![place]),
            }
        }
        shuffle(&mut hosts, &mut draw);
        for host in &mut hosts {
            shuffle(host, &mut draw);
        }
        hosts.concat()
    }
}

impl Attempts {
    /// What to try now; `None` if nothing is left.
    pub fn current(&self) -> Option<Attempt<'_>> {
        let candidate = self.candidate()?;
        let endpoint = candidate.endpoint.as_ref().ok()?;
        Some(Attempt {
            host: candidate.host,
            endpoint,
            encryption: self.encryption(endpoint),
        })
    }

    /// The server does not encrypt, which was only preferred: the attempt goes on without, on the
    /// same socket.
    pub fn go_on_plain(&mut self) {
        if self.step == Step::First {
            self.step = Step::FirstWentPlain;
        }
    }

    /// Whether a server that let us in will do.
    pub fn judge(&self, state: ServerState) -> Verdict {
        match self.second_pass {
            true => Verdict::Suitable,
            false => state.judge(self.addresses.wanted),
        }
    }

    /// Notes how the current attempt ended and gives the next one.
    pub fn fail(&mut self, failure: AttemptFailure) -> Option<Attempt<'_>> {
        self.note(&failure);
        match failure.next() {
            Next::OtherEncryption if self.has_other_encryption() => self.step = Step::Second,
            Next::Address => self.advance(self.place + 1),
            Next::Host => self.advance(self.next_host()),
            Next::OtherEncryption | Next::Nothing => self.place = self.addresses.candidates.len(),
        }
        self.current()
    }

    /// All that failed, a line each, with the database and the user that were asked for, and what to
    /// do about it where that is known.
    pub fn report(&self, target: &Target) -> Report {
        let mut detail = format!(
            "Tried as user \"{}\" to database \"{}\".",
            target.user, target.database
        );
        let none = Failures::default();
        let failures = self.failures.as_deref().unwrap_or(&none);
        if let Some((INVALID_PASSWORD, host)) = failures.refusal
            && let Some(file) = target.password_file_of(host)
        {
            detail.push_str(&format!(
                " The password is from file \"{}\".",
                file.display()
            ));
        }
        Report {
            sqlstate: failures
                .refusal
                .map_or(SqlState::NONE, |(sqlstate, _)| sqlstate),
            hint: failures.hint.map(str::to_owned),
            ..Report::new(failures.told.join("\n")).detail(detail)
        }
    }

    /// Whether they ended because the server asks for a password and none is known.
    pub fn lack_password(&self) -> bool {
        self.lacks_password
    }

    fn candidate(&self) -> Option<&Candidate> {
        self.candidate_at(self.place)
    }

    fn candidate_at(&self, place: usize) -> Option<&Candidate> {
        let place = match self.shuffled.is_empty() {
            true => place,
            false => *self.shuffled.get(place)?,
        };
        self.addresses.candidates.get(place)
    }

    /// Sockets of the same machine are never encrypted, whatever the mode.
    fn encryption(&self, endpoint: &Endpoint) -> Encryption {
        if let Endpoint::Unix(_) = endpoint {
            return Encryption::Plain;
        }
        match (self.addresses.mode, self.step) {
            (SslMode::Disable, _)
            | (SslMode::Allow, Step::First | Step::FirstWentPlain)
            | (SslMode::Prefer, Step::FirstWentPlain | Step::Second) => Encryption::Plain,
            (SslMode::Prefer, Step::First) => Encryption::Preferred,
            (SslMode::Allow, Step::Second)
            | (SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull, _) => {
                Encryption::Required
            }
        }
    }

    fn has_other_encryption(&self) -> bool {
        let over_network = self
            .current()
            .is_some_and(|attempt| matches!(attempt.endpoint, Endpoint::Tcp { .. }));
        over_network
            && self.step == Step::First
            && matches!(self.addresses.mode, SslMode::Allow | SslMode::Prefer)
    }

    fn note(&mut self, failure: &AttemptFailure) {
        let Some(attempt) = self.current() else {
            return;
        };
        let (host, told) = (
            attempt.host,
            format!("connection to {} failed: {failure}", attempt.endpoint),
        );
        self.lacks_password = *failure == AttemptFailure::PasswordRequired;
        let failures = self.failures.get_or_insert_default();
        failures.told.push(told);
        failures.hint = failure.remedy();
        if let AttemptFailure::Refused { sqlstate, .. } = failure {
            failures.refusal = Some((*sqlstate, host));
        }
    }

    /// Place of the next host's first address.
    fn next_host(&self) -> usize {
        let host = |place| self.candidate_at(place).map(|candidate| candidate.host);
        let current = host(self.place);
        (self.place..)
            .find(|place| host(*place).is_none() || host(*place) != current)
            .unwrap_or(self.place)
    }

    fn advance(&mut self, place: usize) {
        self.place = place;
        self.step = Step::First;
        self.pass_unresolved();
        let begin_again = self.addresses.wanted == SessionAttributes::PreferStandby
            && !self.second_pass
            && self.candidate().is_none();
        if begin_again {
            self.second_pass = true;
            self.place = 0;
            self.pass_unresolved();
        }
    }

    fn pass_unresolved(&mut self) {
        while let Some(Err(error)) = self.candidate().map(|candidate| &candidate.endpoint) {
            let told = error.clone();
            self.failures.get_or_insert_default().told.push(told);
            self.place += 1;
        }
    }
}

impl AttemptFailure {
    fn next(&self) -> Next {
        match self {
            AttemptFailure::Unreachable(_) | AttemptFailure::TimedOut => Next::Address,
            AttemptFailure::Refused { sqlstate, .. } if *sqlstate == CANNOT_CONNECT_NOW => {
                Next::Host
            }
            AttemptFailure::Refused { sqlstate, .. }
                if sqlstate.0.starts_with(INVALID_AUTHORIZATION) =>
            {
                Next::OtherEncryption
            }
            // The next host would only hide, say, that the database does not exist.
            AttemptFailure::Refused { .. } => Next::Nothing,
            AttemptFailure::Handshake(_) => Next::OtherEncryption,
            AttemptFailure::Unsuitable(_) => Next::Host,
            AttemptFailure::PasswordRequired
            | AttemptFailure::NoTls
            | AttemptFailure::Unacceptable(_) => Next::Nothing,
        }
    }

    /// What to do about it, where the words for it do not say so.
    fn remedy(&self) -> Option<&'static str> {
        match self {
            AttemptFailure::Refused { sqlstate, .. }
                if *sqlstate == SqlState::TOO_MANY_CONNECTIONS =>
            {
                Some(
                    "Use fewer clients (-c), or raise max_connections of the server or the limit of \
                     the role or database that is named.",
                )
            }
            AttemptFailure::NoTls => {
                Some("Turn ssl on in the server, or use an sslmode below \"require\".")
            }
            AttemptFailure::PasswordRequired => Some(
                "Use a password file (~/.pgpass) or PGPASSWORD, or run the program on a terminal, where \
                 it asks.",
            ),
            AttemptFailure::Unreachable(_)
            | AttemptFailure::TimedOut
            | AttemptFailure::Refused { .. }
            | AttemptFailure::Handshake(_)
            | AttemptFailure::Unsuitable(_)
            | AttemptFailure::Unacceptable(_) => None,
        }
    }
}

impl std::fmt::Display for AttemptFailure {
    /// Why, to follow "failed: ".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AttemptFailure::Unreachable(reason)
            | AttemptFailure::Handshake(reason)
            | AttemptFailure::Unacceptable(reason) => f.write_str(reason),
            AttemptFailure::TimedOut => f.write_str("timeout expired"),
            AttemptFailure::Refused { message, .. } => f.write_str(message),
            AttemptFailure::NoTls => {
                f.write_str("server does not support SSL, but SSL was required")
            }
            AttemptFailure::PasswordRequired => {
                f.write_str("the server asks for a password, and none was supplied")
            }
            AttemptFailure::Unsuitable(reason) => f.write_str(reason),
        }
    }
}

/// Where a host can be reached, or why it is not known.
fn endpoints(
    host: &Host,
    resolve: &mut impl FnMut(&str, u16) -> io::Result<Vec<SocketAddr>>,
) -> Vec<Result<Endpoint, String>> {
    let name = match (&host.name, host.address) {
        (name, Some(address)) => {
            let host_name = match name {
                HostName::SocketDirectory(directory) => directory.display().to_string(),
                HostName::Network(name) => name.clone(),
            };
            return vec![Ok(Endpoint::Tcp {
                host: host_name,
                address: SocketAddr::new(address, host.port),
            })];
        }
        (HostName::SocketDirectory(directory), None) => {
            return vec![Ok(Endpoint::Unix(socket_path(directory, host.port)))];
        }
        (HostName::Network(name), None) => name,
    };
    match resolve(name, host.port) {
        Ok(addresses) if addresses.is_empty() => vec![Err(unresolved(name, "it has no address"))],
        Ok(addresses) => addresses
            .into_iter()
            .map(|address| {
                Ok(Endpoint::Tcp {
                    host: name.clone(),
                    address,
                })
            })
            .collect(),
        Err(error) => vec![Err(unresolved(name, error))],
    }
}

/// Fisher and Yates: every order is as likely as any other.
fn shuffle<T>(items: &mut [T], draw: &mut impl FnMut(usize) -> usize) {
    for last in (1..items.len()).rev() {
        items.swap(last, draw(last + 1).min(last));
    }
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

    fn target(names: &[&str]) -> Target {
        Target::plain(hosts(names), "me", "bench")
    }

    fn in_given_order(_: usize) -> usize {
        unreachable!("nothing is shuffled")
    }

    fn attempts(target: &Target) -> Attempts {
        Addresses::look_up(target, resolve).attempts(in_given_order)
    }

    fn unreachable(message: &str) -> AttemptFailure {
        AttemptFailure::Unreachable(message.to_owned())
    }

    #[test]
    fn addresses_are_tried_in_order_and_each_failure_is_told() {
        let names = ["/tmp", "unknown", "two", "@/abs", "empty", "127.0.0.2"];
        let mut attempts = attempts(&target(&names));
        let mut tried = 0;
        while attempts.current().is_some() {
            tried += 1;
            attempts.fail(unreachable(&format!("reason {tried}")));
        }
        assert_eq!(tried, 5);
        let report = attempts.report(&target(&["two"]));
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

    fn refused(sqlstate: &[u8; 5]) -> AttemptFailure {
        AttemptFailure::Refused {
            sqlstate: SqlState(*sqlstate),
            message: "FATAL:  no".to_owned(),
        }
    }

    /// How an attempt ends, by one word; codes are those of a server that refuses.
    fn end(word: &str) -> AttemptFailure {
        match word {
            "unreachable" => unreachable("x"),
            "timeout" => AttemptFailure::TimedOut,
            "handshake" => AttemptFailure::Handshake("alert".to_owned()),
            "no-tls" => AttemptFailure::NoTls,
            "unsuitable" => AttemptFailure::Unsuitable("read-only"),
            "unacceptable" => AttemptFailure::Unacceptable("no signature".to_owned()),
            code => refused(code.as_bytes().try_into().unwrap()),
        }
    }

    fn tell(attempt: Option<Attempt<'_>>) -> Option<String> {
        let attempt = attempt?;
        let place = match attempt.endpoint {
            Endpoint::Unix(_) => "unix".to_owned(),
            Endpoint::Tcp { address, .. } => address.ip().to_string(),
        };
        Some(format!("{place} {:?}", attempt.encryption))
    }

    /// All that is tried, as long as there are ends to give.
    fn tried(target: &Target, ends: &str) -> String {
        let mut attempts = attempts(target);
        let mut all: Vec<String> = tell(attempts.current()).into_iter().collect();
        for word in ends.split(' ') {
            all.extend(tell(attempts.fail(end(word))));
        }
        all.join(", ")
    }

    #[test]
    fn what_follows_depends_on_how_an_attempt_ended() {
        use SslMode::*;
        let cases = [
            // No server at an address: the next address, with the mode's first kind of encryption.
            (
                Disable,
                "unreachable timeout",
                "::1 Plain, 127.0.0.1 Plain, 127.0.0.9 Plain",
            ),
            (Prefer, "unreachable", "::1 Preferred, 127.0.0.1 Preferred"),
            // A server that is not ready: no other address of its host.
            (Require, "57P03 57P03", "::1 Required, 127.0.0.9 Required"),
            // A server that does not let us in may do so with or without encryption, but once.
            (Prefer, "28000 28000", "::1 Preferred, ::1 Plain"),
            (Allow, "28P01 28P01", "::1 Plain, ::1 Required"),
            (Require, "28000", "::1 Required"),
            (Disable, "28000", "::1 Plain"),
            // Other refusals would be the same.
            (Prefer, "3D000", "::1 Preferred"),
            (Allow, "53300", "::1 Plain"),
            // A handshake that fails: in plain, if that is allowed.
            (
                Prefer,
                "handshake unreachable",
                "::1 Preferred, ::1 Plain, 127.0.0.1 Preferred",
            ),
            (Allow, "28000 handshake", "::1 Plain, ::1 Required"),
            (Allow, "28000 no-tls", "::1 Plain, ::1 Required"),
            (VerifyFull, "handshake", "::1 Required"),
            (VerifyCa, "no-tls", "::1 Required"),
            // Whom we refuse is not asked again in plain, and nobody else is.
            (Prefer, "unacceptable", "::1 Preferred"),
            // Not the kind of server that is wanted: the next host.
            (
                Disable,
                "unsuitable unsuitable",
                "::1 Plain, 127.0.0.9 Plain",
            ),
        ];
        for (mode, ends, expected) in cases {
            let mut target = target(&["two", "127.0.0.9"]);
            target.tls.mode = mode;
            assert_eq!(tried(&target, ends), expected, "{mode:?} {ends}");
        }
    }

    #[test]
    fn local_sockets_are_never_encrypted() {
        for (mode, ends, expected) in [
            (SslMode::Require, "unreachable", "unix Plain, ::1 Required"),
            (SslMode::VerifyFull, "timeout", "unix Plain, ::1 Required"),
            (SslMode::Prefer, "28000", "unix Plain"),
        ] {
            let mut target = target(&["/tmp", "two"]);
            target.tls.mode = mode;
            assert_eq!(tried(&target, ends), expected, "{mode:?} {ends}");
        }
    }

    #[test]
    fn if_no_host_is_a_standby_all_are_tried_once_more() {
        let mut target = target(&["127.0.0.8", "127.0.0.9"]);
        target.session_attributes = SessionAttributes::PreferStandby;
        for (ends, expected) in [
            (
                "unsuitable timeout timeout timeout",
                "127.0.0.8 Plain, 127.0.0.9 Plain, 127.0.0.8 Plain, 127.0.0.9 Plain",
            ),
            ("unsuitable 28000", "127.0.0.8 Plain, 127.0.0.9 Plain"),
        ] {
            assert_eq!(tried(&target, ends), expected, "{ends}");
        }
    }

    #[test]
    fn a_server_without_tls_has_no_second_way() {
        let mut target = target(&["two"]);
        target.tls.mode = SslMode::Prefer;
        let mut attempts = attempts(&target);
        attempts.go_on_plain();
        let encryption = attempts.current().map(|attempt| attempt.encryption);
        assert_eq!(encryption, Some(Encryption::Plain));
        assert_eq!(attempts.fail(refused(b"28000")), None);
        target.tls.mode = SslMode::Allow;
        let allowing = Addresses::look_up(&target, resolve).attempts(in_given_order);
        let encryption = allowing.current().map(|attempt| attempt.encryption);
        assert_eq!(encryption, Some(Encryption::Plain));
    }

    #[test]
    fn in_the_second_pass_a_primary_will_do() {
        let mut target = target(&["127.0.0.1"]);
        target.session_attributes = SessionAttributes::PreferStandby;
        let mut attempts = attempts(&target);
        let mut primary = ServerState::default();
        primary.note_parameter(b"in_hot_standby", b"off");
        let Verdict::Unsuitable(reason) = attempts.judge(primary) else {
            panic!("a primary is no standby");
        };
        assert!(attempts.fail(AttemptFailure::Unsuitable(reason)).is_some());
        assert_eq!(attempts.judge(primary), Verdict::Suitable);
    }

    #[test]
    fn hosts_are_shuffled_and_their_addresses_stay_together() {
        let mut target = target(&["two", "127.0.0.7", "unknown", "127.0.0.8"]);
        target.host_order = HostOrder::Random;
        let addresses = Addresses::look_up(&target, resolve);
        let order = |seed| {
            let mut generator = crate::random::Generator::new(seed);
            let mut attempts = addresses.attempts(|bound| generator.index_below(bound));
            let mut hosts = Vec::new();
            while let Some(attempt) = attempts.current() {
                hosts.push(attempt.host);
                attempts.fail(AttemptFailure::TimedOut);
            }
            hosts
        };
        let orders: Vec<Vec<usize>> = (0..64).map(order).collect();
        for first in [0, 1, 3] {
            assert!(orders.iter().any(|order| order[0] == first));
        }
        for order in &orders {
            let place = order.iter().position(|host| *host == 0).unwrap();
            assert_eq!(order[place + 1], 0, "{order:?}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 0, 1, 3]);
        }
    }

    #[test]
    fn a_given_address_is_not_looked_up() {
        let mut target = target(&["unknown", "/tmp"]);
        for host in &mut target.hosts {
            host.address = Some("127.0.0.5".parse().unwrap());
        }
        let attempts = attempts(&target);
        let endpoint = attempts
            .current()
            .map(|attempt| attempt.endpoint.to_string());
        assert_eq!(
            endpoint.as_deref(),
            Some("server at \"unknown\" (127.0.0.5), port 5432")
        );
    }

    #[test]
    fn a_refusal_is_reported_with_its_code_and_the_password_file() {
        let mut target = target(&["two"]);
        target.password_file = Some("/home/me/.pgpass".into());
        target.hosts[0].password = Some("hush".into());
        let mut attempts = attempts(&target);
        attempts.fail(refused(b"28P01"));
        let report = attempts.report(&target);
        assert_eq!(
            report.message,
            "connection to server at \"two\" (::1), port 5432 failed: FATAL:  no"
        );
        assert_eq!(report.sqlstate, SqlState(*b"28P01"));
        let detail = report.detail.unwrap();
        assert!(
            detail.ends_with("The password is from file \"/home/me/.pgpass\"."),
            "{detail}"
        );
        target.password = Some("hush".into());
        assert!(!attempts.report(&target).detail.unwrap().contains(".pgpass"));
    }

    #[test]
    fn when_all_connections_are_taken_it_is_told_what_to_do() {
        for (sqlstate, hinted) in [(*b"53300", true), (*b"28P01", false)] {
            let mut attempts = attempts(&target(&["two"]));
            attempts.fail(refused(&sqlstate));
            let hint = attempts.report(&target(&["two"])).hint;
            let told = hint.is_some_and(|hint| hint.contains("max_connections"));
            assert_eq!(told, hinted);
        }
    }

    #[test]
    fn with_no_address_at_all_there_is_nothing_to_try() {
        let mut attempts = attempts(&target(&["unknown"]));
        assert_eq!(attempts.current(), None);
        assert_eq!(attempts.fail(unreachable("nobody asked")), None);
        assert_eq!(
            attempts.report(&target(&["two"])).message,
            "could not translate host name \"unknown\" to address: Name or service not known"
        );
    }

    #[test]
    fn rows_of_attempts_are_independent() {
        let addresses = Addresses::look_up(&target(&["two"]), resolve);
        let mut first = addresses.attempts(in_given_order);
        first.fail(unreachable("x"));
        let second = addresses.attempts(in_given_order);
        assert_ne!(first.current(), second.current());
    }
}
