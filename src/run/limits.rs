//! How many descriptors this process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, Report};
use crate::plan::Load;

/// Descriptors besides those of clients and threads: the three standard streams, signals, logs,
/// the control connection and its event loop, cancellations, libraries.
const OTHERS: u64 = 32;

/// Descriptors of a thread: its poll, its waker, its timer, its log in pgbench's format.
const EACH_THREAD: u64 = 4;

/// Raises the soft limit of open files if the load needs that.
///
/// # Errors
/// [`Error::Environment`] with the true need, where the hard limit is lower.
pub fn allow_descriptors(load: &Load) -> Result<(), Error> {
    let need = descriptors(load);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= need) {
        return Ok(());
    }
    let refusal = |reason: String| {
        Error::Environment(
            Report::new(format!(
                "{need} open files are needed for {} clients, but {reason}",
                load.clients
            ))
            .hint("Reduce the number of clients, or raise the limit with ulimit -n."),
        )
    };
    if limit.maximum.is_some_and(|hard| hard < need) {
        let hard = limit.maximum.unwrap_or_default();
        return Err(refusal(format!("the system limit is {hard}")));
    }
    let raised = Rlimit {
        current: Some(need),
        ..limit
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| refusal(format!("the limit could not be raised: {error}")))
}

fn descriptors(load: &Load) -> u64 {
    u64::from(load.clients) + EACH_THREAD * u64::from(load.threads) + OTHERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StopRule;

    fn load(clients: u32, threads: u32) -> Load {
        Load {
            clients,
            threads,
            ..Load::of_one_client(StopRule::Transactions(1))
        }
    }

    #[test]
    fn a_few_clients_always_fit() {
        assert!(allow_descriptors(&load(1, 1)).is_ok());
    }

    #[test]
    fn too_many_are_refused_with_the_true_need() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else {
            return;
        };
        let Ok(clients) = u32::try_from(hard) else {
            return;
        };
        let Err(error) = allow_descriptors(&load(clients, 2)) else {
            panic!("a client for each descriptor leaves none for the rest");
        };
        let need = u64::from(clients) + 2 * EACH_THREAD + OTHERS;
        assert!(error.to_string().contains(&format!("{need} open files")));
    }
}
