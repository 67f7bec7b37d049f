//! Lists of hosts, addresses and ports, matched with each other.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::SettingsError;
use super::keywords::{Settings, is_space};
use super::{Host, HostName};

/// Port of a server of which nothing is said.
const DEFAULT_PORT: u16 = 5432;

/// Where servers of a distribution put their sockets; elsewhere it is the second one.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Hosts with their addresses and ports: one port serves all hosts, else each has its own.
pub(super) fn hosts(
    settings: &Settings,
    environment: &dyn Environment,
) -> Result<Vec<Host>, SettingsError> {
    let servers = servers(settings)?;
    let ports = list(settings, "port")
        .into_iter()
        .map(|port| read_port(port, settings))
        .collect::<Result<Vec<u16>, _>>()?;
    if ports.len() != 1 && ports.len() != servers.len() {
        return Err(SettingsError::PortCount {
            ports: ports.len(),
            hosts: servers.len(),
        });
    }
    servers
        .iter()
        .zip(ports.iter().cycle())
        .map(|((name, address), port)| {
            let name = match (*name, *address) {
                ("", "") => HostName::SocketDirectory(socket_directory(environment)),
                ("", address) => HostName::Network(address.to_owned()),
                (name, _) => HostName::parse(name),
            };
            Ok(Host {
                address: read_address(address, settings)?,
                ..Host::new(name, *port)
            })
        })
        .collect()
}

/// Whether there is an address of which the name is not known.
pub(super) fn has_nameless_address(settings: &Settings) -> bool {
    servers(settings).is_ok_and(|servers| {
        servers
            .iter()
            .any(|(name, address)| name.is_empty() && !address.is_empty())
    })
}

/// Where sockets lie if nothing is said.
pub(super) fn socket_directory(environment: &dyn Environment) -> PathBuf {
    let [distribution, other] = SOCKET_DIRECTORIES;
    PathBuf::from(match environment.has_directory(Path::new(distribution)) {
        true => distribution,
        false => other,
    })
}

/// Names with their addresses; either may be empty.
fn servers(settings: &Settings) -> Result<Vec<(&str, &str)>, SettingsError> {
    let names = list(settings, "host");
    if settings.value("hostaddr").is_none() {
        return Ok(names.into_iter().map(|name| (name, "")).collect());
    }
    let addresses = list(settings, "hostaddr");
    if settings.value("host").is_none() {
        return Ok(addresses.into_iter().map(|address| ("", address)).collect());
    }
    if names.len() != addresses.len() {
        return Err(SettingsError::AddressCount {
            addresses: addresses.len(),
            hosts: names.len(),
        });
    }
    Ok(names.into_iter().zip(addresses).collect())
}

/// The elements of a list; one, empty, if nothing was given.
fn list<'s>(settings: &'s Settings, keyword: &'static str) -> Vec<&'s str> {
    settings.value(keyword).unwrap_or("").split(',').collect()
}

fn read_port(text: &str, settings: &Settings) -> Result<u16, SettingsError> {
    if text.is_empty() {
        return Ok(DEFAULT_PORT);
    }
    text.trim_matches(is_space)
        .parse()
        .ok()
        .filter(|port| *port != 0)
        .ok_or_else(|| settings.invalid_element("port", text))
}

fn read_address(text: &str, settings: &Settings) -> Result<Option<IpAddr>, SettingsError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| settings.invalid_element("hostaddr", text))
}
