//! The script language: text in, [`ScriptSet`] out, and evaluation. Does no I/O, knows neither
//! time nor the protocol.

/// All scripts of a run with the variables that they mention.
#[derive(Debug)]
pub struct ScriptSet {}
