//! What a transaction costs pgmark, compared in one run with the pgbench of this machine and with
//! the least that it can cost. `make bench` runs it; `--quick` takes three short rounds instead of
//! seven. The figures to reach stand beside those seen; missing one fails nothing, since machines
//! are noisy and differ.

#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod collecting;
mod contest;
mod floor;
mod instructions;
#[path = "../../support/null_server.rs"]
mod null_server;
mod sample;
mod tables;
mod timer;

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use contest::Serving;
use null_server::NullServer;
use tables::Bench;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", directory] => {
            raise_descriptors()?;
            NullServer::listen(Path::new(directory))?.serve()
        }
        ["floor", directory, clients, transactions] => {
            raise_descriptors()?;
            floor::run(Path::new(directory), number(clients), number(transactions))
        }
        ["paced", directory, rate, seconds] => {
            floor::run_paced(Path::new(directory), number(rate), number(seconds))
        }
        ["timer", rate, seconds] => timer::run(number(rate), number(seconds)),
        words => {
            // cargo adds --bench.
            let quick = words.contains(&"--quick");
            let only = words.iter().find(|word| !word.starts_with("--"));
            compare(quick, only.copied())
        }
    }
}

fn compare(quick: bool, only: Option<&str>) -> std::io::Result<()> {
    raise_descriptors()?;
    let directory = tempfile::tempdir()?;
    let _serving = Serving::start(directory.path());
    let bench = Bench::new(directory.path(), quick)?;
    println!("pgbench: {}", bench.pgbench_version());
    println!(
        "rounds: {}, interleaved; medians, and the least and most in brackets",
        bench.rounds()
    );
    for (name, table) in tables::ALL {
        if only.is_none_or(|only| name.contains(only)) {
            println!("\n{name}");
            table(&bench);
        }
    }
    Ok(())
}

fn number<N: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> N {
    text.parse().expect("a number")
}

/// The comparison needs some more than ten thousand.
fn raise_descriptors() -> std::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}
