//! What is compared, with the figures to reach.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::collecting;
use crate::contest::{self, Spent};
use crate::instructions;
use crate::sample::{Sample, verdict};

/// Compares something and prints it.
type Table = fn(&Bench);

/// All tables by name.
pub const ALL: [(&str, Table); 9] = [
    ("closed loop, prepared", |bench| {
        closed_loop(bench, "prepared")
    }),
    ("closed loop, simple", |bench| closed_loop(bench, "simple")),
    (
        "instructions a transaction in user space, 16 clients",
        instruction_counts,
    ),
    ("two threads against one, 16 clients", two_threads),
    ("ten thousand clients against 256", ten_thousand),
    ("2000/s by 5000 clients", low_rate),
    ("the collector alone", collector_alone),
    ("memory an idle connected client", idle_memory),
    ("schedule lag, 1000/s by 8 clients", schedule_lag),
];

/// One SELECT with one `\set`.
const SCRIPT: &str =
    "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";

/// Clients, and the most that pgmark may cost in units of pgbench's cost.
const AGAINST_PGBENCH: [(u32, f64); 3] = [(16, 0.80), (256, 0.75), (1000, 0.55)];
/// The same in units of the least that is possible, without and with a log.
const AGAINST_FLOOR: f64 = 1.10;
const AGAINST_FLOOR_LOGGED: f64 = 1.20;
/// Clients for that.
const FLOOR_CLIENTS: [u32; 3] = [16, 256, 5000];
const INSTRUCTIONS_MOST: f64 = 1_200.0;
const TWO_THREADS_MOST: f64 = 1.15;
const TEN_THOUSAND_MOST: f64 = 1.5;
const LOW_RATE_MOST: f64 = 0.1;
/// Share of what was due that is not processed.
const LOW_RATE_MISSED_MOST: f64 = 0.01;
const IDLE_CLIENT_KB_MOST: f64 = 2.0;
/// Microseconds of a row of the log.
const ROW_MOST_US: f64 = 0.4;
/// Rows a second of a log, and of a compressed one.
const ROWS_LEAST: f64 = 1e6;
/// Microseconds beyond the bare timer's.
const LAG_MOST_US: f64 = 150.0;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contestant {
    Pgmark,
    PgmarkLogged,
    Pgbench,
    Floor,
}

/// A place to compare in.
pub struct Bench {
    directory: PathBuf,
    quick: bool,
    pgbench: Option<PathBuf>,
}

impl Bench {
    pub fn new(directory: &Path, quick: bool) -> io::Result<Bench> {
        fs::write(directory.join("script.sql"), SCRIPT)?;
        Ok(Bench {
            directory: directory.to_owned(),
            quick,
            pgbench: find_pgbench(),
        })
    }

    pub fn rounds(&self) -> usize {
        match self.quick {
            true => 3,
            false => 7,
        }
    }

    pub fn pgbench_version(&self) -> String {
        let told = self.pgbench.as_ref().and_then(|path| {
            let output = Command::new(path).arg("--version").output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            Some(format!("{} ({})", text.trim(), path.display()))
        });
        told.unwrap_or_else(|| "none found, so nothing is compared with it".to_owned())
    }

    /// Transactions of a long run, all clients together.
    fn transactions(&self) -> u32 {
        match self.quick {
            true => 100_000,
            false => 400_000,
        }
    }

    fn contestants(&self) -> Vec<Contestant> {
        let mut all = vec![
            Contestant::Pgmark,
            Contestant::PgmarkLogged,
            Contestant::Floor,
        ];
        if self.pgbench.is_some() {
            all.push(Contestant::Pgbench);
        }
        all
    }

    /// A run of each, one after the other, as often as there are rounds: processor time a
    /// transaction by contestant and round.
    fn cost_us(&self, mode: &str, clients: u32, who: &[Contestant]) -> BTreeMap<Contestant, Costs> {
        let mut costs: BTreeMap<Contestant, Costs> = BTreeMap::new();
        for _ in 0..self.rounds() {
            for &contestant in who {
                let each = (self.transactions() / clients).max(4);
                let short = contest::run(&mut self.command(contestant, mode, clients, each / 4));
                let long = contest::run(&mut self.command(contestant, mode, clients, each));
                let transactions = f64::from((each - each / 4) * clients);
                let entry = costs.entry(contestant).or_default();
                entry.add(&long.beyond(&short), transactions);
            }
        }
        costs
    }

