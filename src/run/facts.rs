//! What is to be said of a run besides what was measured.

use std::time::Duration;

use postgres::Client;

use crate::conninfo::Endpoint;
use crate::console::Console;
use crate::context::RunContext;
use crate::control;
use crate::error::Error;
use crate::plan::StopRule;
use crate::program::{Build, Program};
use crate::result::{
    Connection, ExpectedCommits, Facts, Host, Measured, Place, ScheduleFacts, ScriptFacts,
    ServerActivity, Transport, sha256_of_lines,
};
use crate::server::{self, Activity, ServerFacts};

use super::Signals;
use super::commits;
use super::first_look::FirstLook;
use super::host::{self, ProcessorTimes};
use super::look::Look;
use super::lost_writes;
use super::prepare::Prepared;
use super::supervise::Ending;
use super::threads::Driven;

/// How long the server may take to say what it did during the run.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// The same after a signal: whoever sent it may not wait for ten seconds in all.
const HURRIED_LOOK: Duration = Duration::from_secs(1);

/// Gathers the facts, for which the server is asked once more. If it cannot be, say because it has
/// no free slot or is gone, that is a notice and no more.
pub(super) fn gather(
    run: &RunContext,
    prepared: &Prepared,
    driven: &Driven,
    signals: &Signals,
    console: &Console,
) -> Facts {
    let plan = &run.plan;
    let patience = match driven.ending.interrupted {
        Some(_) => HURRIED_LOOK,
        None => LAST_LOOK,
    };
    // pgbench has no line for it.
    let activity = match plan.program {
        Program::Pgmark => look_again(run, prepared, patience, signals, console),
        Program::Pgbench => None,
    };
    // A long history takes its time to be counted, and must not cost the rest.
    let lost_writes = prepared.history.clone().map(|before| {
        let history = ask(run, patience, signals, console, server::history_rows);
        let history = history.and_then(|rows| rows);
        lost_writes::conclude(plan, &driven.measured, before, history)
    });
    Facts {
        program: plan.program,
        build: Build::own(),
        server_version: prepared.server.version.clone(),
        scripts: script_facts(run),
        scale: prepared.scale,
        partitions: prepared.partitions,
        query_mode: plan.query_mode,
        clients: plan.load.clients,
        threads: plan.load.threads,
        max_tries: plan.load.max_tries,
        stop: plan.load.stop,
        schedule: schedule_facts(run, &driven.measured),
        latency_limit: plan.load.latency_limit,
        connect_per_transaction: plan.load.reconnect,
        reconnect_on_loss: plan.load.reconnect_on_loss,
        lost_writes,
        continue_on_error: plan.load.on_error.go_on,
        exit_on_abort: plan.load.on_error.exit,
        progress: plan.progress.is_some(),
        summary: plan.summary.clone(),
        connection: connection(&driven.ending),
        server: activity.map(|last| {
            let first = first_look(prepared, &driven.ending, console);
            let commits = commits::expected(plan, &driven.measured, &prepared.look, &last);
            server_activity(&prepared.server, &first, &last, commits)
        }),
        interrupted: driven.ending.interrupted,
        exhausted_values: exhausted_values(run),
        seed: plan.seed.value,
        logs_moments: plan.logs_moments(),
        wall_step_ns: run.clock.wall_step_ns(),
    }
}

/// Where the run took place, if the result is kept.
pub(super) fn place(prepared: &Prepared) -> Option<Place> {
    let before = prepared.place.as_ref()?;
    let times = before.processors.zip(ProcessorTimes::now());
    let frequencies = before.frequency_mhz.zip(host::frequency_mhz());
    Some(Place {
        host: Host {
            frequency_mhz: frequencies.map(|(before, after)| [before, after]),
            steal_pct: times.and_then(|(before, now)| before.steal_pct(now)),
            ..host::host()
        },
        server: before.server.clone(),
    })
}

/// What was told once during the run and came more often.
pub(super) fn tell_repeated(run: &RunContext, console: &Console) {
    for (text, count) in run.notices.repeated() {
        console.notice(&format!(
            "{count} notices of this kind came, and the first was shown: {text}"
        ));
    }
    match run.notices.untold() {
        0 => {}
        count => console.notice(&format!(
            "{count} notices of still other kinds were not shown"
        )),
    }
    match run.pooling.prepared_again() {
        0 => {}
        count => console.warning(&format!(
            "prepared statements were missing on the server, or there already, and were prepared again \
             {count} times; the time for that is part of the latencies, and statements that another \
             run left behind under the same names may have been executed"
        )),
    }
}

