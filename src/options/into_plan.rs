//! From what was typed to what will be done: checks that concern several options, in pgbench's
//! order, then the defaults.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::arguments::{Arguments, Show, TableOptions};
use super::complaint::{spelled, too_many_arguments};
use super::modes::{Mode, misplaced};
use super::values::{self, Rejected, SeedSource};
use super::{logs, scripts, usage, usage_with_hint};
use crate::conninfo::{ConnectionOptions, Environment, Target, holds_password};
use crate::error::Error;
use crate::plan::{
    ClusterPlan, InitPlan, InitStep, KeepPlan, Layout, LeadIn, Load, LoadMode, Loading, OnError,
    Pacing, PartitionMethod, Partitioning, Plan, Preparation, ProgressPlan, QueryMode, RunPlan,
    Seed, ServerChoice, StopRule, SummaryPlan, Tables, Vacuum,
};
use crate::program::Program;
use crate::script::ScriptSet;
use crate::time::Clock;

/// The plan that these arguments ask for. `typed` tells which of them really stood there.
pub(super) fn into_plan(
    arguments: &Arguments,
    scripts: ScriptSet,
    typed: &Typed<'_>,
    environment: &dyn Environment,
) -> Result<Plan, Error> {
    let query_mode = arguments.work.protocol.unwrap_or(QueryMode::Simple);
    if query_mode != QueryMode::Simple {
        scripts.check_parameters()?;
    }
    check_database_name(arguments)?;
    let mode = mode(arguments);
    typed.refuse_misplaced(mode)?;
    if mode == Mode::Tables {
        return Ok(Plan::Init(Box::new(InitPlan {
            target: target(arguments, typed.program, environment)?,
            tables: tables(arguments)?,
            dry_run: arguments.show.dry_run,
        })));
    }
    check_combinations(arguments)?;
    Ok(Plan::Run(Box::new(RunPlan {
        program: typed.program,
        server: server(arguments, typed, environment)?,
        scale: stated_scale(arguments, &scripts),
        scripts,
        load: load(typed.program, arguments),
        query_mode,
        on_connect: arguments
            .connection
            .on_connect
            .as_deref()
            .map(scripts::on_connect)
            .transpose()?,
        vacuum: vacuum(arguments),
        before: preparations(arguments),
        seed: seed(arguments.work.random_seed, typed.seed_of_environment),
        log: logs::log(typed.program, arguments),
        intervals: logs::intervals(arguments),
        tries: logs::tries(arguments),
        fail_if: arguments.show.fail_if.clone(),
        keep: keep(arguments, typed),
        progress: progress(typed.program, &arguments.show),
        summary: summary(&arguments.show),
        per_command: arguments.show.report_per_command,
        debug: arguments.show.debug,
        long_wait: match typed.program {
            Program::Pgmark => Some(LONG_WAIT),
            // Which says nothing of it.
            Program::Pgbench => None,
        },
        dry_run: arguments.show.dry_run,
    })))
}

/// So long a client waits for the server before anything is said of it.
const LONG_WAIT: Duration = Duration::from_secs(60);

fn mode(arguments: &Arguments) -> Mode {
    match (arguments.tables.initialize, arguments.cluster.temp_cluster) {
        (true, _) => Mode::Tables,
        (false, false) => Mode::Run,
        (false, true) => Mode::ClusterRun,
    }
}

/// Which options were typed, as opposed to what they are worth.
pub(super) struct Typed<'a> {
    /// Whose options they are.
    pub program: Program,
    pub command: &'a Command,
    pub matches: &'a ArgMatches,
    /// All that was typed, but for the program's name.
    pub words: &'a [String],
    /// Not typed, but asked for all the same.
    pub seed_of_environment: Option<SeedSource>,
}

impl Typed<'_> {
    /// Fails if options were typed that have no place in this mode.
    fn refuse_misplaced(&self, mode: Mode) -> Result<(), Error> {
        let source = |arg: &Arg| self.matches.value_source(arg.get_id().as_str());
        let wrong: Vec<(&Arg, &str)> = self
            .command
            .get_arguments()
            .filter(|arg| source(arg) == Some(ValueSource::CommandLine))
            .filter_map(|arg| Some((arg, misplaced(arg, mode, self.program)?)))
            .collect();
        let Some((_, place)) = wrong.first() else {
            return Ok(());
        };
        let names = wrong.iter().filter(|(_, other)| other == place);
        let names: Vec<String> = names.map(|(arg, _)| spelled(arg)).collect();
        Err(usage(format!(
            "some of the options cannot be used in {place}: {}",
            names.join(", ")
        )))
    }
}

