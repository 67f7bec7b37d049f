//! Runs the verified cases of `tests/data/expression-cases.csv` that need no server: each row says
//! what pgbench does with a script, down to the class of the error.

use std::os::unix::ffi::OsStrExt;
use std::process::Command as Process;

use super::*;
use crate::random::Seeds;

#[path = "../../tests/support/case.rs"]
mod case;

use case::{Case, Outcome};

/// Whether the row is about what a server answers, about the program's options, or about what a
/// client does with a pipeline or a failing shell command: nothing that this module decides.
fn needs_program(case: &Case) -> bool {
    let script = case.script();
    let captures = script.contains("\\gset") || script.contains("\\aset");
    match case.expected(1) {
        _ if matches!(case.section.as_str(), "retry" | "seed") => true,
        Outcome::ParseError(_) => false,
        Outcome::RunError(class) => {
            let of_server = ["sql-error", "shell-failed", "open-transaction"];
            captures || case.section == "pipeline" || of_server.contains(&class.as_str())
        }
        Outcome::Debug(_) | Outcome::Sql(_) | Outcome::Counts(_) => {
            captures || case.section == "pipeline"
        }
    }
}

/// The options that the rows use.
struct Options {
    seed: u64,
    clients: u32,
    scale: i64,
    simple: bool,
    defines: Vec<String>,
}

impl Options {
    fn parse(arguments: Vec<String>) -> Self {
        let mut options = Options {
            seed: 1,
            clients: 1,
            scale: 1,
            simple: true,
            defines: Vec::new(),
        };
        let mut words = arguments.into_iter();
        while let Some(word) = words.next() {
            if let Some(seed) = word.strip_prefix("--random-seed=") {
                options.seed = seed.parse().expect("rows about bad seeds are not run here");
                continue;
            }
            let value = match &word[2..] {
                "" => words.next().expect("an option of the rows has a value"),
                value => value.to_owned(),
            };
            match &word[..2] {
                "-D" => options.defines.push(value),
                "-c" => options.clients = value.parse().expect("a number"),
                "-s" => options.scale = value.parse().expect("a number"),
                "-M" => options.simple = value == "simple",
                "-j" => {}
                option => panic!("unknown option {option}"),
            }
        }
        options
    }
}

/// Runs a script as every client does, without a server: SQL commands are only noted down.
fn run(case: &Case, options: &Options, dialect: Dialect) -> Outcome {
    let mut builder = ScriptSetBuilder::new(dialect);
    for define in &options.defines {
        let (name, value) = define.split_once('=').unwrap_or((define, ""));
        builder.define(format!("{name}={value}").as_bytes());
    }
    builder.add_file("case.sql", case.script().as_bytes(), 1);
    let set = builder.finish().and_then(|set| {
        if !options.simple {
            set.check_parameters()?;
        }
        Ok(set)
    });
    let set = match set {
        Ok(set) => set,
        Err(errors) => return Outcome::ParseError(errors.0[0].problem.code().to_owned()),
    };
    let seed_given = set.variables.is_defined(b"default_seed");
    let seeds = Seeds::draw(options.seed, options.clients, 1, seed_given);
    let mut debug = Vec::new();
    let mut sql = Vec::new();
    for client_id in 0..options.clients {
        let variables = set.variables.initial(&Automatic {
            scale: options.scale,
            client_id,
            default_seed: seeds.default_seed,
            random_seed: options.seed,
            thread_id: 0,
        });
        let mut client = Client {
            variables,
            generator: Generator::new(seeds.clients[client_id as usize]),
            simple: options.simple,
            debug: &mut debug,
            sql: &mut sql,
        };
        if let Err(error) = client.run(&set.scripts[0].script) {
            return Outcome::RunError(error.code().to_owned());
        }
        // Of an expression the value counts, not what nested calls of debug() say on the way.
        if !case.wants_all_debug_output() {
            debug.drain(client_id as usize..debug.len().saturating_sub(1));
        }
    }
    match case.expected_type.as_str() {
        "sql" => Outcome::Sql(sql),
        _ => Outcome::Debug(debug),
    }
}