fn exhausted_values(run: &RunContext) -> Vec<String> {
    let paths = run.values.exhausted().into_iter();
    paths.map(|path| path.display().to_string()).collect()
}

/// Nothing is known of how the clients connected if none was let in.
fn connection(ending: &Ending) -> Option<Connection> {
    let introduction = ending.introduction.as_ref()?;
    Some(Connection {
        transport: match introduction.endpoint {
            Endpoint::Tcp { .. } => Transport::Tcp,
            Endpoint::Unix(_) => Transport::Socket,
        },
        tls: introduction.tls.clone(),
        authentication: introduction.method.into(),
    })
}

/// What was due: with a time, the slots up to the end of the window; with a number of transactions,
/// those that clients took.
fn schedule_facts(run: &RunContext, measured: &Measured) -> Option<ScheduleFacts> {
    let schedule = run.schedule.as_ref()?;
    let window = measured.window?;
    let due = match run.plan.load.stop {
        StopRule::Time(_) => schedule.due_until(window.ends),
        StopRule::Transactions(_) => schedule.taken(),
    };
    Some(ScheduleFacts {
        rate: schedule.rate(),
        due,
    })
}

fn script_facts(run: &RunContext) -> Vec<ScriptFacts> {
    let scripts = run.plan.scripts.scripts.iter();
    scripts
        .map(|weighted| {
            let texts = weighted.script.commands.iter().map(|command| &command.text);
            ScriptFacts {
                description: weighted.script.name.clone(),
                weight: weighted.weight.into(),
                sha256: sha256_of_lines(texts.clone()),
                commands: texts
                    .map(|text| String::from_utf8_lossy(text).into_owned())
                    .collect(),
            }
        })
        .collect()
}

/// What the server says of itself when the run is over.
fn look_again(
    run: &RunContext,
    prepared: &Prepared,
    patience: Duration,
    signals: &Signals,
    console: &Console,
) -> Option<Look> {
    let version = prepared.server.version_num;
    let is_hurried = patience == HURRIED_LOOK;
    let looked = ask(
        run,
        patience,
        signals,
        console,
        move |client| match is_hurried {
            true => Look::now(client, version),
            false => Look::steady(client, version),
        },
    );
    let missing = match &looked {
        Ok(look) => look.counters.missing.as_ref(),
        Err(problem) => Some(problem),
    };
    if let Some(missing) = missing {
        console.notice(&format!(
            "the server cannot be asked what it did during the run: {missing}"
        ));
    }
    looked.ok()
}

/// Asks the server something. The run is over and its figures wait to be printed, so neither a server
/// that does not answer nor a user who has seen enough is waited for.
fn ask<T: Send + 'static>(
    run: &RunContext,
    patience: Duration,
    signals: &Signals,
    console: &Console,
    question: impl FnOnce(&mut Client) -> T + Send + 'static,
) -> Result<T, String> {
    let (target, console) = (run.target.clone(), console.clone());
    let asked = signals.beside(Some(patience), move || {
        let mut client = control::connect(&target, &console)?;
        Ok(question(&mut client))
    });
    match asked {
        Ok(Some(Ok(answer))) => Ok(answer),
        Ok(Some(Err(error))) | Err(error) => Err(Error::to_string(&error)),
        Ok(None) => Err(format!("no answer within {} s", patience.as_secs())),
    }
}

/// What the server had counted when the window began, or before the clients connected.
fn first_look(prepared: &Prepared, ending: &Ending, console: &Console) -> Look {
    match ending.first_look.as_ref().map(FirstLook::found) {
        None => prepared.look.clone(),
        Some(Ok(look)) => look,
        Some(Err(problem)) => {
            console.notice(&format!(
                "what the server did before the measured window is counted as if it were in it: {problem}"
            ));
            prepared.look.clone()
        }
    }
}

fn server_activity(
    facts: &ServerFacts,
    first: &Look,
    last: &Look,
    expected_commits: Option<ExpectedCommits>,
) -> ServerActivity {
    let Activity {
        checkpoints,
        wal_bytes,
    } = last.activity.since(&first.activity).0;
    ServerActivity {
        checkpoints,
        wal_bytes,
        unsafe_settings: facts.settings.deviations(),
        same_host: facts.same_host,
        checkpoint_timeout: facts.settings.checkpoint_timeout,
        counters: last.counters.since(&first.counters),
        expected_commits,
    }
}
