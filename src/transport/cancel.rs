//! Asking the server to cancel what a session is doing, on connections of their own.
//!
//! These block, so they are made on a thread beside the loop. A cancellation that fails is not
//! reported: whoever ordered it closes the session soon after anyway.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};

use crate::conninfo::{Endpoint, SslNegotiation};
use crate::tls::Connector;

use super::{blocking, unix_address};

/// Bound on each step of a cancellation. The sessions are closed soon after it at the latest.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What it takes to cancel what one session is doing.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where that session is connected to.
    pub endpoint: Endpoint,
    /// What encrypts it, if it is encrypted: then so is this.
    pub encryption: Option<(Connector, SslNegotiation)>,
    /// The CancelRequest packet with its key.
    pub packet: Vec<u8>,
}

/// Carries out the orders on a thread of their own, one after the other. The receiver hangs up when
/// all of them have been.
pub fn send_beside(orders: Vec<Order>) -> Receiver<()> {
    let (working, done) = bounded(0);
    // Without a thread nothing is cancelled, and the sessions are closed all the same.
    let _ = std::thread::Builder::new()
        .name("cancel".to_owned())
        .spawn(move || {
            let _working = working;
            for order in orders {
                let _ = send(&order);
            }
        });
    done
}

/// Sends the packet and waits until the server closes, which it does when it has passed it on.
fn send(order: &Order) -> io::Result<()> {
    match &order.endpoint {
        Endpoint::Tcp { host, address } => {
            let stream = TcpStream::connect_timeout(address, TIMEOUT)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            match &order.encryption {
                None => exchange(stream, &order.packet),
                Some((connector, negotiation)) => {
                    let encrypted = blocking::encrypt(stream, connector, host, *negotiation);
                    let (stream, _) =
                        encrypted.map_err(|failure| io::Error::other(failure.to_string()))?;
                    exchange(stream, &order.packet)
                }
            }
        }
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect_addr(&unix_address(path)?)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            exchange(stream, &order.packet)
        }
    }
}

fn exchange(mut stream: impl Read + Write, packet: &[u8]) -> io::Result<()> {
    stream.write_all(packet)?;
    let _ = stream.read(&mut [0])?;
    Ok(())
}
