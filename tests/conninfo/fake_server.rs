//! Something that listens like a PostgreSQL server, on every local address, a socket in a directory
//! and one in the abstract namespace; notes down what clients say, and lets nobody in.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pgmark::conninfo::Endpoint;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

pub struct FakeServer {
    pub port: u16,
    directory: tempfile::TempDir,
    shared: Arc<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    offers_tls: bool,
    heard: Vec<String>,
}

/// What a client says of itself, in one line.
pub fn introduction(user: &str, database: &str, application: &str, options: &str) -> String {
    format!("{user} wants {database} with {application} [{options}]")
}

impl FakeServer {
    /// Its threads end with the process.
    pub fn start() -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let directory = tempfile::tempdir().unwrap();
        let server = FakeServer {
            port,
            directory,
            shared: Arc::default(),
        };
        server.serve(
            TcpListener::bind(("0.0.0.0", port))
                .unwrap()
                .incoming_forever(),
        );
        let name = format!("{}/.s.PGSQL.{port}", server.directory().display());
        server.serve(UnixListener::bind(&name).unwrap().incoming_forever());
        let abstract_name = UnixAddress::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&abstract_name).unwrap();
        server.serve(listener.incoming_forever());
        server
    }

    /// Where its socket is.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Whether somebody who connects there reaches it.
    pub fn listens_at(&self, endpoint: &Endpoint) -> bool {
        match endpoint {
            Endpoint::Tcp { address, .. } => {
                let is_near = match address.ip() {
                    IpAddr::V4(address) => address.is_loopback(),
                    IpAddr::V6(_) => false,
                };
                is_near && address.port() == self.port
            }
            Endpoint::Unix(path) => {
                let name = format!("{}/.s.PGSQL.{}", self.directory().display(), self.port);
                path.as_os_str() == name.as_str() || path.as_os_str() == format!("@{name}").as_str()
            }
        }
    }

    /// Forgets what it heard.
    pub fn expect(&self, offers_tls: bool) {
        *self.shared.lock().unwrap() = Notes {
            offers_tls,
            heard: Vec::new(),
        };
    }

    /// What it heard since.
    pub fn heard(&self) -> Vec<String> {
        self.shared.lock().unwrap().heard.clone()
    }

    fn serve<S: Read + Write>(&self, clients: impl Iterator<Item = S> + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            for mut client in clients {
                // A client that hangs up has said all that it wanted to.
                let _ = answer(&mut client, &shared);
            }
        });
    }
}

/// Talks with one client until it has been turned away.
fn answer(client: &mut (impl Read + Write), notes: &Mutex<Notes>) -> io::Result<()> {
    let note = |text: String| notes.lock().unwrap().heard.push(text);
    loop {
        let packet = read_packet(client)?;
        let code = u32::from_be_bytes(*packet.first_chunk().ok_or(io::ErrorKind::InvalidData)?);
        match code {
            SSL_REQUEST => {
                note("asks for TLS".to_owned());
                if notes.lock().unwrap().offers_tls {
                    client.write_all(b"S")?;
                    note(hear_hello(client)?);
                    return Ok(());
                }
                client.write_all(b"N")?;
            }
            GSS_REQUEST => client.write_all(b"N")?,
            _ => {
                note(introduced(&packet[4..]));
                break;
            }
        }
    }
    client.write_all(b"R\0\0\0\x08\0\0\0\x03")?;
    let mut kind = [0];
    client.read_exact(&mut kind)?;
    let packet = read_packet(client)?;
    let password = packet.strip_suffix(b"\0").unwrap_or(&packet);
    note(format!("password {}", String::from_utf8_lossy(password)));
    let fields = b"SFATAL\0VFATAL\0C28P01\0Mno\0\0";
    client.write_all(b"E")?;
    client.write_all(&(4 + fields.len() as u32).to_be_bytes())?;
    client.write_all(fields)
}

/// A packet without its length, which counts itself.
fn read_packet(client: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length).saturating_sub(4).min(10_000);
    let mut packet = vec![0; length as usize];
    client.read_exact(&mut packet)?;
    Ok(packet)
}

/// The first record of a TLS handshake.
fn hear_hello(client: &mut impl Read) -> io::Result<String> {
    let mut header = [0; 5];
    client.read_exact(&mut header)?;
    let mut record = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    client.read_exact(&mut record)?;
    let named = record.windows(9).any(|window| window == b"localhost");
    Ok(match named {
        true => "says hello to a name".to_owned(),
        false => "says hello".to_owned(),
    })
}

/// The parameters of a start-up packet. Those that psql sends one by one are told as options.
fn introduced(packet: &[u8]) -> String {
    let words: Vec<String> = packet
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let sent: HashMap<&str, &str> = words
        .chunks_exact(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()))
        .collect();
    let value = |name: &str| sent.get(name).copied().unwrap_or("");
    let mut options: Vec<String> = sent
        .get("options")
        .map(|text| (*text).to_owned())
        .into_iter()
        .collect();
    for name in ["client_encoding", "datestyle", "timezone", "geqo"] {
        if let Some(value) = sent.get(name) {
            let escaped = value.replace('\\', "\\\\").replace(' ', "\\ ");
            options.push(format!("-c {name}={escaped}"));
        }
    }
    introduction(
        value("user"),
        value("database"),
        value("application_name"),
        &options.join(" "),
    )
}

trait Forever {
    type Client;
    fn incoming_forever(self) -> Box<dyn Iterator<Item = Self::Client> + Send>;
}

/// No client may hold the server up for longer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Forever for TcpListener {
    type Client = std::net::TcpStream;
    fn incoming_forever(self) -> Box<dyn Iterator<Item = Self::Client> + Send> {
        Box::new(std::iter::from_fn(move || {
            let (client, _) = self.accept().ok()?;
            client.set_read_timeout(Some(PATIENCE)).ok()?;
            Some(client)
        }))
    }
}

impl Forever for UnixListener {
    type Client = std::os::unix::net::UnixStream;
    fn incoming_forever(self) -> Box<dyn Iterator<Item = Self::Client> + Send> {
        Box::new(std::iter::from_fn(move || {
            let (client, _) = self.accept().ok()?;
            client.set_read_timeout(Some(PATIENCE)).ok()?;
            Some(client)
        }))
    }
}
