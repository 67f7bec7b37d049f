//! A TCP proxy that makes connecting slow and nothing else.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Server;

/// Listens on a port of 127.0.0.1 and forwards each connection to the server, after a delay that
/// no other connection has to wait for. Stops listening when dropped.
pub struct DelayingProxy {
    port: u16,
    accepted: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
}

impl DelayingProxy {
    /// Holds back every connection for `delay`.
    pub fn to(server: &Server, delay: Duration) -> DelayingProxy {
        DelayingProxy::after(0, server, delay)
    }

    /// Lets the first `undelayed` connections pass at once.
    pub fn after(undelayed: usize, server: &Server, delay: Duration) -> DelayingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = DelayingProxy {
            port: listener.local_addr().expect("it is bound").port(),
            accepted: Arc::default(),
            stopped: Arc::default(),
        };
        let (accepted, stopped) = (proxy.accepted.clone(), proxy.stopped.clone());
        let server_port = server.port();
        thread::spawn(move || {
            for connection in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let number = accepted.fetch_add(1, Ordering::Relaxed);
                let delay = if number < undelayed {
                    Duration::ZERO
                } else {
                    delay
                };
                if let Ok(connection) = connection {
                    thread::spawn(move || forward(connection, server_port, delay));
                }
            }
        });
        proxy
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections made to it so far, held back or not.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for DelayingProxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the listener; if that fails, it goes away with the process.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn forward(client: TcpStream, server_port: u16, delay: Duration) {
    thread::sleep(delay);
    let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else {
        return;
    };
    // Small messages go on at once: the proxy delays nothing but the connect.
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("a TCP socket has it");
    }
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let upward = thread::spawn(move || copy(from_client, to_server));
    copy(server, client);
    let _ = upward.join();
}

/// Copies until the end of the input, and passes the end on.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
