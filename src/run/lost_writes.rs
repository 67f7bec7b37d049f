//! Whether commits that the server acknowledged are still there after the run: a standby that takes
//! the place of its primary may lack the last of them. Builtin scripts leave a row of
//! `pgbench_history` for each transaction, so their rows can be counted.

use crate::plan::{LeadIn, RunPlan};
use crate::result::{LostWrites, Measured};
use crate::script::Script;
use crate::script::builtin::BUILTINS;

/// Rows of the history, or why they could not be counted.
pub(super) type History = Result<u64, String>;

/// Whether the rows of the history are to be counted before and after the run: only transactions of
/// builtin scripts may write there, and some of them do.
pub(super) fn can_be_told(plan: &RunPlan) -> bool {
    let scripts = || plan.scripts.scripts.iter().map(|weighted| &weighted.script);
    plan.load.reconnect_on_loss
        && scripts().all(|script| leaves_rows(script).is_some())
        && scripts().any(|script| leaves_rows(script) == Some(true))
}

/// Whether a builtin script writes into the history; `None` for others.
fn leaves_rows(script: &Script) -> Option<bool> {
    let builtin = BUILTINS.iter().find(|it| it.display_name == script.name)?;
    Some(builtin.text.contains("INSERT INTO pgbench_history"))
}

/// What is missing of what was acknowledged. Transactions whose outcome is not known may have left
/// rows, too, and hide as many that are missing.
pub(super) fn conclude(
    plan: &RunPlan,
    measured: &Measured,
    before: History,
    after: History,
) -> LostWrites {
    let scripts = plan.scripts.scripts.iter().zip(&measured.scripts);
    let acknowledged = scripts
        .filter(|(weighted, _)| leaves_rows(&weighted.script) == Some(true))
        .map(|(_, stats)| stats.processed)
        .sum();
    if plan.load.lead_in != LeadIn::default() {
        return LostWrites::Unknown("transactions of ramp and warm-up write rows, too".to_owned());
    }
    let (before, after) = match (before, after) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(reason), _) | (Ok(_), Err(reason)) => return LostWrites::Unknown(reason),
    };
    LostWrites::Counted {
        acknowledged,
        missing: (before + acknowledged).saturating_sub(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::run_plan;
    use crate::report::testing;

    #[test]
    fn only_runs_of_builtin_scripts_that_write_can_tell() {
        for (arguments, expected) in [
            ("--reconnect-on-loss", true),
            ("--reconnect-on-loss -b simple-update -b select-only", true),
            ("--reconnect-on-loss -S", false),
            ("", false),
        ] {
            assert_eq!(can_be_told(&run_plan(arguments)), expected, "{arguments}");
        }
    }

    #[test]
    fn what_is_not_there_although_it_was_acknowledged_is_missing() {
        let plan = run_plan("--reconnect-on-loss");
        let measured = testing::timed().measured;
        let processed = measured.scripts[0].processed;
        for (before, after, missing) in [
            (7, 7 + processed, 0),
            // One whose outcome was unknown.
            (7, 8 + processed, 0),
            (7, 4 + processed, 3),
        ] {
            let expected = LostWrites::Counted {
                acknowledged: processed,
                missing,
            };
            assert_eq!(conclude(&plan, &measured, Ok(before), Ok(after)), expected);
        }
        let gone = Err("no such table".to_owned());
        let told = conclude(&plan, &measured, Ok(0), gone);
        assert_eq!(told, LostWrites::Unknown("no such table".to_owned()));
        let warmed = run_plan("--reconnect-on-loss --warmup 1");
        let told = conclude(&warmed, &measured, Ok(0), Ok(0));
        assert!(matches!(told, LostWrites::Unknown(_)));
    }
}
