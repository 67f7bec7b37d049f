//! Large scripts take time in proportion to their size, whatever they consist of.

use pgmark::script::{Dialect, ScriptSetBuilder};
use rustix::time::{ClockId, clock_gettime};

/// Twice the size may take this much longer: the bound leaves room for memory that gets slower.
const GROWTH_MAX: f64 = 2.5;

/// Large enough for quadratic time to show.
const BYTES: usize = 150_000;

/// Beginning and end of a script, and what is repeated in between.
const SHAPES: &[(&str, &str, &str)] = &[
    ("", "select 1;\n", ""),
    ("", ";", ""),
    ("", ":x ", ""),
    ("", "::", ""),
    ("", ":'x' ", ""),
    ("select ", "'a' ", ""),
    ("select '", "a", ""),
    ("select ", "E'a'\n", ""),
    ("select ", "E'\\'' -- x\n", ""),
    ("select ", "$a", ""),
    ("select ", "$$ $ ", ""),
    (
        "select $aaaaaaaaaaaaaaaaaaaaaaaa$",
        "$aaaaaaaaaaaaaaaaaaaaaaaa",
        "",
    ),
    ("", "/*", ""),
    ("", "/**/", ""),
    ("", "-- x\n", "a;"),
    ("select ", "(", ""),
    ("", "create function f() begin ", ""),
    ("", "\\;", ""),
    ("", "\\\n", "a;"),
    ("", "\\set x 1\n", ""),
    ("", "\\if 1\n\\endif\n", ""),
    ("", "\\if 1\n", ""),
    ("\\if 0\n", "\\elif 0\n", "\\endif\n"),
    ("", "\\untimed\na;\n\\enduntimed\n", ""),
    ("", "select 1 as a \\gset\n", ""),
    ("", "\\foo\n", ""),
    ("", ":{?x}", ""),
    ("select ", "[:\"x\" ", ""),
    ("\\set x 0", " + 1", ""),
    ("\\set x 0", " + 1", " ;"),
    ("\\set x ", "(", ""),
    ("\\set x 0", " + :x", ""),
    ("\\set x ", "- ", "1"),
    ("\\set x ", "not ", "true"),
    ("\\set x 1", " is null", ""),
    ("\\set x true", " and :x", ""),
    ("\\set x case", " when :x then 1", " end"),
    ("\\set x least(1", ", :x", ")"),
    ("\\set x ", "\\\n", "1"),
    ("\\set x '", "a''", "'"),
    ("\\set x ", "9", ""),
    ("\\shell a", " a", ""),
    ("a;\\set x ", " ", "1"),
];

#[test]
fn a_script_twice_as_large_takes_about_twice_as_long() {
    for (begin, part, end) in SHAPES {
        let script = |bytes: usize| {
            let middle = part.repeat(bytes / part.len());
            format!("{begin}{middle}{end}")
        };
        let (small, large) = (script(BYTES), script(2 * BYTES));
        // What disturbs a measurement only makes it longer, so one of several that fits is enough.
        let mut measured = Vec::new();
        let linear = (0..8).any(|_| {
            let (small_ns, large_ns) = (parse_ns(&small), parse_ns(&large));
            measured.push((small_ns, large_ns));
            large_ns as f64 <= small_ns as f64 * GROWTH_MAX
        });
        assert!(linear, "{begin:?} {part:?} {end:?}: {measured:?} ns");
    }
}

/// Processor time that parsing takes: what others do on the machine hardly shows in it.
fn parse_ns(script: &str) -> i64 {
    let start_ns = processor_ns();
    let mut builder = ScriptSetBuilder::new(Dialect::Extended);
    builder.add_file("script", script.as_bytes(), 1);
    // Some are wrong; that is told in linear time, too.
    let told = builder.finish().map_err(|errors| errors.to_string());
    drop(std::hint::black_box(told));
    (processor_ns() - start_ns).max(1)
}

fn processor_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
