//! One non-blocking socket to a server: opening it, encrypting it, and moving bytes.
//!
//! A [`Link`] knows nothing of the protocol beyond what has to happen before a session can begin,
//! and nothing of clients. Readiness is edge-triggered: whoever is told that a link is readable
//! reads until a read comes back shorter than its buffer.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr as UnixAddress;
use std::path::Path;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::conninfo::{AttemptFailure, Endpoint, KeepaliveSettings, SslNegotiation};
use crate::error::system_words;
use crate::protocol::ChannelBinding;
use crate::tls::{self, Connector, Established, TlsError};

pub mod blocking;
pub mod cancel;
mod keepalive;
pub mod look_up;
pub mod peer;
#[cfg(test)]
mod tests;

/// What a client says to ask for encryption (SSLRequest): length and code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// What is said of a server that closes in the middle of something.
pub const SERVER_CLOSED: &str = "server closed the connection unexpectedly";

/// A socket to a server, connecting or connected.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    stage: Stage,
    /// What encrypts it, once that has begun.
    tls: Option<Box<tls::Session>>,
    /// What the poll was told to watch for.
    interest: Interest,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// How a TCP connection is to be encrypted.
#[derive(Debug)]
pub struct Encrypting {
    /// Makes what encrypts it, once the server has agreed.
    pub connector: Connector,
    /// Who the server's certificate is to be for.
    pub host: String,
    /// How the handshake is begun.
    pub negotiation: SslNegotiation,
    /// Without it the connection is of use, too.
    pub optional: bool,
}

/// How far the link is. A session begins only at `Ready`.
#[derive(Debug)]
enum Stage {
    /// The kernel is still shaking hands; the socket becomes writable when that has ended.
    Connecting {
        keepalive: KeepaliveSettings,
        encrypting: Option<Box<Encrypting>>,
    },
    /// The server was asked whether it encrypts.
    Asking(Box<Encrypting>),
    /// The TLS handshake goes on.
    Shaking,
    /// Bytes flow.
    Ready,
}

/// How bytes travel over a link that has become ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// As they are.
    Plain,
    /// As they are, since the server does not encrypt.
    Refused,
    /// Encrypted.
    Encrypted(Established),
}

impl Security {
    /// What a login can be bound to.
    pub fn channel_binding(&self) -> ChannelBinding {
        match self {
            Security::Plain | Security::Refused => ChannelBinding::Unencrypted,
            Security::Encrypted(Established { binding, .. }) => match binding {
                Some(hash) => ChannelBinding::TlsServerEndPoint(hash.clone()),
                None => ChannelBinding::Undefined,
            },
        }
    }

    /// Protocol and cipher, if there are any.
    pub fn description(&self) -> Option<&str> {
        match self {
            Security::Plain | Security::Refused => None,
            Security::Encrypted(established) => Some(&established.description),
        }
    }
}

