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
fn tables_without_rows_are_named_before_a_run_with_how_to_fill_them() {
    let server = Server::shared();
    server.create_database("unfilled");
    pgmark(server)
        .args("-i -I dtp -d unfilled")
        .run()
        .expect_status(0);
    let remedy = "(\"pgmark -i\") in database \"unfilled\"";
    pgmark(server)
        .args("-n -t 1 -d unfilled -l")
        .run()
        .expect_status(1)
        .expect_stderr(&["pgbench_branches is empty", remedy]);
    pgmark(server)
        .args("-n -S -t 1 -d unfilled -D scale=1")
        .run()
        .expect_status(0);
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

#[test]
fn rows_of_the_client_and_of_the_server_are_the_same() {
    let server = Server::shared();
    server.create_database("sent");
    server.create_database("made");
    pgmark(server)
        .args("-i -s 2 -q -d sent")
        .run()
        .expect_status(0);
    let finished = pgmark(server)
        .args("-i -s 2 -I dtGvp -d made --foreign-keys")
        .run()
        .expect_status(0)
        .expect_stderr(&[
            "generating data (server-side)...",
            "creating foreign keys...",
        ]);
    assert!(!finished.stderr.contains("tuples"), "{finished}");
    assert_done_line(
        &finished.stderr,
        "drop tables, create tables, server-side generate, vacuum, primary keys, foreign keys",
    );
    assert_eq!(contents(server, "made"), contents(server, "sent"));
    assert_eq!(
        foreign_keys(server, "made"),
        "pgbench_accounts_bid_fkey pgbench_history_aid_fkey pgbench_history_bid_fkey \
         pgbench_history_tid_fkey pgbench_tellers_bid_fkey"
    );

    // Steps repeat, also over tables that refer to each other, and history is emptied.
    pgmark(server)
        .args("-n -t 5 -d made")
        .run()
        .expect_status(0);
    pgmark(server)
        .args("-i -s 2 -q -I gGgv -d made")
        .run()
        .expect_status(0);
    assert_eq!(contents(server, "made"), contents(server, "sent"));
    assert_eq!(
        server.value::<i64>("made", "SELECT count(*) FROM pgbench_history"),
        0
    );
}

#[test]
fn tables_look_as_the_options_say() {
    let server = Server::shared();
    server.create_database("styled");
    // Tablespaces inside the data directory, so that none has to be made for the server.
    let mut client = server.client("styled");
    for statement in [
        "SET allow_in_place_tablespaces = on",
        "CREATE TABLESPACE fast LOCATION ''",
        "CREATE TABLESPACE keys LOCATION ''",
    ] {
        client.batch_execute(statement).expect("a superuser may");
    }
    pgmark(server)
        .args("-i -I dtp -F 70 --unlogged-tables --tablespace=fast --index-tablespace keys")
        .args("--partitions=3 -s 3 -d styled")
        .run()
        .expect_status(0)
        .expect_stderr(&["creating 3 partitions..."]);
    let placed: String = server.value(
        "styled",
        "SELECT string_agg(DISTINCT format('%s %s', relkind, spcname), ', ')
         FROM pg_class JOIN pg_tablespace ON pg_tablespace.oid = reltablespace
         WHERE relname LIKE 'pgbench%'",
    );
    assert_eq!(placed, "I keys, i keys, p fast, r fast");
    let partition = |number: u32, bounds: &str| {
        format!("pgbench_accounts_{number} r u {{fillfactor=70}} FOR VALUES {bounds}\n")
    };
    let partitioned = |partitions: &[String]| {
        format!(
            "pgbench_accounts p u\n{}\
             pgbench_branches r u {{fillfactor=70}}\n\
             pgbench_history r u\n\
             pgbench_tellers r u {{fillfactor=70}}",
            partitions.concat()
        )
    };
    let expected = partitioned(&[
        partition(1, "FROM (MINVALUE) TO (100001)"),
        partition(2, "FROM (100001) TO (200001)"),
        partition(3, "FROM (200001) TO (MAXVALUE)"),
    ]);
    assert_eq!(
        storage(server, "styled"),
        only_where_allowed(server, &expected)
    );

    pgmark(server)
        .args("-i -I dt --fillfactor=70 --unlogged-tables --partitions=2 --partition-method=HASH")
        .args("-d styled")
        .run()
        .expect_status(0);
    let expected = partitioned(&[
        partition(1, "WITH (modulus 2, remainder 0)"),
        partition(2, "WITH (modulus 2, remainder 1)"),
    ]);
    assert_eq!(
        storage(server, "styled"),
        only_where_allowed(server, &expected)
    );

    pgmark(server)
        .args("-i -I dt -d styled")
        .run()
        .expect_status(0);
    assert_eq!(
        storage(server, "styled"),
        "pgbench_accounts r p {fillfactor=100}\n\
         pgbench_branches r p {fillfactor=100}\n\
         pgbench_history r p\n\
         pgbench_tellers r p {fillfactor=100}"
    );
}

#[test]
fn account_numbers_are_wide_at_large_scales() {
    let server = Server::shared();
    server.create_database("wide");
    for (scale, expected) in [
        (19_999, "integer integer"),
        (20_000, "bigint bigint"),
        (21_475, "bigint bigint"),
    ] {
        pgmark(server)
            .args(&format!("-i -I dt -s {scale} -d wide"))
            .run()
            .expect_status(0);
        let types: String = server.value(
            "wide",
            "SELECT string_agg(format_type(atttypid, atttypmod), ' ') FROM pg_attribute
             WHERE attname = 'aid' AND attrelid IN ('pgbench_accounts'::regclass, 'pgbench_history'::regclass)",
        );
        assert_eq!(types, expected, "{scale}");
    }
}

#[test]
fn several_connections_load_the_same_as_one() {
    let server = Server::shared();
    server.create_database("serial");
    server.create_database("parallel");
    pgmark(server)
        .args("-i -s 1 -q -d serial")
        .run()
        .expect_status(0);
    let serial = contents(server, "serial");
    for (options, frozen_partitions) in [
        ("-j 2 --partitions=2", 2),
        ("-j 3 --partitions=7", 7),
        ("-j 2 --partitions=3 --partition-method=hash", 0),
        ("-j 2 --partitions=3 -I dtGvpf", 0),
        ("-j 2 --init-batch=7000", 0),
        ("-j 2 --init-mode=insert", 0),
        ("-j 4", 0),
        ("-j 2 -I dtGvp", 0),
        ("--partitions=3", 0),
        ("--partitions=3 --init-mode=insert --init-batch=2500", 0),
    ] {
        let finished = pgmark(server)
            .args("-i -s 1 -d parallel -n")
            .args(options)
            .run()
            .expect_status(0);
        assert_eq!(contents(server, "parallel"), serial, "{options}");
        assert_eq!(frozen(server, "parallel"), frozen_partitions, "{options}");
        assert_eq!(
            primary_keys(server, "parallel")
                .split(' ')
                .filter(|key| !key.starts_with("pgbench_accounts_"))
                .collect::<Vec<_>>(),
            [
                "pgbench_accounts(aid)",
                "pgbench_branches(bid)",
                "pgbench_tellers(tid)"
            ],
            "{options}"
        );
        let told = finished.stderr.matches(" of 100000 tuples (").count();
        assert_eq!(
            told,
            if options.contains('G') { 0 } else { 1 },
            "{finished}"
        );
        if !options.contains('G') {
            assert!(
                finished.stderr.contains("100000 of 100000 tuples (100%)"),
                "{finished}"
            );
        }
    }
    // A second time over tables that are there and refer to each other, with fewer steps.
    pgmark(server)
        .args("-i -d parallel -I dtpf --partitions=2 -j 2")
        .run()
        .expect_status(0);
    pgmark(server)
        .args("-i -q -d parallel -I gv -j 2")
        .run()
        .expect_status(0);
    assert_eq!(contents(server, "parallel"), serial);
    assert_eq!(frozen(server, "parallel"), 2, "by the vacuum");
    let finished = pgmark(server)
        .args("-d parallel -S -t 10")
        .run()
        .expect_status(0);
    assert!(
        finished
            .stdout
            .contains("partition method: range\npartitions: 2\n"),
        "{finished}"
    );
}

#[test]
fn what_the_server_refuses_is_done_in_another_way() {
    let server = Server::shared();
    server.create_database("strict");
    let mut client = server.client("strict");
    pgmark(server)
        .args("-i -I dt -d strict")
        .run()
        .expect_status(0);
    // Within one transaction no more than 50,000 accounts.
    client
        .batch_execute(
            "CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
             DECLARE n int := coalesce(nullif(current_setting('bench.n', true), ''), '0')::int + 1;
             BEGIN
                 IF n > 50000 THEN RAISE 'too many rows' USING ERRCODE = '54000'; END IF;
                 PERFORM set_config('bench.n', n::text, true);
                 RETURN new;
             END $$;
             CREATE TRIGGER few BEFORE INSERT ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION count_rows()",
        )
        .expect("the tables are there");
    for options in ["-I g", "-I G", "-I g -j 2", "-I g --init-mode=insert"] {
        pgmark(server)
            .args("-i -q -d strict")
            .args(options)
            .run()
            .expect_status(0)
            .expect_stderr(&[
                "pgmark: the server refuses so large a transaction",
                "(too many rows)",
            ]);
        assert_eq!(accounts(server, "strict"), 100_000, "{options}");
    }
    let finished = pgmark(server)
        .args("-i -q -d strict -I g --init-batch=50000")
        .run()
        .expect_status(0);
    assert!(!finished.stderr.contains("refuses"), "{finished}");

    // COPY is refused where the rows that a role may write are restricted.
    client
        .batch_execute(
            "DROP TRIGGER few ON pgbench_accounts;
             CREATE ROLE restricted LOGIN;
             ALTER TABLE pgbench_accounts OWNER TO restricted;
             ALTER TABLE pgbench_branches OWNER TO restricted;
             ALTER TABLE pgbench_tellers OWNER TO restricted;
             ALTER TABLE pgbench_history OWNER TO restricted;
             ALTER TABLE pgbench_accounts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
             CREATE POLICY all_rows ON pgbench_accounts USING (true) WITH CHECK (true)",
        )
        .expect("the tables are there");
    pgmark(server)
        .args("-i -q -I g -U restricted -d strict")
        .run()
        .expect_status(0)
        .expect_stderr(&["refuses COPY FREEZE", "refuses COPY; loading by INSERT"]);
    assert_eq!(accounts(server, "strict"), 100_000);
}

#[test]
fn a_role_without_rights_is_told_what_to_do() {
    let server = Server::shared();
    server.create_database("guarded");
    let mut client = server.client("guarded");
    client
        .batch_execute(
            "CREATE ROLE bob LOGIN;
             REVOKE CREATE ON SCHEMA public FROM public;
             GRANT CREATE ON DATABASE guarded TO bob",
        )
        .expect("a new database");
    pgmark(server)
        .args("-i -U bob -d guarded")
        .run()
        .expect_status(1)
        .expect_stderr(&[
            "permission denied for schema public",
            "Role \"bob\" may not create this in schema \"public\"",
            "GRANT CREATE ON SCHEMA \"public\" TO \"bob\"",
            "--schema NAME",
            "To go on from here: -I tgvp",
        ]);
    for _ in ["created", "there already"] {
        pgmark(server)
            .args("-i -q -U bob -d guarded --schema bench_ns -j 2 --partitions 2")
            .run()
            .expect_status(0);
    }
    pgmark(server)
        .args("-U bob -d guarded --schema bench_ns -t 5")
        .run()
        .expect_status(0);
    let history: i64 = server.value("guarded", "SELECT count(*) FROM bench_ns.pgbench_history");
    assert_eq!(history, 5);
    pgmark(server)
        .env("PGOPTIONS", "-c search_path=bench_ns")
        .args("-i -q -U bob -d guarded")
        .run()
        .expect_status(0);

    client
        .batch_execute("CREATE ROLE eve LOGIN; GRANT USAGE ON SCHEMA bench_ns TO eve")
        .expect("a new role");
    pgmark(server)
        .args("-i -U eve -d guarded --schema bench_ns")
        .run()
        .expect_status(1)
        .expect_stderr(&["must be owner of", "Role \"eve\" does not own", "-I dtgvp"]);
    let kept: i64 = server.value("guarded", "SELECT count(*) FROM bench_ns.pgbench_accounts");
    assert_eq!(kept, 100_000, "nothing was dropped");
}

#[test]
fn an_interrupt_cancels_what_the_server_is_doing() {
    let server = Server::shared();
    server.create_database("cancelled");
    pgmark(server)
        .args("-i -q -I dt -d cancelled --partitions=2")
        .run()
        .expect_status(0);
    for options in ["-I gvp", "-I gvp -j 2", "-I Gvp", "-I Gvp -j 2"] {
        // Whoever fills the accounts waits for this lock.
        let mut client = server.client("cancelled");
        let mut lock = client.transaction().expect("a connection");
        lock.batch_execute("LOCK TABLE pgbench_accounts_2 IN SHARE MODE")
            .expect("the tables are there");
        let running = pgmark(server)
            .args("-i -q -s 2 -d cancelled")
            .args(options)
            .start();
        support::wait_until("it waits for the lock", || {
            server.value::<bool>(
                "cancelled",
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            )
        });
        running.signal(support::Signal::INT);
        let finished = running.finish().expect_status(130).expect_stderr(&[
            "Cancel request sent",
            &format!("to go on: -I {}", &options[3..6]),
        ]);
        assert!(!finished.stderr.contains("done in"), "{finished}");
        lock.rollback().expect("a connection");
        let empty = "SELECT (SELECT count(*) FROM pgbench_accounts) + (SELECT count(*) FROM pgbench_tellers)";
        support::wait_until("nothing is left", || {
            server.value::<i64>("cancelled", empty) == 0
        });
    }
}

#[test]
fn a_dry_run_needs_no_server_and_its_sizes_are_right() {
    let finished = support::pgmark_alone()
        .env("PGHOST", "/nowhere")
        .args("-i -s 1000000 --dry-run mine")
        .run()
        .expect_status(0);
    for part in [
        "100,000,000,000 rows",
        "create table pgbench_accounts (aid bigint",
    ] {
        assert!(finished.stdout.contains(part), "{finished}");
    }
    assert_eq!(finished.stderr, "");

    let server = Server::shared();
    server.create_database("measured");
    for options in ["-s 3", "-s 1 -F 60"] {
        pgmark(server)
            .args("-i -q -d measured")
            .args(options)
            .run()
            .expect_status(0);
        let shown = pgmark(server)
            .args("-i --dry-run -d measured")
            .args(options)
            .run()
            .expect_status(0);
        let line = shown
            .stdout
            .lines()
            .find(|line| line.contains("pgbench_accounts "))
            .expect("a line for each table");
        for (unit, sql) in [
            (" bytes ", "SELECT pg_relation_size('pgbench_accounts')"),
            (
                " bytes of primary key",
                "SELECT pg_relation_size('pgbench_accounts_pkey')",
            ),
        ] {
            let number = line
                .split(unit)
                .next()
                .and_then(|before| before.rsplit(' ').next());
            let estimate: f64 = number
                .expect("a number")
                .replace(',', "")
                .parse()
                .expect("a number");
            support::assert_close(
                unit,
                estimate,
                server.value::<i64>("measured", sql) as f64,
                1.01,
            );
        }
    }
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

/// Names of the foreign keys.
fn foreign_keys(server: &Server, database: &str) -> String {
    server.value(
        database,
        "SELECT string_agg(conname::text, ' ' ORDER BY conname) FROM pg_constraint WHERE contype = 'f'",
    )
}

/// Kind, persistence, storage parameters and bounds of every table and partition.
fn storage(server: &Server, database: &str) -> String {
    server.value(
        database,
        "SELECT string_agg(concat_ws(' ', relname, relkind, relpersistence, reloptions::text,
             pg_get_expr(relpartbound, oid)), E'\\n' ORDER BY relname)
         FROM pg_class WHERE relname LIKE 'pgbench%' AND relkind IN ('r', 'p')",
    )
}

