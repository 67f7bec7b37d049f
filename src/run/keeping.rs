//! What is kept of a result when the run is over: a result file, a page, a row in a file of summaries. The
//! files are looked at before the run, so that it is known beforehand if one cannot be written.

use std::sync::Arc;

use super::Signals;
use crate::archive::{Document, Identity, SummaryFile, WholeFile};
use crate::error::{Error, Report};
use crate::page;
use crate::plan::KeepPlan;

/// Files that wait for the result.
pub(super) struct Keeping {
    plan: KeepPlan,
    json: Option<WholeFile>,
    html: Option<WholeFile>,
    summary: Option<SummaryFile>,
}

impl Keeping {
    /// Looks at what the plan asks for, and waits for the readers of pipes.
    ///
    /// # Errors
    /// Those of [`WholeFile::at`] and [`SummaryFile::at`]; [`Error::Interrupted`].
    pub(super) fn open(plan: &KeepPlan, signals: &Signals) -> Result<Self, Error> {
        let plan = plan.clone();
        let opened = signals.beside(None, move || {
            Ok(Keeping {
                json: plan.json.as_deref().map(WholeFile::at).transpose()?,
                html: plan.html.as_deref().map(WholeFile::at).transpose()?,
                summary: plan
                    .summary_csv
                    .as_deref()
                    .map(SummaryFile::at)
                    .transpose()?,
                plan,
            })
        })?;
        opened.expect("there is no bound")
    }

    /// Whether anything is to be written.
    pub(super) fn is_asked_for(&self) -> bool {
        self.json.is_some() || self.html.is_some() || self.summary.is_some()
    }

    /// Which run it is that began at `started_unix_us` microseconds since 1970.
    pub(super) fn identity(&self, started_unix_us: u64) -> Identity {
        Identity::new(&self.plan, started_unix_us)
    }

    /// Writes everything, and says what could not be written.
    pub(super) fn write(self, document: Document, signals: &Signals) -> Vec<Error> {
        let document = Arc::new(document);
        let result_file = self.plan.json.as_deref();
        let result_file = result_file.map_or_else(String::new, |path| path.display().to_string());
        let json = self.json.map(|file| {
            let document = Arc::clone(&document);
            written(signals, file.may_wait(), move || {
                file.write_document(&document)
            })
        });
        let html = self.html.map(|file| {
            let page = page::page(&document);
            written(signals, file.may_wait(), move || file.write_text(&page))
        });
        let summary = self.summary.map(|file| {
            let document = Arc::clone(&document);
            written(signals, file.may_wait(), move || {
                file.add(&document, &result_file)
            })
        });
        json.into_iter()
            .chain(html)
            .chain(summary)
            .filter_map(Result::err)
            .collect()
    }
}

/// A reader may let us wait for ever; a signal ends that. A file is written whatever comes.
fn written(
    signals: &Signals,
    may_wait: bool,
    write: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    match may_wait {
        true => match signals.beside(None, write) {
            Err(Error::Interrupted(_)) => Err(Error::Environment(Report::new(
                "a part of the result is not written: its reader let us wait until a signal came",
            ))),
            done => done?.expect("there is no bound"),
        },
        false => write(),
    }
}
