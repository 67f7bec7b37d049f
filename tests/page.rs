//! Pages in a real browser: every chart is drawn, nothing goes wrong, nothing is asked of the network;
//! on screens and phones, dark and light, and on paper.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Server, pgmark, pgmark_alone};

/// The browser, with a home of its own.
struct Browser {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Browser {
    fn find() -> Self {
        let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
        let program = places
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.exists());
        Browser {
            program: program.expect("chromium is installed; scripts/setup lint sees to that"),
            home: tempfile::tempdir().expect("a place"),
        }
    }

    /// What the browser prints, and what it says on standard error.
    fn run(&self, options: &[&str], page: &Path) -> (String, String) {
        let output = Command::new(&self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--enable-logging=stderr",
                "--log-level=0",
                // Whatever asks for a name asks in vain.
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--virtual-time-budget=10000",
                "--timeout=60000",
            ])
            .arg(format!("--user-data-dir={}", self.home.path().display()))
            .args(options)
            .arg(format!("file://{}", page.display()))
            .env("HOME", self.home.path())
            .output()
            .expect("it can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = text(&output.stderr);
        assert!(output.status.success(), "{told}");
        (text(&output.stdout), told)
    }
}

/// The value of an attribute, wherever it first stands.
fn attribute(dom: &str, name: &str) -> String {
    let opening = format!("{name}=\"");
    let (_, rest) = dom
        .split_once(&opening)
        .unwrap_or_else(|| panic!("no {name}: {dom}"));
    rest.split('"').next().expect("there is one").to_owned()
}

/// Asserts that all these charts are drawn, and that nothing else happened.
fn assert_drawn(browser: &Browser, options: &[&str], page: &Path, charts: &[&str]) {
    let (dom, told) = browser.run(&[options, &["--dump-dom"]].concat(), page);
    assert!(!told.contains("CONSOLE"), "{told}");
    for chart in charts {
        let (_, figure) = dom
            .split_once(&format!("id=\"{chart}\""))
            .unwrap_or_else(|| panic!("no chart {chart}: {dom}"));
        assert_eq!(
            attribute(figure, "data-drawn"),
            "yes",
            "{chart} with {options:?}"
        );
    }
    assert_eq!(
        dom.matches("data-drawn=").count(),
        charts.len(),
        "{charts:?}"
    );
    assert_eq!(attribute(&dom, "data-requests"), "0");
    let overflow: i64 = attribute(&dom, "data-overflow").parse().expect("a number");
    assert!(
        overflow <= 0,
        "{overflow} pixels beyond the edge with {options:?}"
    );
}

#[test]
fn a_run_is_shown_on_every_kind_of_screen_and_on_paper() {
    let hostile =
        "</script><script>console.error('broken out')</script><img src=http://example.com/>";
    let finished = pgmark(Server::shared())
        .args("-n -c 3 -T 3 -R 200 -L 500 -r --html run.html --json run.json")
        .arg("--label")
        .arg(hostile)
        .script("SELECT '</script><script>console.error(1)</script>', pg_sleep(0.001);")
        .run()
        .expect_status(0);
    let page = finished.path("run.html");
    let charts = ["throughput", "latency", "heat", "lag", "curve"];
    let browser = Browser::find();
    for options in [
        &["--window-size=1200,900"][..],
        &["--window-size=360,800"],
        &[
            "--window-size=1200,900",
            "--blink-settings=preferredColorScheme=0",
        ],
    ] {
        assert_drawn(&browser, options, &page, &charts);
    }
    let pdf = finished.path("run.pdf");
    browser.run(&[&format!("--print-to-pdf={}", pdf.display())], &page);
    let printed = std::fs::read(&pdf).expect("it was printed");
    assert!(printed.starts_with(b"%PDF") && printed.len() > 20_000);

    // The same page can be made of the result again.
    let again = pgmark_alone()
        .args("report --html -")
        .arg(finished.path("run.json"));
    let again = again.run().expect_status(0).stdout;
    assert_eq!(
        again,
        std::fs::read_to_string(&page).expect("it was written")
    );
}

#[test]
fn an_hour_of_seconds_is_drawn_within_seconds() {
    let directory = tempfile::tempdir().expect("a place");
    let finished = pgmark(Server::shared())
        .args("-n -t 5 -R 100 -r --json short.json")
        .script(&"SELECT 1;\n".repeat(20))
        .run()
        .expect_status(0);
    let text = std::fs::read_to_string(finished.path("short.json")).expect("it was written");
    let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let course = &mut document["measured"]["course"];
    let slice = course["slices"][0].clone();
    let slices: Vec<_> = (0..3_600_u64)
        .map(|second| {
            let mut slice = slice.clone();
            slice["length_ns"] = 1_000_000_000.into();
            slice["processed"] = (4_000 + second * 7 % 993).into();
            slice["latency"]["p99_ns"] = (5_000_000 + second * 7_919 % 999_983).into();
            slice["checkpoints"] = u64::from(second % 300 == 0).into();
            slice
        })
        .collect();
    let processed: u64 = slices
        .iter()
        .filter_map(|slice| slice["processed"].as_u64())
        .sum();
    course["slices"] = slices.into();
    // Seconds that never were are taken for those of a run only if it said that they did not agree.
    let recorded = &document["measured"]["total"]["processed"];
    let violation = format!("processed by second: {processed}, where {recorded} were recorded");
    document["violations"] = vec![violation].into();
    let result = directory.path().join("hour.json");
    std::fs::write(&result, document.to_string()).expect("the directory is ours");
    let page = directory.path().join("hour.html");
    pgmark_alone()
        .args("report --html")
        .arg(&page)
        .arg(&result)
        .run()
        .expect_status(0);
    let bytes = std::fs::metadata(&page).expect("it was written").len();
    assert!((200_000..2_000_000).contains(&bytes), "{bytes} bytes");
    // The browser's own clock allows ten seconds for all of it.
    let browser = Browser::find();
    let charts = [
        "throughput",
        "latency",
        "heat",
        "lag",
        "connections",
        "curve",
    ];
    assert_drawn(&browser, &["--window-size=1200,900"], &page, &charts);
}
