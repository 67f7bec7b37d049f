//! With the same seed the clients send the same statements as pgbench, as the server sees them.

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Program, Server, Statement, pgmark};

#[test]
fn the_builtin_scripts_send_the_same_statements_as_pgbench() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    // At a scale above 1 all random numbers of a script are really drawn.
    pgmark(server).args("-i -q -s 3").run().expect_status(0);
    for mode in ["simple", "extended", "prepared"] {
        for (builtin, commands) in [("tpcb-like", 7), ("simple-update", 5), ("select-only", 1)] {
            let options = format!("-n -b {builtin} -M {mode} -c 3 -j 2 -t 20 --random-seed=42");
            let name = format!("{builtin} {mode}");
            let reference = program(server, &pgbench);
            let theirs = statements(server, reference, &options, &format!("pgbench {name}"));
            let ours = statements(server, pgmark(server), &options, &name);
            assert_eq!(ours.len(), 3, "{name}: one session a client");
            assert!(ours.iter().all(|session| session.len() == 20 * commands));
            assert_same(&ours, &theirs);
        }
    }
}

#[test]
fn pipelines_send_the_same_statements_as_pgbench() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    // The second branch is prepared with the pipeline, but executed in a later transaction.
    let script = "\\set x random(1, 1000)\n\
                  SELECT 'one' AS name, :x::int AS first \\gset\n\
                  \\startpipeline\n\
                  SELECT 'two', :x::int;\n\
                  \\if :x % 2 = 0\n\
                  SELECT 'even', :first::int, :client_id::int;\n\
                  \\else\n\
                  SELECT 'odd', :nothing::int;\n\
                  \\endif\n\
                  SELECT 'last';\n\
                  \\endpipeline\n\
                  SELECT 'after';\n";
    for mode in ["extended", "prepared"] {
        let options = format!("-n -M {mode} -c 3 -j 2 -t 20 --random-seed=42");
        let reference = program(server, &pgbench).script(script);
        let theirs = statements(
            server,
            reference,
            &options,
            &format!("pgbench {mode} pipeline"),
        );
        let ours = pgmark(server).script(script);
        let ours = statements(server, ours, &options, &format!("{mode} pipeline"));
        assert_eq!(ours.len(), 3, "{mode}: one session a client");
        assert!(ours.iter().all(|session| session.len() == 100), "{mode}");
        assert_same(&ours, &theirs);
    }
}

#[test]
fn several_scripts_are_chosen_alike() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    // One client a thread: otherwise the choice depends on which client is served first.
    let options = "-D bound=1000 -c 2 -j 2 -t 40 --random-seed=7";
    let with_scripts = |program: Program| {
        program
            .script("\\set x random(1, :bound)\nSELECT 'one', :x;")
            .script("\\set y random(-5, :bound * 3) + :client_id\nSELECT 'two', :y, :x;")
    };
    // The second script needs x also where the first has not run yet.
    let options = format!("-D x=0 {options}");
    let theirs = with_scripts(program(server, &pgbench));
    let theirs = statements(server, theirs, &options, "weighted reference");
    let ours = statements(server, with_scripts(pgmark(server)), &options, "weighted");
    assert_eq!(ours.len(), 2, "one session a client");
    assert_same(&ours, &theirs);
}

/// Shows the first difference only: all statements are more than anyone reads.
#[track_caller]
fn assert_same(ours: &[Vec<Statement>], theirs: &[Vec<Statement>]) {
    assert_eq!(ours.len(), theirs.len(), "sessions");
    for (ours, theirs) in ours.iter().zip(theirs) {
        let different = ours
            .iter()
            .zip(theirs)
            .find(|(ours, theirs)| ours != theirs);
        assert_eq!(different, None, "ours and theirs");
        assert_eq!(ours.len(), theirs.len(), "statements of a session");
    }
}

/// What the clients' sessions of this run have sent, one list a session, in a definite order.
/// Sessions with other statements only (detecting the scale, reading settings) are left out.
fn statements(server: &Server, program: Program, options: &str, name: &str) -> Vec<Vec<Statement>> {
    let application = format!("{name} {}", std::process::id());
    program
        .args(options)
        .env("PGAPPNAME", &application)
        .env("PGOPTIONS", "-c log_statement=all")
        .run()
        .expect_status(0);
    let mut sessions = server.logged_statements(&application);
    sessions.retain(|statements| {
        statements
            .iter()
            .any(|statement| statement.text.contains("'one'") || is_of_builtin(&statement.text))
    });
    sessions.sort();
    sessions
}

fn is_of_builtin(statement: &str) -> bool {
    statement.contains("pgbench_accounts WHERE aid") || statement.contains("'two'")
}

/// A pgbench whose statements are comparable: version 15 or later.
fn pgbench(server: &Server) -> Option<PathBuf> {
    let found = server.program("pgbench").filter(|path| version(path) >= 15);
    if found.is_none() {
        // Past the capture of the test harness, so that it is seen.
        let note = "SKIPPED: no pgbench of version 15 or later to compare with";
        writeln!(std::io::stderr(), "{note}").expect("stderr is open");
    }
    found
}

/// The 15 of `pgbench (PostgreSQL) 15.18`, 0 if it cannot be told.
fn version(pgbench: &Path) -> u32 {
    let output = Command::new(pgbench).arg("--version").output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&text)
        .split(' ')
        .nth(2)
        .and_then(|version| version.split('.').next()?.trim().parse().ok())
        .unwrap_or(0)
}

/// pgbench, set up like the program under test.
fn program(server: &Server, path: &Path) -> Program {
    Program::new(path)
        .env("PGHOST", server.socket_directory())
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres")
}
