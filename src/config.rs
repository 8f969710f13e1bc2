//! Flags and environment. Every flag of `serve` is also a variable: `COUNTERSIGN_` and its name in capitals. A bad value is one
//! line on stderr and exit code 2.

use crate::agent::demo::{AgentArgs, DemoArgs};
use crate::clock::Clock;
use crate::database::DatabaseUrl;
use crate::database::postgres::PostgresSettings;
use crate::domain::actor::{Scope, Scopes};
use crate::domain::ids::ActorId;
use crate::domain::refund::{Approver, RefundPolicy, Thresholds};
use crate::effects::Retention;
use crate::failpoints;
use crate::operations::Settings;
use crate::operations::authenticate::DemoActors;
use crate::store::StoreConfig;
use crate::verify::VerifyArgs;
use clap::{Args, Parser, Subcommand};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

#[derive(Debug, Parser)]
#[command(name = "countersign", version, about = "A commerce backend that software agents can retry without fear")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API.
    Serve(Box<ServeArgs>),
    /// Print the OpenAPI document.
    Openapi,
    /// Read both databases and report what doesn't add up. Exit code 1 if anything doesn't, 2 if they can't be read.
    Check(CheckArgs),
    /// Ask a running server the pre-publish checklist, over HTTP alone. It makes real orders and refunds.
    ///
    /// Works on any server that follows the contract, and knows it by its URL and a key. Each question buys what it needs:
    /// about ten orders of one cheap product, paid with --payment-method, and small refunds of them. Ask a test installation,
    /// or use a payment method that moves no money. Confirmations that aren't confirmed are cancelled at the end.
    ///
    /// Exit code 0 if every answer is yes, 1 if one is no, 2 if the server can't be reached or the key may not do what is
    /// asked. A question that isn't asked (skipped) is neither.
    Verify(VerifyArgs),
    /// Make, list or disable actors.
    Actor(ActorArgs),
    /// Watch an agent shop through a bad connection, with keys and without. Exit code 1 if a proof fails.
    Demo(DemoArgs),
    /// The demo's agent, as a process of its own.
    #[command(hide = true)]
    DemoAgent(AgentArgs),
}

#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub database: DatabaseArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Load the sample shop and admit the well-known demo keys; loopback only.
    #[arg(long, env = "COUNTERSIGN_DEMO")]
    pub demo: bool,
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, env = "COUNTERSIGN_BIND", default_value = "127.0.0.1:8080", value_parser = address)]
    pub bind: SocketAddr,
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// The payment provider.
    #[arg(long, env = "COUNTERSIGN_PAYMENTS", default_value = "sandbox", value_parser = ["sandbox"])]
    pub payments: String,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How long a confirmation holds price and stock. 15 minutes: time for a person to be asked, short for the stock.
    #[arg(long, env = "COUNTERSIGN_CONFIRMATION_TTL", default_value = "15m", value_parser = span)]
    pub confirmation_ttl: Duration,
    /// Pending confirmations that one actor may hold.
    #[arg(long, env = "COUNTERSIGN_MAX_PENDING", default_value = "100", value_parser = clap::value_parser!(i64).range(1..=10_000))]
    pub max_pending: i64,
    /// How long answers about money are kept. 7 days: a bad Friday deploy and the week that it takes to clean up.
    #[arg(long, env = "COUNTERSIGN_RETENTION_MONEY", default_value = "7d", value_parser = span)]
    pub retention_money: Duration,
    /// How long other stored answers are kept.
    #[arg(long, env = "COUNTERSIGN_RETENTION_OTHER", default_value = "24h", value_parser = span)]
    pub retention_other: Duration,
    /// How long one call of the provider may take; its outcome is unknown then.
    #[arg(long, env = "COUNTERSIGN_PROVIDER_TIMEOUT", default_value = "10s", value_parser = span)]
    pub provider_timeout: Duration,
    /// What the sandbox's slow payment method waits before it answers.
    #[arg(long, env = "COUNTERSIGN_SANDBOX_DELAY", default_value = "2s", value_parser = span)]
    pub sandbox_delay: Duration,
    /// How long one caller may deal with a payment before others take over: at least twice the provider time-out, for a
    /// look-up and a charge.
    #[arg(long, env = "COUNTERSIGN_LEASE", default_value = "30s", value_parser = span)]
    pub lease: Duration,
    /// Refunds of one order that add up to more take a second step. One amount a currency; those left out keep their
    /// default.
    #[arg(long, env = "COUNTERSIGN_REFUND_CONFIRMATION_THRESHOLD", default_value = Thresholds::DEFAULT, value_parser = thresholds)]
    pub refund_confirmation_threshold: Thresholds,
    /// Who confirms them: their proposer (same), or another actor of the account (other).
    #[arg(long, env = "COUNTERSIGN_REFUND_APPROVER", default_value = "same", value_parser = approver)]
    pub refund_approver: Approver,
    /// How long a succeeded refund makes an equal one take a second step; 0 turns that rule off. 10 minutes: longer than
    /// an agent takes to give up, replan and ask again.
    #[arg(long, env = "COUNTERSIGN_REFUND_LOOKALIKE_WINDOW", default_value = "10m", value_parser = span_or_zero)]
    pub refund_lookalike_window: Duration,
    /// How often the workers look for what is due.
    #[arg(long, env = "COUNTERSIGN_WORKER_INTERVAL", default_value = "1s", value_parser = span)]
    pub worker_interval: Duration,
    /// How long running calls may take to finish after SIGTERM; what is left is recovered at the next start.
    #[arg(long, env = "COUNTERSIGN_SHUTDOWN_GRACE", default_value = "30s", value_parser = span)]
    pub shutdown_grace: Duration,
    /// SQLite: writes in one commit, at most. 1 turns group commit off.
    #[arg(long, env = "COUNTERSIGN_WRITE_BATCH", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub write_batch: u16,
}