impl Link {
    /// Begins to connect to `endpoint`, and watches the socket under `token`. Only TCP connections
    /// are kept alive, and encrypted.
    ///
    /// # Errors
    /// Those of the system. [`io::ErrorKind::WouldBlock`] means that the backlog of a Unix-domain
    /// socket is full: no event will tell when there is room, so try again a little later.
    pub fn open(
        endpoint: &Endpoint,
        encrypting: Option<Encrypting>,
        keepalive: KeepaliveSettings,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Link> {
        let mut link = match endpoint {
            Endpoint::Unix(path) => Link::unix(path)?,
            Endpoint::Tcp { address, .. } => Link::tcp(*address, encrypting, keepalive)?,
        };
        link.socket.register(registry, token, link.interest)?;
        Ok(link)
    }

    fn tcp(
        address: SocketAddr,
        encrypting: Option<Encrypting>,
        keepalive: KeepaliveSettings,
    ) -> io::Result<Link> {
        let stream = TcpStream::connect(address)?;
        Ok(Link {
            socket: Socket::Tcp(stream),
            stage: Stage::Connecting {
                keepalive,
                encrypting: encrypting.map(Box::new),
            },
            tls: None,
            interest: Interest::READABLE | Interest::WRITABLE,
        })
    }

    /// Local sockets connect at once or not at all.
    fn unix(path: &Path) -> io::Result<Link> {
        Ok(Link {
            socket: Socket::Unix(UnixStream::connect_addr(&unix_address(path)?)?),
            stage: Stage::Ready,
            tls: None,
            interest: Interest::READABLE,
        })
    }

    /// Checks who runs the server behind a Unix-domain socket; nobody is asked for elsewhere.
    ///
    /// # Errors
    /// It is somebody else than `required`, or not known.
    pub fn check_peer(&self, required: &str) -> Result<(), AttemptFailure> {
        match &self.socket {
            Socket::Tcp(_) => Ok(()),
            Socket::Unix(stream) => peer::check(stream, required),
        }
    }

    /// Goes on towards a link that a session can begin on, and says how it is secured when that
    /// has come. Called when the poll reports the socket readable or writable before that.
    ///
    /// # Errors
    /// Why there will be no connection.
    pub fn advance(
        &mut self,
        registry: &Registry,
        token: Token,
    ) -> Result<Option<Security>, AttemptFailure> {
        loop {
            let security = match std::mem::replace(&mut self.stage, Stage::Ready) {
                Stage::Ready => return Ok(None),
                Stage::Connecting {
                    keepalive,
                    encrypting,
                } => match self.connected(&keepalive).map_err(unreachable)? {
                    false => {
                        self.stage = Stage::Connecting {
                            keepalive,
                            encrypting,
                        };
                        return Ok(None);
                    }
                    true => self.begin_encrypting(encrypting)?,
                },
                Stage::Asking(encrypting) => match self.read_answer()? {
                    None => {
                        self.stage = Stage::Asking(encrypting);
                        break;
                    }
                    Some(b'S') => {
                        self.shake(&encrypting)?;
                        None
                    }
                    Some(b'N') if encrypting.optional => Some(Security::Refused),
                    Some(b'N') => return Err(AttemptFailure::NoTls),
                    Some(other) => return Err(no_answer(other)),
                },
                Stage::Shaking => match self.shake_on()? {
                    None => {
                        self.stage = Stage::Shaking;
                        break;
                    }
                    some => some,
                },
            };
            if security.is_some() {
                self.watch(registry, token, Interest::READABLE)
                    .map_err(unreachable)?;
                return Ok(security);
            }
        }
        let interest = match self.has_unsent() {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        self.watch(registry, token, interest).map_err(unreachable)?;
        Ok(None)
    }

    /// Whether the kernel has shaken hands.
    fn connected(&self, keepalive: &KeepaliveSettings) -> io::Result<bool> {
        let Socket::Tcp(stream) = &self.socket else {
            return Ok(true);
        };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(false),
            Err(error) => return Err(error),
        }
        // As libpq does: small messages leave at once, and dead peers are noticed.
        stream.set_nodelay(true)?;
        keepalive::apply(stream, keepalive)?;
        Ok(true)
    }

    /// The socket is connected, and nothing has been sent.
    fn begin_encrypting(
        &mut self,
        encrypting: Option<Box<Encrypting>>,
    ) -> Result<Option<Security>, AttemptFailure> {
        let Some(encrypting) = encrypting else {
            return Ok(Some(Security::Plain));
        };
        match encrypting.negotiation {
            SslNegotiation::Direct => self.shake(&encrypting)?,
            SslNegotiation::Postgres => {
                // A socket that has just been connected takes a few bytes at once.
                let asked = self.socket.as_write().write_all(&SSL_REQUEST);
                asked.map_err(unreachable)?;
                self.stage = Stage::Asking(encrypting);
            }
        }
        Ok(None)
    }

    /// The server's answer to the question whether it encrypts: one byte, and no more of what has
    /// come, since whatever follows unencrypted is not from the server that encrypts.
    fn read_answer(&mut self) -> Result<Option<u8>, AttemptFailure> {
        let mut answer = [0];
        match retry_interrupted(|| self.socket.as_read().read(&mut answer)) {
            Ok(0) => Err(AttemptFailure::Unreachable(SERVER_CLOSED.to_owned())),
            Ok(_) => Ok(Some(answer[0])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(unreachable(error)),
        }
    }

    fn shake(&mut self, encrypting: &Encrypting) -> Result<(), AttemptFailure> {
        let session = encrypting.connector.session(&encrypting.host);
        self.tls = Some(Box::new(session.map_err(handshake_failed)?));
        self.stage = Stage::Shaking;
        Ok(())
    }

    /// Goes on with the handshake as far as the socket lets it.
    fn shake_on(&mut self) -> Result<Option<Security>, AttemptFailure> {
        let Some(tls) = &mut self.tls else {
            return Ok(Some(Security::Plain));
        };
        let mut stream = self.socket.as_stream();
        while tls.connection.is_handshaking() || tls.connection.wants_write() {
            match tls.connection.complete_io(&mut stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(handshake_failed(TlsError::of_handshake(error))),
            }
        }
        let established = tls.established().map_err(handshake_failed)?;
        Ok(Some(Security::Encrypted(established)))
    }

    /// Reads what is there, at most `buffer` full. 0 means that the peer has closed.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::WouldBlock`] when there is nothing to read.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => receive_plain(self.socket.as_fd(), buffer),
            Some(tls) => receive_encrypted(tls, self.socket.as_fd(), buffer),
        }
    }

