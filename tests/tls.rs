//! Encrypted connections to a real server: let in or refused, encrypted or plain, as psql does with
//! the same settings. A sample by default; the whole matrix with `make tls-matrix`.

mod support;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pgmark::conninfo::{SslMode, SslNegotiation, TlsSettings};
use pgmark::tls::Connector;
use pgmark::transport::blocking::encrypt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use support::certificates::{Authority, Identity, KeyKind, Validity, self_signed};
use support::{Finished, Program, Server, pgmark_alone, wait_until};

/// Who is let in: `encrypted` and `plain` only so, `locked` with a password, everyone else as they
/// like.
const RULES: &str = "local all all trust
hostnossl all encrypted 127.0.0.1/32 reject
hostssl all plain 127.0.0.1/32 reject
hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca
host all certified 127.0.0.1/32 reject
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
";

const MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];

/// What is wrong with a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    UnknownAuthority,
    WrongName,
    Expired,
}

const FAULTS: [Fault; 4] = [
    Fault::None,
    Fault::UnknownAuthority,
    Fault::WrongName,
    Fault::Expired,
];

/// Where pgmark knowingly does not do what psql does: the part of a case's name that tells, and the
/// reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "SCRAM signed by Ed25519 prefer require",
        "libpq of PostgreSQL 15 fails where a certificate has no hash to bind by, even if binding is \
         only preferred; pgmark logs in without",
    ),
    (
        "client RsaPss None",
        "the TLS library cannot sign with keys that are restricted to RSA-PSS",
    ),
];

/// The server, its authority, and whose turn it is: tests change its certificate.
struct Stage {
    server: Server,
    ours: Authority,
    other: Authority,
}

fn stage() -> std::sync::MutexGuard<'static, Stage> {
    static STAGE: LazyLock<Mutex<Stage>> = LazyLock::new(|| {
        let server = Server::with(RULES, "log_connections = on\n");
        server
            .client("postgres")
            .batch_execute(
                "CREATE ROLE encrypted LOGIN; CREATE ROLE plain LOGIN; CREATE ROLE certified LOGIN",
            )
            .expect("a new server has no such roles");
        let ours = Authority::new("ours");
        server.install("root.crt", &ours.certificate());
        Mutex::new(Stage {
            server,
            ours,
            other: Authority::new("other"),
        })
    });
    STAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    fn issue(&self, kind: KeyKind, fault: Fault) -> Identity {
        let authority = match fault {
            Fault::UnknownAuthority => &self.other,
            Fault::None | Fault::WrongName | Fault::Expired => &self.ours,
        };
        let name = match fault {
            Fault::WrongName => "elsewhere.example",
            Fault::None | Fault::UnknownAuthority | Fault::Expired => "localhost",
        };
        let validity = match fault {
            Fault::Expired => Validity::Over,
            Fault::None | Fault::UnknownAuthority | Fault::WrongName => Validity::Now,
        };
        authority.issue(kind, "ignored", &[name], validity)
    }

    /// The server shows this from now on.
    fn show(&self, identity: &Identity) {
        static SHOWN: Mutex<u32> = Mutex::new(0);
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *shown += 1;
        let (certificate, key) = (format!("{shown}.crt"), format!("{shown}.key"));
        self.server.install(&certificate, &identity.certificate);
        self.server.install(&key, &identity.key);
        self.set(&[
            ("ssl_ca_file", "root.crt"),
            ("ssl_key_file", &key),
            ("ssl", "on"),
            ("ssl_cert_file", &certificate),
        ]);
        // The server goes on with the certificate before if it cannot use this one.
        let log = self.server.log();
        let complaint = "SSL configuration was not reloaded";
        assert!(!log.contains(complaint), "{log}");
    }

    /// Changes settings and waits until new sessions have the last of them, and so all.
    fn set(&self, settings: &[(&str, &str)]) {
        let mut client = self.server.client("postgres");
        for (name, value) in settings {
            let change = format!("ALTER SYSTEM SET {name} = '{value}'");
            client.batch_execute(&change).expect("it is a setting");
        }
        client
            .batch_execute("SELECT pg_reload_conf()")
            .expect("a superuser may");
        let (name, value) = settings.last().expect("something is to be changed");
        wait_until("the server has reloaded its settings", || {
            let now: String = self.server.value("postgres", &format!("SHOW {name}"));
            now == *value
        });
    }

    /// What becomes of a case with psql and with pgmark.
    fn compare(&self, case: &Case) -> (Outcome, Outcome) {
        let psql = self.server.program("psql").expect("psql is installed");
        let asking = Program::new(&psql).args("-X -w -c").arg("SELECT 1");
        (
            self.outcome(case, asking),
            self.outcome(case, pgmark_alone().args("-n -t 1").script("SELECT 1;")),
        )
    }

    fn outcome(&self, case: &Case, program: Program) -> Outcome {
        static NUMBER: Mutex<u32> = Mutex::new(0);
        let name = {
            let mut number = NUMBER.lock().unwrap_or_else(PoisonError::into_inner);
            *number += 1;
            format!("case{number}")
        };
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut program = program
            .env("HOME", home.path())
            .env("PGHOST", "localhost")
            .env("PGHOSTADDR", "127.0.0.1")
            .env("PGPORT", self.server.port().to_string())
            .env("PGDATABASE", "postgres")
            .env("PGAPPNAME", &name);
        for (variable, value) in &case.settings {
            program = program.env(variable, value);
        }
        let finished = program.run();
        if finished.status != Some(0) {
            return Outcome::Refused(finished.stderr);
        }
        self.how(&name, &finished)
    }

    /// Whether a program's sessions were encrypted, as the server saw them: all of them or none.
    fn how(&self, application_name: &str, finished: &Finished) -> Outcome {
        let log = self.server.log();
        let suffix = format!("application_name={application_name}");
        let sessions: Vec<bool> = log
            .lines()
            .filter(|line| line.contains("connection authorized") && is_of(line, &suffix))
            .map(|line| line.contains("SSL enabled"))
            .collect();
        match sessions.first() {
            Some(first) if sessions.iter().any(|encrypted| encrypted != first) => {
                panic!("only some sessions of {application_name} are encrypted\n{finished}\n{log}")
            }
            Some(true) => Outcome::Encrypted,
            Some(false) => Outcome::Plain,
            None => panic!("nobody called {application_name} was let in\n{finished}\n{log}"),
        }
    }
}

