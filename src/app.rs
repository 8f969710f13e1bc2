//! A server, from its configuration to its end. `main` and the tests build it the same way.

use crate::config::Config;
use crate::demo;
use crate::http::pages::Pages;
use crate::http::{self, State};
use crate::operations::authenticate::DemoActors;
use crate::operations::search_products::Searches;
use crate::operations::tally::Tally;
use crate::operations::{Context, Tasks};
use crate::payments::sandbox::Sandbox;
use crate::store::Store;
use crate::workers;
use actix_web::HttpServer;
use actix_web::dev::{Server, ServerHandle};
use actix_web::web::Data;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Threads that serve connections: the work waits for the writer, not for them.
const HTTP_WORKERS: usize = 2;

pub struct App {
    pub address: SocketAddr,
    pub context: Context,
    server: Server,
    stop: CancellationToken,
    shutdown_grace: Duration,
}

impl App {
    /// Opens the databases, binds the address and starts the workers. Call it on the runtime that is to outlive every
    /// connection.
    pub async fn build(config: Config) -> Result<Self, String> {
        let store = Store::open(&config.store, config.clock.clone())?;
        if config.demo == DemoActors::Admitted {
            demo::load(&store)
                .await
                .map_err(|problem| format!("{problem} {}", problem.cause.as_deref().unwrap_or("")))?;
        }
        let sandbox = Sandbox::open(&config.sandbox, config.store.postgres, config.sandbox_delay, config.clock)?;
        let context = Context {
            store,
            provider: Arc::new(sandbox),
            settings: config.settings,
            tasks: Tasks::on_current_runtime(),
            tally: Tally::default(),
            searches: Searches::default(),
        };
        let pages = Pages::new(config.settings.retention, config.demo).map_err(|e| e.to_string())?;
        let state = Data::new(State { context: context.clone(), demo: config.demo, pages });
        let server = HttpServer::new(move || http::app(state.clone()))
            .workers(HTTP_WORKERS)
            .shutdown_timeout(config.shutdown_grace.as_secs().max(1))
            .disable_signals()
            .bind(config.bind)
            .map_err(|e| format!("{}: {e}", config.bind))?;
        let address = *server.addrs().first().ok_or("no address is bound")?;
        let stop = CancellationToken::new();
        workers::start(&context, &stop);
        Ok(Self { address, context, server: server.run(), stop, shutdown_grace: config.shutdown_grace })
    }

    /// Stops the server from elsewhere.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until a signal to stop: then finishes what runs, answers it, and closes the database cleanly.
    pub async fn run(self) {
        let handle = self.server.handle();
        let mut server = tokio::spawn(self.server);
        tokio::select! {
            served = &mut server => drop(served),
            () = signal_to_stop() => {}
        }
        let finish = async {
            self.stop.cancel();
            handle.stop(true).await;
            self.context.tasks.finish().await;
            workers::write_tally(self.context.clone()).await;
        };
        if tokio::time::timeout(self.shutdown_grace, finish).await.is_err() {
            tracing::warn!("stopped before everything had finished; the rest is recovered at the next start");
        }
        self.context.store.close().await;
    }
}

async fn signal_to_stop() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
