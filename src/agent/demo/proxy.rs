//! A connection that does to calls what networks do: it loses answers, delays, duplicates, resets, and answers with errors
//! of its own, before or after passing the call on.

use super::Said;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedSender;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It is passed on, and its answer isn't.
    LosesAnswer,
    Delays,
    /// It arrives twice, at once.
    Duplicates,
    /// The connection is reset before it is passed on.
    Resets,
    /// Answered with this status, and not passed on.
    Refuses(u16),
    /// Passed on, and answered with this status all the same.
    Hides(u16),
}

impl Fault {
    pub fn told(self) -> Option<String> {
        Some(match self {
            Fault::None => return None,
            Fault::LosesAnswer => "the call arrived, and its answer was lost".to_owned(),
            Fault::Delays => "the call was held up".to_owned(),
            Fault::Duplicates => "the call arrived twice".to_owned(),
            Fault::Resets => "the connection was reset before the call arrived".to_owned(),
            Fault::Refuses(status) => format!("{status} from in between; the call didn't arrive"),
            Fault::Hides(status) => format!("{status} from in between; the call had arrived"),
        })
    }
}

/// Decides what happens, from a seed. Never so many faults in a row that a patient caller would give up.
struct Weather {
    chance: fastrand::Rng,
    in_a_row: u32,
}

impl Weather {
    fn next(&mut self) -> Fault {
        let fault = match self.chance.u32(0..16) {
            _ if self.in_a_row >= 4 => Fault::None,
            0..=2 => Fault::LosesAnswer,
            3 => Fault::Delays,
            4 | 5 => Fault::Duplicates,
            6 => Fault::Resets,
            7 => Fault::Refuses(500),
            8 => Fault::Refuses(503),
            9 => Fault::Refuses(429),
            10 => Fault::Hides(500),
            11 => Fault::Hides(503),
            _ => Fault::None,
        };
        self.in_a_row = if fault == Fault::None { 0 } else { self.in_a_row + 1 };
        fault
    }
}

pub struct Proxy {
    pub url: String,
    listening: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Proxy {
    pub async fn start(server: SocketAddr, seed: u64, told: UnboundedSender<Said>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let weather = Arc::new(Mutex::new(Weather { chance: fastrand::Rng::with_seed(seed), in_a_row: 0 }));
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (weather, told) = (weather.clone(), told.clone());
                tokio::spawn(async move { carry(client, server, &weather, &told).await });
            }
        });
        Ok(Self { url, listening })
    }
}

/// One call of one connection.
async fn carry(mut client: TcpStream, server: SocketAddr, weather: &Mutex<Weather>, told: &UnboundedSender<Said>) {
    let Some(request) = read_request(&mut client).await else { return };
    let fault = weather.lock().unwrap_or_else(PoisonError::into_inner).next();
    let _ = told.send(Said::Proxy(fault));
    let answer = match fault {
        Fault::None => forward(server, &request).await,
        Fault::LosesAnswer => {
            forward(server, &request).await;
            None
        }
        Fault::Delays => {
            tokio::time::sleep(Duration::from_millis(300)).await;
            forward(server, &request).await
        }
        Fault::Duplicates => tokio::join!(forward(server, &request), forward(server, &request)).1,
        Fault::Resets => {
            let _ = client.set_zero_linger();
            None
        }
        Fault::Refuses(status) => Some(canned(status)),
        Fault::Hides(status) => {
            forward(server, &request).await;
            Some(canned(status))
        }
    };
    if let Some(answer) = answer {
        let _ = client.write_all(&answer).await;
        let _ = client.shutdown().await;
    }
}

/// The whole request, and nothing after it: the answer closes the connection.
async fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if bytes.len() >= head + 4 + length.unwrap_or(0) {
                let line = bytes.iter().position(|byte| *byte == b'\n')? + 1;
                return Some([&bytes[..line], b"Connection: close\r\n", &bytes[line..]].concat());
            }
        }
        let mut chunk = [0; 4096];
        match client.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

async fn forward(server: SocketAddr, request: &[u8]) -> Option<Vec<u8>> {
    let mut upstream = TcpStream::connect(server).await.ok()?;
    upstream.write_all(request).await.ok()?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).await.ok()?;
    Some(answer)
}

/// As a proxy answers: no problem of the API's, and nothing to tell whether the call went through.
fn canned(status: u16) -> Vec<u8> {
    let reason = match status {
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Service Unavailable",
    };
    format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}
