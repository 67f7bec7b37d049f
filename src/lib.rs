//! pgmark: a PostgreSQL benchmarking client, a drop-in for pgbench whose figures are right.

pub mod cluster;
pub mod collector;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("pgmark runs on Linux on x86-64 and aarch64 only");

pub mod conninfo;
pub mod console;
pub mod control;
pub mod error;
pub mod event;
pub mod init;
pub mod options;
pub mod plan;
pub mod protocol;
pub mod random;
pub mod report;
pub mod result;
pub mod script;
pub mod server;
pub mod stats;
pub mod time;
