//! What is said when clients have waited for the server too long: how many wait for what, from
//! their side and from the server's.
//!
//! The workers watch over their own clients. When one of them finds somebody overdue, all are asked,
//! then the server, beside everything else since it may be in no state to answer. Says little: once,
//! then again when the longest wait has about doubled.

use std::collections::BTreeMap;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, never};

use crate::beside;
use crate::conninfo::Target;
use crate::console::Console;
use crate::context::RunContext;
use crate::control;
use crate::event::{Level, Message};
use crate::server::{self, ServerWaits};
use crate::time::Timestamp;
use crate::worker::{Place, Wait};

/// The server may take so long to say what it waits for.
const INQUIRY: Duration = Duration::from_secs(5);

/// Places in scripts that are listed; the rest is counted.
const PLACES_MAX: usize = 4;

/// Sees to it that long waits are told of.
pub(super) struct Watch {
    stage: Stage,
    quiet_until: Timestamp,
    /// What the server says.
    pub answered: Receiver<Answer>,
}

/// What the server says of its processes, or why it says nothing.
pub(super) type Answer = Result<ServerWaits, String>;

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Quiet,
    /// The workers are asked, and so many have answered.
    Census {
        answers: usize,
        waits: Vec<Wait>,
    },
    /// The server is asked.
    Inquiry {
        waits: Vec<Wait>,
    },
}

impl Default for Watch {
    /// Nobody waits yet.
    fn default() -> Self {
        Watch {
            stage: Stage::Quiet,
            quiet_until: Timestamp::ZERO,
            answered: never(),
        }
    }
}

impl Watch {
    /// A worker has an overdue client. Whether the workers are to be asked.
    pub fn heed_overdue(&mut self, now: Timestamp) -> bool {
        let heeded = self.stage == Stage::Quiet && now >= self.quiet_until;
        if heeded {
            self.stage = Stage::Census {
                answers: 0,
                waits: Vec::new(),
            };
        }
        heeded
    }

    /// A worker has answered.
    pub fn note(&mut self, of_worker: Vec<Wait>) {
        if let Stage::Census { answers, waits } = &mut self.stage {
            *answers += 1;
            waits.extend(of_worker);
        }
    }

    /// Asks the server by `inquire`, given its processes, once all `workers` that still run have
    /// answered. If nobody waits any more, there is nothing to ask.
    pub fn go_on(&mut self, workers: usize, inquire: impl FnOnce(Vec<i32>) -> Receiver<Answer>) {
        let Stage::Census { answers, waits } = &mut self.stage else {
            return;
        };
        if *answers < workers {
            return;
        }
        let waits = std::mem::take(waits);
        if waits.is_empty() {
            self.stage = Stage::Quiet;
            return;
        }
        let processes = waits.iter().filter_map(|wait| wait.process_id).collect();
        self.answered = inquire(processes);
        self.stage = Stage::Inquiry { waits };
    }

    /// The server has answered, or will not: what is to be said now.
    pub fn conclude(&mut self, answer: &Answer, run: &RunContext) -> Vec<Message> {
        self.answered = never();
        let Stage::Inquiry { waits } = std::mem::replace(&mut self.stage, Stage::Quiet) else {
            return Vec::new();
        };
        let now = run.clock.now();
        let Some(longest) = waits.iter().min_by_key(|wait| wait.since) else {
            return Vec::new();
        };
        // Other workers find theirs overdue a little later.
        self.quiet_until = now + (now - longest.since) / 2;
        let headline = Message {
            level: Level::Info,
            text: headline(&waits, longest, now, run),
        };
        let details = [places(&waits, run), server_side(answer)];
        let details = details.into_iter().map(|text| Message {
            level: Level::Detail,
            text,
        });
        std::iter::once(headline).chain(details).collect()
    }
}

/// Asks the server on threads of its own, so that nobody waits for it.
pub(super) fn inquire(target: &Target, process_ids: Vec<i32>) -> Receiver<Answer> {
    let (sender, answered) = bounded(1);
    let target = target.clone();
    let ask = move || {
        // The collector owns standard error.
        let console = Console::to(Box::new(std::io::sink()));
        let mut client = control::connect(&target, &console).map_err(|error| error.to_string())?;
        server::waits(&mut client, &process_ids)
    };
    let _ = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            let answer = match beside::within("control", INQUIRY, ask) {
                Ok(Some(answer)) => answer,
                Ok(None) => Err(format!("it did not answer within {} s", INQUIRY.as_secs())),
                Err(error) => Err(format!("no thread to ask it: {error}")),
            };
            let _ = sender.send(answer);
        });
    answered
}

fn headline(waits: &[Wait], longest: &Wait, now: Timestamp, run: &RunContext) -> String {
    let least = waits.iter().map(|wait| now - wait.since).min();
    format!(
        "{} of {} clients have waited for the server for more than {:.0} s, client {} the longest: {:.0} s",
        waits.len(),
        run.plan.load.clients,
        least.unwrap_or_default().as_secs_f64().floor(),
        longest.client,
        (now - longest.since).as_secs_f64().floor(),
    )
}

