//! A TCP proxy that tells when the server has said so much, and changes nothing.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::Server;

/// Listens on a port of 127.0.0.1 and forwards to the server. Stops listening when dropped.
pub struct Tripwire {
    port: u16,
    bytes: Arc<AtomicU64>,
    tripped: Receiver<()>,
    stopped: Arc<AtomicBool>,
}

impl Tripwire {
    /// Is tripped when the client is about to get byte `limit` of what the server says on all
    /// connections, counted from 0.
    pub fn to(server: &Server, limit: u64) -> Tripwire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (sender, tripped) = channel();
        let proxy = Tripwire {
            port: listener.local_addr().expect("it is bound").port(),
            bytes: Arc::default(),
            tripped,
            stopped: Arc::default(),
        };
        let (stopped, bytes) = (proxy.stopped.clone(), proxy.bytes.clone());
        let server_port = server.port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (bytes, sender) = (bytes.clone(), sender.clone());
                thread::spawn(move || forward(client, server_port, limit, &bytes, &sender));
            }
        });
        proxy
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Bytes that the server has said so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until it is tripped; fails the test if that does not happen within a minute.
    pub fn wait(&self) {
        let tripped = self.tripped.recv_timeout(Duration::from_secs(60));
        tripped.expect("the server has more to say than that");
    }
}

impl Drop for Tripwire {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the listener; if that fails, it goes away with the process.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn forward(
    client: TcpStream,
    server_port: u16,
    limit: u64,
    bytes: &AtomicU64,
    tripped: &Sender<()>,
) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server_port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let upward = thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Write)
    });
    let (mut server, mut client) = (&server, &client);
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        let before = bytes.fetch_add(count as u64, Ordering::Relaxed);
        let here = limit.saturating_sub(before).min(count as u64) as usize;
        client.write_all(&buffer[..here])?;
        if (before..before + count as u64).contains(&limit) {
            // Nobody waits if the test is over.
            let _ = tripped.send(());
        }
        client.write_all(&buffer[here..count])?;
    }
    let _ = client.shutdown(Shutdown::Write);
    let _ = upward.join();
    Ok(())
}