#[derive(Clone, Debug, Args)]
pub struct DatabaseArgs {
    /// `sqlite://` and a path, or `postgres://user:password@host/database`. `DATABASE_URL` works too. [default:
    /// sqlite://data/countersign.db]
    #[arg(long, env = "COUNTERSIGN_DATABASE_URL", value_parser = database_url)]
    pub database_url: Option<DatabaseUrl>,
    /// PostgreSQL: connections of this instance. A transaction takes milliseconds: a few times the database's cores, over all
    /// instances, keep it busy.
    #[arg(long, env = "COUNTERSIGN_DATABASE_CONNECTIONS", default_value = "16", value_parser = clap::value_parser!(u32).range(2..=500))]
    pub database_connections: u32,
    /// PostgreSQL: how long to wait for a row that another transaction has. A duplicate that waits longer is told that the first
    /// is still running.
    #[arg(long, env = "COUNTERSIGN_DATABASE_LOCK_TIMEOUT", default_value = "2s", value_parser = span)]
    pub database_lock_timeout: Duration,
    /// PostgreSQL: how long one statement may take. The longest is a search; a purchase's take a millisecond.
    #[arg(long, env = "COUNTERSIGN_DATABASE_STATEMENT_TIMEOUT", default_value = "10s", value_parser = span)]
    pub database_statement_timeout: Duration,
}

#[derive(Clone, Debug, Args)]
pub struct SandboxArgs {
    /// The sandbox provider's own ledger, in another database than ours. Several instances share it.
    #[arg(long, env = "COUNTERSIGN_SANDBOX_URL", default_value = "sqlite://data/sandbox.db", value_parser = database_url)]
    pub sandbox_url: DatabaseUrl,
}

#[derive(Debug, Args)]
pub struct ActorArgs {
    #[command(subcommand)]
    pub command: ActorCommand,
}

