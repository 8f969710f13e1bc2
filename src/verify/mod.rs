//! Verify: the checklist before a tool is published, asked of a running server over HTTP. It knows the contract and
//! nothing of our code behind it: what it reports of another server holds in the same way.

mod answer;
mod client;
mod document;
mod questions;
mod report;
mod shop;
mod watch;

use clap::Args;
use questions::Question;
pub use report::Report;
use report::{Entry, Outcome};
use shop::Shop;
use std::io::IsTerminal;

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The server: scheme, host and port.
    #[arg(long, default_value = "http://127.0.0.1:8080", value_parser = client::base_url)]
    pub url: String,
    /// The key of an actor with the scopes catalog:read, catalog:write, checkout:propose, checkout:confirm, orders:read and
    /// refunds:create.
    #[arg(long, env = "COUNTERSIGN_KEY", hide_env_values = true, value_parser = client::credential)]
    pub key: String,
    /// The key of another actor, with the scopes checkout:propose and checkout:confirm, who must not see what the first
    /// one has.
    #[arg(long, env = "COUNTERSIGN_OTHER_KEY", hide_env_values = true, value_parser = client::credential)]
    pub other_key: Option<String>,
    /// The SKU to buy. [default: the first cheap product in stock]
    #[arg(long, value_parser = shop::product_id)]
    pub product: Option<String>,
    /// What to pay with. It must succeed.
    #[arg(long, default_value = "pm_sandbox_ok")]
    pub payment_method: String,
    /// A shell command that restarts the server. Its end says that the old one is down; verify then waits up to 60 seconds
    /// for /readyz. Without it, whether answers survive a restart isn't asked.
    #[arg(long, value_name = "CMD")]
    pub restart_command: Option<String>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Why a question ends early.
#[derive(Debug)]
pub enum Stop {
    /// The answer is no, and this is what was seen.
    Failed(String),
    /// Nobody can be asked: the whole run ends.
    Unable(String),
}

impl Stop {
    fn why(self) -> String {
        let (Stop::Failed(why) | Stop::Unable(why)) = self;
        why
    }

    /// The same, after the words that say what was being done.
    fn after(self, what: &str) -> Self {
        match self {
            Stop::Failed(why) => Stop::Failed(format!("{what}: {why}")),
            Stop::Unable(why) => Stop::Unable(format!("{what}: {why}")),
        }
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(Stop::Failed(otherwise())) }
}

/// Asks every question. An error says in a line why they can't be asked.
pub async fn run(args: &VerifyArgs) -> Result<Report, String> {
    let shop = Shop::open(args).await.map_err(|stop| report::printable(&stop.why()))?;
    let mut entries = Vec::new();
    for question in Question::in_order_of_asking() {
        say_progress(&format!("{}/{} {} …", entries.len() + 1, Question::ALL.len(), question.as_str()));
        let answered = question.ask(&shop, args).await;
        shop.tidy().await;
        entries.push(match answered {
            Ok(outcome) => Entry::new(question, outcome),
            Err(Stop::Failed(evidence)) => Entry::new(question, Outcome::Fail(evidence)),
            Err(Stop::Unable(why)) => {
                say_progress("");
                return Err(report::printable(&format!("{}: {why}", question.as_str())));
            }
        });
    }
    say_progress("");
    entries.sort_by_key(|entry| entry.question);
    Ok(Report { url: args.url.clone(), entries })
}

/// On a terminal, one line that is written over; the report itself goes to standard output.
fn say_progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{what}");
    }
}