fn check_database_name(arguments: &Arguments) -> Result<(), Error> {
    match (
        &arguments.connection.dbname,
        &arguments.connection.positional,
    ) {
        (Some(_), Some(surplus)) => Err(too_many_arguments(surplus)),
        (Some(name), None) if name.starts_with('-') => Err(usage_with_hint(
            format!("-d/--dbname needs the name of a database, not \"{name}\""),
            "-d is the database, as in pgbench since version 17; it no longer means debugging.",
        )),
        _ => Ok(()),
    }
}

/// Options that exclude or need each other, in the order in which pgbench looks at them.
fn check_combinations(arguments: &Arguments) -> Result<(), Error> {
    let length = &arguments.length;
    if length.transactions.is_some() && length.time.is_some() {
        return Err(usage(
            "specify either a number of transactions (-t) or a duration (-T), not both",
        ));
    }
    logs::check(arguments)?;
    if arguments.show.progress_timestamp && arguments.show.progress.is_none() {
        return Err(usage(
            "--progress-timestamp is allowed only under --progress (-P)",
        ));
    }
    for condition in &arguments.show.fail_if {
        if condition.needs_rate() && arguments.pressure.rate.is_none() {
            return Err(usage(format!(
                "--fail-if '{condition}' needs a rate (-R): without one, what is due is what was done"
            )));
        }
        if condition.needs_limit() && arguments.show.latency_limit.is_none() {
            return Err(usage(format!(
                "--fail-if '{condition}' needs a latency limit (-L)"
            )));
        }
    }
    let unlimited = arguments.errors.max_tries == Some(0);
    if unlimited && arguments.show.latency_limit.is_none() && length.time.is_none() {
        return Err(usage(
            "an unlimited number of tries (--max-tries=0) needs a latency limit (-L) or a duration (-T)",
        ));
    }
    Ok(())
}

/// The server under test: there already, or made for this run.
fn server(
    arguments: &Arguments,
    typed: &Typed<'_>,
    environment: &dyn Environment,
) -> Result<ServerChoice, Error> {
    if !arguments.cluster.temp_cluster {
        let target = target(arguments, typed.program, environment)?;
        return Ok(ServerChoice::Given(Box::new(target)));
    }
    Ok(ServerChoice::Temporary {
        cluster: ClusterPlan {
            bindir: arguments.cluster.bindir.clone(),
            config: arguments.cluster.temp_config.clone(),
            keep: arguments.cluster.temp_keep,
            scale: arguments.tables.scale.unwrap_or(1),
            quiet: arguments.tables.quiet,
        },
        presentation: target(arguments, typed.program, environment)?.into_presentation(),
    })
}

fn target(
    arguments: &Arguments,
    program: Program,
    environment: &dyn Environment,
) -> Result<Target, Error> {
    let typed = &arguments.connection;
    let default = match program {
        Program::Pgmark => None,
        Program::Pgbench => pgbenchs_database(environment),
    };
    let named = typed.dbname.as_ref().or(typed.positional.as_ref());
    let database = named.filter(|name| !name.is_empty()).or(default.as_ref());
    let options = ConnectionOptions {
        host: typed.host.clone(),
        port: typed.port.clone(),
        user: typed.username.clone(),
        database: database.cloned(),
        program_name: program.name().to_owned(),
    };
    let resolved = Target::resolve(&options, environment).map_err(|error| {
        let looks_like_definition = database.is_some_and(|name| name.contains('='));
        match Error::from(error) {
            // In psql -v takes a definition, and here the next word is the database.
            Error::Usage(report) if arguments.work.vacuum_all && looks_like_definition => {
                Error::Usage(report.hint("-v vacuums; a variable is defined with -D NAME=VALUE."))
            }
            other => other,
        }
    })?;
    Ok(match &arguments.tables.schema {
        Some(schema) => in_schema(resolved, schema),
        None => resolved,
    })
}

