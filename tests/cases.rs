//! Every verified case of `tests/data/expression-cases.csv`, run by the program against a server.

mod support;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::{Case, Finished, Outcome, Server, Statement, pgmark, pgmark_alone};

/// What stderr says about each class of error before the program connects.
const PARSE_ERRORS: &[(&str, &str)] = &[
    ("arg-count", "wrong number of arguments ("),
    ("bad-char", "unexpected character ("),
    ("bad-define", "NAME=VALUE"),
    ("bad-seed", "invalid random seed: \""),
    ("bad-var-name", "invalid variable name: \""),
    ("double-literal-range", "double literal is out of range ("),
    ("elif-after-else", "\\elif after \\else"),
    ("elif-without-if", "\\elif without matching \\if"),
    ("else-after-else", "\\else after \\else"),
    ("empty-script", "no command found in the script"),
    ("endif-without-if", "\\endif without matching \\if"),
    ("gset-without-sql", "it must follow an SQL command"),
    ("int-literal-range", "integer literal is out of range ("),
    ("missing-arg", ": missing "),
    ("sleep-not-int", "sleep time is not an integer ("),
    ("sleep-unit", "unknown unit of time ("),
    ("syntax", "syntax error"),
    ("too-many-args", "too many arguments, at most "),
    ("unexpected-arg", "unexpected argument ("),
    ("unknown-command", "unknown command"),
    ("unknown-function", "unknown function ("),
];

/// What stderr says about each class of error that ends a client.
const RUN_ERRORS: &[(&str, &str)] = &[
    ("aset-in-pipeline", "\\aset is not allowed in a pipeline"),
    ("bad-var-name", "invalid variable name: \""),
    (
        "bad-var-value",
        "has a value that is no number or boolean: \"",
    ),
    (
        "coerce-boolean-to-double",
        "cannot use a boolean as a double",
    ),
    (
        "coerce-boolean-to-int",
        "cannot use a boolean as an integer",
    ),
    (
        "coerce-double-to-boolean",
        "cannot use a double as a boolean",
    ),
    (
        "coerce-int-to-boolean",
        "cannot use an integer as a boolean",
    ),
    ("div-by-zero", "; division by zero"),
    ("double-to-int-range", "is out of range for an integer"),
    (
        "exponential-param",
        "parameter of random_exponential must be",
    ),
    ("gset-in-pipeline", "\\gset is not allowed in a pipeline"),
    ("gset-rows-0", "\\gset expected one row, got 0"),
    ("gset-rows-2", "\\gset expected one row, got 2"),
    ("int-overflow-add", "integer sum is out of range"),
    ("int-overflow-div", "integer quotient is out of range"),
    ("int-overflow-mul", "integer product is out of range"),
    ("int-overflow-sub", "integer difference is out of range"),
    (
        "open-transaction",
        "without completing the last transaction",
    ),
    ("permute-size", "the size of a permutation must be positive"),
    ("pipeline-needs-extended", "a pipeline needs the extended"),
    ("pipeline-not-open", "not in a pipeline"),
    ("random-empty-range", "empty range given to random"),
    ("random-range-too-large", "random range is too large"),
    ("setshell-not-int", "expected an integer"),
    ("shell-failed", "the shell command failed"),
    ("sleep-bad-value", "is no number to sleep for"),
    ("sql-error", "ERROR:  "),
    ("too-many-fn-args", "too many arguments: at most"),
    ("undefined-var", "undefined variable \""),
    ("var-int-range", "has an integer that is out of range: \""),
    ("zipfian-param", "parameter of random_zipfian must be"),
];