    fn command(&self, who: Contestant, mode: &str, clients: u32, transactions: u32) -> Command {
        if who == Contestant::Floor {
            let mut command = this_program("floor");
            command.arg(&self.directory);
            command.args([clients.to_string(), transactions.to_string()]);
            return command;
        }
        let mut command = self.client(who, mode, clients);
        command.arg(format!("--transactions={transactions}"));
        command
    }

    /// pgmark or pgbench with everything but the length of the run.
    fn client(&self, who: Contestant, mode: &str, clients: u32) -> Command {
        let program = match who {
            Contestant::Pgbench => self.pgbench.clone().expect("it takes part only if found"),
            Contestant::Pgmark | Contestant::PgmarkLogged | Contestant::Floor => pgmark(),
        };
        let mut command = Command::new(program);
        command
            .args(["-n", "-f", "script.sql", "-h"])
            .arg(&self.directory)
            .args(["-p", &crate::null_server::PORT.to_string(), "-U", "u"])
            .arg(format!("--protocol={mode}"))
            .arg(format!("--client={clients}"))
            .current_dir(&self.directory)
            .stderr(std::process::Stdio::null());
        if who == Contestant::PgmarkLogged {
            command.arg("--log-file=log.csv");
        }
        command.arg("d");
        command
    }
}

/// What a transaction cost, a figure a round.
#[derive(Default)]
struct Costs {
    processor_us: Vec<f64>,
    user_us: Sample,
    system_us: Sample,
    tps: Sample,
    resident_mb: Sample,
}

impl Costs {
    fn add(&mut self, spent: &Spent, transactions: f64) {
        let us = |time: std::time::Duration| time.as_secs_f64() * 1e6 / transactions;
        self.processor_us.push(us(spent.processor()));
        self.user_us.add(us(spent.user));
        self.system_us.add(us(spent.system));
        self.tps.add(transactions / spent.wall.as_secs_f64());
        self.resident_mb.add(spent.resident_kb as f64 / 1024.0);
    }

    /// Round by round, in units of what the other took in the same round.
    fn over(&self, other: &Costs) -> Sample {
        let mut ratios = Sample::default();
        for (ours, theirs) in self.processor_us.iter().zip(&other.processor_us) {
            ratios.add(ours / theirs);
        }
        ratios
    }

    fn show(&self, name: &str) {
        println!(
            "  {name:<14} user {:.2} us, system {:.2} us, {:.0}/s, {:.1} MB",
            self.user_us, self.system_us, self.tps, self.resident_mb
        );
    }
}

fn closed_loop(bench: &Bench, mode: &str) {
    let mut clients: Vec<u32> = AGAINST_PGBENCH
        .iter()
        .map(|(clients, _)| *clients)
        .collect();
    clients.extend(
        FLOOR_CLIENTS
            .iter()
            .filter(|count| !AGAINST_PGBENCH.iter().any(|(c, _)| c == *count)),
    );
    for clients in clients {
        let costs = bench.cost_us(mode, clients, &bench.contestants());
        println!(" {clients} clients");
        for (contestant, cost) in &costs {
            cost.show(&format!("{contestant:?}"));
        }
        let (pgmark, floor) = (&costs[&Contestant::Pgmark], &costs[&Contestant::Floor]);
        if let Some(pgbench) = costs.get(&Contestant::Pgbench) {
            let ratio = pgmark.over(pgbench);
            match AGAINST_PGBENCH.iter().find(|(count, _)| *count == clients) {
                Some((_, most)) => println!("  pgmark / pgbench: {}", verdict(&ratio, *most)),
                None => println!("  pgmark / pgbench: {ratio}"),
            }
        }
        // The floor's bytes are those of a prepared statement.
        if mode == "prepared" && FLOOR_CLIENTS.contains(&clients) {
            let logged = costs[&Contestant::PgmarkLogged].over(floor);
            println!(
                "  pgmark / floor: {}",
                verdict(&pgmark.over(floor), AGAINST_FLOOR)
            );
            println!("  with a log: {}", verdict(&logged, AGAINST_FLOOR_LOGGED));
        }
    }
}