/// From version 18 on a partitioned table itself, which stores nothing, cannot be unlogged.
fn only_where_allowed(server: &Server, storage: &str) -> String {
    let version: String = server.value("postgres", "SELECT current_setting('server_version_num')");
    if version.as_str() >= "180000" {
        return storage.replace("pgbench_accounts p u", "pgbench_accounts p p");
    }
    storage.to_owned()
}

fn accounts(server: &Server, database: &str) -> i64 {
    server.value(database, "SELECT count(*) FROM pgbench_accounts")
}

/// Row counts and checksums of branches, tellers and accounts, in whatever order they are stored.
fn contents(server: &Server, database: &str) -> String {
    let checksum = |table: &str| -> String {
        server.value(
            database,
            &format!(
                "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM {table} AS t"
            ),
        )
    };
    ["pgbench_branches", "pgbench_tellers", "pgbench_accounts"]
        .map(checksum)
        .join(", ")
}

/// How many partitions of the accounts hold rows that are known to be visible to all, as only
/// frozen ones are without a vacuum.
fn frozen(server: &Server, database: &str) -> i64 {
    server.value(
        database,
        "SELECT count(*) FROM pg_inherits
         WHERE inhparent = 'pgbench_accounts'::regclass AND pg_relation_size(inhrelid, 'vm') > 0",
    )
}
