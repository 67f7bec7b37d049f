//! One non-blocking socket to a server: opening it, and moving bytes.
//!
//! A [`Link`] knows nothing of the protocol beyond what has to happen before a session can begin,
//! and nothing of clients. Readiness is edge-triggered: whoever is told that a link is readable
//! reads until a read comes back shorter than its buffer.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr as UnixAddress;
use std::path::Path;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::conninfo::Endpoint;

pub mod cancel;
pub mod look_up;

/// A socket to a server, connecting or connected.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    stage: Stage,
    /// What the poll was told to watch for.
    interest: Interest,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// How far the link is. A session begins only at `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The kernel is still shaking hands; the socket becomes writable when that has ended.
    Connecting,
    /// Bytes flow.
    Ready,
}

impl Link {
    /// Begins to connect to `endpoint`, and watches the socket under `token`.
    ///
    /// # Errors
    /// Those of the system. [`io::ErrorKind::WouldBlock`] means that the backlog of a Unix-domain
    /// socket is full: no event will tell when there is room, so try again a little later.
    pub fn open(endpoint: &Endpoint, registry: &Registry, token: Token) -> io::Result<Link> {
        let mut link = match endpoint {
            Endpoint::Unix(path) => Link::unix(path)?,
            Endpoint::Tcp { address, .. } => Link::tcp(*address)?,
        };
        link.socket.register(registry, token, link.interest)?;
        Ok(link)
    }

    fn tcp(address: SocketAddr) -> io::Result<Link> {
        let stream = TcpStream::connect(address)?;
        Ok(Link {
            socket: Socket::Tcp(stream),
            stage: Stage::Connecting,
            interest: Interest::READABLE | Interest::WRITABLE,
        })
    }

    /// Local sockets connect at once or not at all.
    fn unix(path: &Path) -> io::Result<Link> {
        Ok(Link {
            socket: Socket::Unix(UnixStream::connect_addr(&unix_address(path)?)?),
            stage: Stage::Ready,
            interest: Interest::READABLE,
        })
    }

    /// Whether a session can begin. Called when the poll reports the socket writable.
    ///
    /// # Errors
    /// Why the connection could not be made.
    pub fn poll_ready(&mut self, registry: &Registry, token: Token) -> io::Result<bool> {
        let Socket::Tcp(stream) = &self.socket else {
            return Ok(true);
        };
        if self.stage == Stage::Ready {
            return Ok(true);
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(false),
            Err(error) => return Err(error),
        }
        // As libpq does: small messages leave at once, and dead peers are noticed some day.
        stream.set_nodelay(true)?;
        socket2::SockRef::from(stream).set_keepalive(true)?;
        self.stage = Stage::Ready;
        self.watch(registry, token, Interest::READABLE)?;
        Ok(true)
    }

    /// Reads what is there, at most `buffer` full. 0 means that the peer has closed.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::WouldBlock`] when there is nothing to read.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        retry_interrupted(|| self.socket.as_read().read(buffer))
    }

    /// Writes as much of `output` as the socket takes, and says how much that was. The rest is to
    /// be written when the poll reports the socket writable; only then is that watched for, since
    /// a local socket would else report it each time the peer reads.
    ///
    /// # Errors
    /// Those of the system.
    pub fn send(&mut self, output: &[u8], registry: &Registry, token: Token) -> io::Result<usize> {
        let mut sent = 0;
        while sent < output.len() {
            match retry_interrupted(|| self.socket.as_write().write(&output[sent..])) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.watch(registry, token, Interest::READABLE | Interest::WRITABLE)?;
                    return Ok(sent);
                }
                Err(error) => return Err(error),
            }
        }
        self.watch(registry, token, Interest::READABLE)?;
        Ok(sent)
    }

    /// Whether bytes can flow.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    fn watch(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        if self.interest == interest {
            return Ok(());
        }
        self.interest = interest;
        match &mut self.socket {
            Socket::Tcp(stream) => registry.reregister(stream, token, interest),
            Socket::Unix(stream) => registry.reregister(stream, token, interest),
        }
    }
}

impl Socket {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => registry.register(stream, token, interest),
            Socket::Unix(stream) => registry.register(stream, token, interest),
        }
    }

    fn as_read(&mut self) -> &mut dyn Read {
        match self {
            Socket::Tcp(stream) => stream,
            Socket::Unix(stream) => stream,
        }
    }

    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            Socket::Tcp(stream) => stream,
            Socket::Unix(stream) => stream,
        }
    }
}

/// The address of a Unix-domain socket; a path that begins with `@` is in the abstract namespace.
pub(crate) fn unix_address(path: &Path) -> io::Result<UnixAddress> {
    match path.as_os_str().as_bytes().strip_prefix(b"@") {
        Some(name) => UnixAddress::from_abstract_name(name),
        None => UnixAddress::from_pathname(path),
    }
}

fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
