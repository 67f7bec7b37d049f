//! Arguments in, exit status out.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pgmark::run_program(std::env::args_os()).code())
}