/// Whether a line of the log has this word, and not only as the beginning of a longer one.
fn is_of(line: &str, word: &str) -> bool {
    let rest = line.split_once(word).map(|(_, rest)| rest);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Settings, under a name for messages.
struct Case {
    name: String,
    settings: Vec<(&'static str, String)>,
}

enum Outcome {
    Encrypted,
    Plain,
    /// With what was said.
    Refused(String),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Encrypted => f.write_str("encrypted"),
            Outcome::Plain => f.write_str("plain"),
            Outcome::Refused(message) => write!(f, "refused ({})", message.trim_end()),
        }
    }
}

impl Outcome {
    fn is_as(&self, other: &Outcome) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Cases that differed, to be told of all at once, and how many there were.
#[derive(Default)]
struct Tally {
    cases: usize,
    differences: Vec<String>,
}

impl Tally {
    fn check(&mut self, stage: &Stage, case: &Case) {
        self.cases += 1;
        let (psql, pgmark) = stage.compare(case);
        let is_excepted = EXCEPTIONS.iter().any(|(part, _)| case.name.contains(part));
        if psql.is_as(&pgmark) == is_excepted {
            let complaint = match is_excepted {
                true => "is listed as an exception and is none",
                false => "differs",
            };
            self.differences.push(format!(
                "{} {complaint}: psql {psql}\n    pgmark {pgmark}",
                case.name
            ));
        }
    }

    fn finish(self) {
        let Tally { cases, differences } = self;
        assert!(cases > 0);
        assert!(
            differences.is_empty(),
            "{} of {cases} cases:\n{}",
            differences.len(),
            differences.join("\n")
        );
    }
}

/// Every mode with and without an authority to trust, as each of `users`.
fn modes(name: &str, root: &Path, users: &[&str]) -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in MODES {
        for user in users {
            for trusted in [Some(root), None] {
                let mut settings = vec![("PGSSLMODE", mode.to_owned()), ("PGUSER", (*user).into())];
                settings.extend(trusted.map(|root| ("PGSSLROOTCERT", root.display().to_string())));
                cases.push(Case {
                    name: format!("{name} {mode} as {user}, roots {}", trusted.is_some()),
                    settings,
                });
            }
        }
    }
    cases
}