fn instruction_counts(bench: &Bench) {
    if !instructions::can_be_counted() {
        return println!("  valgrind is not installed: not counted");
    }
    // Counting makes a program fifty times slower.
    let (short, long) = (100, 400);
    for contestant in bench.contestants() {
        for mode in ["prepared", "simple"] {
            let count = |transactions| {
                let command = bench.command(contestant, mode, 16, transactions);
                instructions::counted(&command, &bench.directory) as f64
            };
            let mut each = Sample::default();
            each.add((count(long) - count(short)) / f64::from((long - short) * 16));
            let told = match (contestant, mode) {
                (Contestant::Pgmark, "prepared") => verdict(&each, INSTRUCTIONS_MOST),
                _ => format!("{each:.0}"),
            };
            println!("  {contestant:?} {mode}: {told}");
        }
    }
}

fn two_threads(bench: &Bench) {
    let mut ratios = Sample::default();
    let mut waited = 0;
    for _ in 0..bench.rounds() {
        let run = |threads: u32, transactions: u32| {
            let mut command = bench.command(Contestant::Pgmark, "prepared", 16, transactions);
            contest::run(command.arg(format!("--jobs={threads}")))
        };
        let each = bench.transactions() / 16;
        let cost = |threads| {
            run(threads, each)
                .beyond(&run(threads, each / 4))
                .processor()
        };
        ratios.add(cost(2).as_secs_f64() / cost(1).as_secs_f64());
        let mut watched = bench.command(Contestant::Pgmark, "prepared", 16, each);
        let output = watched
            .arg("--jobs=2")
            .stderr(std::process::Stdio::piped())
            .output();
        let text = output.expect("pgmark can be run").stderr;
        waited += usize::from(String::from_utf8_lossy(&text).contains("collector"));
    }
    println!("  {}", verdict(&ratios, TWO_THREADS_MOST));
    println!("  runs that told of waiting for the collector: {waited} (at most 0)");
}

fn ten_thousand(bench: &Bench) {
    let many = bench.cost_us("prepared", 10_000, &[Contestant::Pgmark]);
    let some = bench.cost_us("prepared", 256, &[Contestant::Pgmark]);
    let (many, some) = (&many[&Contestant::Pgmark], &some[&Contestant::Pgmark]);
    many.show("10000 clients");
    some.show("256 clients");
    println!("  {}", verdict(&many.over(some), TEN_THOUSAND_MOST));
}

fn low_rate(bench: &Bench) {
    let (rate, short, long) = (2000, 2, 5);
    let run = |who: Contestant, seconds: u32| {
        if who == Contestant::Floor {
            let mut command = this_program("paced");
            command.arg(&bench.directory);
            return contest::run(command.args([rate.to_string(), seconds.to_string()]));
        }
        let mut command = bench.client(who, "prepared", 5000);
        command.args([format!("--rate={rate}"), format!("--time={seconds}")]);
        if who == Contestant::Pgmark {
            command.arg("--log-file=rate.csv");
        }
        contest::run(&mut command)
    };
    let (mut ours, mut theirs, mut least) =
        (Sample::default(), Sample::default(), Sample::default());
    let (mut ratio, mut missed) = (Sample::default(), Sample::default());
    let transactions = f64::from(rate * (long - short));
    let us = |spent: Spent| spent.processor().as_secs_f64() * 1e6 / transactions;
    for _ in 0..bench.rounds().min(3) {
        let cost = us(run(Contestant::Pgmark, long).beyond(&run(Contestant::Pgmark, short)));
        ours.add(cost);
        least.add(us(
            run(Contestant::Floor, long).beyond(&run(Contestant::Floor, short))
        ));
        let rows = fs::read_to_string(bench.directory.join("rate.csv")).unwrap_or_default();
        let done = rows.lines().count().saturating_sub(1) as f64;
        missed.add((1.0 - done / f64::from(rate * short)).max(0.0));
        if bench.pgbench.is_some() {
            let other = us(run(Contestant::Pgbench, long).beyond(&run(Contestant::Pgbench, short)));
            theirs.add(other);
            ratio.add(cost / other);
        }
    }
    println!("  pgmark {ours} us, pgbench {theirs} us, one bare socket {least} us a transaction");
    println!("  ratio: {}", verdict(&ratio, LOW_RATE_MOST));
    println!(
        "  share of the rate that was missed: {}",
        verdict(&missed, LOW_RATE_MISSED_MOST)
    );
}

