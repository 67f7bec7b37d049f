//! A result as a page for a browser that needs nothing but itself: no file beside it, no network.
//! Whatever comes from scripts, servers and command lines is escaped.

mod charts;
mod heat;
mod overview;
mod view;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::archive::Document;
use crate::printable::printable;
use charts::Charts;
pub use overview::overview;
use view::View;

/// Draws the charts. Its licence stands beside it, and in the page.
const LIBRARY: &str = include_str!("vendor/uPlot.iife.min.js");
const LIBRARY_STYLE: &str = include_str!("vendor/uPlot.min.css");
const LIBRARY_LICENCE: &str = include_str!("vendor/LICENSE");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Everything that the template knows.
#[derive(Serialize)]
struct Frame {
    #[serde(flatten)]
    view: View,
    /// What the charts show, for the script.
    data: String,
    library: &'static str,
    library_style: &'static str,
    library_licence: &'static str,
    script: &'static str,
    style: &'static str,
    allowed_scripts: String,
}

/// The page of a run.
pub fn page(document: &Document) -> String {
    let charts = Charts::of(document);
    let frame = Frame {
        view: View::of(document, &charts),
        data: inlined(&charts),
        library: LIBRARY,
        library_style: LIBRARY_STYLE,
        library_licence: LIBRARY_LICENCE,
        script: SCRIPT,
        style: STYLE,
        allowed_scripts: format!("{} {}", allowed(LIBRARY), allowed(SCRIPT)),
    };
    render("run", include_str!("run.html"), frame)
}

/// Everything that is foreign is escaped.
fn render(name: &'static str, template: &'static str, view: impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment
        .add_template(name, template)
        .expect("the template is part of the program, and tests make pages of it");
    let page = environment
        .get_template(name)
        .and_then(|template| template.render(Serde(view)));
    printable(&page.expect("every name of the template is given")) + "\n"
}

/// Data for the script, as it may stand inside of an element: nothing in it ends that.
fn inlined(charts: &Charts) -> String {
    let json = serde_json::to_string(charts).expect("it has only names for keys");
    json.replace('<', "\\u003c")
}

/// What lets a browser run this script and no other one.
fn allowed(script: &str) -> String {
    let hash = Sha256::digest(script.as_bytes());
    format!("'sha256-{}'", BASE64_STANDARD.encode(hash))
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_can_be_made_of_every_kind_of_run() {
        for (kind, document) in testing::of_every_kind() {
            let page = page(&document);
            assert!(page.ends_with("</html>\n"), "{kind}");
        }
    }

    #[test]
    fn nothing_that_is_foreign_becomes_part_of_the_page() {
        let hostile =
            "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"`${x}\u{202e}\u{7}";
        let plain = page(&testing::hour(20, 1, "plain"));
        let page = page(&testing::hour(20, 1, hostile));
        assert!(
            page.contains("&lt;script&gt;alert(1)"),
            "it is shown as text"
        );
        for element in ["<script", "<img", "onerror='"] {
            assert_eq!(
                page.matches(element).count(),
                plain.matches(element).count(),
                "{element}"
            );
        }
    }

    #[test]
    fn an_hour_of_seconds_with_twenty_commands_is_less_than_two_megabytes() {
        let page = page(&testing::hour(
            3_600,
            20,
            "UPDATE pgbench_accounts SET abalance = abalance + :delta",
        ));
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        assert!(
            page.len() > 150_000,
            "{} bytes: the hour is not in it",
            page.len()
        );
    }
}
