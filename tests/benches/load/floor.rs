//! The least that a transaction can cost a program: its bytes sent, the reply received. The same
//! sockets and the same poll as pgmark's, one buffer for all; nothing is measured, chosen, counted
//! or written. What a load generator spends above this is its own.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};

use crate::null_server;

/// Start-up of protocol 3.0 as user `u`.
const STARTUP: &[u8] = b"\0\0\0\x10\0\x03\0\0user\0u\0\0";

/// Bind with one parameter, Describe, Execute, Sync: what a prepared statement costs.
const TRANSACTION: &[u8] = b"B\0\0\0\x18\0P_0\0\0\0\0\x01\0\0\0\x0512345\0\0\
    D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";

/// Every reply that ends something ends so.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// Connects `clients` times and has each run `transactions` of them.
pub fn run(directory: &Path, clients: usize, transactions: u32) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut buffer = vec![0; 64 * 1024];
    let mut streams = connect_all(&poll, directory, clients, &mut buffer)?;
    let mut left = vec![transactions; clients];
    for stream in &mut streams {
        stream.write_all(TRANSACTION)?;
    }
    let mut running = clients;
    let mut events = Events::with_capacity(1024);
    while running > 0 {
        poll.poll(&mut events, None)?;
        for event in &events {
            let Token(client) = event.token();
            if left[client] == 0 || !receive_whole(&mut streams[client], &mut buffer)? {
                continue;
            }
            left[client] -= 1;
            match left[client] {
                0 => running -= 1,
                _ => streams[client].write_all(TRANSACTION)?,
            }
        }
    }
    Ok(())
}

/// The least that a transaction can cost at a low rate: asleep until it is due and again until the
/// reply is there, on one blocking socket.
pub fn run_paced(directory: &Path, rate: u32, seconds: u32) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut stream = connect(directory, &mut buffer)?;
    let start = Instant::now();
    for due in (1..=rate * seconds).map(|nth| Duration::from_secs(1) * nth / rate) {
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        stream.write_all(TRANSACTION)?;
        let length = stream.read(&mut buffer)?;
        assert!(buffer[..length].ends_with(READY), "a reply comes whole");
    }
    Ok(())
}

/// One after the other: what connecting costs is taken off by comparing runs of two lengths.
fn connect_all(
    poll: &Poll,
    directory: &Path,
    clients: usize,
    buffer: &mut [u8],
) -> io::Result<Vec<UnixStream>> {
    (0..clients)
        .map(|client| {
            let stream = connect(directory, buffer)?;
            stream.set_nonblocking(true)?;
            let mut stream = UnixStream::from_std(stream);
            poll.registry()
                .register(&mut stream, Token(client), Interest::READABLE)?;
            Ok(stream)
        })
        .collect()
}

fn connect(directory: &Path, buffer: &mut [u8]) -> io::Result<std::os::unix::net::UnixStream> {
    let mut stream = std::os::unix::net::UnixStream::connect(null_server::socket(directory))?;
    stream.write_all(STARTUP)?;
    let length = stream.read(buffer)?;
    assert!(buffer[..length].ends_with(READY), "the server lets us in");
    Ok(stream)
}

/// Whether a reply has come; registering reports a socket once although nothing is there.
fn receive_whole(stream: &mut UnixStream, buffer: &mut [u8]) -> io::Result<bool> {
    match stream.read(buffer) {
        Ok(length) => {
            assert!(buffer[..length].ends_with(READY), "a reply comes whole");
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}