    /// Writes as much of `output` as the socket takes, and says how much that was. The rest is to
    /// be written when the poll reports the socket writable; only then is that watched for, since
    /// a local socket would else report it each time the peer reads.
    ///
    /// # Errors
    /// Those of the system.
    pub fn send(&mut self, output: &[u8], registry: &Registry, token: Token) -> io::Result<usize> {
        let sent = match &mut self.tls {
            None => send_plain(self.socket.as_fd(), output),
            Some(tls) => send_encrypted(tls, self.socket.as_write(), output),
        }?;
        let interest = match sent < output.len() || self.has_unsent() {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        self.watch(registry, token, interest)?;
        Ok(sent)
    }

    /// Whether bytes can flow.
    pub fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready)
    }

    /// Whether something that counts as sent has not left yet.
    pub fn has_unsent(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.connection.wants_write())
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

/// By a bare system call, as is the sending: the functions of libc are places where a thread may be
/// cancelled, which costs more than all else that is done around the call.
fn receive_plain(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let (received, _) = retry_on_intr(|| recv(socket, &mut *buffer, RecvFlags::empty()))?;
    Ok(received)
}

fn send_plain(socket: BorrowedFd<'_>, output: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < output.len() {
        match retry_on_intr(|| send(socket, &output[sent..], SendFlags::NOSIGNAL)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => sent += written,
            Err(Errno::WOULDBLOCK) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}

/// Encrypts as much as is held back at most, and sends what the socket takes.
fn send_encrypted(
    tls: &mut tls::Session,
    mut socket: &mut dyn Write,
    output: &[u8],
) -> io::Result<usize> {
    let mut sent = 0;
    loop {
        sent += tls.connection.writer().write(&output[sent..])?;
        while tls.connection.wants_write() {
            match retry_interrupted(|| tls.connection.write_tls(&mut socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(sent),
                Err(error) => return Err(error),
            }
        }
        if sent == output.len() {
            return Ok(sent);
        }
    }
}

/// A socket that is read from, and whether the last read has emptied it.
struct Source<'a> {
    socket: BorrowedFd<'a>,
    drained: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = receive_plain(self.socket, buffer)?;
        self.drained = length < buffer.len();
        Ok(length)
    }
}

/// Reads encrypted bytes and decrypts what is complete. 0 means that the peer has closed.
fn read_record(tls: &mut tls::Session, source: &mut Source<'_>) -> io::Result<usize> {
    let length = tls.connection.read_tls(source)?;
    let processed = tls.connection.process_new_packets();
    processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(length)
}

/// Fills the buffer until it is full or the socket is drained, whatever sizes records have.
fn receive_encrypted(
    tls: &mut tls::Session,
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut source = Source {
        socket,
        drained: false,
    };
    let mut filled = 0;
    loop {
        match tls.connection.reader().read(&mut buffer[filled..]) {
            Ok(0) => return Ok(filled),
            Ok(length) => filled += length,
            // As with a socket in plain, a read that was short need not be followed by one that is
            // in vain.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && filled > 0 && source.drained =>
            {
                return Ok(filled);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match read_record(tls, &mut source) {
                    Ok(0) => return Ok(filled),
                    Ok(_) => {}
                    // What came before is handed out. A reset is told again, as an end.
                    Err(error) if filled > 0 && error.kind() != io::ErrorKind::InvalidData => {
                        return Ok(filled);
                    }
                    Err(error) => return Err(error),
                }
            }
            // The peer has closed without saying so inside the encryption, as servers do.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(filled),
            Err(error) => return Err(error),
        }
    }
}

fn handshake_failed(error: TlsError) -> AttemptFailure {
    AttemptFailure::Handshake(error.to_string())
}

fn unreachable(error: io::Error) -> AttemptFailure {
    AttemptFailure::Unreachable(system_words(&error))
}

/// A server that answers anything but yes or no. An error in the protocol of old comes unencrypted,
/// so that anybody may have written it: it is not shown.
fn no_answer(byte: u8) -> AttemptFailure {
    AttemptFailure::Unreachable(match byte {
        b'E' => "server sent an error response during SSL exchange".to_owned(),
        other => format!(
            "received invalid response to SSL negotiation: {}",
            other.escape_ascii()
        ),
    })
}

/// Both ways of a socket.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

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

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
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

    fn as_stream(&mut self) -> &mut dyn Stream {
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
