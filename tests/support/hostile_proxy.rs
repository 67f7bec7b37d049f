//! A TCP proxy that does to connections what networks and broken servers do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Server;

/// What is done to the bytes that come from the server.
#[derive(Clone, Copy, Debug)]
pub enum Mischief {
    /// Each piece arrives so much later.
    Delay(Duration),
    /// Each byte arrives alone, the client's, too.
    Split,
    /// So many bytes go at a time, with a pause after each.
    Throttle(usize, Duration),
    /// The connection is reset after so many bytes.
    ResetAfter(usize),
    /// The server seems to have nothing more to say after so many bytes, and goes on listening.
    HalfCloseAfter(usize),
    /// The byte after so many is another one.
    CorruptAfter(usize),
    /// Nothing arrives any more after so many bytes, and nothing is closed.
    BlackHoleAfter(usize),
    /// Notices without end arrive once the server has said so many bytes.
    FloodAfter(usize),
}

/// A message from the server that nobody asked for.
const NOTICE: &[u8] = b"N\0\0\0\x1bSNOTICE\0C00000\0Mflood\0\0";

/// Listens on a port of 127.0.0.1 and forwards to the server, the first connections as they are.
/// Stops listening when dropped.
pub struct HostileProxy {
    port: u16,
    stopped: Arc<AtomicBool>,
}

impl HostileProxy {
    /// Does `mischief` to all but the first `spared` connections.
    pub fn to(server: &Server, spared: usize, mischief: Mischief) -> HostileProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = HostileProxy {
            port: listener.local_addr().expect("it is bound").port(),
            stopped: Arc::default(),
        };
        let (stopped, accepted) = (proxy.stopped.clone(), AtomicUsize::new(0));
        let server_port = server.port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let number = accepted.fetch_add(1, Ordering::Relaxed);
                let mischief = (number >= spared).then_some(mischief);
                thread::spawn(move || forward(client, server_port, mischief));
            }
        });
        proxy
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for HostileProxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the listener; if that fails, it goes away with the process.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn forward(client: TcpStream, server_port: u16, mischief: Option<Mischief>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server_port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let upward = thread::spawn(move || match mischief {
        Some(Mischief::Split) => split(from_client, to_server),
        _ => copy(from_client, to_server),
    });
    let downward = match mischief {
        Some(mischief) => disturb(&server, &client, mischief),
        None => copy(server.try_clone()?, client),
    };
    let _ = upward.join();
    downward
}

/// Copies until the end of the input, and passes the end on.
fn copy(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let copied = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    copied.map(|_| ())
}

fn split(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return to.shutdown(Shutdown::Write);
        }
        for byte in &buffer[..count] {
            to.write_all(&[*byte])?;
        }
    }
}

fn disturb(mut server: &TcpStream, mut client: &TcpStream, mischief: Mischief) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let mut passed = 0;
    loop {
        let count = server.read(&mut buffer)?;
        if count == 0 {
            return client.shutdown(Shutdown::Write);
        }
        let piece = &mut buffer[..count];
        let left = |limit: usize| limit.saturating_sub(passed).min(count);
        match mischief {
            Mischief::Delay(delay) => {
                thread::sleep(delay);
                client.write_all(piece)?;
            }
            Mischief::Split => piece
                .iter()
                .try_for_each(|byte| client.write_all(&[*byte]))?,
            Mischief::Throttle(bytes, pause) => {
                for part in piece.chunks(bytes) {
                    client.write_all(part)?;
                    thread::sleep(pause);
                }
            }
            Mischief::ResetAfter(limit) => {
                client.write_all(&piece[..left(limit)])?;
                if passed + count > limit {
                    reset(client);
                    return server.shutdown(Shutdown::Both);
                }
            }
            Mischief::HalfCloseAfter(limit) => {
                client.write_all(&piece[..left(limit)])?;
                if passed + count > limit {
                    return client.shutdown(Shutdown::Write);
                }
            }
            Mischief::CorruptAfter(limit) => {
                if let Some(byte) = limit.checked_sub(passed).and_then(|at| piece.get_mut(at)) {
                    *byte ^= 0x5a;
                }
                client.write_all(piece)?;
            }
            Mischief::BlackHoleAfter(limit) => client.write_all(&piece[..left(limit)])?,
            Mischief::FloodAfter(limit) => {
                client.write_all(piece)?;
                if passed + count > limit {
                    loop {
                        client.write_all(&NOTICE.repeat(100))?;
                    }
                }
            }
        }
        passed += count;
    }
}

/// Closes with a reset, not with a farewell.
fn reset(client: &TcpStream) {
    let socket = socket2::SockRef::from(client);
    let _ = socket.set_linger(Some(Duration::ZERO));
    let _ = client.shutdown(Shutdown::Read);
    // The last owner of the socket closes it; until then nothing more is written.
}
