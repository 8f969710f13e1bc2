//! What the demo shows: readable in a terminal, with colour where there is one.

use super::Said;
use super::naive::Damage;
use super::plan::Spoken;
use super::proof::{Proof, Totals};
use crate::agent::runner::Event;
use std::io::{IsTerminal, Write};

pub struct Screen {
    colour: bool,
    /// The step that is being shown.
    step: String,
}

#[derive(Clone, Copy)]
enum Ink {
    Bold,
    Quiet,
    Good,
    Bad,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Ink::Bold => "1",
            Ink::Quiet => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
        }
    }
}

impl Screen {
    pub fn new() -> Self {
        // https://no-color.org
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: std::io::stdout().is_terminal() && !plain, step: String::new() }
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if self.colour { format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code()) } else { text.to_owned() }
    }

    /// Nobody may be reading any more: that stops nothing.
    fn line(&self, text: &str) {
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    pub fn title(&self, text: &str) {
        self.line(&self.ink(Ink::Bold, text));
    }

    pub fn chapter(&mut self, text: &str) {
        self.step.clear();
        self.line(&format!("\n{}", self.ink(Ink::Bold, text)));
    }

    pub fn note(&self, text: &str) {
        self.line(&format!("  {}", self.ink(Ink::Bad, text)));
    }

    pub(super) fn show(&mut self, said: &Said) {
        match said {
            Said::Proxy(fault) => {
                if let Some(told) = fault.told() {
                    self.line(&format!("      {}", self.ink(Ink::Bad, &told)));
                }
            }
            Said::Agent(Spoken::Event(event)) => self.event(event),
            Said::Agent(Spoken::Finished { .. }) => self.line(&self.ink(Ink::Good, "  the plan is done")),
            Said::Agent(Spoken::Stopped { stopped }) => self.note(stopped),
        }
    }

    fn event(&mut self, event: &Event) {
        let (step, text) = match event {
            Event::Key { step, key, .. } => (step, self.ink(Ink::Quiet, &format!("key {key}"))),
            Event::Remembered { step } => (step, "its answer is stored: nothing to send".to_owned()),
            Event::Sending { step, tool } => (step, format!("-> {tool}")),
            Event::Heard { step, status, code, replayed } => {
                let code = code.as_deref().unwrap_or_default();
                let replayed = if *replayed { "  replayed: the first answer" } else { "" };
                (step, format!("<- {status} {code}{replayed}").trim_end().to_owned())
            }
            Event::Lost { step, why, sent: true } => (step, format!("no answer ({why}): it may have happened")),
            Event::Lost { step, why, sent: false } => (step, format!("no connection ({why}): nothing was sent")),
            Event::Waiting { step, millis } => {
                (step, self.ink(Ink::Quiet, &format!("waits {millis} ms, then the same call again")))
            }
            Event::LookedUp { step, state } => (step, format!("looks its key up: {state}")),
            Event::Concluded { step, .. } => (step, self.ink(Ink::Good, "final, and written down")),
        };
        if *step != self.step {
            self.step.clone_from(step);
            self.line(&format!("  {step}"));
        }
        self.line(&format!("    {text}"));
    }

    pub fn proofs(&self, proofs: &[Proof]) {
        self.line(&format!("\n{}", self.ink(Ink::Bold, "What it proves")));
        for Proof { pattern, evidence, holds } in proofs {
            let word = if *holds { self.ink(Ink::Good, "holds ") } else { self.ink(Ink::Bad, "FAILED") };
            self.line(&format!("  {word}  {pattern:<22}{evidence}"));
        }
    }

    pub fn totals(&self, kept: &Totals, naive: &Damage) {
        let row = |what: &str, wanted: u64, kept: usize, naive: u64| {
            let harm = if naive == wanted { naive.to_string() } else { self.ink(Ink::Bad, &naive.to_string()) };
            self.line(&format!("  {what:<10}{wanted:>8}{kept:>12}{:>6}{harm}", ""));
        };
        self.line(&format!("\n{}", self.ink(Ink::Bold, "  total       wanted   with keys   without")));
        row("orders", 2, kept.orders, naive.orders);
        row("charges", 2, kept.charges, naive.orders);
        row("refunds", 1, kept.refunds, naive.refunds);
    }
}
