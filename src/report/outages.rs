//! What the summary says of connections that were lost in a run that goes on without them.

use super::text::percent;
use crate::result::{LostWrites, Outage, RunResult};

/// Outages that are shown one by one.
const SHOWN_MAX: usize = 20;

/// All lines; none unless clients go on after a loss.
pub(super) fn lines(result: &RunResult) -> Vec<String> {
    let Some(outages) = &result.measured.outages else {
        return Vec::new();
    };
    let (facts, measured) = (&result.facts, &result.measured);
    let aborted = &measured.total.aborted;
    let mut lines = vec![format!(
        "number of transactions lost with their connection: {} ({} after COMMIT was sent, outcome unknown)",
        aborted.connection_lost, aborted.outcome_unknown
    )];
    for (number, outage) in (1..).zip(outages.list.iter().take(SHOWN_MAX)) {
        lines.extend(outage_lines(number, outage, facts.clients));
    }
    let shown = outages.list.len().min(SHOWN_MAX);
    let further = outages.list.len() as u64 - shown as u64 + outages.further;
    if further > 0 {
        lines.push(format!("{further} further outages"));
    }
    let window_s = measured
        .window
        .map_or(0.0, |window| window.nanos() as f64 / 1e9);
    let available_s = (window_s - outages.unavailable_ns as f64 / 1e9).max(0.0);
    lines.push(format!(
        "available = {available_s:.3} of {window_s:.3} s ({:.3}%)",
        available_s / window_s.max(f64::MIN_POSITIVE) * 100.0
    ));
    if outages.unavailable_ns > 0 && facts.schedule.is_none() {
        lines.push(
            " (closed loop: waiting for the server to come back is in no latency; --rate counts it)"
                .to_owned(),
        );
    }
    lines.extend(facts.lost_writes.as_ref().map(lost_writes));
    lines
}

fn outage_lines(number: usize, outage: &Outage, clients: u32) -> [String; 2] {
    let begins_s = outage.begins_ns as f64 / 1e9;
    let length_s = outage.length_ns as f64 / 1e9;
    let recovered = match outage.recovered_ns {
        Some(nanos) => format!("recovered in {:.3} s", nanos as f64 / 1e9),
        None => "not recovered".to_owned(),
    };
    let causes: Vec<String> = outage
        .causes
        .iter()
        .map(|(cause, count)| format!("{cause} x{count}"))
        .collect();
    [
        format!(
            "outage {number} = {begins_s:.3} to {:.3} s: {length_s:.3} s without a completion, {} of {clients} clients, {recovered}",
            begins_s + length_s,
            outage.clients,
        ),
        format!(
            " {}; {:.0}/s in the second before, {:.0}/s in the one after",
            causes.join(", "),
            outage.before_per_s,
            outage.after_per_s
        ),
    ]
}

fn lost_writes(writes: &LostWrites) -> String {
    match writes {
        LostWrites::Counted {
            acknowledged,
            missing,
        } => format!(
            "lost writes = {missing} of {acknowledged} acknowledged commits are missing from pgbench_history ({:.3}%)",
            percent(*missing, *acknowledged)
        ),
        LostWrites::Unknown(reason) => format!("lost writes = n/a ({reason})"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing;
    use super::*;
    use crate::event::{LossCause, SqlState};
    use crate::result::Outages;

    #[test]
    fn each_outage_is_told_and_what_is_left_of_the_time() {
        let mut result = testing::timed();
        assert!(lines(&result).is_empty());
        result.measured.total.aborted.connection_lost = 8;
        result.measured.total.aborted.outcome_unknown = 3;
        let state = |code: &[u8; 5]| LossCause::SqlState(SqlState(*code));
        let (length_ns, window_ns) = (1_209_500_000, 5_000_000_000);
        let outage = Outage {
            begins_ns: 1_012_000_000,
            length_ns,
            recovered_ns: Some(2_602_000_000),
            clients: 4,
            causes: BTreeMap::from([
                (LossCause::Refused, 162),
                (state(b"57P03"), 48),
                (state(b"57P01"), 8),
            ]),
            before_per_s: 5011.0,
            after_per_s: 2210.0,
        };
        let endless = Outage {
            recovered_ns: None,
            ..outage.clone()
        };
        result.measured.outages = Some(Outages {
            list: vec![outage, endless],
            further: 0,
            unavailable_ns: length_ns,
        });
        result.facts.lost_writes = Some(LostWrites::Counted {
            acknowledged: 1_000,
            missing: 5,
        });
        let told = lines(&result);
        let window = result.measured.window.map(|window| window.nanos());
        assert_eq!(window, Some(window_ns));
        assert_eq!(
            told[0],
            "number of transactions lost with their connection: 8 (3 after COMMIT was sent, outcome unknown)"
        );
        assert!(told[1].ends_with("1.012 to 2.221 s: 1.210 s without a completion, 4 of 4 clients, recovered in 2.602 s"), "{told:?}");
        assert_eq!(
            told[2],
            " 57P01 x8, 57P03 x48, connection refused x162; 5011/s in the second before, 2210/s in the one after"
        );
        assert!(told[3].ends_with("not recovered"));
        assert_eq!(told[5], "available = 3.790 of 5.000 s (75.810%)");
        assert!(told[6].contains("closed loop"));
        assert_eq!(
            told[7],
            "lost writes = 5 of 1000 acknowledged commits are missing from pgbench_history (0.500%)"
        );
    }
}
