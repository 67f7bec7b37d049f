//! pgmark: a PostgreSQL benchmarking client, a drop-in for pgbench whose figures are right.

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("pgmark runs on Linux on x86-64 and aarch64 only");

pub mod conninfo;
pub mod error;
pub mod event;
pub mod plan;
pub mod script;
pub mod time;
