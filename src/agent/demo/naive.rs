//! What much of the world still runs: each call that arrives has its effect, and nothing tells a repeat from a wish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the naive shop did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    pub orders: u64,
    pub refunds: u64,
}

pub struct Shop {
    pub address: SocketAddr,
    orders: Arc<AtomicU64>,
    refunds: Arc<AtomicU64>,
}

impl Shop {
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shop = Self { address, orders: Arc::default(), refunds: Arc::default() };
        let (orders, refunds) = (shop.orders.clone(), shop.refunds.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, orders.clone(), refunds.clone()));
            }
        });
        Ok(shop)
    }

    pub fn damage(&self) -> Damage {
        Damage { orders: self.orders.load(Ordering::SeqCst), refunds: self.refunds.load(Ordering::SeqCst) }
    }
}

async fn serve(mut client: TcpStream, orders: Arc<AtomicU64>, refunds: Arc<AtomicU64>) {
    let mut request = [0; 4096];
    let Ok(read) = client.read(&mut request).await else { return };
    match &request[..read] {
        buy if buy.starts_with(b"POST /buy") => orders.fetch_add(1, Ordering::SeqCst),
        refund if refund.starts_with(b"POST /refund") => refunds.fetch_add(1, Ordering::SeqCst),
        _ => return,
    };
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{\"done\":true}";
    let _ = client.write_all(answer).await;
}