/// All modes and users with servers of these kinds of keys and these faults.
fn try_all(kinds: &[KeyKind], users: &[&str]) {
    let stage = stage();
    let mut tally = Tally::default();
    let files = tempfile::tempdir().expect("a temporary directory");
    let root = files.path().join("root.crt");
    std::fs::write(&root, stage.ours.certificate()).expect("the directory is ours");
    for kind in kinds {
        for fault in FAULTS {
            stage.show(&stage.issue(*kind, fault));
            for case in modes(&format!("{kind:?} {fault:?}"), &root, users) {
                tally.check(&stage, &case);
            }
        }
    }
    stage.set(&[("ssl", "off")]);
    for case in modes("no TLS", &root, users) {
        tally.check(&stage, &case);
    }
    tally.finish();
}

#[test]
fn a_sample_is_let_in_or_refused_as_psql_is() {
    try_all(&[KeyKind::P256], &["postgres"]);
}

#[test]
#[ignore = "takes minutes; make tls-matrix"]
fn the_whole_matrix_is_let_in_or_refused_as_psql_is() {
    try_all(&KeyKind::ALL, &["postgres", "encrypted", "plain"]);
}

/// Certificates as people make them by hand, with the commands of PostgreSQL's manual.
#[test]
fn certificates_made_by_hand_are_taken_as_psql_takes_them() {
    let stage = stage();
    let mut tally = Tally::default();
    let files = tempfile::tempdir().expect("a temporary directory");
    let version_1 = stage.ours.issue_version_1("localhost");
    let elsewhere = stage.ours.issue_version_1("elsewhere");
    let own = self_signed("rsa:2048");
    let stranger = self_signed("ec -pkeyopt ec_paramgen_curve:P-256");
    let ours = stage.ours.certificate();
    for (name, identity, root) in [
        ("version 1", &version_1, &ours),
        ("version 1, wrong name", &elsewhere, &ours),
        ("its own authority", &own, &own.certificate),
        ("another's authority", &own, &stranger.certificate),
    ] {
        stage.show(identity);
        let path = files.path().join("root.crt");
        std::fs::write(&path, root).expect("the directory is ours");
        for case in modes(name, &path, &["encrypted"]) {
            tally.check(&stage, &case);
        }
    }
    tally.finish();
}

#[test]
fn logins_are_bound_to_the_connection_as_psql_binds_them() {
    let stage = stage();
    let mut tally = Tally::default();
    let mut servers = vec![("signed by Ed25519".to_owned(), self_signed("ed25519"))];
    servers.extend(KeyKind::ALL.map(|kind| (format!("{kind:?}"), stage.issue(kind, Fault::None))));
    for (name, identity) in servers {
        stage.show(&identity);
        for binding in ["disable", "prefer", "require"] {
            for mode in ["disable", "require"] {
                let case = Case {
                    name: format!("SCRAM {name} {binding} {mode}"),
                    settings: vec![
                        ("PGSSLMODE", mode.to_owned()),
                        ("PGCHANNELBINDING", binding.to_owned()),
                        ("PGUSER", "locked".to_owned()),
                        ("PGPASSWORD", "open sesame".to_owned()),
                    ],
                };
                tally.check(&stage, &case);
            }
        }
    }
    tally.finish();
}

#[test]
fn client_certificates_are_shown_as_psql_shows_them() {
    let stage = stage();
    let mut tally = Tally::default();
    stage.show(&stage.issue(KeyKind::Rsa, Fault::None));
    let files = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| files.path().join(name).display().to_string();
    for kind in KeyKind::ALL {
        for fault in [Fault::None, Fault::UnknownAuthority, Fault::Expired] {
            let identity = stage.issue(kind, fault);
            let (certificate, key) = (path("client.crt"), path("client.key"));
            std::fs::write(&certificate, &identity.certificate).expect("the directory is ours");
            std::fs::write(&key, &identity.key).expect("the directory is ours");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&key, mode).expect("it is ours");
            for user in ["certified", "encrypted"] {
                tally.check(
                    &stage,
                    &Case {
                        name: format!("client {kind:?} {fault:?} as {user}"),
                        settings: vec![
                            ("PGSSLMODE", "require".to_owned()),
                            ("PGSSLCERT", certificate.clone()),
                            ("PGSSLKEY", key.clone()),
                            ("PGUSER", user.to_owned()),
                        ],
                    },
                );
            }
        }
    }
    let nothing_to_show = Case {
        name: "no client certificate".to_owned(),
        settings: vec![
            ("PGSSLMODE", "require".to_owned()),
            ("PGUSER", "certified".to_owned()),
        ],
    };
    tally.check(&stage, &nothing_to_show);
    tally.finish();
}

