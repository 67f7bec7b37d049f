//! The per-transaction CSV log as data.

use std::path::Path;

/// All rows of a log, in file order.
pub struct Log {
    /// The rows.
    pub rows: Vec<Row>,
}

/// One transaction as the log tells it.
#[derive(Clone, Debug)]
pub struct Row {
    pub client_id: u32,
    pub transaction: u64,
    pub script: String,
    pub status: String,
    pub phase: String,
    /// Empty for a skipped one.
    pub latency_us: Option<u64>,
    pub lag_us: u64,
    pub connect_us: u64,
    pub retries: u32,
    pub error: String,
    pub completed_us: i64,
}

const HEADER: &str = "client_id,transaction,script,status,phase,latency_us,lag_us,connect_us,\
                      untimed_us,retries,error,completed_us,completed_utc";

impl Log {
    /// Reads a log; fails the test if it is not what the format says, to the last line.
    pub fn read(path: &Path) -> Log {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(text.lines().next(), Some(HEADER));
        assert!(text.ends_with('\n'), "the last line is cut off");
        assert!(!text.contains('\r'), "lines end with LF alone");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows = reader
            .records()
            .map(|record| Row::of(&record.expect("CSV")));
        Log {
            rows: rows.collect(),
        }
    }

    /// Rows of transactions that ended like this: ok, failed, skipped, aborted.
    pub fn with_status<'a>(&'a self, status: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.status == status)
    }

    /// Latencies of the processed transactions in ms, ascending.
    pub fn latencies_ms(&self) -> Vec<f64> {
        let mut latencies: Vec<u64> = self
            .with_status("ok")
            .map(|row| {
                row.latency_us
                    .expect("a processed transaction has a latency")
            })
            .collect();
        latencies.sort_unstable();
        latencies.into_iter().map(|us| us as f64 / 1e3).collect()
    }

    /// Mean latency of the processed transactions, ms.
    pub fn latency_mean_ms(&self) -> f64 {
        let latencies = self.latencies_ms();
        latencies.iter().sum::<f64>() / latencies.len() as f64
    }

    /// Population standard deviation of the same, ms.
    pub fn latency_stddev_ms(&self) -> f64 {
        let (latencies, mean) = (self.latencies_ms(), self.latency_mean_ms());
        let squares = latencies.iter().map(|latency| (latency - mean).powi(2));
        (squares.sum::<f64>() / latencies.len() as f64).sqrt()
    }

    /// Nearest-rank percentile of the same, ms; `share` is above 0, at most 1.
    pub fn latency_percentile_ms(&self, share: f64) -> f64 {
        let latencies = self.latencies_ms();
        let rank = (share * latencies.len() as f64).ceil() as usize;
        latencies[rank.max(1) - 1]
    }

    /// Throughput of a run of `duration_s` seconds without warm-up in which every client lived to
    /// the end: the sum over the clients of processed transactions by the client's time, which
    /// reaches to the end of its last transaction if that is later than the run's.
    pub fn tps(&self, clients: u32, duration_s: f64) -> f64 {
        (0..clients)
            .map(|client| {
                let own = || self.rows.iter().filter(move |row| row.client_id == client);
                let processed = own().filter(|row| row.status == "ok").count() as f64;
                let last_us = own().map(|row| row.completed_us).max().unwrap_or(0);
                processed / duration_s.max(last_us as f64 / 1e6)
            })
            .sum()
    }
}

impl Row {
    fn of(record: &csv::StringRecord) -> Row {
        let field = |index: usize| record.get(index).expect("as many fields as the header has");
        let number = |index: usize| -> u64 {
            field(index)
                .parse()
                .unwrap_or_else(|_| panic!("not a number: {record:?}"))
        };
        assert!(is_utc(field(12)), "not a time: {record:?}");
        Row {
            client_id: number(0) as u32,
            transaction: number(1),
            script: field(2).to_owned(),
            status: field(3).to_owned(),
            phase: field(4).to_owned(),
            latency_us: (!field(5).is_empty()).then(|| number(5)),
            lag_us: number(6),
            connect_us: number(7),
            retries: number(9) as u32,
            error: field(10).to_owned(),
            completed_us: field(11).parse().expect("a signed number"),
        }
    }
}

/// Whether it looks like `2026-11-30T14:25:16.123456`.
fn is_utc(text: &str) -> bool {
    let pattern = "dddd-dd-ddTdd:dd:dd.dddddd";
    text.len() == pattern.len()
        && text.chars().zip(pattern.chars()).all(|(actual, wanted)| {
            if wanted == 'd' {
                actual.is_ascii_digit()
            } else {
                actual == wanted
            }
        })
}
