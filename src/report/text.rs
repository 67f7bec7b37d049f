//! The summary as text. Scripts of other people read it, so pgbench's lines stay as they are, the
//! one line that begins with `tps =` ends the main block, and no line of our own contains `tps`,
//! `latency average` or `latency stddev`; ours lie between latency and the connection-time line.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::error::Signal;
use crate::plan::StopRule;
use crate::program::{Build, Program};
use crate::result::{Connection, Facts, Measured, RunResult, ServerActivity, Transport};
use crate::stats::{Histogram, Noise, Stats, Untold};

use super::{commands, outages, schedule};

/// A percentile that fewer samples lie beyond is an accident of a few of them.
const MIN_SAMPLES_BEYOND: u64 = 10;

/// The line that a run begins with: the program's version, the server's, and under our own name a
/// word of warning where a build without optimisation would measure itself. pgbench leaves out the
/// server's version if it is its own.
pub fn banner(program: Program, build: &Build, server_version: &str) -> String {
    if program == Program::Pgbench {
        let own = Program::PGBENCH_VERSION;
        return match server_version.split_whitespace().next() {
            Some(number) if number == own => format!("pgbench ({own})"),
            Some(_) | None => format!("pgbench ({own}, server {server_version})"),
        };
    }
    let debug = if build.debug { ", debug build" } else { "" };
    format!("pgmark ({}, server {server_version}{debug})", build.version)
}

/// Writes all that a run printed: the line that it began with, and the summary.
///
/// # Errors
/// Those of `out`.
pub fn write_all(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let facts = &result.facts;
    let banner = banner(facts.program, &facts.build, &facts.server_version);
    writeln!(out, "{banner}")?;
    write_summary(result, out)
}

/// Writes the summary of a run.
///
/// # Errors
/// Those of `out`.
pub fn write_summary(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(Summary::of(result).text.as_bytes())
}

/// A summary being put together.
struct Summary<'a> {
    facts: &'a Facts,
    measured: &'a Measured,
    text: String,
}

/// Appends a line; writing to a `String` cannot fail.
macro_rules! line {
    ($summary:expr, $($argument:tt)*) => {
        let _ = writeln!($summary.text, $($argument)*);
    };
}

impl<'a> Summary<'a> {
    fn of(result: &'a RunResult) -> Self {
        let mut summary = Summary {
            facts: &result.facts,
            measured: &result.measured,
            text: String::new(),
        };
        summary.workload();
        summary.processed();
        let (facts, total) = (&result.facts, &result.measured.total);
        let ours = facts.program == Program::Pgmark;
        if total.attempted() == 0 {
            if ours {
                summary.nothing_attempted(result);
            }
            return summary;
        }
        summary.failures("", total);
        summary.lines(schedule::skipped(facts, total));
        summary.late("", total);
        summary.latency("", total, ours || facts.pgbench_measures());
        if ours {
            summary.percentiles("", total);
            summary.percentiles_of_all_due();
            summary.errors();
            summary.lines(schedule::account(facts, &result.measured));
        }
        summary.lines(schedule::lag(facts, total));
        if ours {
            summary.diagnosis(result);
        }
        match facts.connect_per_transaction {
            true => summary.reconnections(),
            false => summary.initial_connection(),
        }
        match result.facts.scripts.len() {
            1 => summary.lines(commands::tables(&result.facts, &result.measured, 0, "")),
            _ => summary.scripts(),
        }
        summary
    }

    /// Without transactions there are no figures, but there may be reasons.
    fn nothing_attempted(&mut self, result: &RunResult) {
        self.errors();
        self.lines(schedule::account(self.facts, self.measured));
        self.interrupted();
        self.lines(outages::lines(result));
        self.seed();
    }

    fn seed(&mut self) {
        line!(self, "random seed = {}", self.facts.seed);
    }

    /// What pgbench has no lines for.
    fn diagnosis(&mut self, result: &RunResult) {
        self.interrupted();
        self.concurrency();
        self.lines(outages::lines(result));
        self.noise();
        self.server();
        self.seed();
        if self.facts.summary.pgbench_figures {
            self.pgbench_figures(result);
        }
        if self.facts.connect_per_transaction {
            self.connections();
        }
    }

    fn lines(&mut self, lines: impl IntoIterator<Item = String>) {
        for text in lines {
            line!(self, "{text}");
        }
    }

