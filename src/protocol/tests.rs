use proptest::prelude::*;

use crate::conninfo::{
    AuthenticationMethod, ChannelBindingMode, LoginSettings, RequiredAuthentication,
};

use super::hostile::drive_hostile;
use super::recordings::*;
use super::scram_server::ScramServer;
use super::*;

/// A conversation: what the client asks once it is in, what the server sends, what is told.
struct Exchange {
    name: &'static str,
    /// `None`: the answer begins with the login, as this user with password "pencil".
    ask: Option<fn(&mut Session)>,
    answer: &'static [u8],
    events: &'static [&'static str],
}

/// A parameter that is NULL.
fn null(_: usize, _: &mut BytesMut) -> bool {
    false
}

/// Parameters that are text.
fn texts<const N: usize>(values: [&'static str; N]) -> impl FnMut(usize, &mut BytesMut) -> bool {
    move |index, out| {
        out.extend_from_slice(values[index].as_bytes());
        true
    }
}

/// Whatever the server asks for will do.
static ANY_LOGIN: LoginSettings = LoginSettings {
    channel_binding: ChannelBindingMode::Prefer,
    required: None,
    required_peer: None,
};

fn login_as(user: &str) -> Startup<'_> {
    Startup {
        user,
        database: "postgres",
        options: None,
        application_name: "pgmark",
        client_encoding: None,
        password: Some("pencil"),
        channel_binding: ChannelBinding::Unencrypted,
        login: &ANY_LOGIN,
        max_protocol: ProtocolVersion::V3_0,
        min_protocol: ProtocolVersion::V3_0,
    }
}

/// One line for an event. Settings of the start are left out.
fn tell(event: &Event<'_>) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match event {
        Event::Started => "started".to_owned(),
        Event::Ready(status) => format!("ready {status:?}"),
        Event::RowDescription(columns) => {
            let names: Vec<String> = columns.names().map(text).collect();
            format!("columns {}", names.join(" "))
        }
        Event::DataRow(row) => {
            let values: Vec<String> = row
                .values()
                .map(|value| value.map_or("NULL".to_owned(), text))
                .collect();
            format!("row {}", values.join(" "))
        }
        Event::CommandComplete(tag) => format!("done {}", text(tag)),
        Event::EmptyQuery => "empty".to_owned(),
        Event::Error(message) | Event::Notice(message) => message.to_string(),
        Event::ParameterStatus { name, value } if value != b"LATIN1" => {
            assert!(!name.is_empty());
            return None;
        }
        Event::ParameterStatus { name, value } => format!("{}={}", text(name), text(value)),
        Event::Notification {
            channel, payload, ..
        } => format!("notified {} {}", text(channel), text(payload)),
        Event::CopyStarted(direction) => format!("copy {direction:?}"),
        Event::ParseComplete => "parsed".to_owned(),
        Event::BindComplete => "bound".to_owned(),
        Event::CloseComplete => "closed".to_owned(),
        Event::NoData => "no data".to_owned(),
    })
}

/// Feeds one piece, which must be used up, and notes what is told.
fn feed(
    session: &mut Session,
    mut piece: &[u8],
    told: &mut Vec<String>,
) -> Result<(), ProtocolError> {
    while let Some(event) = session.advance(&mut piece)? {
        told.extend(tell(&event));
    }
    assert!(piece.is_empty());
    Ok(())
}

/// A session that is through with its login.
fn running() -> Session {
    let mut session = Session::new();
    session.start(&login_as("trusty")).unwrap();
    feed(
        &mut session,
        b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I",
        &mut Vec::new(),
    )
    .unwrap();
    assert!(session.is_started());
    session.consume_output(session.output().len());
    session
}

impl Exchange {
    fn begin(&self, rows_wanted: bool) -> Session {
        let mut session = match self.ask {
            Some(ask) => {
                let mut session = running();
                ask(&mut session);
                session
            }
            None => {
                let mut session = Session::new();
                session.start(&login_as("mdfive")).unwrap();
                session
            }
        };
        session.want_rows(rows_wanted);
        session
    }

    /// The events when the answer comes in these pieces.
    fn play<'p>(
        &self,
        rows_wanted: bool,
        pieces: impl IntoIterator<Item = &'p [u8]>,
    ) -> Vec<String> {
        let mut session = self.begin(rows_wanted);
        let mut told = Vec::new();
        for piece in pieces {
            feed(&mut session, piece, &mut told).expect(self.name);
        }
        told
    }
}

fn simple(session: &mut Session) {
    session
        .simple_query(|out| out.extend_from_slice(b"select"))
        .unwrap();
}

fn extended(session: &mut Session) {
    session
        .parse(c"", |out| out.extend_from_slice(b"select"))
        .unwrap();
    session.execute(c"", 1, null).unwrap();
    session.sync();
}

