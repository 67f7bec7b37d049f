//! What is different about options under the name pgbench: the values that they take, and so their
//! help. Which options there are stands in `modes`.

use clap::Arg;

use super::values;

/// An option of pgbench as pgbench knows it, without what pgmark takes besides.
pub(super) fn narrowed(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "time" => arg
            .value_parser(values::whole_seconds)
            .value_name("SECONDS")
            .help("Begin transactions for this many seconds, counted from when all clients are connected; without it, -t decides"),
        "progress" => arg
            .value_parser(values::whole_seconds)
            .value_name("SECONDS")
            .help("Print a line of progress each time this many seconds have passed; no such lines by default"),
        "aggregate_interval" => arg
            .value_parser(values::whole_seconds)
            .value_name("SECONDS")
            .help("Log a line for each interval of this many seconds in place of one for each transaction, which is the default"),
        "rate" => arg
            .value_parser(values::plain_rate)
            .help("Begin transactions by a random schedule of this many a second in all; latency then counts from when a transaction was due; by default they begin as soon as a client is free"),
        "latency_limit" => arg
            .value_parser(values::plain_milliseconds)
            .value_name("MS")
            .help("Count transactions that take longer than this many milliseconds; no limit by default"),
        "jobs" => arg.help("Number of worker threads that serve the clients, at most one a client; 1 by default"),
        "log" => arg.help("Write a line for every transaction to a file for each thread: pgbench_log.PID, pgbench_log.PID.1 and so on"),
        "log_prefix" => arg.help("Begin the names of these files with this in place of pgbench_log, the default; needs -l"),
        "report_per_command" => arg.help("Show the mean time of each command of the scripts in milliseconds, and how often it failed"),
        "scale" => arg.help("Size of the tables: 100,000 accounts for each unit, about 15 MB; 1 by default; in a run, what scripts of your own find in :scale"),
        "quiet" => arg.help("Say how the filling gets on every 5 seconds only, not every 100,000 rows, the default"),
        _ => arg,
    }
}