    fn workload(&mut self) {
        let facts = self.facts;
        match facts.scripts.as_slice() {
            [only] => {
                line!(self, "transaction type: {}", only.description);
            }
            _ => {
                line!(self, "transaction type: multiple scripts");
            }
        }
        line!(self, "scaling factor: {}", facts.scale);
        if let Some(partitions) = &facts.partitions {
            line!(self, "partition method: {}", partitions.method.name());
            line!(self, "partitions: {}", partitions.partitions);
        }
        line!(self, "query mode: {}", facts.query_mode.name());
        line!(self, "number of clients: {}", facts.clients);
        line!(self, "number of threads: {}", facts.threads);
        if let Some(max_tries) = facts.max_tries {
            line!(self, "maximum number of tries: {max_tries}");
        }
    }

    fn processed(&mut self) {
        let processed = self.measured.total.processed;
        match self.facts.stop {
            StopRule::Transactions(each) => {
                let planned = u128::from(each) * u128::from(self.facts.clients);
                line!(self, "number of transactions per client: {each}");
                line!(
                    self,
                    "number of transactions actually processed: {processed}/{planned}"
                );
            }
            StopRule::Time(time) => {
                line!(self, "duration: {} s", time.as_secs_f64());
                line!(
                    self,
                    "number of transactions actually processed: {processed}"
                );
            }
        }
    }

    /// Failed and retried transactions, of those attempted.
    fn failures(&mut self, indent: &str, stats: &Stats) {
        let (failed, attempted) = (stats.failed.total(), stats.attempted());
        let share = percent(failed, attempted);
        line!(
            self,
            "{indent}number of failed transactions: {failed} ({share:.3}%)"
        );
        if self.facts.summary.failures_detailed {
            self.failures_by_kind(indent, stats);
        }
        if self.facts.max_tries != Some(1) {
            let share = percent(stats.retried, attempted);
            line!(
                self,
                "{indent}number of transactions retried: {} ({share:.3}%)",
                stats.retried
            );
            line!(self, "{indent}total number of retries: {}", stats.retries);
        }
    }

    /// Other failures exist where errors do not end the client.
    fn failures_by_kind(&mut self, indent: &str, stats: &Stats) {
        let attempted = stats.attempted();
        let others = self.facts.continue_on_error.then_some(stats.failed.other);
        let kinds = [
            ("serialization", Some(stats.failed.serialization)),
            ("deadlock", Some(stats.failed.deadlock)),
            ("other", others),
        ];
        for (kind, count) in kinds {
            if let Some(count) = count {
                let share = percent(count, attempted);
                line!(
                    self,
                    "{indent}number of {kind} failures: {count} ({share:.3}%)"
                );
            }
        }
    }

    fn late(&mut self, indent: &str, stats: &Stats) {
        let Some(limit) = self.facts.latency_limit else {
            return;
        };
        let (late, processed) = (stats.late, stats.processed);
        line!(
            self,
            "{indent}number of transactions above the {:.1} ms latency limit: {late}/{processed} ({:.3}%)",
            limit.as_secs_f64() * 1e3,
            percent(late, processed)
        );
    }

    /// pgbench prints the spread only of what it has measured.
    fn latency(&mut self, indent: &str, stats: &Stats, with_spread: bool) {
        if stats.processed > 0 {
            line!(
                self,
                "{indent}latency average = {} ms",
                millis(stats.latency.mean_ns())
            );
        }
        if stats.processed > 0 && with_spread {
            line!(
                self,
                "{indent}latency stddev = {} ms",
                millis(stats.latency.stddev_ns())
            );
        }
    }

    fn percentiles(&mut self, indent: &str, stats: &Stats) {
        let latency = &stats.latency;
        if latency.count() > 0 {
            line!(
                self,
                "{indent}latency percentiles = {}, max {} ms",
                percentiles_ms(latency, &self.facts.summary.percentiles),
                millis(latency.max_ns() as f64)
            );
        }
    }

    fn percentiles_of_all_due(&mut self) {
        if self.measured.total.latency.count() > 0 {
            self.lines(schedule::of_all_due(
                self.facts,
                self.measured,
                &self.facts.summary.percentiles,
            ));
        }
    }

