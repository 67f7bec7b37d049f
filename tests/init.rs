//! `-i` makes the tables that the builtin scripts and other tools expect, and says how it went.

mod support;

use support::{Server, pgmark};

#[test]
fn the_tables_are_created_filled_and_keyed() {
    let server = Server::shared();
    server.create_database("filled");
    let finished = pgmark(server)
        .args("-i -s 2 -d filled")
        .run()
        .expect_status(0)
        .expect_stderr(&[
            "dropping old tables...",
            "creating tables...",
            "generating data (client-side)...",
            "vacuuming...",
            "creating primary keys...",
        ]);
    assert_eq!(finished.stdout, "");
    assert_done_line(
        &finished.stderr,
        "drop tables, create tables, client-side generate, vacuum, primary keys",
    );

    assert_eq!(
        table_definitions(server, "filled"),
        "pgbench_accounts(aid integer not null, bid integer, abalance integer, filler character(84)) {fillfactor=100}\n\
         pgbench_branches(bid integer not null, bbalance integer, filler character(88)) {fillfactor=100}\n\
         pgbench_history(tid integer, bid integer, aid integer, delta integer, mtime timestamp without time zone, filler character(22))\n\
         pgbench_tellers(tid integer not null, bid integer, tbalance integer, filler character(84)) {fillfactor=100}"
    );
    assert_eq!(
        primary_keys(server, "filled"),
        "pgbench_accounts(aid) pgbench_branches(bid) pgbench_tellers(tid)"
    );
    for (what, sql, expected) in [
        (
            "branches",
            "SELECT count(*) FROM pgbench_branches WHERE filler IS NULL AND bbalance = 0",
            2,
        ),
        (
            "tellers",
            "SELECT count(*) FROM pgbench_tellers WHERE filler IS NULL AND tbalance = 0",
            20,
        ),
        (
            "accounts",
            "SELECT count(*) FROM pgbench_accounts WHERE filler = '' AND abalance = 0",
            200_000,
        ),
        ("history", "SELECT count(*) FROM pgbench_history", 0),
        (
            "misplaced tellers",
            "SELECT count(*) FROM pgbench_tellers WHERE bid <> (tid - 1) / 10 + 1",
            0,
        ),
        (
            "misplaced accounts",
            "SELECT count(*) FROM pgbench_accounts WHERE bid <> (aid - 1) / 100000 + 1",
            0,
        ),
        (
            "last account",
            "SELECT max(aid)::bigint FROM pgbench_accounts",
            200_000,
        ),
    ] {
        assert_eq!(server.value::<i64>("filled", sql), expected, "{what}");
    }

    // What was filled can be driven.
    pgmark(server)
        .args("-d filled -t 5 -c 2")
        .run()
        .expect_status(0);
    let history: i64 = server.value("filled", "SELECT count(*) FROM pgbench_history");
    assert_eq!(history, 10);
}

#[test]
fn steps_are_done_in_the_order_given() {
    let server = Server::shared();
    server.create_database("stepwise");
    let finished = pgmark(server)
        .args("-i -I dtp -d stepwise")
        .run()
        .expect_status(0);
    assert_done_line(&finished.stderr, "drop tables, create tables, primary keys");
    let accounts: i64 = server.value("stepwise", "SELECT count(*) FROM pgbench_accounts");
    assert_eq!(accounts, 0);

    // Without vacuum, and a second time over tables that are there.
    let finished = pgmark(server)
        .args("-i -q -n -I dtvg -d stepwise")
        .run()
        .expect_status(0);
    assert_done_line(
        &finished.stderr,
        "drop tables, create tables, client-side generate",
    );
    assert_eq!(primary_keys(server, "stepwise"), "");
}

#[test]
fn progress_is_told_by_rows_or_by_time() {
    let server = Server::shared();
    server.create_database("told");
    let told = "100000 of 100000 tuples (100%) of pgbench_accounts done (elapsed ";
    pgmark(server)
        .args("-i -d told")
        .run()
        .expect_status(0)
        .expect_stderr(&[told]);
}

#[test]
fn a_failing_statement_is_shown_with_the_servers_message() {
    let server = Server::shared();
    server.create_database("unready");
    let finished = pgmark(server)
        .args("-i -I g -d unready")
        .run()
        .expect_status(1)
        .expect_stderr(&["does not exist", "pgbench_accounts", "truncate"]);
    assert!(!finished.stderr.contains("done in"), "{finished}");
}

/// The last line is `done in 1.23 s (drop tables 0.01 s, create tables 0.02 s).` or the like.
#[track_caller]
fn assert_done_line(stderr: &str, steps: &str) {
    let last = stderr.lines().last().unwrap_or_default();
    let without_numbers: String = last
        .split(' ')
        .filter(|word| !word.starts_with(|first: char| first.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ");
    let expected = format!("done in s ({} s).", steps.replace(", ", " s, "));
    assert_eq!(without_numbers, expected, "{last}");
}

/// Columns and storage parameters of the four tables, one line a table.
fn table_definitions(server: &Server, database: &str) -> String {
    server.value(
        database,
        "SELECT string_agg(format('%s(%s)%s', relname, columns, ' ' || reloptions::text), E'\\n' ORDER BY relname)
         FROM pg_class, LATERAL (
             SELECT string_agg(
                 attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END,
                 ', ' ORDER BY attnum) AS columns
             FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0) AS described
         WHERE relname LIKE 'pgbench%' AND relkind = 'r'",
    )
}

/// `table(column)` for each primary key.
fn primary_keys(server: &Server, database: &str) -> String {
    server.value(
        database,
        "SELECT coalesce(string_agg(format('%s(%s)', conrelid::regclass, attname), ' ' ORDER BY conrelid::regclass::text), '')
         FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
         WHERE contype = 'p' AND connamespace = 'public'::regnamespace",
    )
}
