//! What all workers of a run share and none of them changes.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::conninfo::{Addresses, Attempt, AttemptFailure, Encryption, Endpoint, Target};
use crate::plan::{Pacing, RunPlan, deal};
use crate::protocol::Startup;
use crate::random::{Generator, Seeds};
use crate::schedule::Schedule;
use crate::script::{Automatic, Script, Sql, Variables};
use crate::time::Clock;
use crate::tls::Connector;
use crate::told::{FirstErrors, NoticeBook, Pooling};
use crate::transport::{Encrypting, Security};
use crate::values::ValueSources;

/// The plan of a run with what the server told about itself.
#[derive(Debug)]
pub struct RunContext {
    /// The one clock.
    pub clock: Clock,
    /// Whom to connect as, to which database.
    pub target: Target,
    /// Where to connect, resolved once.
    pub addresses: Addresses,
    /// Makes encrypted sessions, or says why it cannot; made when the first is wanted.
    connector: OnceLock<Result<Connector, String>>,
    /// What to do.
    pub plan: RunPlan,
    /// Rows for the scripts' `\values`.
    pub values: ValueSources,
    /// When transactions are due, under a rate.
    pub schedule: Option<Arc<Schedule>>,
    /// Which kinds of errors have been told.
    pub first_errors: FirstErrors,
    /// Which kinds of notices came, and how often.
    pub notices: NoticeBook,
    /// Whether a pooler stands in the way of prepared statements.
    pub pooling: Pooling,
    /// Seeds of all streams.
    pub seeds: Seeds,
    /// Names of the prepared statements, by number of the SQL command.
    statement_names: Vec<CString>,
    /// The scale of the tables, which is the variable `scale`.
    pub scale: u64,
}

impl RunContext {
    /// Draws the seeds of all streams.
    pub fn new(
        plan: RunPlan,
        target: Target,
        addresses: Addresses,
        values: ValueSources,
        scale: u64,
        clock: Clock,
    ) -> Self {
        let seeds = Seeds::draw(
            plan.seed.value,
            plan.load.clients,
            plan.load.threads,
            plan.scripts.variables.is_defined(b"default_seed"),
        );
        RunContext {
            statement_names: (0..plan.scripts.sql_commands)
                .map(|number| CString::new(format!("P_{number}")).expect("it has no zero byte"))
                .collect(),
            schedule: match plan.load.pacing {
                Pacing::ClosedLoop => None,
                Pacing::Rate(rate) => {
                    let throttle = Generator::new(seeds.threads[0].throttle);
                    Some(Arc::new(Schedule::new(rate, throttle)))
                }
            },
            first_errors: FirstErrors::default(),
            notices: NoticeBook::default(),
            pooling: Pooling::default(),
            clock,
            values,
            target,
            addresses,
            connector: OnceLock::new(),
            plan,
            seeds,
            scale,
        }
    }

    /// The clients of a thread: contiguous blocks, each thread taking its share, rounded up, of the
    /// clients and threads that remain, as pgbench deals them.
    pub fn clients_of(&self, thread: u32) -> Range<u32> {
        deal(self.plan.load.clients, self.plan.load.threads, thread)
    }

    /// The stream by which a thread chooses scripts.
    pub fn choose_generator(&self, thread: u32) -> Generator {
        Generator::new(self.seeds.threads[thread as usize].choose)
    }

    /// The stream by which the transactions of a thread are chosen that are logged.
    pub fn sample_generator(&self, thread: u32) -> Generator {
        Generator::new(self.seeds.threads[thread as usize].sample)
    }

    /// The stream of a client's random functions.
    pub fn client_generator(&self, client: u32) -> Generator {
        Generator::new(self.seeds.clients[client as usize])
    }

    /// The stream by which a client chooses hosts.
    pub fn host_generator(&self, client: u32) -> Generator {
        // A stream of its own: choosing hosts must not change what the scripts draw.
        Generator::new(!self.seeds.clients[client as usize])
    }

    /// The variables at the start of a client on `thread`.
    pub fn variables_of(&self, client: u32, thread: u32) -> Variables {
        self.plan.scripts.variables.initial(&Automatic {
            scale: i64::try_from(self.scale).unwrap_or(i64::MAX),
            client_id: client,
            default_seed: self.seeds.default_seed,
            random_seed: self.plan.seed.value,
            thread_id: thread,
        })
    }

    /// A script by its index.
    pub fn script(&self, index: usize) -> &Script {
        &self.plan.scripts.scripts[index].script
    }

    /// The name under which an SQL command is prepared, the same as pgbench's.
    pub fn statement_name(&self, sql: &Sql) -> &CStr {
        &self.statement_names[sql.number]
    }

    /// What a client says when it connects to one of the hosts, over a link that is secured like
    /// this.
    pub fn startup(&self, host: usize, security: &Security) -> Startup<'_> {
        Startup {
            channel_binding: security.channel_binding(),
            ..Startup::of(&self.target, host)
        }
    }

    /// How the link of an attempt is to be encrypted, if it is.
    ///
    /// # Errors
    /// The files for it are not what they should be.
    pub fn encrypting(&self, attempt: &Attempt<'_>) -> Result<Option<Encrypting>, AttemptFailure> {
        let (optional, host) = match (attempt.encryption, attempt.endpoint) {
            (Encryption::Plain, _) | (_, Endpoint::Unix(_)) => return Ok(None),
            (Encryption::Preferred, Endpoint::Tcp { host, .. }) => (true, host),
            (Encryption::Required, Endpoint::Tcp { host, .. }) => (false, host),
        };
        Ok(Some(Encrypting {
            connector: self.connector()?.clone(),
            host: host.clone(),
            negotiation: self.target.tls.negotiation,
            optional,
        }))
    }

    /// Reads the files that encryption needs, if a client will, so that none of them has to wait for
    /// it. What is wrong with them is told by the attempts that fail for it.
    pub fn read_encryption_files(&self) {
        let attempts = self.addresses.attempts(|_| 0);
        let first = attempts.current();
        if first.is_some_and(|attempt| attempt.encryption != Encryption::Plain) {
            let _ = self.connector();
        }
    }

    /// What makes encrypted sessions.
    ///
    /// # Errors
    /// The files for it are not what they should be.
    pub fn connector(&self) -> Result<&Connector, AttemptFailure> {
        let made = self
            .connector
            .get_or_init(|| Connector::new(&self.target.tls).map_err(|error| error.to_string()));
        made.as_ref()
            .map_err(|error| AttemptFailure::Handshake(error.clone()))
    }
}