/// The installed psql may be too old to know the setting.
#[test]
fn a_login_that_is_not_the_required_one_is_refused() {
    let stage = stage();
    stage.show(&stage.issue(KeyKind::P256, Fault::None));
    for (user, required, refused_with) in [
        ("locked", "scram-sha-256", None),
        (
            "locked",
            "md5",
            Some("authentication method requirement \"md5\" failed"),
        ),
        (
            "locked",
            "!scram-sha-256",
            Some("\"!scram-sha-256\" failed"),
        ),
        ("postgres", "none", None),
        (
            "postgres",
            "scram-sha-256",
            Some("\"scram-sha-256\" failed"),
        ),
    ] {
        let case = Case {
            name: format!("{required} as {user}"),
            settings: vec![
                ("PGSSLMODE", "require".to_owned()),
                ("PGUSER", user.to_owned()),
                ("PGPASSWORD", "open sesame".to_owned()),
                ("PGREQUIREAUTH", required.to_owned()),
            ],
        };
        let outcome = stage.outcome(&case, pgmark_alone().args("-n -t 1").script("SELECT 1;"));
        match (&outcome, refused_with) {
            (Outcome::Encrypted, None) => {}
            (Outcome::Refused(said), Some(words)) => assert!(said.contains(words), "{said}"),
            (Outcome::Encrypted | Outcome::Plain | Outcome::Refused(_), _) => {
                panic!("{}: {outcome}", case.name);
            }
        }
    }
}

#[test]
fn a_stop_reaches_the_server_although_the_connection_is_encrypted() {
    let stage = stage();
    stage.show(&stage.issue(KeyKind::P256, Fault::None));
    let running = pgmark_alone()
        .args("-i -I dtG -s 100 -h 127.0.0.1 -U postgres")
        .env("PGPORT", stage.server.port().to_string())
        .env("PGDATABASE", "postgres")
        .env("PGSSLMODE", "require")
        .start();
    // Between two statements a stop needs no cancelling.
    wait_until("the server is busy", || {
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                    AND query ILIKE 'insert into pgbench_accounts%'";
        stage.server.value::<i64>("postgres", busy) > 0
    });
    running.signal(support::Signal::INT);
    running.finish().expect_status(130);
    let log = stage.server.log();
    assert!(
        log.contains("canceling statement due to user request"),
        "{log}"
    );
}

#[test]
fn clients_under_load_are_encrypted_and_cancelled_over_tls() {
    let stage = stage();
    stage.show(&stage.issue(KeyKind::P256, Fault::None));
    let encrypted = |application_name: &str| {
        pgmark_alone()
            .args("-n -h 127.0.0.1 -U encrypted")
            .env("PGPORT", stage.server.port().to_string())
            .env("PGDATABASE", "postgres")
            .env("PGAPPNAME", application_name)
            .env("PGSSLMODE", "require")
    };
    // Replies and statements of many records, and both ways of connecting.
    let large = "SELECT repeat('x', 300000), ':padding';".replace(":padding", &"y".repeat(200_000));
    for options in ["-c 8 -j 2 -t 20", "-c 4 -j 2 -t 5 -C -M prepared"] {
        let finished = encrypted("loaded")
            .args(options)
            .script(&large)
            .script("SELECT 1;")
            .run()
            .expect_status(0);
        assert!(
            finished.stdout.contains("TLSv1.3, TLS_AES_256_GCM_SHA384"),
            "{finished}"
        );
    }
    let running = encrypted("dozing")
        .args("-c 2 -T 60")
        .script("SELECT pg_sleep(600);")
        .start();
    wait_until("the clients are at work", || {
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                    AND application_name = 'dozing' AND query LIKE '%pg_sleep%'";
        stage.server.value::<i64>("postgres", busy) == 2
    });
    // The second one cancels.
    running.signal(support::Signal::INT);
    running.signal(support::Signal::TERM);
    let finished = running.finish();
    assert!(matches!(finished.status, Some(130 | 143)), "{finished}");
    wait_until("the server has cancelled both", || {
        let log = stage.server.log();
        log.matches("canceling statement due to user request")
            .count()
            >= 2
    });
}

