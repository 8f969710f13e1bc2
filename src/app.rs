//! A server, from its configuration to its end. `main` and the tests build it the same way.

use crate::config::Config;
use crate::demo;
use crate::http::{self, State};
use crate::operations::authenticate::DemoActors;
use crate::operations::{Context, Tasks};
use crate::payments::sandbox::Sandbox;
use crate::store::Store;
use crate::workers;
use actix_web::HttpServer;
use actix_web::dev::{Server, ServerHandle};
use actix_web::web::Data;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Seconds that running requests have to finish in after a signal to stop.
const SHUTDOWN_SECONDS: u64 = 30;
/// Threads that serve connections: the work waits for the writer, not for them.
const HTTP_WORKERS: usize = 2;

pub struct App {
    pub address: SocketAddr,
    pub context: Context,
    server: Server,
    stop: CancellationToken,
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
        let sandbox = Sandbox::open(&config.sandbox, config.sandbox_delay, config.clock)?;
        let context = Context {
            store,
            provider: Arc::new(sandbox),
            settings: config.settings,
            tasks: Tasks::on_current_runtime(),
        };
        let document = http::document(config.settings.retention).to_pretty_json().map_err(|e| e.to_string())?;
        let state = Data::new(State { context: context.clone(), demo: config.demo, document });
        let server = HttpServer::new(move || http::app(state.clone()))
            .workers(HTTP_WORKERS)
            .shutdown_timeout(SHUTDOWN_SECONDS)
            .bind(config.bind)
            .map_err(|e| format!("{}: {e}", config.bind))?;
        let address = *server.addrs().first().ok_or("no address is bound")?;
        let stop = CancellationToken::new();
        workers::start(&context, &stop);
        Ok(Self { address, context, server: server.run(), stop })
    }

    /// Stops the server from elsewhere.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until a signal to stop: then finishes what runs, answers it, and closes the database cleanly.
    pub async fn run(self) -> std::io::Result<()> {
        let served = self.server.await;
        self.stop.cancel();
        self.context.tasks.finish().await;
        self.context.store.close().await;
        served
    }
}
