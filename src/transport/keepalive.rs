//! How the kernel notices that a peer is gone.

use std::io;
use std::time::Duration;

use mio::net::TcpStream;
use socket2::{SockRef, TcpKeepalive};

use crate::conninfo::KeepaliveSettings;

/// Applies settings of which zero leaves the system's own.
pub(super) fn apply(stream: &TcpStream, settings: &KeepaliveSettings) -> io::Result<()> {
    let socket = SockRef::from(stream);
    if settings.enabled {
        let seconds = |s: u32| Some(Duration::from_secs(s.into())).filter(|_| s > 0);
        let mut keepalive = TcpKeepalive::new();
        if let Some(idle) = seconds(settings.idle_s) {
            keepalive = keepalive.with_time(idle);
        }
        if let Some(interval) = seconds(settings.interval_s) {
            keepalive = keepalive.with_interval(interval);
        }
        if settings.count > 0 {
            keepalive = keepalive.with_retries(settings.count);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    if settings.user_timeout_ms > 0 {
        let timeout = Duration::from_millis(settings.user_timeout_ms.into());
        socket.set_tcp_user_timeout(Some(timeout))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_reaches_the_socket_and_zero_changes_nothing() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = SockRef::from(&stream);
        let default_idle = socket.tcp_keepalive_time().unwrap();
        let settings = |enabled, idle_s, user_timeout_ms| KeepaliveSettings {
            enabled,
            idle_s,
            interval_s: 7,
            count: 0,
            user_timeout_ms,
        };
        apply(&stream, &settings(false, 33, 0)).unwrap();
        assert!(!socket.keepalive().unwrap());
        apply(&stream, &settings(true, 0, 0)).unwrap();
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), default_idle);
        assert_eq!(socket.tcp_user_timeout().unwrap(), None);
        apply(&stream, &settings(true, 33, 1_500)).unwrap();
        assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), 33);
        assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), 7);
        assert_eq!(
            socket.tcp_user_timeout().unwrap(),
            Some(Duration::from_millis(1_500))
        );
    }
}
