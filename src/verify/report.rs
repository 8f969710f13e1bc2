//! The report: each question, whether the answer is yes, and the evidence. As a table for people, as JSON for programs.

use super::VerifyArgs;
use super::questions::Question;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;

/// Fits a terminal of 80 columns.
const WIDTH: usize = 80;
const RESULT_WIDTH: usize = 9;
const ID_WIDTH: usize = 32;

#[derive(Debug)]
pub enum Outcome {
    Pass(String),
    Fail(String),
    /// Not asked: neither yes nor no.
    Skipped(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Outcome::Pass(_) => "pass",
            Outcome::Fail(_) => "fail",
            Outcome::Skipped(_) => "skipped",
        }
    }

    fn evidence(&self) -> &str {
        let (Outcome::Pass(evidence) | Outcome::Fail(evidence) | Outcome::Skipped(evidence)) = self;
        evidence
    }

    /// SGR: green, bold red, yellow.
    fn colour(&self) -> &'static str {
        match self {
            Outcome::Pass(_) => "32",
            Outcome::Fail(_) => "1;31",
            Outcome::Skipped(_) => "33",
        }
    }
}

#[derive(Debug)]
pub struct Entry {
    pub question: Question,
    outcome: Outcome,
}

impl Entry {
    pub fn new(question: Question, outcome: Outcome) -> Self {
        let outcome = match outcome {
            Outcome::Pass(evidence) => Outcome::Pass(printable(&evidence)),
            Outcome::Fail(evidence) => Outcome::Fail(printable(&evidence)),
            Outcome::Skipped(evidence) => Outcome::Skipped(printable(&evidence)),
        };
        Self { question, outcome }
    }
}

#[derive(Debug)]
pub struct Report {
    pub url: String,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Paint {
    Colour,
    Plain,
}

impl Report {
    /// The ids of the questions whose answer is no.
    pub fn failed(&self) -> Vec<&'static str> {
        let failed = self.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Fail(_)));
        failed.map(|entry| entry.question.as_str()).collect()
    }

    pub fn shown(&self, args: &VerifyArgs) -> String {
        if args.json {
            return format!("{:#}\n", self.json());
        }
        // https://no-color.org: set and not empty.
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        self.table(if std::io::stdout().is_terminal() && !unwanted { Paint::Colour } else { Paint::Plain })
    }

    fn json(&self) -> Value {
        let question = |Entry { question, outcome }: &Entry| {
            json!({
                "id": question.as_str(),
                "question": question.text(),
                "result": outcome.word(),
                "evidence": outcome.evidence(),
            })
        };
        json!({
            "url": self.url,
            "passed": self.failed().is_empty(),
            "questions": self.entries.iter().map(question).collect::<Vec<_>>(),
        })
    }

    fn table(&self, paint: Paint) -> String {
        let mut table = format!("{}\n\n", self.url);
        for Entry { question, outcome } in &self.entries {
            let padded = format!("{:RESULT_WIDTH$}", outcome.word());
            let word = match paint {
                Paint::Colour => format!("\x1b[{}m{padded}\x1b[0m", outcome.colour()),
                Paint::Plain => padded,
            };
            let _ = writeln!(table, "{word}{:ID_WIDTH$}{}", question.as_str(), question.text());
            for line in wrapped(outcome.evidence(), WIDTH - RESULT_WIDTH) {
                let _ = writeln!(table, "{:RESULT_WIDTH$}{line}", "");
            }
        }
        let of = |word: &str| self.entries.iter().filter(|entry| entry.outcome.word() == word).count();
        let _ = writeln!(table, "\n{} passed, {} failed, {} skipped", of("pass"), of("fail"), of("skipped"));
        table
    }
}

/// One line, and nothing that a terminal would obey: some of it is the server's own words.
pub fn printable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).collect()
}

/// Lines of whole words. A word that is longer than a line has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_one_line_that_a_terminal_shows_as_it_is() {
        assert_eq!(printable("a \x1b[2Jb\n c\u{9b}d"), "a [2Jb cd");
    }

    #[test]
    fn a_table_fits_eighty_columns_and_has_colour_only_when_it_is_wanted() {
        let entries = Question::ALL.iter().map(|question| Entry::new(*question, Outcome::Fail("word ".repeat(60))));
        let report = Report { url: "http://x".into(), entries: entries.collect() };
        let table = report.table(Paint::Plain);
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        assert!(!table.contains('\x1b') && report.table(Paint::Colour).contains("\x1b[1;31mfail"));
        assert!(table.ends_with("0 passed, 14 failed, 0 skipped\n"));
    }
}
