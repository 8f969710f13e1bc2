//! The server that the demo shops at: one of its own, or one that is running.

use super::DemoArgs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A folder that is gone at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("countersign-demo-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The run's name too.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub struct Server {
    pub url: String,
    pub key: String,
    /// Where its books are, if it is ours.
    pub books: Option<PathBuf>,
    /// Dies with the demo.
    _process: Option<Child>,
}

impl Server {
    pub async fn of(args: &DemoArgs, folder: &Path) -> Result<Self, String> {
        match &args.url {
            Some(url) => {
                let url = url.trim_end_matches('/').to_owned();
                Ok(Self { url, key: args.key.clone(), books: None, _process: None })
            }
            None => Self::start(folder).await,
        }
    }

    /// With a provider that is given up on early, so that nobody has to wait long for an unknown outcome.
    async fn start(folder: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut process = Command::new(program)
            .args(["serve", "--demo", "--bind", "127.0.0.1:0", "--provider-timeout", "500ms", "--lease", "1s"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| format!("the server: {e}"))?;
        let stdout = process.stdout.take().ok_or("the server says nothing")?;
        let line = BufReader::new(stdout).lines().next_line().await.map_err(|e| e.to_string())?.unwrap_or_default();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).ok_or("the server didn't start")?;
        let url = url.trim_end_matches(',').to_owned();
        Ok(Self { url, key: "csk_demo_all".to_owned(), books: Some(folder.to_owned()), _process: Some(process) })
    }

    /// Where the proxy connects to.
    pub fn address(&self) -> Result<SocketAddr, String> {
        use std::net::ToSocketAddrs;
        let host =
            self.url.strip_prefix("http://").ok_or("the demo's proxy speaks plain HTTP: give an http:// address")?;
        let host = host.split('/').next().unwrap_or_default();
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        host.to_socket_addrs().map_err(|e| e.to_string())?.next().ok_or_else(|| format!("{host} has no address"))
    }
}
