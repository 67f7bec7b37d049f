//! A benchmark run from the plan to the exit status: prepare the server, start the threads, watch
//! them, put the result together, say it.
//!
//! Every step here may block and be friendly; nothing here is measured.

mod checkpoints;
mod cluster;
mod commits;
mod comparison;
mod facts;
mod file_identity;
mod first_look;
mod host;
mod keeping;
mod limits;
mod log_files;
mod look;
mod lost_writes;
mod password;
mod prepare;
mod preview;
mod reports;
mod signals;
mod status;
mod suite;
mod supervise;
mod threads;
mod watchdog;

pub use signals::Signals;
pub use status::ExitStatus;

use std::io::{self, Write};
use std::sync::Arc;

use self::keeping::Keeping;
use crate::archive::Document;
use crate::condition::{Condition, Miss};
use crate::conninfo::{Target, Warning};
use crate::console::Console;
use crate::context::RunContext;
use crate::error::Error;
use crate::init;
use crate::plan::{InitPlan, Plan, RunPlan, ServerChoice, Text};
use crate::program::Program;
use crate::report;
use crate::result::RunResult;
use crate::time::Clock;
use crate::transport::look_up;
use crate::values::ValueSources;

/// What a program run needs from its surroundings.
pub struct Surroundings<'a> {
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error of the control plane.
    pub console: Console,
    /// The clock.
    pub clock: Clock,
}

/// Does what the plan says.
///
/// # Errors
/// Whatever keeps it from being done; the caller reports it and ends with
/// [`ExitStatus::of_error`].
pub fn execute(plan: Plan, around: &mut Surroundings<'_>) -> Result<ExitStatus, Error> {
    if let Some(target) = given_target(&plan) {
        warn_of(target, &around.console);
    }
    match plan {
        Plan::Show(Text::Stdout(text)) => Ok(print(&text, around)),
        Plan::Show(Text::Stderr(text)) => {
            around.console.line(text.trim_end_matches('\n'));
            Ok(ExitStatus::Success)
        }
        Plan::SuiteMk => Ok(print(&suite::makefile()?, around)),
        Plan::Report(plan) => reports::report(&plan, around),
        Plan::Compare(plan) => comparison::compare(&plan, around),
        Plan::Init(plan) if plan.dry_run => Ok(print(&init::preview(&plan), around)),
        Plan::Init(plan) => {
            let signals = Signals::catch()?;
            initialise(*plan, &signals, around)?;
            Ok(ExitStatus::Success)
        }
        Plan::Run(plan) if plan.dry_run => {
            // What is wrong with a file of values is found here as in a run.
            read_values(&plan, &around.console)?;
            Ok(print(&preview::preview(&plan), around))
        }
        Plan::Run(plan) => run_benchmark(*plan, &Signals::catch()?, around),
    }
}

/// The server that the user named or left to the defaults, if it is to be one that is there.
fn given_target(plan: &Plan) -> Option<&Target> {
    match plan {
        Plan::Show(_) | Plan::SuiteMk | Plan::Report(_) | Plan::Compare(_) => None,
        Plan::Init(plan) => Some(&plan.target),
        Plan::Run(plan) => match &plan.server {
            ServerChoice::Given(target) => Some(target),
            ServerChoice::Temporary { .. } => None,
        },
    }
}

/// Says what is odd about the settings of the connection. Of a password among its arguments pgbench
/// says nothing, and so does who stands in for it.
fn warn_of(target: &Target, console: &Console) {
    for warning in &target.warnings {
        if *warning != Warning::PasswordInArguments || console.program() == Program::Pgmark {
            console.warning(&warning.to_string());
        }
    }
}

/// Prints all that the program is to do this time.
fn print(text: &str, around: &mut Surroundings<'_>) -> ExitStatus {
    let written = around.stdout.write_all(text.as_bytes());
    match unwritten(written, around) {
        Some(error) => {
            let text = format!("could not write to standard output: {error}");
            around.console.error(&text);
            ExitStatus::Failure
        }
        None => ExitStatus::Success,
    }
}