#[test]
fn every_case_does_what_pgbench_does() {
    let cases = Case::all();
    let server = Server::shared();
    let next = AtomicUsize::new(0);
    let run = Mutex::new(BTreeSet::new());
    let wrong = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else {
                return;
            };
            let verdict = check(case, number, server);
            run.lock().expect("no one panics with it").insert(number);
            if let Err(problem) = verdict {
                let mut wrong = wrong.lock().expect("no one panics with it");
                wrong.push(format!("{case}\n{problem}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = wrong.into_inner().expect("no one panics with it");
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(run.into_inner().expect("no one panics with it").len(), 416);
}

#[test]
fn every_class_of_error_has_a_case() {
    let mut classes = BTreeSet::new();
    for case in Case::all() {
        match case.expected(1) {
            Outcome::ParseError(class) => classes.insert((1, class)),
            Outcome::RunError(class) => classes.insert((2, class)),
            Outcome::Debug(_) | Outcome::Sql(_) | Outcome::Counts(_) => continue,
        };
    }
    let tables = [(1, PARSE_ERRORS), (2, RUN_ERRORS)];
    let told = tables.into_iter().flat_map(|(status, table)| {
        table
            .iter()
            .map(move |(class, _)| (status, (*class).to_owned()))
    });
    assert_eq!(told.collect::<BTreeSet<_>>(), classes);
}

/// Runs a case the way its row says, and compares.
fn check(case: &Case, number: usize, server: &Server) -> Result<(), String> {
    let arguments = case.arguments();
    let expected = case.expected(clients(&arguments));
    let transactions = match expected {
        Outcome::Counts(_) => "-t 2",
        _ => "-t 1",
    };
    let mut program = match expected {
        // It must not come to connecting.
        Outcome::ParseError(_) => pgmark_alone().env("PGHOST", "/nowhere"),
        _ => pgmark(server),
    };
    let application = format!("case {number}");
    if let Outcome::Sql(_) = expected {
        program = program
            .env("PGAPPNAME", &application)
            .env("PGOPTIONS", "-c log_statement=all");
    }
    for argument in arguments {
        program = program.arg(argument);
    }
    let finished = program.args(transactions).script(&case.script()).run();
    match expected {
        Outcome::ParseError(class) => expect_error(&class, PARSE_ERRORS, 1, &finished),
        Outcome::RunError(class) => {
            expect_error(&class, RUN_ERRORS, 2, &finished)?;
            expect_same(&true, &finished.stderr.contains("client 0 "), &finished)
        }
        Outcome::Debug(values) => {
            let mut found = finished.debug_values();
            if !case.wants_all_debug_output() {
                found.drain(..found.len().saturating_sub(values.len()));
            }
            expect_status(0, &finished)?;
            expect_same(&values, &found, &finished)
        }
        Outcome::Sql(statements) => {
            let found = sent(server, &application);
            expect_status(0, &finished)?;
            expect_same(&statements, &found, &finished)
        }
        Outcome::Counts(counts) => expect_same(&counts, &counted(&finished), &finished),
    }
}

fn clients(arguments: &[String]) -> usize {
    let option = arguments.iter().position(|argument| argument == "-c");
    option.map_or(1, |at| arguments[at + 1].parse().expect("a number"))
}

/// What the session of the only client has sent. Those of the program itself, which asks for what
/// the server knows of itself, are left out.
fn sent(server: &Server, application: &str) -> Vec<String> {
    let mut sessions = server.logged_statements(application);
    sessions.retain(|statements| !statements[0].text.contains("pg_catalog."));
    sessions.concat().iter().map(Statement::to_string).collect()
}

fn expect_error(
    class: &str,
    table: &[(&str, &str)],
    status: i32,
    finished: &Finished,
) -> Result<(), String> {
    expect_status(status, finished)?;
    let row = table.iter().find(|(name, _)| *name == class);
    let (_, fragment) = row.ok_or_else(|| format!("no such class of errors: {class}"))?;
    if !finished.stderr.contains(fragment) {
        return Err(format!("expected {class}: {fragment:?}\n{finished}"));
    }
    Ok(())
}

fn expect_status(status: i32, finished: &Finished) -> Result<(), String> {
    match finished.status {
        Some(found) if found == status => Ok(()),
        _ => Err(format!("expected status {status}\n{finished}")),
    }
}

fn expect_same<T: PartialEq + std::fmt::Debug>(
    expected: &T,
    found: &T,
    finished: &Finished,
) -> Result<(), String> {
    match expected == found {
        true => Ok(()),
        false => Err(format!(
            "expected {expected:?}\nfound    {found:?}\n{finished}"
        )),
    }
}

/// Exit status and counts of the summary, in the words of the cases. A count that is not shown is
/// none.
fn counted(finished: &Finished) -> String {
    let count = |label: &str| {
        let shown = finished.stdout.contains(label);
        if shown {
            finished.figure(label) as u64
        } else {
            0
        }
    };
    format!(
        "exit={} processed={} failed={} retried={} retries={}",
        finished.status.unwrap_or(-1),
        finished.processed(),
        count("number of failed transactions: "),
        count("number of transactions retried: "),
        count("total number of retries: "),
    )
}
