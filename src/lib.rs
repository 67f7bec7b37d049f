//! pgmark: a PostgreSQL benchmarking client, a drop-in for pgbench whose figures are right.

pub mod collector;
pub mod conninfo;
pub mod error;
pub mod event;
pub mod plan;
pub mod report;
pub mod result;
pub mod script;
pub mod stats;
pub mod time;
