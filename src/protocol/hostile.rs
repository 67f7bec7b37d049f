//! Drives a session with bytes that an enemy chose: for property tests and for a fuzz target, which
//! share it.

use crate::conninfo::{LoginSettings, ProtocolVersion};

use super::{ChannelBinding, Event, ProtocolError, SESSION_BYTES_MAX, Session, Startup};

/// Bytes of input handed over at once; small, so that messages are cut in many places.
const PIECE_BYTES_MAX: usize = 251;

/// What a session holds of its own accord: its place in a login, replies owed, a packet to be sent.
const OWN_BYTES_MAX: usize = 8192;

/// Feeds `data` to a session and reads every event to the last byte. The first bytes choose where
/// the session stands and what it has asked for, so that all states are reached.
///
/// # Panics
/// If the session breaks one of its promises: all input is used up, and what it holds is bounded by
/// what it was sent, and never beyond [`SESSION_BYTES_MAX`].
pub fn drive_hostile(data: &[u8]) {
    let [choice, statements, rest @ ..] = data else {
        return;
    };
    let mut session = begin(*choice);
    let mut sent_bytes = rest.len() + OWN_BYTES_MAX;
    for number in 0..*statements % 8 {
        queue(&mut session, choice.wrapping_add(number));
    }
    for piece in rest.chunks(1 + usize::from(*choice) % PIECE_BYTES_MAX) {
        session.want_rows(piece[0] % 2 == 0);
        session.want_columns([piece[0] % 4 == 0, true, piece[0] % 8 == 0]);
        if read(&mut session, piece).is_err() {
            return;
        }
        sent_bytes += session.output().len();
        session.consume_output(session.output().len());
        let held_bytes = session.held_bytes();
        assert!(
            held_bytes <= 2 * sent_bytes && held_bytes <= SESSION_BYTES_MAX,
            "a session holds {held_bytes} bytes after {sent_bytes}"
        );
    }
}

/// A session that is logging in, or one that is through with it.
fn begin(choice: u8) -> Session {
    let mut session = Session::new();
    let startup = Startup {
        user: "user",
        database: "database",
        options: None,
        application_name: "pgmark",
        client_encoding: None,
        password: (choice & 1 == 0).then_some("secret"),
        channel_binding: ChannelBinding::Undefined,
        login: &LoginSettings::default(),
        max_protocol: ProtocolVersion::V3_2,
        min_protocol: ProtocolVersion::V3_0,
    };
    session
        .start(&startup)
        .expect("the settings hold no zero byte");
    if choice & 2 == 0 {
        let welcome = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        read(&mut session, welcome).expect("this is how a login goes");
    }
    session
}

fn queue(session: &mut Session, choice: u8) {
    match choice % 5 {
        0 => session.simple_query(|_| {}),
        1 => session.parse(c"name", |_| {}),
        2 => session.execute(c"name", 1, |_, _| false),
        3 => {
            session.close_statement(c"name");
            Ok(())
        }
        _ => {
            session.sync();
            Ok(())
        }
    }
    .expect("nothing here is too long");
}

/// Reads all events of a piece, and everything in them.
fn read(session: &mut Session, mut piece: &[u8]) -> Result<(), ProtocolError> {
    while let Some(event) = session.advance(&mut piece)? {
        match event {
            Event::RowDescription(columns) => {
                assert_eq!(columns.names().count(), columns.columns());
            }
            Event::DataRow(row) => assert_eq!(row.values().count(), row.columns()),
            Event::Error(message) | Event::Notice(message) => {
                assert!(!message.to_string().is_empty());
                assert!(message.sqlstate().as_str().len() <= 5);
            }
            Event::Started
            | Event::Ready(_)
            | Event::CommandComplete(_)
            | Event::EmptyQuery
            | Event::ParameterStatus { .. }
            | Event::Notification { .. }
            | Event::CopyStarted(_)
            | Event::ParseComplete
            | Event::BindComplete
            | Event::CloseComplete
            | Event::NoData => {}
        }
    }
    assert!(piece.is_empty(), "input is left over");
    Ok(())
}
