//! From the hosts of a target to addresses that sockets can be opened to.
//!
//! Looking up a name blocks, so this is done once, before the run.

use std::net::ToSocketAddrs;

use crate::conninfo::{Addresses, Target};

/// All addresses of `target`, in the order in which they are to be tried.
pub fn addresses(target: &Target) -> Addresses {
    Addresses::look_up(target, |name, port| {
        Ok((name, port).to_socket_addrs()?.collect())
    })
}