/// Where in their scripts the clients are, the most frequent place first.
fn places(waits: &[Wait], run: &RunContext) -> String {
    let mut counts: BTreeMap<Place, usize> = BTreeMap::new();
    for wait in waits {
        *counts.entry(wait.place).or_default() += 1;
    }
    let mut counts: Vec<(Place, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let listed = counts.iter().take(PLACES_MAX);
    let mut lines: Vec<String> = listed
        .map(|&(place, count)| format!("{count} in {}", words(place, run)))
        .collect();
    let others: usize = counts.iter().skip(PLACES_MAX).map(|(_, count)| count).sum();
    if others > 0 {
        lines.push(format!("{others} elsewhere"));
    }
    lines.join("\n")
}

fn words(place: Place, run: &RunContext) -> String {
    match place {
        Place::Command { script, command } => {
            let script = run.script(script);
            let name = script.short_name();
            match script.commands.get(command) {
                Some(command) => {
                    let (line, excerpt) = (command.line, command.excerpt());
                    format!("{name}, line {line}: {excerpt}")
                }
                None => format!("{name}, at its end"),
            }
        }
        Place::Greeting => "the commands of --on-connect".to_owned(),
        Place::Connecting => "connecting".to_owned(),
    }
}

fn server_side(answer: &Answer) -> String {
    let waits = match answer {
        Ok(waits) if waits.events.is_empty() => {
            return "the server does not list their processes (pg_stat_activity)".to_owned();
        }
        Ok(waits) => waits,
        Err(reason) => return format!("the server could not be asked what it waits for: {reason}"),
    };
    let events: Vec<String> = waits
        .events
        .iter()
        .map(|(event, count)| format!("{event} {count}"))
        .collect();
    let mut text = format!(
        "the server waits for (pg_stat_activity): {}",
        events.join(", ")
    );
    if !waits.blockers.is_empty() {
        let blockers = waits.blockers.join(", ");
        text.push_str(&format!("; blocked by process {blockers}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;
    use crate::options::tests::run_plan;
    use crate::time::Clock;
    use crate::transport::look_up;
    use crate::values::ValueSources;

    fn run_of_five() -> RunContext {
        let target = Target::plain(Vec::new(), "someone", "bench");
        let addresses = look_up::addresses(&target);
        let (plan, values) = (run_plan("-S -c 5 -j 2"), ValueSources::default());
        let run = RunContext::new(plan, target, addresses, values, 1, Clock::manual(0));
        run.clock.set(Timestamp::ZERO + Duration::from_secs(100));
        run
    }

    fn wait(client: u32, since_s: u64, place: Place) -> Wait {
        Wait {
            client,
            since: Timestamp::ZERO + Duration::from_secs(since_s),
            place,
            process_id: Some(client.cast_signed() + 1000),
        }
    }

    const FIRST_COMMAND: Place = Place::Command {
        script: 0,
        command: 0,
    };

    #[test]
    fn who_waits_for_what_is_told_from_both_sides_and_then_not_again_at_once() {
        let run = run_of_five();
        let mut watch = Watch::default();
        assert!(watch.heed_overdue(run.clock.now()));
        assert!(!watch.heed_overdue(run.clock.now()), "it is being asked");
        let (_answers, receiver) = unbounded();
        let mut asked = Vec::new();
        watch.note(vec![wait(4, 30, FIRST_COMMAND), wait(2, 35, FIRST_COMMAND)]);
        watch.go_on(2, |_| panic!("one worker has not answered"));
        watch.note(vec![wait(1, 39, Place::Connecting)]);
        watch.go_on(2, |processes| {
            asked = processes;
            receiver
        });
        assert_eq!(asked, [1004, 1002, 1001]);

        let answer = Ok(ServerWaits {
            events: vec![("Lock transactionid".to_owned(), 2)],
            blockers: vec!["17 (psql, idle in transaction)".to_owned()],
        });
        let told = watch.conclude(&answer, &run);
        let texts: Vec<&str> = told.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(
            texts[0],
            "3 of 5 clients have waited for the server for more than 61 s, client 4 the longest: 70 s"
        );
        assert!(
            texts[1].starts_with("2 in select-only, line 1: "),
            "{texts:?}"
        );
        assert!(texts[1].ends_with("\n1 in connecting"), "{texts:?}");
        assert_eq!(
            texts[2],
            "the server waits for (pg_stat_activity): Lock transactionid 2; blocked by process 17 \
             (psql, idle in transaction)"
        );
        assert!(
            !watch.heed_overdue(run.clock.now()),
            "it has just been told"
        );
        run.clock.set(Timestamp::ZERO + Duration::from_secs(136));
        assert!(watch.heed_overdue(run.clock.now()));
    }

    #[test]
    fn nobody_who_waits_is_nothing_to_ask_and_a_server_that_cannot_be_asked_is_said_to_be_so() {
        let run = run_of_five();
        let mut watch = Watch::default();
        assert!(watch.heed_overdue(run.clock.now()));
        watch.note(Vec::new());
        watch.go_on(1, |_| panic!("nobody waits"));

        assert!(watch.heed_overdue(run.clock.now()));
        watch.note(vec![wait(0, 1, Place::Greeting)]);
        watch.go_on(1, |_| unbounded().1);
        let told = watch.conclude(&Err("it is busy".to_owned()), &run);
        let last = &told.last().expect("something is said").text;
        assert_eq!(
            last,
            "the server could not be asked what it waits for: it is busy"
        );
    }
}