    /// What ended transactions that were not processed, and how long those took that failed.
    fn errors(&mut self) {
        let total = &self.measured.total;
        if total.errors.total() > 0 {
            line!(self, "errors = {}", total.errors);
        }
        let failed = &total.failed_latency;
        if failed.count() > 0 {
            line!(
                self,
                "failed transactions took = average {}, {}, max {} ms",
                millis(failed.mean_ns()),
                percentiles_ms(failed, &[99.0]),
                millis(failed.max_ns() as f64)
            );
        }
    }

    fn interrupted(&mut self) {
        let (Some(signal), Some(window)) = (self.facts.interrupted, self.measured.window) else {
            return;
        };
        let name = match signal {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
            Signal::Hangup => "SIGHUP",
        };
        let measured_s = window.nanos() as f64 / 1e9;
        let planned = match self.facts.stop {
            StopRule::Time(time) => format!("{} s", time.as_secs_f64()),
            StopRule::Transactions(each) => format!("{each} transactions per client"),
        };
        line!(
            self,
            "interrupted = by {name} after {measured_s:.3} s, of {planned} planned"
        );
    }

    fn concurrency(&mut self) {
        let while_connected = if self.facts.connect_per_transaction {
            " while connected"
        } else {
            ""
        };
        // Under a rate there is no number that it ought to be near.
        let of_clients = match self.facts.schedule {
            None => format!(" of {}", self.facts.clients),
            Some(_) => String::new(),
        };
        let thread = match (
            self.measured.busiest_thread(),
            self.measured.client_delay_mean_ns(),
        ) {
            (Some(busy), Some(delay_ns)) => format!(
                " (busiest thread {:.0}% busy, client delay {} ms)",
                busy * 100.0,
                millis(delay_ns)
            ),
            (Some(_) | None, Some(_) | None) => String::new(),
        };
        line!(
            self,
            "average concurrency = {:.2}{of_clients}{while_connected}{thread}",
            self.measured.average_concurrency(),
        );
        let think = self.measured.think_time();
        if !think.is_zero() {
            line!(
                self,
                "think time = {:.3} s in \\sleep, a part of latency",
                think.as_secs_f64()
            );
        }
        let untimed = self.measured.total.untimed();
        if !untimed.is_zero() {
            line!(
                self,
                "untimed = {:.3} s in \\untimed, in no latency and no service time",
                untimed.as_secs_f64()
            );
        }
    }

    fn noise(&mut self) {
        let Some(noise) = self.measured.noise() else {
            return;
        };
        let [first, second] = noise.halves;
        line!(
            self,
            "noise in this run = {}; halves {first:.0}/s, {second:.0}/s",
            noise_words(noise)
        );
    }

    fn server(&mut self) {
        let Some(activity) = &self.facts.server else {
            return;
        };
        let mut words = server_words(activity, self.measured.total.processed);
        let connection = self.facts.connection.as_ref();
        words.extend(connection.and_then(|connection| connection.tls.clone()));
        if !words.is_empty() {
            line!(self, "server = {}", words.join(", "));
        }
    }

    /// What other versions would have said, for people who go on with an archive of it.
    fn pgbench_figures(&mut self, result: &RunResult) {
        let Some(figures) = result.pgbench_figures() else {
            return;
        };
        let excluding = match figures.excluding {
            per_second if per_second.is_finite() && per_second >= 0.0 => {
                format!("{per_second:.1}/s")
            }
            _ => "n/a".to_owned(),
        };
        let latency = figures.derived.map_or(String::new(), |derived| {
            format!(", latency {} ms", millis(derived.up_to_13_ns))
        });
        line!(
            self,
            "pgbench up to 13 would say = {:.1}/s including connections establishing, {excluding} \
             excluding{latency}",
            figures.including
        );
        if let Some(derived) = figures.derived {
            line!(
                self,
                "pgbench 14 to 18 would say = latency {} ms (derived, not measured)",
                millis(derived.from_14_ns)
            );
        }
    }

    fn connections(&mut self) {
        let measured = self.measured;
        if let Some(time) = measured.time_of_a_client() {
            let slots = match self.facts.schedule {
                Some(_) => {
                    let percent = time.waiting_for_slots * 100.0;
                    format!("{percent:.1}% waiting for its slot, ")
                }
                None => String::new(),
            };
            line!(
                self,
                "time of a client = {:.1}% connecting, {:.1}% in transactions, {slots}{:.1}% in pgmark",
                time.connecting * 100.0,
                time.in_transactions * 100.0,
                time.in_pgmark * 100.0
            );
        }
        let connects = &measured.connections.in_window;
        let means = self.facts.connection.as_ref();
        line!(
            self,
            "connections = {} made, {} failed; {}, max {} ms{}",
            connects.count(),
            measured.connections.failed,
            percentiles_ms(connects, &[50.0, 99.0]),
            millis(connects.max_ns() as f64),
            means.map(connection_words).unwrap_or_default()
        );
        line!(
            self,
            "excluding reconnection times = {:.1}/s (computed, not measured)",
            measured.tps_excluding_reconnection()
        );
    }

