//! The verified cases of `tests/data/expression-cases.csv`: what pgbench does with a script, down to
//! the class of the error. Only reads them; running them is up to the tests of the library and of
//! the program.

const CASES: &str = include_str!("../data/expression-cases.csv");

/// One row.
#[derive(Debug, serde::Deserialize)]
pub struct Case {
    /// What it is about.
    pub section: String,
    /// Arguments, each line beginning with `-`, and lines that come first in the script.
    setup: String,
    /// An expression, or a whole script.
    expression: String,
    /// What kind of result `expected_value` is.
    pub expected_type: String,
    expected_value: String,
    note: String,
}

/// What should come out.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An error of this class before anything connects.
    ParseError(String),
    /// An error of this class that ends a client.
    RunError(String),
    /// What `debug()` writes, in order.
    Debug(Vec<String>),
    /// The statements that the server gets, with their parameters if there are any.
    Sql(Vec<String>),
    /// Exit status and counts, in words.
    Counts(String),
}

impl Case {
    /// All of them.
    pub fn all() -> Vec<Case> {
        let cases: Vec<Case> = csv::Reader::from_reader(CASES.as_bytes())
            .deserialize()
            .collect::<Result<_, _>>()
            .expect("the file of cases is well-formed");
        assert_eq!(cases.len(), 416, "a case got lost");
        cases
    }

    /// The arguments that it wants.
    pub fn arguments(&self) -> Vec<String> {
        let lines = self.setup.lines().filter(|line| line.starts_with('-'));
        lines.flat_map(shell_words).collect()
    }

    /// Its script, with what the setup puts in front.
    pub fn script(&self) -> String {
        let mut script = String::new();
        for line in self.setup.lines().filter(|line| !line.starts_with('-')) {
            script.push_str(line);
            script.push('\n');
        }
        if self.is_whole_script() {
            script.push_str(&self.expression);
            return script;
        }
        let repeats = match self.expected_type.as_str() {
            "int-seq" => 10,
            _ => 1,
        };
        for _ in 0..repeats {
            script.push_str(&format!("\\set v debug({})\n", self.expression));
        }
        script
    }

    fn is_whole_script(&self) -> bool {
        const SECTIONS: [&str; 12] = [
            "evalorder",
            "define",
            "seed",
            "subst",
            "split",
            "meta",
            "cond",
            "gset",
            "pipeline",
            "sleep",
            "shell",
            "retry",
        ];
        SECTIONS.contains(&self.section.as_str()) || self.expression.starts_with('\\')
    }

    /// Whether all that `debug()` writes counts. Of an expression it is the value alone, not what
    /// nested calls say on the way.
    pub fn wants_all_debug_output(&self) -> bool {
        matches!(self.expected_type.as_str(), "ok" | "int-seq")
    }

    /// What it says should come out with so many clients.
    pub fn expected(&self, clients: usize) -> Outcome {
        let value = &self.expected_value;
        match self.expected_type.as_str() {
            "parse-error" => Outcome::ParseError(value.clone()),
            "run-error" => Outcome::RunError(value.clone()),
            "sql" => Outcome::Sql(value.split("\n--next--\n").map(str::to_owned).collect()),
            "counts" => Outcome::Counts(value.clone()),
            "ok" if value.is_empty() => Outcome::Debug(Vec::new()),
            "ok" => Outcome::Debug(value.split("; ").map(str::to_owned).collect()),
            "int-seq" => {
                let values = value.split(' ').map(|value| format!("int {value}"));
                Outcome::Debug(values.collect())
            }
            "null" => Outcome::Debug(vec!["null".to_owned(); clients]),
            kind => Outcome::Debug(vec![format!("{kind} {value}"); clients]),
        }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { section, setup, .. } = self;
        let (script, note) = (self.script(), &self.note);
        write!(f, "{section}: {setup:?} {script:?} ({note})")
    }
}

/// Splits at blanks outside of single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        let last = words.len() - 1;
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            character => words[last].push(character),
        }
    }
    words
}
