//! The throwaway server of a run: started and filled before it, stopped or left running after it.

use crate::cluster::TemporaryCluster;
use crate::console::Console;
use crate::error::Error;
use crate::plan::{ClusterPlan, InitPlan, InitStep, RunPlan, Tables};

use super::{Signals, Surroundings, initialise};

/// A throwaway server with its tables.
pub(super) fn start(
    cluster_plan: &ClusterPlan,
    plan: &RunPlan,
    signals: &Signals,
    around: &Surroundings<'_>,
) -> Result<TemporaryCluster, Error> {
    let go_on = || signals.check();
    let cluster = TemporaryCluster::start(cluster_plan, plan.load.clients, &go_on)?;
    go_on()?;
    let steps = vec![
        InitStep::CreateTables,
        InitStep::GenerateClientSide,
        InitStep::Vacuum,
        InitStep::PrimaryKeys,
    ];
    let init = InitPlan {
        target: cluster.target(),
        tables: Tables {
            quiet: cluster_plan.quiet,
            ..Tables::plain(steps, cluster_plan.scale)
        },
        dry_run: false,
    };
    initialise(init, signals, around)?;
    Ok(cluster)
}

pub(super) fn end(
    cluster: TemporaryCluster,
    plan: &ClusterPlan,
    console: &Console,
) -> Result<(), Error> {
    if plan.keep {
        console.line(&cluster.keep());
        return Ok(());
    }
    cluster.stop()
}