const EXCHANGES: &[Exchange] = &[
    Exchange {
        name: "trust",
        ask: None,
        answer: TRUST,
        events: &["started"],
    },
    Exchange {
        name: "cleartext",
        ask: None,
        answer: CLEARTEXT,
        events: &["started"],
    },
    Exchange {
        name: "cleartext, wrong password",
        ask: None,
        answer: CLEARTEXT_WRONG,
        events: &["FATAL:  password authentication failed for user \"clear\""],
    },
    Exchange {
        name: "md5",
        ask: None,
        answer: MD5,
        events: &["started"],
    },
    Exchange {
        name: "rejected by pg_hba.conf",
        ask: None,
        answer: REJECTED,
        events: &[
            "FATAL:  pg_hba.conf rejects connection for host \"[local]\", user \"nobody\", \
             database \"postgres\", no encryption",
        ],
    },
    Exchange {
        name: "refused after authentication",
        ask: None,
        answer: NO_DATABASE,
        events: &["FATAL:  database \"nowhere\" does not exist"],
    },
    Exchange {
        name: "several results",
        ask: Some(simple),
        answer: RESULTS,
        events: &[
            "columns one nothing text",
            "row 1 NULL é",
            "done SELECT 1",
            "done CREATE TABLE",
            "done INSERT 0 2",
            "columns a",
            "row 1",
            "row 2",
            "done SELECT 2",
            "ready Idle",
        ],
    },
    Exchange {
        name: "no statement",
        ask: Some(simple),
        answer: EMPTY,
        events: &["empty", "ready Idle"],
    },
    Exchange {
        name: "error",
        ask: Some(simple),
        answer: DIVISION_BY_ZERO,
        events: &["ERROR:  division by zero", "ready Idle"],
    },
    Exchange {
        name: "error with a position",
        ask: Some(simple),
        answer: SYNTAX_ERROR,
        events: &[
            "ERROR:  syntax error at or near \"selec\" at character 18",
            "ready Idle",
        ],
    },
    Exchange {
        name: "warning",
        ask: Some(simple),
        answer: ROLLBACK_WARNING,
        events: &[
            "WARNING:  there is no transaction in progress",
            "done ROLLBACK",
            "ready Idle",
        ],
    },
    Exchange {
        name: "notice, its context left out",
        ask: Some(simple),
        answer: NOTICE,
        events: &["NOTICE:  hi\nDETAIL:  d\nHINT:  h", "done DO", "ready Idle"],
    },
    Exchange {
        name: "notification",
        ask: Some(simple),
        answer: NOTIFY,
        events: &[
            "done LISTEN",
            "done NOTIFY",
            "notified c payload",
            "ready Idle",
        ],
    },
    Exchange {
        name: "settings",
        ask: Some(simple),
        answer: SETTINGS,
        events: &[
            "done SET",
            "done SET",
            "client_encoding=LATIN1",
            "ready Idle",
        ],
    },
    Exchange {
        name: "copy from the client",
        ask: Some(simple),
        answer: COPY_IN,
        events: &["copy In", COPY_REFUSED, "ready Idle"],
    },
    Exchange {
        name: "copy to the client",
        ask: Some(simple),
        answer: COPY_OUT,
        events: &["copy Out", "done COPY 2", "ready Idle"],
    },
    Exchange {
        name: "copy between statements",
        ask: Some(simple),
        answer: COPY_IN_BETWEEN,
        events: &[
            "columns ?column?",
            "row 1",
            "done SELECT 1",
            "copy In",
            COPY_REFUSED,
            "ready Idle",
        ],
    },
    Exchange {
        name: "extended",
        ask: Some(extended),
        answer: EXTENDED,
        events: &[
            "parsed",
            "bound",
            "columns a b",
            "row 42 NULL",
            "done SELECT 1",
            "ready Idle",
        ],
    },
    Exchange {
        name: "prepared",
        ask: Some(|session| {
            session.parse(c"P_0", |_| {}).unwrap();
            session.sync();
            session.execute(c"P_0", 1, texts(["7"])).unwrap();
            session.sync();
            session.close_statement(c"P_0");
            session.sync();
        }),
        answer: PREPARED,
        events: &[
            "parsed",
            "ready Idle",
            "bound",
            "no data",
            "done INSERT 0 1",
            "ready Idle",
            "closed",
            "ready Idle",
        ],
    },
    Exchange {
        name: "pipeline with an error and two syncs",
        ask: Some(|session| {
            for _ in 0..3 {
                session.parse(c"", |_| {}).unwrap();
                session.execute(c"", 1, texts(["0"])).unwrap();
            }
            session.sync();
            extended(session);
        }),
        answer: PIPELINE_WITH_ERROR,
        events: &[
            "parsed",
            "bound",
            "columns q",
            "row 6",
            "done SELECT 1",
            "parsed",
            "ERROR:  division by zero",
            "ready Idle",
            "parsed",
            "bound",
            "columns ?column?",
            "row 5",
            "done SELECT 1",
            "ready Idle",
        ],
    },
    Exchange {
        name: "copy from the client, extended",
        ask: Some(extended),
        answer: EXTENDED_COPY_IN,
        events: &[
            "parsed",
            "bound",
            "no data",
            "copy In",
            COPY_REFUSED,
            "ready Idle",
        ],
    },
    Exchange {
        name: "ended by the administrator",
        ask: Some(simple),
        answer: TERMINATED,
        events: &[
            "columns pg_terminate_backend",
            "row t",
            "FATAL:  terminating connection due to administrator command",
        ],
    },
];

const COPY_REFUSED: &str = "ERROR:  COPY from stdin failed: COPY from the client is not supported\n\
                            CONTEXT:  COPY t, line 1";

#[test]
fn recorded_exchanges_give_their_events() {
    for exchange in EXCHANGES {
        let told = exchange.play(true, [exchange.answer]);
        assert_eq!(told, exchange.events, "{}", exchange.name);
    }
}

#[test]
fn cutting_the_answer_anywhere_changes_nothing() {
    for exchange in EXCHANGES {
        let bytes = exchange.answer;
        let told = exchange.play(true, bytes.chunks(1));
        assert_eq!(told, exchange.events, "{} bytewise", exchange.name);
        for cut in 0..=bytes.len() {
            let told = exchange.play(true, [&bytes[..cut], &bytes[cut..]]);
            assert_eq!(told, exchange.events, "{} cut at {cut}", exchange.name);
        }
    }
}

#[test]
fn unwanted_rows_are_left_out_wherever_the_answer_is_cut() {
    for exchange in EXCHANGES {
        let without_rows: Vec<&str> = exchange
            .events
            .iter()
            .copied()
            .filter(|told| !told.starts_with("columns ") && !told.starts_with("row "))
            .collect();
        let bytes = exchange.answer;
        let told = exchange.play(false, bytes.chunks(1));
        assert_eq!(told, without_rows, "{} bytewise", exchange.name);
        for cut in 0..=bytes.len() {
            let told = exchange.play(false, [&bytes[..cut], &bytes[cut..]]);
            assert_eq!(told, without_rows, "{} cut at {cut}", exchange.name);
        }
    }
}

#[test]
fn a_login_tells_settings_and_the_cancel_key() {
    let mut session = Session::new();
    session.start(&login_as("trusty")).unwrap();
    assert_eq!(session.cancel_request(), None);
    feed(&mut session, CLEARTEXT, &mut Vec::new()).unwrap();
    assert_eq!(session.process_id(), Some(0x2630));
    assert_eq!(
        session.cancel_request().as_deref(),
        Some(&b"\0\0\0\x10\x04\xd2\x16\x2e\0\0&0\x1aGT\x89"[..])
    );
}

#[test]
fn cancel_keys_of_protocol_3_2_are_longer() {
    for (bytes, good) in [(3, false), (4, true), (32, true), (256, true), (257, false)] {
        let mut session = Session::new();
        session.start(&login_as("trusty")).unwrap();
        let mut answer = b"R\0\0\0\x08\0\0\0\0K".to_vec();
        answer.extend_from_slice(&(8 + bytes as u32).to_be_bytes());
        answer.extend_from_slice(b"\0\0\0\x07");
        answer.resize(answer.len() + bytes, b'k');
        let result = feed(&mut session, &answer, &mut Vec::new());
        assert_eq!(result.is_ok(), good, "{bytes}");
        let length = session.cancel_request().map(|packet| packet.len());
        assert_eq!(length, good.then_some(12 + bytes), "{bytes}");
    }
}