#[derive(Debug, Subcommand)]
pub enum ActorCommand {
    /// Make an actor and print its key, once. Only the key's SHA-256 is kept.
    Create {
        /// The account's name; it is made if there is none.
        #[arg(long, value_parser = label)]
        account: String,
        /// What the actor is called in lists.
        #[arg(long, value_parser = label)]
        name: String,
        /// With commas between: catalog:read, catalog:write, checkout:propose, checkout:confirm, orders:read, orders:write,
        /// orders:any, refunds:create, refunds:confirm
        #[arg(long, value_parser = scopes)]
        scopes: Scopes,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List every actor.
    List {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// From now on its key opens nothing.
    Disable {
        /// `act_…`, as `list` shows it.
        #[arg(value_parser = actor_id)]
        id: ActorId,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

impl DatabaseArgs {
    pub fn store(&self, write_batch: usize) -> Result<StoreConfig, String> {
        let url = match (&self.database_url, std::env::var("DATABASE_URL")) {
            (Some(url), _) => url.clone(),
            (None, Ok(url)) => database_url(&url).map_err(|e| format!("DATABASE_URL: {e}"))?,
            (None, Err(_)) => DatabaseUrl::Sqlite("data/countersign.db".into()),
        };
        let postgres = PostgresSettings {
            connections: self.database_connections,
            lock_timeout: self.database_lock_timeout,
            statement_timeout: self.database_statement_timeout,
        };
        Ok(StoreConfig { url, write_batch, postgres })
    }
}

/// Everything that a server is built from.
#[derive(Clone, Debug)]
pub struct Config {
    pub bind: SocketAddr,
    pub demo: DemoActors,
    pub store: StoreConfig,
    pub sandbox: DatabaseUrl,
    pub sandbox_delay: Duration,
    pub settings: Settings,
    pub shutdown_grace: Duration,
    pub clock: Clock,
}

impl ServeArgs {
    pub fn config(&self) -> Result<Config, String> {
        if self.lease < 2 * self.provider_timeout {
            return Err("--lease must be at least twice --provider-timeout".into());
        }
        let store = self.database.store(usize::from(self.write_batch))?;
        if same(&store.url, &self.sandbox.sandbox_url) {
            return Err(
                "--database-url and --sandbox-url must be two databases: the provider's books are its own".into()
            );
        }
        let shared = |url: &DatabaseUrl| matches!(url, DatabaseUrl::Postgres(_));
        if shared(&store.url) && !shared(&self.sandbox.sandbox_url) {
            return Err("--sandbox-url must be on PostgreSQL as well: instances share the provider's books".into());
        }
        if self.demo && !self.bind.ip().is_loopback() {
            return Err("--demo admits keys that everybody knows: it binds loopback addresses only".into());
        }
        Ok(Config {
            bind: self.bind,
            demo: if self.demo { DemoActors::Admitted } else { DemoActors::Refused },
            store,
            sandbox: self.sandbox.sandbox_url.clone(),
            sandbox_delay: self.sandbox_delay,
            settings: Settings {
                confirmation_ttl: self.confirmation_ttl,
                max_pending: self.max_pending,
                retention: Retention { money: self.retention_money, other: self.retention_other },
                provider_timeout: self.provider_timeout,
                lease: self.lease,
                refunds: RefundPolicy {
                    thresholds: self.refund_confirmation_threshold,
                    lookalike_window: self.refund_lookalike_window,
                    approver: self.refund_approver,
                },
                worker_interval: self.worker_interval,
            },
            shutdown_grace: self.shutdown_grace,
            clock: failpoints::clock(),
        })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|e| format!("not an address and port: {e}"))?;
    found.next().ok_or_else(|| "the name has no address".into())
}

fn database_url(url: &str) -> Result<DatabaseUrl, String> {
    DatabaseUrl::parse(url).ok_or_else(|| "expected sqlite:// and a path, or postgres://…".into())
}

fn same(one: &DatabaseUrl, other: &DatabaseUrl) -> bool {
    match (one, other) {
        (DatabaseUrl::Sqlite(one), DatabaseUrl::Sqlite(other)) => {
            std::path::absolute(one).ok() == std::path::absolute(other).ok()
        }
        (one, other) => one == other,
    }
}

/// `15m`, `24h`, `7d`: at least a millisecond, at most a hundred years.
fn span(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text).map_err(|e| format!("expected a duration such as 15m: {e}"))?;
    let longest = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let in_range = (Duration::from_millis(1)..=longest).contains(&span);
    in_range.then_some(span).ok_or_else(|| "expected at least 1ms and at most 100 years".into())
}

fn span_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { span(text).map_err(|why| format!("{why}, or 0")) }
}

fn thresholds(text: &str) -> Result<Thresholds, String> {
    Thresholds::parse(text).ok_or_else(|| format!("expected an amount a currency, such as {}", Thresholds::DEFAULT))
}

fn approver(text: &str) -> Result<Approver, String> {
    Approver::parse(text).ok_or_else(|| "expected same or other".into())
}

fn label(text: &str) -> Result<String, String> {
    let fit = (1..=100).contains(&text.chars().count()) && !text.chars().any(char::is_control) && text.trim() == text;
    fit.then(|| text.to_owned()).ok_or_else(|| "expected 1 to 100 characters, no control characters, trimmed".into())
}

fn actor_id(text: &str) -> Result<ActorId, String> {
    ActorId::parse(text).ok_or_else(|| "expected an actor's id (act_…)".into())
}

fn scopes(text: &str) -> Result<Scopes, String> {
    let known: Vec<&str> = Scope::ALL.iter().map(Scope::as_str).collect();
    Scopes::parse(&text.replace(',', " ")).ok_or_else(|| format!("expected scopes among {}", known.join(",")))
}
