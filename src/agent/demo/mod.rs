//! `countersign demo`: an agent buys two things and refunds part of one, through a connection that loses answers, delays,
//! duplicates and fails; it is killed and resumed, and its whole plan is replayed. Beside it, the same without keys.

mod naive;
mod plan;
mod proof;
mod proxy;
mod screen;
mod server;

pub use plan::{AgentArgs, run_agent};

use clap::Args;
use plan::{Manner, Spoken};
use proxy::Proxy;
use screen::Screen;
use server::Server;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// A running demo server; without it one is started on a folder of its own, and stopped at the end.
    #[arg(long)]
    pub url: Option<String>,
    /// The credential of an actor that may do everything, for --url.
    #[arg(long, env = "COUNTERSIGN_KEY", default_value = "csk_demo_all", hide_env_values = true)]
    pub key: String,
    /// Draws what goes wrong and when the agent is killed: the same seed draws the same. Without it, another each time.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// What there is to show while it runs.
enum Said {
    Agent(Spoken),
    Proxy(proxy::Fault),
}

/// True where every proof holds. Interrupted, it takes its server, its agent and its folder with it.
pub async fn run(args: &DemoArgs) -> Result<bool, String> {
    tokio::select! {
        ended = demonstrate(args) => ended,
        _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
    }
}

async fn demonstrate(args: &DemoArgs) -> Result<bool, String> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let mut screen = Screen::new();
    let folder = server::Folder::new().map_err(|e| e.to_string())?;
    let server = Server::of(args, folder.path()).await?;
    screen.title(&format!("Countersign demo, seed {seed}, server {}", server.url));

    let kept = with_keys(&server, folder.path(), seed, &mut screen).await?;
    let totals = proof::Totals::read(&server, &folder.name()).await?;
    let naive = without_keys(folder.path(), seed, &mut screen).await?;

    let proofs = proof::proofs(&kept, totals, &server);
    screen.proofs(&proofs);
    screen.totals(&totals, &naive);
    Ok(proofs.iter().all(|proof| proof.holds))
}

/// What the agent with keys said, in each of its lives.
struct Lives {
    killed: Vec<Spoken>,
    resumed: Vec<Spoken>,
    replayed: Vec<Spoken>,
}

async fn with_keys(server: &Server, folder: &Path, seed: u64, screen: &mut Screen) -> Result<Lives, String> {
    let (told, mut heard) = mpsc::unbounded_channel();
    let proxy = Proxy::start(server.address()?, seed, told.clone()).await.map_err(|e| e.to_string())?;
    let mut agent = Agent { url: proxy.url.clone(), key: server.key.clone(), folder, seed, told, heard: &mut heard };
    // Somewhere in the middle: after some event, and before the plan can be through.
    let kill_after = 4 + usize::try_from(seed % 9).unwrap_or_default();

    screen.chapter("With keys: the agent shops through a bad connection");
    let killed = agent.live(Manner::Keys, Some(kill_after), screen).await?;
    screen.chapter("It was killed (kill -9), and is started again");
    let resumed = agent.live(Manner::Keys, None, screen).await?;
    screen.chapter("Somebody replays its whole plan");
    let replayed = agent.live(Manner::Replay, None, screen).await?;
    Ok(Lives { killed, resumed, replayed })
}

/// The same plan, connection and death, against a service that takes no keys and an agent that stores none.
async fn without_keys(folder: &Path, seed: u64, screen: &mut Screen) -> Result<naive::Damage, String> {
    let shop = naive::Shop::start().await.map_err(|e| e.to_string())?;
    let (told, mut heard) = mpsc::unbounded_channel();
    let proxy = Proxy::start(shop.address, seed, told.clone()).await.map_err(|e| e.to_string())?;
    let mut agent = Agent { url: proxy.url.clone(), key: String::new(), folder, seed, told, heard: &mut heard };
    screen.chapter("Without keys: the same, against a naive endpoint");
    agent.live(Manner::Naive, Some(4 + usize::try_from(seed % 5).unwrap_or_default()), screen).await?;
    screen.chapter("Killed, started again, and its plan replayed");
    agent.live(Manner::Naive, None, screen).await?;
    agent.live(Manner::Naive, None, screen).await?;
    Ok(shop.damage())
}

/// The agent's process.
struct Agent<'a> {
    url: String,
    key: String,
    folder: &'a Path,
    seed: u64,
    told: UnboundedSender<Said>,
    heard: &'a mut UnboundedReceiver<Said>,
}

impl Agent<'_> {
    /// Runs it to its end, or kills it when it has said so much.
    async fn live(
        &mut self,
        manner: Manner,
        kill_after: Option<usize>,
        screen: &mut Screen,
    ) -> Result<Vec<Spoken>, String> {
        let mut child = self.spawn(manner)?;
        let reader = tokio::spawn(listen(child.stdout.take(), self.told.clone()));
        let mut spoken = Vec::new();
        let ended = loop {
            tokio::select! {
                said = self.heard.recv() => {
                    let Some(said) = said else { break child.wait().await };
                    screen.show(&said);
                    if let Said::Agent(said) = said {
                        spoken.push(said);
                    }
                    if kill_after.is_some_and(|limit| spoken.len() >= limit) {
                        child.kill().await.map_err(|e| e.to_string())?;
                        break child.wait().await;
                    }
                }
                ended = child.wait() => break ended,
            }
        };
        reader.await.map_err(|e| e.to_string())?;
        while let Ok(said) = self.heard.try_recv() {
            if kill_after.is_none_or(|limit| spoken.len() < limit) {
                screen.show(&said);
            }
            if let Said::Agent(said) = said {
                spoken.push(said);
            }
        }
        let ended = ended.map_err(|e| e.to_string())?;
        if kill_after.is_none() && !ended.success() {
            screen.note("the agent stopped before its plan was done");
        }
        Ok(spoken)
    }

    fn spawn(&self, manner: Manner) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        Command::new(program)
            .args(["demo-agent", "--url", &self.url, "--manner", manner.as_str(), "--seed", &self.seed.to_string()])
            .arg("--state")
            .arg(self.folder)
            // A run of its own: at a server that is running, others may be shopping for the same.
            .arg("--run")
            .arg(self.folder.file_name().unwrap_or_default())
            .env("COUNTERSIGN_KEY", &self.key)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| e.to_string())
    }
}

async fn listen(stdout: Option<tokio::process::ChildStdout>, told: UnboundedSender<Said>) {
    let Some(stdout) = stdout else { return };
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(spoken) = serde_json::from_str(&line) {
            let _ = told.send(Said::Agent(spoken));
        }
    }
}