/// The database of which nothing was typed, by pgbench's rule: `-U` takes no part in it.
fn pgbenchs_database(environment: &dyn Environment) -> Option<String> {
    let variable = |name| {
        let value = environment.variable(name)?.into_string().ok()?;
        Some(value).filter(|value| !value.is_empty())
    };
    variable("PGDATABASE")
        .or_else(|| variable("PGUSER"))
        .or_else(|| environment.user_name().ok())
}

/// The same target, but names of tables mean those in `schema`. A setting of the session as a
/// whole, so that it holds for every connection and every statement is what it always is.
fn in_schema(target: Target, schema: &str) -> Target {
    let mut option = "-c search_path=".to_owned();
    for letter in format!("\"{}\"", schema.replace('"', "\"\"")).chars() {
        // The server splits its options at blanks.
        if letter.is_whitespace() || letter == '\\' {
            option.push('\\');
        }
        option.push(letter);
    }
    let options = match target.options {
        Some(given) => format!("{given} {option}"),
        None => option,
    };
    Target {
        options: Some(options),
        ..target
    }
}

/// `-s` in a run. With a temporary cluster it is the size of the tables, which builtin scripts
/// count for themselves and others are told.
fn stated_scale(arguments: &Arguments, scripts: &ScriptSet) -> Option<u32> {
    if arguments.cluster.temp_cluster && scripts.any_builtin {
        return None;
    }
    arguments.tables.scale
}

fn load(program: Program, arguments: &Arguments) -> Load {
    let clients = arguments.pressure.client.unwrap_or(1);
    Load {
        clients,
        // A thread without a client would do nothing.
        threads: arguments.pressure.jobs.unwrap_or(1).min(clients),
        stop: match (arguments.length.time, arguments.length.transactions) {
            (Some(time), _) => StopRule::Time(time),
            (None, transactions) => StopRule::Transactions(transactions.unwrap_or(10).into()),
        },
        pacing: arguments
            .pressure
            .rate
            .map_or(Pacing::ClosedLoop, Pacing::Rate),
        lead_in: LeadIn {
            ramp: arguments.length.ramp_clients.unwrap_or_default(),
            warmup: arguments.length.warmup.unwrap_or_default(),
        },
        finish_within: arguments.length.finish_within,
        reconnect: arguments.pressure.connect,
        reconnect_on_loss: arguments.errors.reconnect_on_loss,
        latency_limit: arguments.show.latency_limit,
        max_tries: match arguments.errors.max_tries {
            Some(0) => None,
            given => Some(given.unwrap_or(1)),
        },
        on_error: OnError {
            go_on: arguments.errors.continue_on_error,
            exit: arguments.errors.exit_on_abort,
            verbose: arguments.errors.verbose_errors,
            // pgbench is silent about them.
            tell_first: program == Program::Pgmark,
        },
    }
}

/// `-n` beats `-v`, as in pgbench.
fn vacuum(arguments: &Arguments) -> Vacuum {
    match (arguments.work.no_vacuum, arguments.work.vacuum_all) {
        (true, _) => Vacuum::None,
        (false, true) => Vacuum::All,
        (false, false) => Vacuum::Default,
    }
}

fn tables(arguments: &Arguments) -> Result<Tables, Error> {
    let typed = &arguments.tables;
    Ok(Tables {
        steps: init_steps(arguments),
        scale: typed.scale.unwrap_or(1),
        quiet: typed.quiet,
        layout: Layout {
            schema: typed.schema.clone(),
            fillfactor: typed.fillfactor.unwrap_or(100),
            tablespace: typed.tablespace.clone(),
            index_tablespace: typed.index_tablespace.clone(),
            unlogged: typed.unlogged_tables,
            partitioning: partitioning(typed)?,
        },
        loading: Loading {
            mode: typed.init_mode.unwrap_or(LoadMode::Copy),
            batch_rows: typed.init_batch,
            connections: arguments.pressure.jobs.unwrap_or(1),
        },
    })
}