    fn reconnections(&mut self) {
        let measured = self.measured;
        let connects = &measured.connections.in_window;
        line!(
            self,
            "average connection time = {} ms",
            millis(connects.mean_ns())
        );
        line!(
            self,
            "tps = {:.6} (including reconnection times)",
            measured.tps()
        );
    }

    fn initial_connection(&mut self) {
        if let Some(time) = self.measured.initial_connection_time() {
            line!(
                self,
                "initial connection time = {:.3} ms",
                time.as_secs_f64() * 1e3
            );
        }
        line!(
            self,
            "tps = {:.6} (without initial connection time)",
            self.measured.tps()
        );
    }

    /// One block a script.
    fn scripts(&mut self) {
        let (facts, measured) = (self.facts, self.measured);
        let weights: u64 = facts.scripts.iter().map(|script| script.weight).sum();
        let attempted_by_all = measured.total.attempted();
        for (index, (script, stats)) in facts.scripts.iter().zip(&measured.scripts).enumerate() {
            let attempted = stats.attempted();
            line!(self, "SQL script {}: {}", index + 1, script.description);
            let target = percent(script.weight, weights);
            line!(
                self,
                " - weight: {} (targets {target:.1}% of total)",
                script.weight
            );
            let share = percent(attempted, attempted_by_all);
            line!(self, " - {attempted} transactions ({share:.1}% of total)");
            if attempted == 0 {
                continue;
            }
            line!(
                self,
                " - number of transactions actually processed: {} (tps = {:.6})",
                stats.processed,
                measured.tps_of_script(index)
            );
            self.failures(" - ", stats);
            let skipped = schedule::skipped(facts, stats);
            self.lines(skipped.map(|line| format!(" - {line}")));
            if facts.program == Program::Pgmark {
                self.late(" - ", stats);
            }
            self.latency(" - ", stats, true);
            if facts.program == Program::Pgmark {
                self.percentiles(" - ", stats);
            }
            self.lines(commands::tables(facts, measured, index, " - "));
        }
    }
}