#[test]
fn messages_are_written_as_libpq_writes_them() {
    type Case = (fn(&mut Session), &'static [u8]);
    let cases: &[Case] = &[
        (simple, b"Q\0\0\0\x0bselect\0"),
        (
            extended,
            b"P\0\0\0\x0e\0select\0\0\0\
              B\0\0\0\x12\0\0\0\0\0\x01\xff\xff\xff\xff\0\x01\0\0\
              D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
        ),
        (
            |session| session.execute(c"P_1", 2, texts(["7", ""])).unwrap(),
            b"B\0\0\0\x1a\0P_1\0\0\0\0\x02\0\0\0\x017\0\0\0\0\0\x01\0\0\
              D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0",
        ),
        (
            |session| session.close_statement(c"P_1"),
            b"C\0\0\0\x09SP_1\0",
        ),
        (Session::terminate, b"X\0\0\0\x04"),
    ];
    for (ask, sent) in cases {
        let mut session = running();
        ask(&mut session);
        assert_eq!(
            session.output().escape_ascii().to_string(),
            sent.escape_ascii().to_string()
        );
    }
}

#[test]
fn the_startup_packet_holds_what_is_set() {
    let mut session = Session::new();
    session
        .start(&Startup {
            options: Some("-c jit=off"),
            application_name: "",
            client_encoding: Some("UTF8"),
            ..login_as("me")
        })
        .unwrap();
    assert_eq!(
        session.output(),
        b"\0\0\0\x4b\0\x03\0\0user\0me\0database\0postgres\0options\0-c jit=off\0\
          client_encoding\0UTF8\0\0"
    );
    let unsendable = session.start(&login_as("zero\0byte"));
    assert!(matches!(unsendable, Err(ProtocolError::Unsendable { .. })));
}

#[test]
fn what_cannot_be_sent_leaves_no_trace() {
    let mut session = running();
    assert!(session.execute(c"", 65_536, null).is_err());
    assert_eq!(session.output(), b"");
    assert_eq!(session.ready_owed(), 0);
    simple(&mut session);
    assert_eq!(session.output(), b"Q\0\0\0\x0bselect\0");
}

#[test]
fn passwords_are_sent_as_asked() {
    let cases: &[(&[u8], &[u8])] = &[
        (b"R\0\0\0\x08\0\0\0\x03", b"p\0\0\0\x0bpencil\0"),
        (b"R\0\0\0\x0c\0\0\0\x05v\xe9)\xde", b"p\0\0\0\x28md5"),
    ];
    for (asked, sent) in cases {
        let mut session = Session::new();
        session.start(&login_as("mdfive")).unwrap();
        session.consume_output(session.output().len());
        feed(&mut session, asked, &mut Vec::new()).unwrap();
        assert_eq!(&session.output()[..sent.len()], *sent);
    }
}

#[test]
fn without_a_password_the_server_s_wish_for_one_is_an_error_of_its_own() {
    let asked: [&[u8]; 3] = [
        b"R\0\0\0\x08\0\0\0\x03",
        b"R\0\0\0\x0c\0\0\0\x05salt",
        b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0",
    ];
    for password in [None, Some("")] {
        for asked in asked {
            let mut session = Session::new();
            let startup = Startup {
                password,
                ..login_as("me")
            };
            session.start(&startup).unwrap();
            let result = feed(&mut session, asked, &mut Vec::new());
            assert_eq!(result, Err(ProtocolError::PasswordRequired));
        }
    }
}

/// Plays a SCRAM login to its end: the server's side is made by `serve`, which gets the client's
/// message and the number of the round.
fn scram_login(
    startup: &Startup<'_>,
    mechanisms: &[u8],
    pieces_bytes: usize,
    serve: &mut dyn FnMut(usize, &str) -> Vec<u8>,
) -> Result<Vec<String>, ProtocolError> {
    let mut session = Session::new();
    session.start(startup).unwrap();
    let mut told = Vec::new();
    let mut answer = authentication(10, mechanisms);
    for round in 0..3 {
        session.consume_output(session.output().len());
        for piece in answer.chunks(pieces_bytes) {
            feed(&mut session, piece, &mut told)?;
        }
        answer = serve(round, &String::from_utf8_lossy(session.output()));
    }
    feed(&mut session, &answer, &mut told)?;
    Ok(told)
}

fn authentication(code: u32, body: &[u8]) -> Vec<u8> {
    let mut message = b"R".to_vec();
    message.extend_from_slice(&(8 + body.len() as u32).to_be_bytes());
    message.extend_from_slice(&code.to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// What a well-behaved server answers in each round.
fn serve_scram(server: &mut ScramServer, round: usize, sent: &str) -> Vec<u8> {
    match round {
        0 => {
            let bare = &sent[sent.find("n=,r=").unwrap()..];
            authentication(11, server.challenge(bare).as_bytes())
        }
        1 => {
            let verdict = server.verify(&sent[sent.find("c=").unwrap()..]);
            authentication(12, verdict.as_bytes())
        }
        _ => b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I".to_vec(),
    }
}

const PLAIN: &[u8] = b"SCRAM-SHA-256\0\0";
const PLAIN_AND_BOUND: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";

#[test]
fn scram_proves_both_sides_and_binds_where_it_can() {
    use ChannelBinding::{TlsServerEndPoint, Undefined, Unencrypted};
    use ChannelBindingMode::{Disable, Prefer, Require};
    let hash = || TlsServerEndPoint(b"hash".to_vec());
    let (plain, bound) = ("SCRAM-SHA-256\0", "SCRAM-SHA-256-PLUS\0");
    let cases = [
        (Unencrypted, Prefer, PLAIN, plain, "n,,"),
        (Unencrypted, Disable, PLAIN, plain, "n,,"),
        (Undefined, Prefer, PLAIN_AND_BOUND, plain, "n,,"),
        (hash(), Disable, PLAIN_AND_BOUND, plain, "n,,"),
        (hash(), Prefer, PLAIN, plain, "y,,"),
        (
            hash(),
            Prefer,
            PLAIN_AND_BOUND,
            bound,
            "p=tls-server-end-point,,",
        ),
        (
            hash(),
            Require,
            PLAIN_AND_BOUND,
            bound,
            "p=tls-server-end-point,,",
        ),
    ];
    for (below, mode, offered, mechanism, header) in cases {
        let login = LoginSettings {
            channel_binding: mode,
            ..ANY_LOGIN.clone()
        };
        let startup = Startup {
            channel_binding: below,
            login: &login,
            ..login_as("scram")
        };
        for pieces_bytes in [1, 7, 4096] {
            let mut server = ScramServer::new("pencil");
            let told = scram_login(&startup, offered, pieces_bytes, &mut |round, sent| {
                if round == 0 {
                    assert!(
                        sent.contains(mechanism) && sent.contains(header),
                        "{sent:?}"
                    );
                }
                serve_scram(&mut server, round, sent)
            });
            assert_eq!(told, Ok(vec!["started".to_owned()]));
        }
    }
}

const ASKS_NOTHING: &[u8] = b"R\0\0\0\x08\0\0\0\0";
const ASKS_PASSWORD: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
const ASKS_MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
const ASKS_GSS: &[u8] = b"R\0\0\0\x08\0\0\0\x07";
const ASKS_SSPI: &[u8] = b"R\0\0\0\x08\0\0\0\x09";
const ASKS_SCRAM: &[u8] = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
const ASKS_SCRAM_BOUND: &[u8] = b"R\0\0\0\x2a\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const ASKS_OAUTH: &[u8] = b"R\0\0\0\x15\0\0\0\x0aOAUTHBEARER\0\0";

#[test]
fn a_login_that_has_to_be_bound_fails_clearly_where_it_cannot_be() {
    use ChannelBinding::{TlsServerEndPoint, Undefined, Unencrypted};
    use ChannelBindingMode::{Disable, Prefer, Require};
    let hash = || TlsServerEndPoint(b"hash".to_vec());
    let unsupported = "channel binding is required, but the server's way of authenticating does \
                       not support it";
    let cases: &[(ChannelBinding, ChannelBindingMode, &[u8], &str)] = &[
        (
            hash(),
            Require,
            ASKS_NOTHING,
            "channel binding is required, but the server authenticated us without it",
        ),
        (hash(), Require, ASKS_PASSWORD, unsupported),
        (hash(), Require, ASKS_MD5, unsupported),
        (
            hash(),
            Require,
            ASKS_SCRAM,
            "channel binding is required, but the server did not offer a way of authenticating \
             that supports it",
        ),
        (
            Undefined,
            Require,
            ASKS_SCRAM_BOUND,
            "channel binding is required, but it is not defined for the server's kind of certificate",
        ),
        (
            Unencrypted,
            Require,
            ASKS_SCRAM,
            "channel binding is required, but the connection is not encrypted",
        ),
        (
            Unencrypted,
            Prefer,
            ASKS_SCRAM_BOUND,
            "authentication failed: the server offers SCRAM-SHA-256-PLUS over a connection that is \
             not encrypted",
        ),
        (
            Unencrypted,
            Disable,
            ASKS_SCRAM_BOUND,
            "authentication failed: the server offers SCRAM-SHA-256-PLUS over a connection that is \
             not encrypted",
        ),
    ];
    for (below, mode, asked, message) in cases {
        let login = LoginSettings {
            channel_binding: *mode,
            ..ANY_LOGIN.clone()
        };
        let startup = Startup {
            channel_binding: below.clone(),
            login: &login,
            ..login_as("me")
        };
        assert_eq!(refusal(&startup, asked), *message);
    }
}

/// Why the client refuses what the server asks for; nothing is sent then.
fn refusal(startup: &Startup<'_>, asked: &[u8]) -> String {
    let mut session = Session::new();
    session.start(startup).unwrap();
    session.consume_output(session.output().len());
    let result = feed(&mut session, asked, &mut Vec::new());
    assert_eq!(session.output(), b"");
    result.expect_err("it is refused").to_string()
}

#[test]
fn only_ways_of_authenticating_that_are_allowed_get_an_answer() {
    use AuthenticationMethod::{Md5, None as Nothing, Password, ScramSha256};
    let methods: [(&[u8], AuthenticationMethod, &str); 7] = [
        (
            ASKS_NOTHING,
            Nothing,
            "server did not complete authentication",
        ),
        (
            ASKS_PASSWORD,
            Password,
            "server requested a cleartext password",
        ),
        (ASKS_MD5, Md5, "server requested a hashed password"),
        (
            ASKS_SCRAM,
            ScramSha256,
            "server requested SCRAM-SHA-256 authentication",
        ),
        (
            ASKS_GSS,
            AuthenticationMethod::Gss,
            "server requested GSSAPI authentication",
        ),
        (
            ASKS_SSPI,
            AuthenticationMethod::Sspi,
            "server requested SSPI authentication",
        ),
        (
            ASKS_OAUTH,
            AuthenticationMethod::Oauth,
            "server requested OAuth authentication",
        ),
    ];
    for required in [&[Nothing][..], &[Password, Md5], &[Md5], &[ScramSha256]] {
        for forbidden in [false, true] {
            let login = LoginSettings {
                required: Some(RequiredAuthentication {
                    text: "as,written".to_owned(),
                    methods: required.to_vec(),
                    forbidden,
                }),
                ..ANY_LOGIN.clone()
            };
            let startup = Startup {
                login: &login,
                ..login_as("me")
            };
            for (asked, method, reason) in methods {
                if required.contains(&method) == forbidden {
                    let expected = format!(
                        "authentication method requirement \"as,written\" failed: {reason}"
                    );
                    assert_eq!(refusal(&startup, asked), expected);
                    continue;
                }
                let mut session = Session::new();
                session.start(&startup).unwrap();
                let result = feed(&mut session, asked, &mut Vec::new());
                let unknown = [ASKS_GSS, ASKS_SSPI, ASKS_OAUTH].contains(&asked);
                assert_eq!(result.is_err(), unknown, "{reason}");
            }
        }
    }
}

#[test]
fn a_method_that_is_not_allowed_is_told_before_a_missing_password() {
    let login = LoginSettings {
        required: Some(RequiredAuthentication {
            text: "!password".to_owned(),
            methods: vec![AuthenticationMethod::Password],
            forbidden: true,
        }),
        ..ANY_LOGIN.clone()
    };
    let startup = Startup {
        login: &login,
        password: None,
        ..login_as("me")
    };
    assert!(refusal(&startup, ASKS_PASSWORD).ends_with("a cleartext password"));
    assert!(refusal(&startup, ASKS_MD5).starts_with("the server asks for a password"));
}

#[test]
fn scram_refuses_a_server_that_does_not_play_fair() {
    let mut cases: Vec<(&str, ScramServer, usize, Vec<u8>)> = vec![
        (
            "SCRAM error: invalid-proof",
            ScramServer::new("pencil"),
            1,
            authentication(12, b"e=invalid-proof"),
        ),
        (
            "SCRAM verification error",
            ScramServer::new("pencil"),
            1,
            authentication(12, b"v=AAAA"),
        ),
        (
            "invalid nonce",
            ScramServer::new("pencil"),
            0,
            authentication(11, b"r=other,s=AAAA,i=4096"),
        ),
        (
            "unexpected Authentication message from the server while authenticating",
            ScramServer::new("pencil"),
            1,
            authentication(0, b""),
        ),
        (
            "SCRAM iteration count exceeds the maximum allowed",
            ScramServer::new("pencil").rounds(100_001),
            9,
            Vec::new(),
        ),
    ];
    for (problem, server, forged_round, forgery) in &mut cases {
        let result = scram_login(&login_as("scram"), PLAIN, 4096, &mut |round, sent| {
            if round == *forged_round {
                forgery.clone()
            } else {
                serve_scram(server, round, sent)
            }
        });
        let error = result.expect_err(problem).to_string();
        assert!(error.ends_with(*problem), "{error}");
    }
}

#[test]
fn nonsense_is_an_error_that_names_state_message_and_problem() {
    let start = |session: &mut Session| session.start(&login_as("me")).unwrap();
    let welcomed = |session: &mut Session| {
        session.start(&login_as("me")).unwrap();
        feed(session, b"R\0\0\0\x08\0\0\0\0", &mut Vec::new()).unwrap();
    };
    let idle = |session: &mut Session| *session = running();
    let asked = |session: &mut Session| {
        *session = running();
        simple(session);
        session.want_rows(true);
    };
    let bound = |session: &mut Session| {
        *session = running();
        extended(session);
    };
    type Prepare<'p> = &'p dyn Fn(&mut Session);
    let cases: &[(Prepare<'_>, &[u8], &str)] = &[
        (
            &|_| {},
            b"Z\0\0\0\x05I",
            "unexpected ReadyForQuery message from the server while not connected",
        ),
        (
            &start,
            b"HTTP/1.1",
            "CopyOutResponse message with impossible length 1414811695 from the server while authenticating",
        ),
        (
            &start,
            b"<html>",
            "unknown message type 0x3c from the server while authenticating",
        ),
        (
            &start,
            b"Z\0\0\0\x05I",
            "unexpected ReadyForQuery message from the server while authenticating",
        ),
        (
            &start,
            b"R\0\0\0\x06\0\0",
            "malformed Authentication message from the server while authenticating: it ends too early",
        ),
        (
            &start,
            b"R\0\0\0\x09\0\0\0\0x",
            "malformed Authentication message from the server while authenticating: it is longer than its contents",
        ),
        (
            &start,
            b"R\0\0\0\x0a\0\0\0\x05sa",
            "malformed Authentication message from the server while authenticating: it ends too early",
        ),
        (
            &start,
            b"R\0\0\0\x0d\0\0\0\x0aSCRAM",
            "malformed Authentication message from the server while authenticating: a string has no end",
        ),
        (
            &start,
            b"R\0\0\0\x08\0\0\0\x07",
            "the server asks for GSSAPI authentication, which is not supported",
        ),
        (
            &start,
            b"R\0\0\0\x08\0\0\0\x09",
            "the server asks for SSPI authentication, which is not supported",
        ),
        (
            &start,
            b"R\0\0\0\x08\0\0\0\x63",
            "the server asks for method 99 authentication, which is not supported",
        ),
        (
            &start,
            b"R\0\0\0\x15\0\0\0\x0aOAUTHBEARER\0\0",
            "the server asks for SASL (OAUTHBEARER) authentication, which is not supported",
        ),
        (
            &start,
            b"R\0\0\0\x08\0\0\0\x0c",
            "unexpected Authentication message from the server while authenticating",
        ),
        (
            &start,
            b"v\0\0\0\x16\0\x03\0\0\0\0\0\x01_pq_.some\0",
            "the server reports that it does not support the start-up option _pq_.some, which was not asked for",
        ),
        (
            &start,
            b"v\0\0\0\x0c\0\x03\0\x02\0\0\0\0",
            "the server wants to speak protocol 3.2, which is not one of those that are allowed (min_protocol_version, max_protocol_version)",
        ),
        (
            &start,
            b"v\0\0\0\x08\0\x03\0\0",
            "malformed NegotiateProtocolVersion message from the server while authenticating: it ends too early",
        ),
        (
            &welcomed,
            b"R\0\0\0\x08\0\0\0\0",
            "unexpected Authentication message from the server while starting up",
        ),
        (
            &welcomed,
            b"S\0\0\0\x09a\0b\0x",
            "malformed ParameterStatus message from the server while starting up: it is longer than its contents",
        ),
        (
            &welcomed,
            b"K\0\0\0\x06\0\0",
            "malformed BackendKeyData message from the server while starting up: it ends too early",
        ),
        (
            &welcomed,
            b"D\0\0\0\x06\0\0",
            "unexpected DataRow message from the server while starting up",
        ),
        (
            &idle,
            b"C\0\0\0\x05\0",
            "unexpected CommandComplete message from the server while idle",
        ),
        (
            &idle,
            b"Z\0\0\0\x05I",
            "unexpected ReadyForQuery message from the server while idle",
        ),
        (
            &idle,
            b"N\0\0\0\x03",
            "NoticeResponse message with impossible length 3 from the server while idle",
        ),
        (
            &idle,
            b"N\xff\xff\xff\xff",
            "NoticeResponse message with impossible length -1 from the server while idle",
        ),
        (
            &idle,
            b"N\x04\0\0\x05",
            "NoticeResponse message of 67108865 bytes from the server while idle: at most 67108864 are taken",
        ),
        (
            &idle,
            b"E\0\0\0\x06MX",
            "malformed ErrorResponse message from the server while idle: a string has no end",
        ),
        (
            &idle,
            b"E\0\0\0\x07MX\0",
            "malformed ErrorResponse message from the server while idle: it ends too early",
        ),
        (
            &idle,
            b"E\0\0\0\x06\0\0",
            "malformed ErrorResponse message from the server while idle: it is longer than its contents",
        ),
        (
            &idle,
            b"A\0\0\0\x09\0\0\0\x01c",
            "malformed NotificationResponse message from the server while idle: a string has no end",
        ),
        (
            &asked,
            b"Z\0\0\0\x05X",
            "malformed ReadyForQuery message from the server while waiting for the result of a statement: its transaction status is none of I, T, E",
        ),
        (
            &asked,
            b"Z\0\0\x75\x35",
            "ReadyForQuery message with impossible length 30005 from the server while waiting for the result of a statement",
        ),
        (
            &asked,
            b"C\0\0\0\x06OK",
            "malformed CommandComplete message from the server while waiting for the result of a statement: a string has no end",
        ),
        (
            &asked,
            b"I\0\0\0\x05x",
            "malformed EmptyQueryResponse message from the server while waiting for the result of a statement: it is longer than its contents",
        ),
        (
            &asked,
            b"D\0\0\0\x0a\0\x01\xff\xff\xff\xfe",
            "malformed DataRow message from the server while waiting for the result of a statement: a value has a negative length",
        ),
        (
            &asked,
            b"D\0\0\0\x0b\0\x01\0\0\0\x09x",
            "malformed DataRow message from the server while waiting for the result of a statement: it ends too early",
        ),
        (
            &asked,
            b"D\0\0\0\x0a\xff\xff\0\0\0\0",
            "malformed DataRow message from the server while waiting for the result of a statement: it ends too early",
        ),
        (
            &asked,
            b"T\0\0\0\x08\0\x01a\0",
            "malformed RowDescription message from the server while waiting for the result of a statement: it ends too early",
        ),
        (
            &asked,
            b"1\0\0\0\x04",
            "unexpected ParseComplete message from the server while waiting for the result of a statement",
        ),
        (
            &asked,
            b"s\0\0\0\x04",
            "unexpected PortalSuspended message from the server while waiting for the result of a statement",
        ),
        (
            &bound,
            b"2\0\0\0\x04",
            "unexpected BindComplete message from the server while waiting for ParseComplete",
        ),
        (
            &bound,
            b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x06\0\0",
            "unexpected DataRow message from the server while waiting for the description of a result",
        ),
    ];
    for (prepare, bytes, message) in cases {
        for piece_bytes in [1, bytes.len()] {
            let mut session = Session::new();
            prepare(&mut session);
            let result = bytes
                .chunks(piece_bytes)
                .try_for_each(|piece| feed(&mut session, piece, &mut Vec::new()));
            assert_eq!(result.expect_err(message).to_string(), *message);
        }
    }
}

#[test]
fn an_announced_length_reserves_nothing_and_skipped_rows_are_never_held() {
    let mut session = running();
    simple(&mut session);
    session.want_rows(true);
    feed(&mut session, b"D\x03\xff\xff\xff\0\x01", &mut Vec::new()).unwrap();
    assert!(session.held_bytes() < 100, "{}", session.held_bytes());

    let mut session = running();
    simple(&mut session);
    feed(&mut session, b"D\x3f\xff\xff\xff\0\x01", &mut Vec::new()).unwrap();
    for _ in 0..100 {
        feed(&mut session, &[0; 10_000], &mut Vec::new()).unwrap();
    }
    assert!(session.held_bytes() < 100, "{}", session.held_bytes());
}

#[test]
fn a_buffer_that_grew_for_one_row_is_given_back() {
    let mut session = running();
    simple(&mut session);
    session.want_rows(true);
    let value = vec![b'x'; 1 << 20];
    let mut row = b"D\0\x10\0\x0a\0\x01\0\x10\0\0".to_vec();
    row.extend_from_slice(&value);
    let mut told = Vec::new();
    for piece in row.chunks(10_000) {
        feed(&mut session, piece, &mut told).unwrap();
    }
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].len(), "row ".len() + value.len());
    feed(&mut session, b"C\0\0\0\x05\0", &mut told).unwrap();
    assert!(session.held_bytes() < 100_000, "{}", session.held_bytes());
}

#[test]
fn of_a_large_row_only_what_is_wanted_is_held() {
    const VALUE_BYTES: u32 = 96 << 20;
    for wanted in [false, true] {
        let mut session = running();
        simple(&mut session);
        session.want_rows(true);
        session.want_columns([true, wanted, true]);
        let row_bytes = 4 + 2 + 4 + 1 + 4 + VALUE_BYTES + 4 + 1;
        let mut input = [b"D", &row_bytes.to_be_bytes()[..], b"\0\x03\0\0\0\x01a"].concat();
        input.extend_from_slice(&VALUE_BYTES.to_be_bytes());
        let mut told = Vec::new();
        feed(&mut session, &input, &mut told).unwrap();
        for _ in 0..VALUE_BYTES >> 16 {
            feed(&mut session, &[b'x'; 1 << 16], &mut told).unwrap();
            assert!(session.held_bytes() < 1000, "{}", session.held_bytes());
        }
        let mut rest = &b"\0\0\0\x01zC\0\0\0\x05\0"[..];
        let Ok(Some(Event::DataRow(row))) = session.advance(&mut rest) else {
            panic!("the row is complete");
        };
        let values: Vec<_> = row.values().collect();
        assert_eq!(values, [Some(&b"a"[..]), None, Some(b"z")]);
        let (column, bytes) = (1, VALUE_BYTES as usize);
        let omitted = wanted.then_some(OmittedValue { column, bytes });
        assert_eq!(row.omitted(), omitted);
        feed(&mut session, rest, &mut told).unwrap();
        assert_eq!(told, ["done "], "the session is in step");
    }
}

#[test]
fn the_longest_that_is_taken_stays_within_the_bound() {
    let length = |bytes: usize| (bytes as u32).to_be_bytes();
    let notice = [b"N", &length(4 + ROW_BYTES_MAX)[..]].concat();
    let columns = usize::from(u16::MAX);
    let row_bytes = 2 + 4 * columns + ROW_BYTES_MAX;
    let mut row = [b"D", &length(4 + row_bytes)[..], b"\xff\xff"].concat();
    row.extend(b"\xff\xff\xff\xff".repeat(columns - 1));
    let value_bytes = ROW_BYTES_MAX - 4 * columns - 7;
    row.extend_from_slice(&length(value_bytes));
    for (head, rest_bytes) in [(notice, ROW_BYTES_MAX), (row, value_bytes)] {
        let mut session = running();
        simple(&mut session);
        session.want_rows(true);
        feed(&mut session, &head, &mut Vec::new()).unwrap();
        // All but the last byte, since the contents of the notice are none.
        for piece in vec![b'x'; rest_bytes - 1].chunks(1 << 16) {
            feed(&mut session, piece, &mut Vec::new()).unwrap();
            assert!(session.held_bytes() <= SESSION_BYTES_MAX);
        }
        assert!(session.held_bytes() >= rest_bytes, "it is kept");
    }
}

#[test]
fn a_refused_copy_keeps_pipelines_in_step() {
    // The server ignores a Sync that it meets while it waits for data, so the refusal brings its
    // own; with more statements behind it the server resumes at the Sync after them.
    let copy_in = b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04G\0\0\0\x07\0\0\0";
    let refusal_bytes = "f....COPY from the client is not supported.".len();
    for (more, sync_bytes) in [(false, 5), (true, 0)] {
        let mut session = running();
        extended(&mut session);
        if more {
            extended(&mut session);
        }
        session.consume_output(session.output().len());
        feed(&mut session, copy_in, &mut Vec::new()).unwrap();
        assert_eq!(session.output().len(), refusal_bytes + sync_bytes);
        assert_eq!(session.ready_owed(), 1);
        let mut told = Vec::new();
        feed(&mut session, b"E\0\0\0\x05\0Z\0\0\0\x05I", &mut told).unwrap();
        assert_eq!(told[1], "ready Idle");
        assert_eq!(session.ready_owed(), 0);
    }
}

#[test]
fn what_arrived_before_a_command_was_sent_does_not_answer_it() {
    for (arrived, message) in [
        (
            &b"C\0\0\0\x05\0Z\0\0\0\x05IZ\0\0\0\x05I"[..],
            "ReadyForQuery",
        ),
        (b"C\0\0\0\x05\0Z\0\0\0\x05IC\0\0\0\x05\0", "CommandComplete"),
    ] {
        let mut session = running();
        simple(&mut session);
        let mut input = arrived;
        let mut answered = 0;
        let error = loop {
            match session.advance(&mut input) {
                Ok(Some(Event::Ready(_))) => {
                    answered += 1;
                    simple(&mut session);
                }
                Ok(Some(_)) => {}
                Ok(None) => panic!("it must not be taken for an answer"),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(answered, 1);
        assert_eq!(
            error,
            format!("unexpected {message} message from the server while idle")
        );
    }
}

#[test]
fn what_is_sent_after_an_error_is_skipped_up_to_the_next_sync() {
    let mut session = running();
    session.execute(c"", 1, null).unwrap();
    feed(&mut session, b"E\0\0\0\x05\0", &mut Vec::new()).unwrap();
    session.execute(c"", 1, null).unwrap();
    session.sync();
    assert_eq!(session.ready_owed(), 1);
    let mut told = Vec::new();
    feed(&mut session, b"Z\0\0\0\x05I", &mut told).unwrap();
    assert_eq!(told, ["ready Idle"]);
    extended(&mut session);
    feed(&mut session, b"1\0\0\0\x042\0\0\0\x04", &mut told).unwrap();
}

#[test]
fn a_copy_that_was_refused_is_not_asked_for_again() {
    const COPY_IN: &[u8] = b"G\0\0\0\x07\0\0\0";
    for (ask, before) in [
        (simple as fn(&mut Session), &b""[..]),
        (extended, b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04"),
    ] {
        for between in [&b""[..], b"E\0\0\0\x05\0"] {
            let mut session = running();
            ask(&mut session);
            let first = [before, COPY_IN].concat();
            feed(&mut session, &first, &mut Vec::new()).unwrap();
            let again = [between, COPY_IN].concat();
            let result = feed(&mut session, &again, &mut Vec::new());
            assert_eq!(
                result.unwrap_err().to_string(),
                "unexpected CopyInResponse message from the server while waiting for ReadyForQuery"
            );
        }
    }
}

#[test]
fn a_copy_both_ways_is_ended_once() {
    let copy_both = b"W\0\0\0\x07\0\0\0";
    let mut session = running();
    simple(&mut session);
    session.consume_output(session.output().len());
    let mut told = Vec::new();
    feed(&mut session, copy_both, &mut told).unwrap();
    assert_eq!(session.output(), b"c\0\0\0\x04");
    let rest = b"d\0\0\0\x05xc\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05I";
    feed(&mut session, rest, &mut told).unwrap();
    assert_eq!(told, ["copy Both", "done ", "ready Idle"]);

    simple(&mut session);
    feed(&mut session, copy_both, &mut told).unwrap();
    let result = feed(&mut session, copy_both, &mut told);
    assert_eq!(
        result.unwrap_err().to_string(),
        "unexpected CopyBothResponse message from the server while waiting for the result of a statement"
    );
}

#[test]
fn transaction_status_follows_the_server() {
    let mut session = running();
    for (byte, status) in [
        (b'T', TransactionStatus::InBlock),
        (b'E', TransactionStatus::InFailedBlock),
        (b'I', TransactionStatus::Idle),
    ] {
        simple(&mut session);
        assert_eq!(session.ready_owed(), 1);
        feed(&mut session, &[b'Z', 0, 0, 0, 5, byte], &mut Vec::new()).unwrap();
        assert_eq!(session.transaction_status(), status);
        assert_eq!(session.ready_owed(), 0);
    }
}

#[test]
fn a_session_that_repeats_itself_keeps_its_buffers_as_they_are() {
    let mut session = running();
    let mut repeat = || {
        extended(&mut session);
        session.consume_output(session.output().len());
        for piece in EXTENDED.chunks(50) {
            feed(&mut session, piece, &mut Vec::new()).unwrap();
        }
        (session.output.capacity(), session.held_bytes())
    };
    repeat();
    let sizes = repeat();
    for _ in 0..1000 {
        let (output_bytes, held_bytes) = repeat();
        assert!(output_bytes <= sizes.0.max(1024));
        assert_eq!(held_bytes, sizes.1);
    }
}

#[test]
fn a_session_starts_anew_after_anything() {
    let mut session = running();
    extended(&mut session);
    session.want_rows(true);
    feed(
        &mut session,
        b"1\0\0\0\x042\0\0\0\x04T\0\0",
        &mut Vec::new(),
    )
    .unwrap();
    session.start(&login_as("mdfive")).unwrap();
    let mut told = Vec::new();
    feed(&mut session, MD5, &mut told).unwrap();
    assert_eq!(told, ["started"]);
    simple(&mut session);
    feed(&mut session, RESULTS, &mut told).unwrap();
    assert_eq!(told[1], "done SELECT 1", "rows are unwanted again");
}

#[test]
fn after_a_refusal_the_rest_is_ignored() {
    let mut session = Session::new();
    session.start(&login_as("me")).unwrap();
    let mut told = Vec::new();
    feed(&mut session, &[REJECTED, b"garbage"].concat(), &mut told).unwrap();
    feed(&mut session, b"more garbage", &mut told).unwrap();
    assert_eq!(told.len(), 1);
    assert!(!session.is_started());
}

#[test]
fn of_two_versions_of_the_protocol_the_older_is_spoken() {
    let told = |version: u8| [b"v\0\0\0\x0c\0\x03\0", &[version, 0, 0, 0, 0][..]].concat();
    use ProtocolVersion::{V3_0, V3_2};
    for (min_protocol, negotiation, spoken) in [
        (V3_0, Vec::new(), Some(V3_2)),
        (V3_0, told(2), Some(V3_2)),
        (V3_0, told(0), Some(V3_0)),
        (V3_2, told(0), None),
        (V3_0, told(1), None),
        (V3_0, told(3), None),
    ] {
        let mut session = Session::new();
        let startup = Startup {
            max_protocol: V3_2,
            min_protocol,
            ..login_as("me")
        };
        session.start(&startup).unwrap();
        assert_eq!(session.output()[4..8], [0, 3, 0, 2]);
        let answer = [&negotiation[..], b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"].concat();
        let result = feed(&mut session, &answer, &mut Vec::new());
        assert_eq!(result.is_ok().then(|| session.protocol_version()), spoken);
    }
}

#[test]
fn an_old_server_may_announce_the_version_that_it_speaks() {
    let mut session = Session::new();
    session.start(&login_as("me")).unwrap();
    let answer = b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    let mut told = Vec::new();
    feed(&mut session, answer, &mut told).unwrap();
    assert_eq!(told, ["started"]);
}

#[test]
fn server_messages_give_their_fields() {
    let full = b"SFEHLER\0VERROR\0C40001\0Mtext\0Dmore\0Htry\0P7\0qselect 1\0Wsomewhere\0\0";
    let message = ServerMessage::parse(full).unwrap();
    assert_eq!(message.severity(), b"ERROR");
    assert_eq!(message.sqlstate().as_str(), "40001");
    assert_eq!(message.message(), b"text");
    assert_eq!(message.detail(), Some(&b"more"[..]));
    assert_eq!(message.hint(), Some(&b"try"[..]));
    assert_eq!(message.position(), Some(7));
    assert!(!message.is_fatal());
    assert_eq!(
        message.to_string(),
        "FEHLER:  text at character 7\nDETAIL:  more\nHINT:  try\nQUERY:  select 1\n\
         CONTEXT:  somewhere"
    );
    assert_eq!(
        message.with_statement(b"selec oops").to_string(),
        "FEHLER:  text\nLINE 1: selec oops\n              ^\nDETAIL:  more\nHINT:  try\n\
         QUERY:  select 1\nCONTEXT:  somewhere"
    );
    let bare = ServerMessage::parse(b"SFATAL\0C4\xff001\0M\xff\0\0").unwrap();
    assert!(bare.is_fatal());
    assert_eq!(bare.sqlstate().as_str(), "");
    assert_eq!(bare.to_string(), "FATAL:  \\xff");
    let latin1 =
        ServerMessage::parse(b"SFEHLER\0C42P01\0MRelation \xbbt\xe9\xab fehlt\0\0").unwrap();
    assert_eq!(
        latin1.to_string(),
        "FEHLER:  Relation \\xbbt\\xe9\\xab fehlt"
    );
}

#[test]
fn a_password_never_shows_in_debug_output() {
    let mut session = Session::new();
    session.start(&login_as("me")).unwrap();
    assert!(!format!("{session:?} {:?}", login_as("me")).contains("pencil"));
}

const MESSAGE_TYPES: &[u8] = b"RKSZTDCIENA123nsGHWdctv";

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        drive_hostile(&data);
    }

    #[test]
    fn messages_in_any_order_do_no_harm(
        choices in any::<[u8; 2]>(),
        messages in proptest::collection::vec(
            (0..MESSAGE_TYPES.len(), proptest::collection::vec(0..12_u8, 0..24)), 0..12),
    ) {
        let mut data = choices.to_vec();
        for (which, body) in messages {
            data.push(MESSAGE_TYPES[which]);
            data.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
            data.extend_from_slice(&body);
        }
        drive_hostile(&data);
    }

    #[test]
    fn damaged_recordings_do_no_harm(
        which in 0..EXCHANGES.len(),
        choices in any::<[u8; 2]>(),
        damages in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
    ) {
        let mut data = choices.to_vec();
        data.extend_from_slice(EXCHANGES[which].answer);
        for (place, byte) in damages {
            let place = 2 + place % (data.len() - 2);
            data[place] = byte;
        }
        drive_hostile(&data);
    }
}

/// Messages, whole or cut, of which replies are made.
const PIECES: [&[u8]; 10] = [
    b"2\0\0\0\x04",
    b"T\0\0\0\x06\0\0",
    b"n\0\0\0\x04",
    b"D\0\0\0\x06\0\0",
    b"C\0\0\0\x05\0",
    b"Z\0\0\0\x05I",
    b"Z\0\0\0\x05T",
    b"Z\0\0\0\x05X",
    b"I\0\0\0\x04",
    b"C\0\0\0\x09S",
];

/// Results and readiness that come out of an input, in order.
fn told(session: &mut Session, mut input: &[u8], whole_replies: bool) -> Result<String, String> {
    let mut told = String::new();
    loop {
        if whole_replies && let Some(results) = session.take_success(&mut input) {
            told += &"C".repeat(results);
            told.push('Z');
            if input.is_empty() {
                return Ok(told);
            }
        }
        match session.advance(&mut input).map_err(|e| e.to_string())? {
            Some(Event::CommandComplete(_) | Event::EmptyQuery) => told.push('C'),
            Some(Event::Ready(_)) => told.push('Z'),
            Some(_) => {}
            None => return Ok(told),
        }
    }
}

#[test]
fn a_whole_reply_is_taken_at_once() {
    let cases: &[(&[u8], usize)] = &[
        (b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05T", 1),
        (
            b"2\0\0\0\x04T\0\0\0\x06\0\0D\0\0\0\x06\0\0C\0\0\0\x05\0Z\0\0\0\x05I",
            1,
        ),
    ];
    for (reply, results) in cases {
        let mut session = running();
        execute_and_sync(&mut session);
        let mut input = *reply;
        assert_eq!(session.take_success(&mut input), Some(*results));
        assert_eq!((input, session.ready_owed()), (&b""[..], 0));
    }
    let mut session = running();
    simple(&mut session);
    let mut input: &[u8] = b"C\0\0\0\x05\0C\0\0\0\x05\0Z\0\0\0\x05IN\0";
    assert_eq!(session.take_success(&mut input), Some(2));
    assert_eq!(input, b"N\0");
}

fn execute_and_sync(session: &mut Session) {
    session.execute(c"", 1, null).unwrap();
    session.sync();
}

proptest! {
    #[test]
    fn whole_replies_tell_the_same_as_their_messages(
        prepared: bool,
        queued in 1..3_usize,
        choice in prop_oneof![
            Just(vec![0, 1, 3, 3, 4, 5]),
            Just(vec![0, 2, 4, 6, 0, 1, 4, 5]),
            Just(vec![4, 5, 1, 3, 4, 4, 6]),
            prop::collection::vec(0..PIECES.len(), 0..9),
        ],
    ) {
        let input: Vec<u8> = choice.iter().flat_map(|&piece| PIECES[piece]).copied().collect();
        let [slow, fast] = [false, true].map(|whole_replies| {
            let mut session = running();
            for _ in 0..queued {
                match prepared {
                    true => execute_and_sync(&mut session),
                    false => simple(&mut session),
                }
            }
            let told = told(&mut session, &input, whole_replies);
            let standing = (session.ready_owed(), session.transaction_status());
            (told.clone(), told.is_ok().then_some(standing))
        });
        prop_assert_eq!(slow, fast);
    }
}
