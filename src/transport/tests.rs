//! Links to a server that the test plays itself, byte by byte.

use std::net::TcpListener;
use std::time::Duration;

use mio::{Events, Poll};

use super::*;
use crate::conninfo::{SslMode, TlsSettings};
use crate::tls::Connector;

/// What becomes of a link that asks for encryption where the server answers like this, in one
/// piece, and closes if that is all.
fn after(answer: &'static [u8], optional: bool, closes: bool) -> Result<Security, AttemptFailure> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::Tcp {
        host: "localhost".to_owned(),
        address: listener.local_addr().unwrap(),
    };
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut asked = [0; 8];
        client.read_exact(&mut asked).unwrap();
        assert_eq!(asked, SSL_REQUEST);
        client.write_all(answer).unwrap();
        // Whoever closes with unread bytes resets the connection.
        (!closes).then_some(client)
    });
    let settings = TlsSettings {
        mode: SslMode::Prefer,
        ..TlsSettings::disabled()
    };
    let encrypting = Encrypting {
        connector: Connector::new(&settings).unwrap(),
        host: "localhost".to_owned(),
        negotiation: SslNegotiation::Postgres,
        optional,
    };
    let mut poll = Poll::new().unwrap();
    let (keepalive, token) = (KeepaliveSettings::default(), Token(0));
    let mut link = Link::open(
        &endpoint,
        Some(encrypting),
        keepalive,
        poll.registry(),
        token,
    )
    .unwrap();
    let mut events = Events::with_capacity(4);
    let outcome = loop {
        poll.poll(&mut events, Some(Duration::from_secs(60)))
            .unwrap();
        assert!(!events.is_empty(), "nothing happens any more");
        match link.advance(poll.registry(), token) {
            Ok(None) => {}
            Ok(Some(security)) => break Ok(security),
            Err(failure) => break Err(failure),
        }
    };
    drop(server.join().unwrap());
    outcome
}

#[test]
fn a_server_that_does_not_encrypt_is_talked_to_in_plain_only_if_that_will_do() {
    assert_eq!(after(b"N", true, false), Ok(Security::Refused));
    assert_eq!(after(b"N", false, false), Err(AttemptFailure::NoTls));
}

#[test]
fn other_answers_end_the_attempt_and_are_not_shown() {
    for (answer, essence) in [
        (&b""[..], SERVER_CLOSED),
        (b"E", "error response during SSL exchange"),
        (b"ESFATAL\0trust me\0", "error response during SSL exchange"),
        (b"\x1b", "invalid response to SSL negotiation: \\x1b"),
    ] {
        for optional in [true, false] {
            let failure = after(answer, optional, true).unwrap_err();
            assert!(matches!(failure, AttemptFailure::Unreachable(_)));
            let said = failure.to_string();
            assert!(
                said.contains(essence) && !said.contains("trust me"),
                "{said}"
            );
        }
    }
}

/// Somebody on the way may add what seems to come from the server.
#[test]
fn what_comes_unencrypted_after_a_yes_is_never_taken_for_the_servers() {
    for answer in [&b"SR\0\0\0\x08\0\0\0\0"[..], b"SZ\0\0\0\x05I"] {
        let failure = after(answer, true, false).unwrap_err();
        assert!(matches!(failure, AttemptFailure::Handshake(_)), "{failure}");
    }
}
