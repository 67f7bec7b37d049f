//! What is kept of a result when the run is over: a result file, a page, a row in a file of summaries. The
//! files are opened before the run, so that it is known beforehand if one cannot be written.

use crate::archive::{Document, Identity, Reserved, SummaryFile};
use crate::error::Error;
use crate::page;
use crate::plan::KeepPlan;

/// Files that wait for the result.
pub(super) struct Keeping {
    plan: KeepPlan,
    json: Option<Reserved>,
    html: Option<Reserved>,
    summary: Option<SummaryFile>,
}

impl Keeping {
    /// Opens what the plan asks for.
    ///
    /// # Errors
    /// Those of [`Reserved::at`] and [`SummaryFile::open`].
    pub(super) fn open(plan: &KeepPlan) -> Result<Self, Error> {
        Ok(Keeping {
            json: plan.json.as_deref().map(Reserved::at).transpose()?,
            html: plan.html.as_deref().map(Reserved::at).transpose()?,
            summary: plan
                .summary_csv
                .as_deref()
                .map(SummaryFile::open)
                .transpose()?,
            plan: plan.clone(),
        })
    }

    /// Which run it is that began at `started_unix_us` microseconds since 1970.
    pub(super) fn identity(&self, started_unix_us: u64) -> Identity {
        Identity::new(&self.plan, started_unix_us)
    }

    /// Writes everything, and says what could not be written.
    pub(super) fn write(self, document: &Document) -> Vec<Error> {
        let result_file = self.plan.json.as_deref();
        let result_file = result_file.map(|path| path.display().to_string());
        let json = self.json.map(|reserved| reserved.write(document));
        let html = self
            .html
            .map(|reserved| reserved.write_text(&page::page(document)));
        let summary = self
            .summary
            .map(|mut file| file.add(document, result_file.as_deref().unwrap_or_default()));
        json.into_iter()
            .chain(html)
            .chain(summary)
            .filter_map(Result::err)
            .collect()
    }
}