fn collector_alone(bench: &Bench) {
    let transactions = 256 * 4_000;
    let (mut none, mut row, mut rows, mut compressed) = (
        Sample::default(),
        Sample::default(),
        Sample::default(),
        Sample::default(),
    );
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    for _ in 0..bench.rounds() {
        let time = |log: Option<&str>| {
            let path = log.map(|name| bench.directory.join(name));
            us(collecting::time_a_transaction(
                path.as_deref(),
                transactions,
            ))
        };
        let without = time(None);
        let with = time(Some("log.csv"));
        none.add(without);
        row.add(with - without);
        rows.add(with);
        compressed.add(time(Some("log.csv.gz")));
    }
    println!("  without a log: {none:.3} us a transaction");
    println!("  a row of the log: {} us", verdict(&row, ROW_MOST_US));
    println!(
        "  all of it with a log: {} us",
        verdict(&rows, 1e6 / ROWS_LEAST)
    );
    println!(
        "  with a compressed log: {} us",
        verdict(&compressed, 3e6 / ROWS_LEAST)
    );
}

fn idle_memory(bench: &Bench) {
    let (few, many) = (100, 5100);
    let resident = |who: Contestant, clients: u32| {
        let mut command = bench.client(who, "prepared", clients);
        contest::run(command.args(["--rate=1", "--time=2"])).resident_kb as f64
    };
    for who in bench.contestants() {
        if who == Contestant::Floor || who == Contestant::PgmarkLogged {
            continue;
        }
        let mut each = Sample::default();
        each.add((resident(who, many) - resident(who, few)) / f64::from(many - few));
        match who {
            Contestant::Pgmark => println!("  Pgmark: {} KB", verdict(&each, IDLE_CLIENT_KB_MOST)),
            _ => println!("  {who:?}: {each} KB"),
        }
    }
}

fn schedule_lag(bench: &Bench) {
    let (rate, seconds) = (1000, 3);
    let mut beyond = Sample::default();
    let (mut lags, mut bare) = (Sample::default(), Sample::default());
    for _ in 0..bench.rounds() {
        let mut timer = this_program("timer");
        timer.args([rate.to_string(), seconds.to_string()]);
        let output = timer.output().expect("this program can be run").stdout;
        let late: f64 = String::from_utf8_lossy(&output)
            .trim()
            .parse()
            .expect("microseconds");
        let mut command = bench.client(Contestant::PgmarkLogged, "prepared", 8);
        command.args([format!("--rate={rate}"), format!("--time={seconds}")]);
        contest::run(&mut command);
        let lag = p99_of_lags(&bench.directory.join("log.csv"));
        bare.add(late);
        lags.add(lag);
        beyond.add(lag - late);
    }
    println!("  p99 {lags:.0} us, of a bare timer {bare:.0} us");
    println!("  beyond it: {} us", verdict(&beyond, LAG_MOST_US));
}

fn p99_of_lags(log: &Path) -> f64 {
    let mut reader = csv::Reader::from_path(log).expect("pgmark has written it");
    let headers = reader.headers().expect("it has a header").clone();
    let column = headers
        .iter()
        .position(|name| name == "lag_us")
        .expect("it has lags");
    let mut lags: Vec<u64> = reader
        .records()
        .map(|row| row.expect("a row")[column].parse().expect("microseconds"))
        .collect();
    lags.sort_unstable();
    lags[lags.len() * 99 / 100] as f64
}

/// One of the other things that this bench is.
fn this_program(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg(what);
    command
}

/// The release build that cargo has made for this bench.
fn pgmark() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_pgmark"))
}

/// The newest of the distribution's, else whatever the path has.
fn find_pgbench() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/pgbench")))
        .filter(|path| path.is_file())
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = std::env::split_paths(&path).map(|directory| directory.join("pgbench"));
    versions
        .pop()
        .or_else(|| elsewhere.into_iter().find(|path| path.is_file()))
}
