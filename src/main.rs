//! The commands: serve, openapi, check, verify, actor.

use clap::Parser;
use countersign::agent::demo;
use countersign::app::App;
use countersign::clock::Clock;
use countersign::config::{ActorCommand, CheckArgs, Cli, Command, DatabaseArgs, ServeArgs};
use countersign::domain::error::Problem;
use countersign::effects::Retention;
use countersign::http;
use countersign::operations::actors;
use countersign::operations::check::{self, INVARIANTS, Report};
use countersign::payments::sandbox;
use countersign::store::Store;
use countersign::verify::{self, VerifyArgs};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tracing_subscriber::fmt::format::FmtSpan;

/// A value that can't be used, such as books that can't be read: exit code 2. Everything else that goes wrong is 1.
enum Failure {
    Usage(String),
    Failed(String),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return fail(&one_line(&error.to_string()), 2),
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    let end = match cli.command {
        Command::Serve(args) => serve(args).await,
        Command::Openapi => openapi(),
        Command::Check(args) => check(&args),
        Command::Verify(args) => verify(&args).await,
        Command::Actor(args) => actor(args.command).await,
        Command::Demo(args) => proven(demo::run(&args).await, "a proof failed"),
        Command::DemoAgent(args) => proven(demo::run_agent(args).await, "the plan was not carried out"),
    };
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => fail(&message, 2),
        Err(Failure::Failed(message)) => fail(&message, 1),
    }
}

fn proven(end: Result<bool, String>, otherwise: &str) -> Result<(), Failure> {
    match end {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Failed(otherwise.to_owned())),
        Err(why) => Err(Failure::Usage(why)),
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    eprintln!("countersign: {message}");
    ExitCode::from(code)
}

/// clap's first paragraph, without its own prefix and the hints below.
fn one_line(error: &str) -> String {
    let first = error.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

async fn serve(args: Box<ServeArgs>) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_span_events(FmtSpan::CLOSE)
        .with_target(false)
        .init();
    let config = args.config().map_err(Failure::Usage)?;
    let database = config.store.url.to_string();
    let app = App::build(config).await.map_err(Failure::Failed)?;
    let address = app.address;
    let mut greeting =
        format!("countersign: listening on http://{address}, database {database}, docs http://{address}/docs\n");
    if args.demo {
        greeting += &format!("try it:  {}\n", sample_call(&address.to_string()));
    }
    // Nobody may be reading: that is no reason not to serve.
    let _ = std::io::stdout().write_all(greeting.as_bytes());
    app.run().await;
    Ok(())
}

fn sample_call(address: &str) -> String {
    format!(
        "curl -s http://{address}/checkout -H 'Authorization: Bearer csk_demo_shopper' -H 'Idempotency-Key: my-first' \
         -H 'Content-Type: application/json' -d '{{\"items\":[{{\"product_id\":\"MUG-BLUE\",\"quantity\":2}}],\
         \"shipping_address\":{{\"name\":\"Ada Lovelace\",\"line1\":\"1 Market Street\",\"city\":\"San Francisco\",\
         \"region\":\"CA\",\"postal_code\":\"94105\",\"country\":\"US\"}},\"payment_method\":\"pm_sandbox_ok\"}}'"
    )
}

/// With the default retention, as the committed document has it.
fn openapi() -> Result<(), Failure> {
    let document = http::document(Retention::DEFAULT).and_then(|document| serde_json::to_string_pretty(&document));
    println!("{}", document.map_err(|e| Failure::Failed(e.to_string()))?);
    Ok(())
}

fn check(args: &CheckArgs) -> Result<(), Failure> {
    let store = args.database.store(1).map_err(Failure::Usage)?;
    let report =
        check::check(&store, || sandbox::books(&args.sandbox.sandbox_url, store.postgres), Clock::System.now())
            .map_err(Failure::Usage)?;
    for finding in &report.findings {
        println!("{finding}");
    }
    let Report { orders, payments, bookings, products, findings } = &report;
    let looked_at =
        format!("{orders} orders, {payments} payments, {bookings} bookings of the provider, {products} products");
    match findings.len() {
        0 => {
            println!("everything adds up: {looked_at}; {} invariants hold", INVARIANTS.len());
            Ok(())
        }
        found => Err(Failure::Failed(format!("findings: {found}, in {looked_at}"))),
    }
}

async fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let report = verify::run(args).await.map_err(Failure::Usage)?;
    print!("{}", report.shown(args));
    match report.failed().as_slice() {
        [] => Ok(()),
        failed => Err(Failure::Failed(format!("failed: {}", failed.join(", ")))),
    }
}

async fn actor(command: ActorCommand) -> Result<(), Failure> {
    match command {
        ActorCommand::Create { account, name, scopes, database } => {
            let store = open(&database)?;
            let (id, key) = actors::create(&store, account, name, scopes).await.map_err(failed)?;
            println!("{id}\n{key}");
        }
        ActorCommand::List { database } => {
            for (actor, account) in actors::list(&open(&database)?).await.map_err(failed)? {
                let state = if actor.disabled_at.is_some() { "disabled" } else { "enabled" };
                println!("{}\t{account}\t{}\t{state}\t{}", actor.actor_id, actor.name, actor.scopes.as_str());
            }
        }
        ActorCommand::Disable { id, database } => {
            actors::disable(&open(&database)?, id).await.map_err(failed)?;
        }
    }
    Ok(())
}

fn open(database: &DatabaseArgs) -> Result<Store, Failure> {
    let config = database.store(1).map_err(Failure::Usage)?;
    Store::open(&config, Clock::System).map_err(Failure::Failed)
}

fn failed(problem: Problem) -> Failure {
    Failure::Failed(problem.cause.unwrap_or(problem.detail))
}