fn init_steps(arguments: &Arguments) -> Vec<InitStep> {
    use InitStep::{CreateTables, DropTables, ForeignKeys, GenerateClientSide, PrimaryKeys};
    let mut steps = match &arguments.tables.init_steps {
        Some(steps) => steps.0.clone(),
        None => vec![
            DropTables,
            CreateTables,
            GenerateClientSide,
            InitStep::Vacuum,
            PrimaryKeys,
        ],
    };
    if arguments.work.no_vacuum {
        steps.retain(|step| *step != InitStep::Vacuum);
    }
    if arguments.tables.foreign_keys && !steps.contains(&ForeignKeys) {
        steps.push(ForeignKeys);
    }
    steps
}

fn partitioning(typed: &TableOptions) -> Result<Option<Partitioning>, Error> {
    match (typed.partitions.unwrap_or(0), typed.partition_method) {
        (0, None) => Ok(None),
        (0, Some(_)) => Err(usage(
            "--partition-method requires greater than zero --partitions",
        )),
        (partitions, method) => Ok(Some(Partitioning {
            method: method.unwrap_or(PartitionMethod::Range),
            partitions,
        })),
    }
}

fn preparations(arguments: &Arguments) -> Vec<Preparation> {
    let given = arguments.work.before.as_ref();
    given.map_or_else(Vec::new, |preparations| preparations.0.clone())
}

fn keep(arguments: &Arguments, typed: &Typed<'_>) -> KeepPlan {
    let masked = |word: &String| match holds_password(word) {
        true => MASK.to_owned(),
        false => word.clone(),
    };
    KeepPlan {
        json: arguments.keep.json.clone(),
        html: arguments.keep.html.clone(),
        summary_csv: arguments.keep.summary_csv.clone(),
        hdr: arguments.keep.hdr.clone(),
        label: arguments.keep.label.clone(),
        tags: arguments.keep.tag.clone(),
        command_line: typed.words.iter().map(masked).collect(),
    }
}

/// Stands for an argument with a password.
const MASK: &str = "(masked)";

fn progress(program: Program, show: &Show) -> Option<ProgressPlan> {
    show.progress.map(|interval| ProgressPlan {
        interval,
        unix_time: show.progress_timestamp,
        percentile: program == Program::Pgmark,
    })
}

fn summary(show: &Show) -> SummaryPlan {
    let percentiles = show.latency_percentiles.clone();
    SummaryPlan {
        failures_detailed: show.failures_detailed,
        percentiles: percentiles.map_or_else(default_percentiles, |given| given.0),
        pgbench_figures: show.pgbench_figures,
    }
}

fn default_percentiles() -> Vec<f64> {
    SummaryPlan::default().percentiles
}

/// The seed that the environment asks for. A bad value is an error even if an option overrides it,
/// as in pgbench.
pub(super) fn seed_of_environment(
    environment: &dyn Environment,
) -> Result<Option<SeedSource>, Error> {
    let Some(text) = environment.variable(SEED_VARIABLE) else {
        return Ok(None);
    };
    match values::seed(&text.to_string_lossy()) {
        Ok(source) => Ok(Some(source)),
        Err(Rejected::Because(message, Some(hint))) => Err(usage_with_hint(
            format!("{message} (in ${SEED_VARIABLE})"),
            hint,
        )),
        Err(other) => Err(usage(format!("{other} (in ${SEED_VARIABLE})"))),
    }
}

/// The option, else the environment, else the time.
fn seed(option: Option<SeedSource>, from_environment: Option<SeedSource>) -> Seed {
    let given = option.or(from_environment);
    Seed {
        value: drawn(given.unwrap_or(SeedSource::Time)),
        explicit: given.is_some(),
        overridden: option.and(from_environment).map(drawn),
    }
}

fn drawn(source: SeedSource) -> u64 {
    match source {
        SeedSource::Number(number) => number,
        SeedSource::Time => microseconds_now(),
        // The standard library keys its hashers from the system's source of randomness.
        SeedSource::Random => RandomState::new().build_hasher().finish(),
    }
}

const SEED_VARIABLE: &str = "PGBENCH_RANDOM_SEED";

/// Unix time; only its low bits matter.
fn microseconds_now() -> u64 {
    let clock = Clock::start();
    (clock.unix_ns(clock.now()) / 1000) as u64
}
