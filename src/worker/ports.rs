//! The words for a socket that could not be opened. A connection for each transaction uses up the
//! local ports of a machine within seconds, and the system's own words for that explain nothing.

use std::io;

use crate::error::system_words;

/// What there is to know when all local ports are taken.
const EXPLANATION: &str = "no local port is free, since each closed TCP connection keeps its own for a minute \
     (TIME_WAIT); use a Unix-domain socket, fewer clients (-c) or a lower --rate, or widen \
     net.ipv4.ip_local_port_range";

/// Why a socket could not be opened. Where no other has been opened `before`, the same error means
/// that there is no way from this machine to such an address.
pub(super) fn why_not_opened(error: &io::Error, before: bool) -> String {
    let words = system_words(error);
    match error.kind() == io::ErrorKind::AddrNotAvailable && before {
        true => format!("{words}: {EXPLANATION}"),
        false => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn only_taken_ports_are_explained() {
        for (errno, before, explained) in [
            (Errno::ADDRNOTAVAIL, true, true),
            (Errno::ADDRNOTAVAIL, false, false),
            (Errno::CONNREFUSED, true, false),
        ] {
            let words = why_not_opened(&io::Error::from(errno), before);
            let told = words.contains("TIME_WAIT") && words.contains("ip_local_port_range");
            assert_eq!(told, explained, "{words}");
            assert!(words.starts_with(&system_words(&errno.into())), "{words}");
        }
    }
}
