//! What the user reads of a finished run. A format is a file here: it takes a
//! [`RunResult`](crate::result::RunResult) and writes to whatever it is given. No format reads a
//! clock, and none computes a figure of its own.

mod commands;
mod outages;
mod schedule;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
mod warnings;

pub use warnings::warnings;