struct Client<'a> {
    variables: Variables,
    generator: Generator,
    simple: bool,
    debug: &'a mut Vec<String>,
    sql: &'a mut Vec<String>,
}

impl Client<'_> {
    fn run(&mut self, script: &Script) -> Result<(), EvalError> {
        let mut at = 0;
        while let Some(command) = script.commands.get(at) {
            let Client {
                variables,
                generator,
                debug,
                ..
            } = self;
            let mut note = |line: &[u8]| {
                let line = String::from_utf8_lossy(line);
                let (_, value) = line.split_once(": ").expect("a line of debug()");
                debug.push(value.to_owned());
            };
            let mut context = EvalContext {
                variables,
                generator,
                messages: &mut note,
                place: Place {
                    script: 0,
                    command: at,
                },
                unix_time_us: 0,
            };
            at += 1;
            match &command.kind {
                CommandKind::Set {
                    variable,
                    expression,
                } => {
                    let value = expression.evaluate(&mut context)?;
                    self.variables.set(*variable, value)?;
                }
                CommandKind::If { .. } => at = script.branch(&mut context)?,
                CommandKind::Elif { end, .. } | CommandKind::Else { end } => at = *end,
                CommandKind::Endif => {}
                CommandKind::Sql(sql) => {
                    let sent = self.sent(sql);
                    self.sql.push(sent);
                }
                CommandKind::Sleep(sleep) => {
                    sleep.duration(&self.variables)?;
                }
                CommandKind::Shell(command) => {
                    shell(&command.line(&self.variables)?);
                }
                CommandKind::SetShell { variable, command } => {
                    let output = shell(&command.line(&self.variables)?);
                    self.variables.set(*variable, setshell_value(&output)?)?;
                }
                CommandKind::Values(_) | CommandKind::Untimed | CommandKind::EndUntimed => {
                    panic!("no row has commands that pgbench does not know")
                }
                CommandKind::StartPipeline
                | CommandKind::SyncPipeline
                | CommandKind::EndPipeline => panic!("pipelines are not run here"),
            }
        }
        Ok(())
    }

    fn sent(&self, sql: &Sql) -> String {
        let mut text = Vec::new();
        if self.simple {
            sql.append_simple(&self.variables, &mut text);
            return String::from_utf8(text).expect("the rows are UTF-8");
        }
        text.extend_from_slice(sql.parameterized());
        let parameters: Vec<String> = sql
            .parameters()
            .iter()
            .enumerate()
            .map(|(index, &slot)| {
                let mut value = Vec::new();
                let value = if self.variables.append_parameter(slot, &mut value) {
                    format!("'{}'", String::from_utf8_lossy(&value))
                } else {
                    "NULL".to_owned()
                };
                format!("${} = {value}", index + 1)
            })
            .collect();
        let text = String::from_utf8(text).expect("the rows are UTF-8");
        match parameters.is_empty() {
            true => text,
            false => format!("{text}  <{}>", parameters.join(", ")),
        }
    }
}

fn shell(line: &[u8]) -> Vec<u8> {
    Process::new("sh")
        .arg("-c")
        .arg(std::ffi::OsStr::from_bytes(line))
        .output()
        .expect("there is a shell")
        .stdout
}

#[test]
fn every_case_that_needs_no_server_does_what_pgbench_does() {
    let cases = Case::all();
    let (elsewhere, here): (Vec<_>, Vec<_>) = cases.iter().partition(|case| needs_program(case));
    assert_eq!((here.len(), elsewhere.len()), (375, 41));

    let mut wrong = Vec::new();
    for case in here {
        let options = Options::parse(case.arguments());
        let expected = case.expected(options.clients as usize);
        for dialect in [Dialect::Pgbench, Dialect::Extended] {
            let found = run(case, &options, dialect);
            if found == expected {
                continue;
            }
            wrong.push(format!(
                "{case}\n  expected {expected:?}\n  found    {found:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
