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
    let cluster = TemporaryCluster::start(cluster_plan, plan.load.clients)?;
    signals.check()?;
    let tables = Tables {
        steps: vec![
            InitStep::CreateTables,
            InitStep::GenerateClientSide,
            InitStep::Vacuum,
            InitStep::PrimaryKeys,
        ],
        scale: cluster_plan.scale,
        quiet: cluster_plan.quiet,
    };
    let init = InitPlan {
        target: cluster.target(),
        tables,
    };
    initialise(&init, signals, around)?;
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