/// Ends the encryption of whoever connects with a certificate of its own, and begins another one to
/// the server; `port` is the server's.
fn man_in_the_middle(port: u16, identity: &Identity) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let own_port = listener.local_addr().expect("it is bound").port();
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider's")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
        .map(Arc::new)
        .expect("the key is that of the certificate");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || pass_on(client, config, port));
        }
    });
    own_port
}

/// Client and server speak in turns, each message in one record.
fn pass_on(mut client: TcpStream, config: Arc<rustls::ServerConfig>, port: u16) -> io::Result<()> {
    client.read_exact(&mut [0; 8])?;
    client.write_all(b"S")?;
    let connection = rustls::ServerConnection::new(config).expect("a server's settings");
    let mut client = rustls::StreamOwned::new(connection, client);
    let trusting = TlsSettings {
        mode: SslMode::Require,
        ..TlsSettings::disabled()
    };
    let connector = Connector::new(&trusting).expect("no files to read");
    let server = TcpStream::connect(("127.0.0.1", port))?;
    let (mut server, _) = encrypt(server, &connector, "localhost", SslNegotiation::Postgres)
        .expect("the server encrypts");
    let mut buffer = vec![0; 64 << 10];
    loop {
        let said = client.read(&mut buffer)?;
        server.write_all(&buffer[..said])?;
        server.flush()?;
        let answered = server.read(&mut buffer)?;
        client.write_all(&buffer[..answered])?;
        client.flush()?;
        if said == 0 || answered == 0 {
            return Ok(());
        }
    }
}

#[test]
fn a_man_in_the_middle_is_found_out_where_logins_are_bound() {
    let stage = stage();
    stage.show(&stage.issue(KeyKind::P256, Fault::None));
    let middle = man_in_the_middle(stage.server.port(), &stage.issue(KeyKind::Rsa, Fault::None));
    let through = |port: u16, binding: &str| {
        pgmark_alone()
            .args("-n -t 1 -h 127.0.0.1 -U locked")
            .env("PGPORT", port.to_string())
            .env("PGDATABASE", "postgres")
            .env("PGPASSWORD", "open sesame")
            .env("PGSSLMODE", "require")
            .env("PGCHANNELBINDING", binding)
            .script("SELECT 1;")
            .run()
    };
    // Certificates are not checked, so that nothing else tells the two apart.
    through(stage.server.port(), "require").expect_status(0);
    through(middle, "disable").expect_status(0);
    through(middle, "require")
        .expect_status(1)
        .expect_stderr(&["SCRAM channel binding check failed"]);
}

#[test]
fn clients_go_on_to_the_host_that_is_of_the_wanted_kind_and_know_who_runs_it() {
    let stage = stage();
    let directory = stage.server.socket_directory().display().to_string();
    let to = |settings: &str| {
        let port = stage.server.port();
        pgmark_alone()
            .args("-n -t 1 -c 2")
            .arg(format!(
                "host={directory} port={port} user=postgres dbname=postgres {settings}"
            ))
            .script("SELECT 1;")
            .run()
    };
    for wanted in ["any", "read-write", "primary", "prefer-standby"] {
        to(&format!("target_session_attrs={wanted}")).expect_status(0);
    }
    for (wanted, complaint) in [
        ("read-only", "session is not read-only"),
        ("standby", "server is not in hot standby mode"),
    ] {
        to(&format!("target_session_attrs={wanted}"))
            .expect_status(1)
            .expect_stderr(&[complaint]);
    }
    to("target_session_attrs=read-only options='-c default_transaction_read_only=on'")
        .expect_status(0);
    to("requirepeer=nobody-at-all")
        .expect_status(1)
        .expect_stderr(&["requirepeer specifies \"nobody-at-all\""]);
}