/// `p50 1.468, p90 2.289`, in milliseconds.
pub(super) fn percentiles_ms(distribution: &Histogram, percents: &[f64]) -> String {
    let one = |&percent: &f64| match distribution.samples_beyond(percent) {
        // All of them: the largest, which is no estimate.
        0 if percent == 100.0 => {
            format!("p100 {}", millis(distribution.max_ns() as f64))
        }
        ..MIN_SAMPLES_BEYOND => format!("p{percent} n/a"),
        _ => format!(
            "p{percent} {}",
            millis(distribution.percentile_ns(percent) as f64)
        ),
    };
    percents.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What the server did, each thing in a few words; settings only where they are not safe.
fn server_words(activity: &ServerActivity, processed: u64) -> Vec<String> {
    let checkpoints = activity.checkpoints.map(|count| match count {
        0 => "no checkpoint".to_owned(),
        1 => "1 checkpoint".to_owned(),
        many => format!("{many} checkpoints"),
    });
    let wal = activity.wal_bytes.filter(|_| processed > 0).map(|bytes| {
        format!(
            "{} WAL per transaction",
            bytes_words(bytes as f64 / processed as f64)
        )
    });
    let host = activity.same_host.map(|same| match same {
        true => "on this host".to_owned(),
        false => "on another host".to_owned(),
    });
    let autovacuums = activity.autovacuums().filter(|count| *count > 0);
    let autovacuums = autovacuums.map(|count| match count {
        1 => "1 autovacuum".to_owned(),
        many => format!("{many} autovacuums"),
    });
    let reads = activity.read_share().filter(|share| *share >= 0.001);
    let reads = reads.map(|share| {
        let percent = share * 100.0;
        format!("{percent:.1}% of reads from outside shared buffers")
    });
    let did = checkpoints.into_iter().chain(wal);
    let mut words: Vec<String> = did.chain(reads).chain(autovacuums).collect();
    words.extend(activity.unsafe_settings.iter().cloned());
    words.extend(host);
    words
}

/// `; socket, no TLS, trust`
fn connection_words(connection: &Connection) -> String {
    let transport = match connection.transport {
        Transport::Socket => "socket",
        Transport::Tcp => "TCP",
    };
    let tls = connection.tls.as_deref().unwrap_or("no TLS");
    format!("; {transport}, {tls}, {}", connection.authentication)
}

/// Bytes with a decimal prefix: 1 kB is 1000 B.
fn bytes_words(bytes: f64) -> String {
    match bytes {
        few if few < 999.5 => format!("{few:.0} B"),
        some if some < 999_950.0 => format!("{:.1} kB", some / 1e3),
        many => format!("{:.1} MB", many / 1e6),
    }
}

/// `throughput ±1.3%, mean latency ±0.9% (95%)`, or why there is no such figure.
fn noise_words(noise: Noise) -> String {
    let figure = |share: f64| format!("±{:.1}%", share * 100.0);
    let missing = |why| match why {
        Untold::ShortWindow => "n/a (less than 2 s)",
        Untold::FewTransactions => "n/a (too few transactions)",
        Untold::Drift => "n/a (it drifts)",
    };
    match (noise.throughput, noise.latency) {
        (Err(why), Err(same)) if why == same => {
            format!("throughput and mean latency {}", missing(why))
        }
        (throughput, latency) => {
            let either =
                |one: Result<f64, Untold>| one.map_or_else(|why| missing(why).to_owned(), figure);
            format!(
                "throughput {}, mean latency {} (95%)",
                either(throughput),
                either(latency)
            )
        }
    }
}

/// ns as ms with three decimals.
pub(super) fn millis(nanos: f64) -> String {
    format!("{:.3}", nanos / 1e6)
}

/// `part` of `whole` in percent, 0 of nothing.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    100.0 * part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::testing;
    use super::*;

    fn text_of(result: &RunResult) -> String {
        let mut out = Vec::new();
        write_summary(result, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("a summary is text")
    }

    /// `PGMARK_REFRESH_GOLDEN=1 cargo test` writes the files anew; the diff is to be reviewed.
    #[test]
    fn summaries_are_as_the_golden_files_have_them() {
        let refresh = std::env::var_os("PGMARK_REFRESH_GOLDEN").is_some();
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden");
        for (name, result) in under_both_names() {
            let path = directory.join(&name).with_extension("txt");
            let text = text_of(&result);
            if refresh {
                std::fs::write(&path, &text).expect("the golden file can be written");
            }
            let golden = std::fs::read_to_string(&path).expect("there is a golden file");
            assert_eq!(text, golden, "{name}");
        }
    }

    /// Runs of every kind, those under the name pgbench as `pgbench/…`.
    fn under_both_names() -> Vec<(String, RunResult)> {
        let own = testing::of_every_kind();
        let theirs = testing::of_every_kind();
        let own = own.into_iter().map(|(name, run)| (name.to_owned(), run));
        let theirs = theirs
            .into_iter()
            .map(|(name, run)| (format!("pgbench/{name}"), testing::as_pgbench(run)));
        own.chain(theirs).collect()
    }

    /// What scripts do with the text: the first and the last line with `tps = `, `tail -n1`,
    /// `grep tps | cut -d' ' -f3`, `awk '/latency average/ {print $4}'`.
    #[test]
    fn scrapers_find_the_same_figures_in_every_kind_of_run() {
        for (name, result) in under_both_names() {
            let text = text_of(&result);
            let rates: Vec<&str> = text
                .lines()
                .filter(|line| line.contains("tps = "))
                .collect();
            let measured = &result.measured;
            if measured.total.attempted() == 0 {
                assert_eq!(rates, Vec::<&str>::new(), "{name}");
                continue;
            }
            let tps = format!("{:.6}", measured.tps());
            assert!(rates[0].starts_with(&format!("tps = {tps} (")), "{name}");
            let several = result.facts.scripts.len() > 1;
            if !several {
                assert_eq!(rates.len(), 1, "{name}");
            }
            if !several && measured.commands.is_empty() {
                assert_eq!(text.lines().last(), Some(rates[0]), "{name}: tail -n1");
            }
            let cut = rates[0].split(' ').nth(2);
            assert_eq!(cut, Some(tps.as_str()), "{name}: grep and cut");
            let averages: Vec<&str> = text
                .lines()
                .filter(|line| line.starts_with("latency average"))
                .collect();
            assert_eq!(
                averages.len(),
                usize::from(measured.total.processed > 0),
                "{name}"
            );
            if let [average] = averages[..] {
                let fields: Vec<&str> = average.split_whitespace().collect();
                let expected = format!("{:.3}", measured.total.latency.mean_ns() / 1e6);
                assert_eq!((fields[3], fields[4]), (expected.as_str(), "ms"), "{name}");
                assert_eq!(fields.len(), 5, "{name}: nothing follows");
            }
        }
    }

    #[test]
    fn under_the_name_pgbench_there_are_no_lines_but_its_own() {
        const LABELS: [&str; 31] = [
            "transaction type: ",
            "scaling factor: ",
            "partition method: ",
            "partitions: ",
            "query mode: ",
            "number of clients: ",
            "number of threads: ",
            "maximum number of tries: ",
            "number of transactions per client: ",
            "duration: ",
            "number of transactions actually processed: ",
            "number of failed transactions: ",
            "number of serialization failures: ",
            "number of deadlock failures: ",
            "number of other failures: ",
            "number of transactions retried: ",
            "total number of retries: ",
            "number of transactions skipped: ",
            "number of transactions above the ",
            "latency average = ",
            "latency stddev = ",
            "rate limit schedule lag: ",
            "initial connection time = ",
            "average connection time = ",
            "tps = ",
            "SQL script ",
            " - weight: ",
            " - number of ",
            " - latency ",
            "statement latencies in milliseconds",
            " - statement latencies in milliseconds",
        ];
        for (name, result) in testing::of_every_kind() {
            for line in text_of(&testing::as_pgbench(result)).lines() {
                let known = LABELS.iter().any(|label| line.starts_with(label));
                let table = line.starts_with(" - ") && line.contains(" transactions (");
                let retries = line.starts_with(" - total number of retries: ");
                let command = is_row_of_commands(line);
                assert!(known || table || retries || command, "{name}: {line}");
            }
        }
    }

    /// `   %11.3f  %10d …`.
    fn is_row_of_commands(line: &str) -> bool {
        let mut fields = line.split_whitespace();
        let mean = fields.next().and_then(|field| field.parse::<f64>().ok());
        let failures = fields.next().and_then(|field| field.parse::<u64>().ok());
        line.starts_with("   ") && mean.is_some() && failures.is_some()
    }

    /// Who reads the table of commands knows its rows by their numbers, or reads on to the end.
    #[test]
    fn the_table_of_commands_is_read_whole_and_nothing_else() {
        for (result, texts) in [
            (testing::commands(), 2),
            (testing::commands_of_several_scripts(), 4),
        ] {
            let text = text_of(&result);
            let rows = text.lines().filter(|line| is_row_of_commands(line));
            assert_eq!(rows.count(), texts);
            let after_header = text
                .lines()
                .skip_while(|line| !line.contains("statement latencies in milliseconds"))
                .skip(1)
                .take_while(|line| !line.starts_with("SQL script"));
            let read: Vec<bool> = after_header.map(is_row_of_commands).collect();
            assert_eq!(read, [true, true]);
        }
    }

    /// What other people's scripts rely on.
    #[test]
    fn scrapers_find_pgbenchs_lines_and_only_those() {
        for (name, result) in under_both_names() {
            let text = text_of(&result);
            let block: Vec<&str> = text
                .lines()
                .take_while(|line| {
                    !["SQL script", "statement"]
                        .iter()
                        .any(|table| line.starts_with(table))
                })
                .collect();
            let place = |start: &str| block.iter().position(|line| line.starts_with(start));

            for line in text.lines() {
                for word in ["tps", "latency average", "latency stddev"] {
                    let theirs = line.trim_start_matches(" - ").starts_with(word)
                        || line.starts_with(" - number of transactions actually processed: ");
                    assert!(theirs || !line.contains(word), "{name}: {line}");
                }
            }
            let rates = text
                .lines()
                .filter(|line| line.starts_with("tps ="))
                .count();
            let attempted = result.measured.total.attempted() > 0;
            assert_eq!(rates, usize::from(attempted), "{name}");
            if !attempted {
                let processed = place("number of transactions actually processed: 0");
                assert!(processed.is_some(), "{name}");
                continue;
            }
            assert_eq!(place("tps = "), Some(block.len() - 1), "{name}");

            let ours = |line: &&str| {
                line.contains(" = ")
                    && !["latency a", "latency s", "tps", "initial", "average con"]
                        .iter()
                        .any(|theirs| {
                            line.starts_with(theirs) && !line.starts_with("average concurrency")
                        })
            };
            let after = place("latency stddev").unwrap_or(0);
            let before = place("initial connection time")
                .or(place("average connection time"))
                .unwrap_or(block.len() - 1);
            for (index, _) in block.iter().enumerate().filter(|(_, line)| ours(line)) {
                assert!(after < index && index < before, "{name}: {}", block[index]);
            }
        }
    }

    #[test]
    fn every_kind_of_run_balances_its_books() {
        for (name, result) in testing::of_every_kind() {
            assert_eq!(result.check_books(), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn rates_of_scripts_add_up_to_the_whole() {
        let measured = testing::several_scripts().measured;
        let sum = measured.tps_of_script(0) + measured.tps_of_script(1);
        assert!((sum - measured.tps()).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut latency = Histogram::new();
        (1..=1_000).for_each(|ms| latency.record(ms * 1_000_000));
        assert_eq!(
            percentiles_ms(&latency, &[99.0, 99.9]),
            "p99 990.118, p99.9 n/a"
        );
    }

    #[test]
    fn what_the_server_did_is_told_and_what_is_unsafe() {
        let safe = ServerActivity::default();
        let cases = [
            (
                ServerActivity {
                    checkpoints: Some(2),
                    wal_bytes: Some(590_000),
                    same_host: Some(true),
                    ..safe.clone()
                },
                100,
                "2 checkpoints, 5.9 kB WAL per transaction, on this host",
            ),
            (
                ServerActivity {
                    checkpoints: Some(1),
                    wal_bytes: Some(1_200),
                    unsafe_settings: vec!["fsync off".to_owned()],
                    same_host: Some(false),
                    ..safe.clone()
                },
                100,
                "1 checkpoint, 12 B WAL per transaction, fsync off, on another host",
            ),
            (
                ServerActivity {
                    checkpoints: Some(0),
                    wal_bytes: Some(10),
                    ..safe.clone()
                },
                0,
                "no checkpoint",
            ),
            (
                ServerActivity {
                    counters: [
                        ("pg_stat_database.blks_read", 31.0),
                        ("pg_stat_database.blks_hit", 969.0),
                        ("pg_stat_all_tables.autovacuum_count", 1.0),
                    ]
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
                    ..safe.clone()
                },
                100,
                "3.1% of reads from outside shared buffers, 1 autovacuum",
            ),
            (safe, 100, ""),
        ];
        for (activity, processed, expected) in cases {
            assert_eq!(server_words(&activity, processed).join(", "), expected);
        }
    }

    #[test]
    fn noise_that_cannot_be_told_has_its_reason() {
        let words = |throughput, latency| {
            noise_words(Noise {
                throughput,
                latency,
                halves: [1.0, 1.0],
            })
        };
        assert_eq!(
            words(Ok(0.013), Err(Untold::Drift)),
            "throughput ±1.3%, mean latency n/a (it drifts) (95%)"
        );
        assert_eq!(
            words(Err(Untold::ShortWindow), Err(Untold::ShortWindow)),
            "throughput and mean latency n/a (less than 2 s)"
        );
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        for (bytes, expected) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (5_900.0, "5.9 kB"),
            (999_949.0, "999.9 kB"),
            (2_500_000.0, "2.5 MB"),
        ] {
            assert_eq!(bytes_words(bytes), expected);
        }
    }

    #[test]
    fn the_banner_names_both_versions() {
        let build = |debug| Build {
            version: "1.2".to_owned(),
            debug,
        };
        for (debug, expected) in [
            (false, "pgmark (1.2, server 15.18)"),
            (true, "pgmark (1.2, server 15.18, debug build)"),
        ] {
            assert_eq!(banner(Program::Pgmark, &build(debug), "15.18"), expected);
        }
        for (server, expected) in [
            (
                "15.18 (Debian 15.18-0)",
                "pgbench (18.0, server 15.18 (Debian 15.18-0))",
            ),
            ("18.0 (Debian 18.0-1)", "pgbench (18.0)"),
            ("18.1", "pgbench (18.0, server 18.1)"),
        ] {
            assert_eq!(banner(Program::Pgbench, &build(true), server), expected);
        }
    }
}