/// Why something that was written to standard output is lost. A reader that has seen enough is no
/// error.
fn unwritten(written: io::Result<()>, around: &mut Surroundings<'_>) -> Option<io::Error> {
    written
        .and_then(|()| around.stdout.flush())
        .err()
        .filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

fn initialise(
    mut plan: InitPlan,
    signals: &Signals,
    around: &Surroundings<'_>,
) -> Result<(), Error> {
    let mut client = password::connect(&mut plan.target, signals, &around.console)?;
    signals.cancelling(&mut client, |client| {
        init::run(
            client,
            &plan,
            &around.console,
            &around.clock,
            signals.stopped(),
        )
    })
}

fn run_benchmark(
    plan: RunPlan,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    limits::allow_descriptors(&plan)?;
    log_files::check(&plan)?;
    report_seed(&plan, &around.console);
    let keeping = Keeping::open(&plan.keep, signals)?;
    let conditions = plan.fail_if.clone();
    match &plan.server {
        ServerChoice::Given(target) => {
            let target = (**target).clone();
            let measured = measure(plan, target, signals, around);
            conclude(measured, &conditions, keeping, signals, around)
        }
        ServerChoice::Temporary {
            cluster: cluster_plan,
            presentation,
        } => {
            let (cluster_plan, presentation) = (cluster_plan.clone(), presentation.clone());
            let cluster = cluster::start(&cluster_plan, &plan, signals, around)?;
            let target = cluster.target().presented_as(presentation);
            let measured = measure(plan, target, signals, around);
            // Said before the server is ended: should that fail, nothing measured is lost.
            let status = conclude(measured, &conditions, keeping, signals, around);
            cluster::end(cluster, &cluster_plan, &around.console)?;
            status
        }
    }
}

fn report_seed(plan: &RunPlan, console: &Console) {
    if let (Program::Pgbench, Some(seed)) = (plan.program, plan.seed.overridden) {
        console.notice(&format!("setting random seed to {seed}"));
    }
    if plan.seed.explicit {
        console.notice(&format!("setting random seed to {}", plan.seed.value));
    }
}

/// Reads the files of values, and warns of those that leave clients without any.
fn read_values(plan: &RunPlan, console: &Console) -> Result<ValueSources, Error> {
    let values = ValueSources::read(&plan.scripts)?;
    for warning in values.without_part(plan.load.clients) {
        console.warning(&warning);
    }
    Ok(values)
}

/// All of a run against a server that is there, up to what is known when it is over; printing that
/// is left to others. The banner and progress are shown meanwhile.
///
/// # Errors
/// Whatever kept the run from being made, [`Error::Interrupted`] if a signal did. One that came
/// during the run is a fact of the result.
pub fn measure(
    plan: RunPlan,
    mut target: Target,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<RunResult, Error> {
    let values = read_values(&plan, &around.console)?;
    let addresses = look_up::addresses(&target);
    let prepared = prepare::prepare(&plan, &mut target, signals, around)?;
    let run = Arc::new(RunContext::new(
        plan,
        target,
        addresses,
        values,
        prepared.scale,
        around.clock.clone(),
    ));
    run.read_encryption_files();
    let keepers = prepare::open_keepers(&run, signals)?;
    let driven = threads::drive(&run, keepers, &prepared.server, signals, &around.console)?;
    facts::tell_repeated(&run, &around.console);
    let place = facts::place(&prepared);
    let facts = facts::gather(&run, &prepared, &driven, signals, &around.console);
    Ok(RunResult {
        facts,
        measured: driven.measured,
        place,
    })
}

/// Prints the summary and what has to be said about it, and keeps the result; of a run that never
/// was there is none.
fn conclude(
    measured: Result<RunResult, Error>,
    conditions: &[Condition],
    keeping: Keeping,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    let result = measured.inspect_err(|error| {
        if matches!(error, Error::Interrupted(_)) && keeping.is_asked_for() {
            let text = "nothing was measured before the signal, so that no result is written";
            around.console.notice(text);
        }
    })?;
    let status = judge(&result, conditions, tell(&result, around), around);
    let began = result.measured.window.map(|window| window.begins);
    let began = began.unwrap_or_else(|| around.clock.now());
    let run = keeping.identity(around.clock.unix_us(began));
    let document = Document::new(result, run, status.code());
    let unwritten = keeping.write(document, signals);
    for error in &unwritten {
        around.console.error(&error.to_string());
    }
    Ok(match unwritten.is_empty() {
        true => status,
        false => status.or_failure(),
    })
}

/// Says which conditions the run meets, and gives its status.
fn judge(
    result: &RunResult,
    conditions: &[Condition],
    status: ExitStatus,
    around: &Surroundings<'_>,
) -> ExitStatus {
    let misses: Vec<Miss> = conditions
        .iter()
        .filter_map(|condition| condition.miss(result))
        .collect();
    for miss in &misses {
        around.console.error(&format!("failed by --fail-if {miss}"));
    }
    match status {
        ExitStatus::Success if !misses.is_empty() => ExitStatus::ConditionMet,
        status => status,
    }
}

/// Prints the summary and what has to be said about it.
fn tell(result: &RunResult, around: &mut Surroundings<'_>) -> ExitStatus {
    let summary = report::text::write_summary(result, around.stdout);
    let unwritten = unwritten(summary, around);
    if let Some(error) = &unwritten {
        around
            .console
            .error(&format!("could not write the summary: {error}"));
    }
    let violations = result.check_books();
    for violation in &violations {
        around.console.error(&format!(
            "internal error: the books do not balance: {violation}"
        ));
    }
    for warning in report::warnings(result) {
        around.console.warning(&warning);
    }
    let lost_rows = result.measured.logs.iter().any(|log| log.rows_lost > 0);
    let status = ExitStatus::of_result(
        result,
        lost_rows || unwritten.is_some() || !violations.is_empty(),
    );
    if status == ExitStatus::Aborted {
        around
            .console
            .error("Run was aborted; the above results are incomplete.");
    }
    status
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;
    use crate::console::tests::recorded;
    use crate::error::Signal;
    use crate::report::testing;

    /// The exit status after `result`, and what standard error says.
    fn concluded(result: &RunResult, stdout: &mut dyn Write) -> (ExitStatus, String) {
        let (console, recording) = recorded();
        let clock = Clock::manual(0);
        let mut around = Surroundings {
            stdout,
            console,
            clock,
        };
        (tell(result, &mut around), recording.text())
    }

    #[test]
    fn the_status_tells_how_the_run_went() {
        let mut out_of_balance = testing::timed();
        out_of_balance.measured.total.processed += 1;
        let mut cut_log = testing::timed();
        cut_log.measured.logs = vec![testing::cut_log(700, 300)];
        for (result, status, essence) in [
            (testing::timed(), ExitStatus::Success, ""),
            (
                testing::interrupted(),
                ExitStatus::Interrupted(Signal::Interrupt),
                "",
            ),
            (
                testing::nothing_attempted(),
                ExitStatus::Aborted,
                "the above results are incomplete",
            ),
            (
                out_of_balance,
                ExitStatus::Failure,
                "internal error: the books do not balance",
            ),
            (cut_log, ExitStatus::Failure, "lacks 300 of 1000 rows"),
        ] {
            let mut stdout = Vec::new();
            let (found, stderr) = concluded(&result, &mut stdout);
            assert_eq!(found, status, "{stderr}");
            assert!(stderr.contains(essence), "{stderr}");
            assert!(!stdout.is_empty());
        }
    }

    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_text_that_gets_lost_is_a_failure_but_a_reader_that_leaves_is_not() {
        for (kind, expected) in [
            (ErrorKind::StorageFull, ExitStatus::Failure),
            (ErrorKind::BrokenPipe, ExitStatus::Success),
        ] {
            let (console, _) = recorded();
            let mut around = Surroundings {
                console,
                stdout: &mut Refusing(kind),
                clock: Clock::manual(0),
            };
            assert_eq!(print("text", &mut around), expected, "{kind}");
        }
    }

    #[test]
    fn a_summary_that_gets_lost_is_a_failure_but_a_reader_that_leaves_is_not() {
        for (kind, expected, said) in [
            (ErrorKind::StorageFull, ExitStatus::Failure, true),
            (ErrorKind::BrokenPipe, ExitStatus::Success, false),
        ] {
            let (status, stderr) = concluded(&testing::timed(), &mut Refusing(kind));
            assert_eq!(status, expected, "{kind}");
            let told = stderr.contains("could not write the summary");
            assert_eq!(told, said, "{kind}");
        }
    }
}
