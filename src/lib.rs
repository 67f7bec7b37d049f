//! pgmark: a PostgreSQL benchmarking client, a drop-in for pgbench whose figures are right.

pub mod conninfo;
pub mod error;
pub mod event;
pub mod plan;
pub mod random;
pub mod script;
pub mod time;
