//! What a run would do: the effective workload and each script's commands as they will be sent.
//! For `--dry-run`; nothing is connected to and nothing is done.

use std::fmt::Write;

use crate::plan::{Pacing, QueryMode, RunPlan, ServerChoice, StopRule, Vacuum};
use crate::script::{Command, ScriptSet, Slot, WeightedScript};

/// The text that `--dry-run` prints for a run.
pub(super) fn preview(plan: &RunPlan) -> String {
    let mut text = String::new();
    workload(plan, &mut text);
    for index in 0..plan.scripts.scripts.len() {
        script(plan, index, &mut text);
    }
    text
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($what:tt)*) => {{
        let _ = writeln!($text, $($what)*);
    }};
}

fn workload(plan: &RunPlan, text: &mut String) {
    let load = &plan.load;
    match &plan.server {
        ServerChoice::Given(target) => {
            let target_text = format!("database \"{}\" as \"{}\"", target.database, target.user);
            line!(text, "server: {target_text}");
        }
        ServerChoice::Temporary { cluster, .. } => {
            line!(text, "server: a temporary one, scale {}", cluster.scale);
        }
    }
    line!(text, "query mode: {}", plan.query_mode.name());
    line!(text, "number of clients: {}", load.clients);
    line!(text, "number of threads: {}", load.threads);
    match load.stop {
        StopRule::Transactions(each) => {
            line!(text, "number of transactions per client: {each}");
        }
        StopRule::Time(time) => line!(text, "duration: {} s", time.as_secs_f64()),
    }
    if let Pacing::Rate(per_second) = load.pacing {
        line!(text, "rate: {per_second} a second");
    }
    lead_in(plan, text);
    match load.max_tries {
        Some(most) => line!(text, "maximum number of tries: {most}"),
        None => line!(text, "maximum number of tries: no limit"),
    }
    if let Some(limit) = load.latency_limit {
        line!(text, "latency limit: {} ms", limit.as_secs_f64() * 1e3);
    }
    let connections = match load.reconnect {
        true => "one for each transaction",
        false => "one for each client",
    };
    line!(text, "connections: {connections}");
    if let Some(sql) = &plan.on_connect {
        let sql = String::from_utf8_lossy(sql);
        line!(text, "each connection begins with: {}", sql.trim_end());
    }
    line!(text, "before the run: {}", preparation(plan.vacuum));
    if !plan.before.is_empty() {
        let words: Vec<&str> = plan.before.iter().map(|one| one.word()).collect();
        line!(text, "and then: {}", words.join(", "));
    }
    line!(text, "random seed: {}", plan.seed.value);
}

/// What lies around the measured time, where there is something.
fn lead_in(plan: &RunPlan, text: &mut String) {
    let load = &plan.load;
    let around = [
        ("clients begin one after the other over", load.lead_in.ramp),
        ("warm-up", load.lead_in.warmup),
    ];
    for (what, time) in around {
        if !time.is_zero() {
            line!(text, "{what}: {} s", time.as_secs_f64());
        }
    }
    if let Some(bound) = load.finish_within {
        let bound = bound.as_secs_f64();
        line!(
            text,
            "transactions under way at the end may take: {bound} s"
        );
    }
}

fn preparation(vacuum: Vacuum) -> &'static str {
    match vacuum {
        Vacuum::None => "nothing",
        Vacuum::Default => {
            "VACUUM of pgbench_branches and pgbench_tellers, TRUNCATE of pgbench_history"
        }
        Vacuum::All => {
            "VACUUM of pgbench_branches, pgbench_tellers and (with ANALYZE) pgbench_accounts, \
             TRUNCATE of pgbench_history"
        }
    }
}

fn script(plan: &RunPlan, index: usize, text: &mut String) {
    let scripts = &plan.scripts.scripts;
    let WeightedScript { script, weight } = &scripts[index];
    let total: u64 = scripts.iter().map(|script| u64::from(script.weight)).sum();
    let share = f64::from(*weight) / total as f64 * 100.0;
    line!(text, "");
    line!(
        text,
        "script {}: {}, weight {weight} ({share:.1}% of transactions)",
        index + 1,
        script.name
    );
    for command in &script.commands {
        self::command(plan, command, text);
    }
}

/// The command as it is sent, its line number before it; below it what is bound to its parameters
/// and what becomes of its result.
fn command(plan: &RunPlan, command: &Command, text: &mut String) {
    let sql = command.kind.sql();
    let bound = sql.filter(|_| plan.query_mode != QueryMode::Simple);
    let sent = bound.map_or(&command.text[..], |sql| sql.parameterized());
    let sent = String::from_utf8_lossy(sent);
    for (row, part) in sent.trim_end().lines().enumerate() {
        match row {
            0 => line!(text, "{:>6}  {part}", command.line),
            _ => below(text, part),
        }
    }
    if let Some(sql) = bound.filter(|sql| !sql.parameters().is_empty()) {
        let parameters = parameters(sql.parameters(), &plan.scripts);
        below(text, &format!("-- {parameters}"));
    }
    if let Some(capture) = sql.and_then(|sql| sql.capture.as_ref()) {
        let prefix = String::from_utf8_lossy(&capture.prefix);
        below(text, format!("{} {prefix}", capture.command()).trim_end());
    }
}

fn below(text: &mut String, what: &str) {
    line!(text, "{:>6}  {what}", "");
}

fn parameters(slots: &[Slot], scripts: &ScriptSet) -> String {
    let each = slots.iter().enumerate().map(|(index, slot)| {
        let name = String::from_utf8_lossy(scripts.variables.name(*slot));
        format!("${} = :{name}", index + 1)
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::options::tests::run_plan;
    use crate::script::{Dialect, ScriptSetBuilder};

    use super::*;

    #[test]
    fn the_workload_and_the_commands_as_they_are_sent() {
        let text = preview(&run_plan(
            "-M extended -c 4 -j 2 -T 90 -n -b select-only@3 -b tpcb@1 --random-seed 7 \
             --on-connect=SET_a=1",
        ));
        for line in [
            "query mode: extended",
            "number of clients: 4",
            "duration: 90 s",
            "before the run: nothing",
            "random seed: 7",
            "each connection begins with: SET_a=1",
            "script 1: <builtin: select only>, weight 3 (75.0% of transactions)",
            "     1  \\set aid random(1, 100000 * :scale)",
            "     2  SELECT abalance FROM pgbench_accounts WHERE aid = $1;",
            "        -- $1 = :aid",
            "        -- $1 = :delta, $2 = :aid",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn what_becomes_of_a_result_is_shown_below_its_command() {
        let mut scripts = ScriptSetBuilder::new(Dialect::Extended);
        let text = b"SELECT 1 AS a \\gset p_\nSELECT 2 AS b \\aset\n";
        scripts.add_file("file.sql", text, 1);
        let mut plan = run_plan("-S");
        plan.scripts = scripts.finish().unwrap();
        let text = preview(&plan);
        let (_, commands) = text.split_once("transactions)\n").unwrap();
        let lines: Vec<&str> = commands.lines().collect();
        assert_eq!(
            lines,
            [
                "     1  SELECT 1 AS a",
                "        \\gset p_",
                "     2  SELECT 2 AS b",
                "        \\aset",
            ]
        );
    }

    #[test]
    fn in_simple_mode_variables_stay_as_they_are_written() {
        let text = preview(&run_plan("-S"));
        assert!(text.contains("WHERE aid = :aid;"), "{text}");
        assert!(!text.contains("-- $1"), "{text}");
    }
}
