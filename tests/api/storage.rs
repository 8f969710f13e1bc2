//! What the embedded database does to us: it ends whole transactions, is busy, or loses a job in the middle.

use crate::support::*;
use countersign::clock::Clock;
use countersign::domain::error::{Code, Problem};
use countersign::domain::ids::{ActorId, ProductId};
use countersign::domain::time::Timestamp;
use countersign::store::{DatabaseUrl, Db, Store, actors, products};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use std::time::Duration;

/// A row that is easy to count: an account of this name.
fn add_account(name: String) -> impl Fn(&mut Db, Timestamp) -> Result<(), Problem> + Send + Clone + 'static {
    move |db, now| Ok(actors::account_named(db, &name, now).map(|_| ())?)
}

fn store(app: &TestApp) -> Store {
    app.context.store.clone()
}

async fn accounts(app: &TestApp, prefix: &str) -> i64 {
    app.number(&format!("SELECT count(*) AS n FROM accounts WHERE name LIKE '{prefix}%'"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_or_panics_undoes_itself_alone() {
    let app = TestApp::on_sqlite(|_| ()).await;
    let store = store(&app);
    let good = |i: usize| store.write(add_account(format!("good{i}")));
    let failing = store.write(|db, now| -> Result<(), Problem> {
        actors::account_named(db, "bad", now)?;
        Err(Problem::not_found("thing"))
    });
    let panicking = store.write(|db, now| -> Result<(), Problem> {
        actors::account_named(db, "bad too", now)?;
        panic!("in a job")
    });
    let (before, failed, panicked, after) = tokio::join!(
        join_all((0..10).map(good)),
        failing,
        panicking,
        join_all((10..20).map(|i| store.write(add_account(format!("good{i}"))))),
    );
    assert!(before.into_iter().chain(after).all(|end| end.is_ok()));
    assert_eq!(failed.unwrap_err().code, Code::NotFound);
    assert_eq!(panicked.unwrap_err().code, Code::InternalError);
    assert_eq!((accounts(&app, "good").await, accounts(&app, "bad").await), (20, 0));
}

/// Twenty jobs of which the middle one makes SQLite end the whole transaction. Whatever is answered Ok is there;
/// nothing else is.
async fn batch_with(
    app: &TestApp,
    round: usize,
    poison: impl Fn(&mut Db, Timestamp) -> Result<(), Problem> + Send + Clone + 'static,
) -> usize {
    let store = store(app);
    let jobs = (0..20).map(|i| {
        let (store, poison) = (store.clone(), poison.clone());
        async move {
            match i {
                10 => store.write(poison).await,
                _ => store.write(add_account(format!("r{round}-{i}-"))).await,
            }
        }
    });
    let ends = join_all(jobs).await;
    assert!(ends[10].is_err(), "the poisoned job is never answered as done");
    for (i, end) in ends.iter().enumerate().filter(|(i, _)| *i != 10) {
        let there = accounts(app, &format!("r{round}-{i}-")).await;
        match end {
            Ok(()) => assert_eq!(there, 1, "an answered write is lost"),
            Err(problem) => {
                assert_eq!(problem.code, Code::StorageUnavailable);
                assert_eq!(there, 0, "the batch of a job that SQLite ended is gone");
            }
        }
    }
    ends.iter().filter(|end| end.is_err()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn when_sqlite_ends_the_transaction_no_answered_write_is_lost() {
    let app = TestApp::on_sqlite(|_| ()).await;
    app.execute("CREATE TRIGGER ends BEFORE INSERT ON accounts WHEN NEW.name = 'poison' BEGIN SELECT RAISE(ROLLBACK, 'ended'); END");
    let mut together = 0;
    for round in 0..20 {
        together += batch_with(&app, round, add_account("poison".into())).await;
    }
    assert!(together > 20, "some batch had more than the poisoned job in it");

    // A job that hides the failure and goes on writes nothing either.
    let hiding = |db: &mut Db, now| {
        let _ = actors::account_named(db, "poison", now);
        Ok(())
    };
    batch_with(&app, 100, hiding).await;
    assert_eq!(app.shopper().propose("k", &mugs()).await.status, 201, "the writer goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_batch_that_sqlite_ended_is_503_and_the_retries_do_everything_once() {
    let app = TestApp::on_sqlite(|_| ()).await;
    app.execute(
        "CREATE TRIGGER ends BEFORE INSERT ON claims WHEN NEW.idempotency_key = 'poison' \
         BEGIN SELECT RAISE(ROLLBACK, 'ended'); END",
    );
    let cart = cart("GIFT-WRAP", 1, "pm_sandbox_ok");
    let keys: Vec<String> = (0..30).map(|i| if i == 15 { "poison".into() } else { format!("k{i}") }).collect();
    let first = join_all(keys.iter().map(|key| app.shopper().propose(key, &cart))).await;
    for (key, got) in keys.iter().zip(&first) {
        match got.status {
            201 => app.shopper().propose(key, &cart).await.assert_replay_of(got),
            _ => drop(got.assert_problem(503, "storage_unavailable")),
        }
    }
    app.execute("DROP TRIGGER ends");
    for key in &keys {
        assert_eq!(app.shopper().propose(key, &cart).await.status, 201);
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 30);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_the_transaction_and_loses_nothing() {
    let dir = tempfile::TempDir::new().unwrap();
    let url = DatabaseUrl::Sqlite(dir.path().join("full.db"));
    let store = Store::open(&store_config(&url), Clock::System).unwrap();
    let full = |db: &mut Db, _| -> Result<(), Problem> {
        let Db::Sqlite(conn) = db else { panic!("not SQLite") };
        Ok(conn.batch_execute("PRAGMA max_page_count = 1")?)
    };
    store.write(full).await.unwrap();
    let big = "x".repeat(100_000);
    let jobs = (0..20).map(|i| {
        let (store, name) = (store.clone(), if i == 10 { big.clone() } else { format!("small{i}") });
        async move { store.write(add_account(name)).await }
    });
    let ends = join_all(jobs).await;
    assert_eq!(ends[10].as_ref().unwrap_err().code, Code::StorageUnavailable);
    let done = ends.iter().filter(|end| end.is_ok()).count() as i64;
    assert_eq!(number(&url, "SELECT count(*) AS n FROM accounts"), done);
    store.write(add_account("later".into())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn f27_f30_a_lock_that_another_process_holds_too_long_is_503_and_nothing_is_done() {
    let app = TestApp::on_sqlite(|_| ()).await;
    let DatabaseUrl::Sqlite(path) = app.database() else { panic!("not SQLite") };
    let mut other = SqliteConnection::establish(&path.to_string_lossy()).unwrap();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let got = app.shopper().propose("k", &mugs()).await;
    got.assert_problem(503, "overloaded");
    assert_eq!(app.shopper().get("/products/MUG-BLUE").await.status, 200, "reads go on");
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 0);
    let got = app.shopper().propose("k", &mugs()).await;
    assert_eq!((got.status, got.is_replay()), (201, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn f27_a_hundred_parallel_confirms_and_refunds_beside_the_cleaner_give_no_error() {
    let app = TestApp::on_sqlite(|config| {
        config.settings.worker_interval = Duration::from_millis(1);
        config.settings.provider_timeout = Duration::from_secs(10);
    })
    .await;
    for i in 0..60 {
        app.shopper().proposed(&format!("old{i}"), &mugs()).await;
    }
    app.clock.advance(TTL); // from here on the cleaner has work to do
    let cart = cart("GIFT-WRAP", 1, "pm_sandbox_ok");
    let keys: Vec<String> = (0..100).map(|i| format!("k{i}")).collect();
    let buyers = [SHOPPER, SECOND, STRANGER];
    let got = join_all(keys.iter().enumerate().map(|(i, key)| {
        // Different addresses: equal carts would be attempts at one purchase.
        let (app, buyer) = (&app, app.caller(buyers[i % 3]));
        let cart = with(cart.clone(), "/shipping_address/line1", json!(key));
        async move {
            let order = buyer.ordered(key, &cart).await;
            app.caller(SUPPORT).refund(key, &refund(&order, "1.00", "USD")).await
        }
    }))
    .await;
    assert!(got.iter().all(|got| got.status == 201), "{got:?}");
    assert_eq!((app.charges(), app.given_back()), (100, (100, 10_000)));
    let expired = "SELECT count(*) AS n FROM confirmations WHERE status = 'expired'";
    eventually("the cleaner has finished", async || app.number(expired) == 60).await;
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f27_servers_that_open_one_file_together_all_open_it() {
    for _ in 0..5 {
        let home = Home::on_sqlite();
        let open = |_| {
            let config = store_config(&home.database);
            tokio::task::spawn_blocking(move || Store::open(&config, Clock::System))
        };
        let opened = join_all((0..8).map(open)).await;
        let stores: Vec<Store> = opened.into_iter().map(|store| store.unwrap().unwrap()).collect();
        // Again, while those that are open write.
        let written = stores.iter().enumerate().map(|(i, store)| store.write(add_account(format!("w{i}"))));
        let (written, opened) = tokio::join!(join_all(written), join_all((0..8).map(open)));
        assert!(written.iter().all(Result::is_ok) && opened.into_iter().all(|store| store.unwrap().is_ok()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_before_anything_ran() {
    let app = TestApp::on_sqlite(|config| config.store.write_batch = 1).await;
    let store = store(&app);
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let running = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let blocked = tokio::spawn({
        let (store, running) = (store.clone(), running.clone());
        async move {
            store
                .write(move |_, _| {
                    running.store(true, std::sync::atomic::Ordering::SeqCst);
                    let _ = held.lock().unwrap().recv();
                    Ok(())
                })
                .await
        }
    });
    eventually("the writer is held up", async || running.load(std::sync::atomic::Ordering::SeqCst)).await;
    let jobs: Vec<_> = (0..1_200)
        .map(|i| {
            tokio::spawn({
                let store = store.clone();
                async move { store.write(add_account(format!("q{i}-"))).await }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.write_when_room(add_account("patient".into())).await }
    });
    eventually("the queue is full", async || jobs.iter().filter(|job| job.is_finished()).count() >= 170).await;
    hold.send(()).unwrap();
    blocked.await.unwrap().unwrap();
    waiting.await.unwrap().expect("work that has to be finished waits for room");
    let mut refused = 0;
    for job in jobs {
        match job.await.unwrap() {
            Ok(()) => {}
            Err(problem) => {
                assert_eq!(problem.code, Code::Overloaded);
                refused += 1;
            }
        }
    }
    assert!(refused >= 170, "{refused}");
    assert_eq!(accounts(&app, "q").await, 1_200 - refused);
    assert_eq!(accounts(&app, "patient").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_cannot_write() {
    let app = TestApp::on_sqlite(|_| ()).await;
    let end = store(&app).read(|db, now| Ok(actors::disable(db, &ActorId::generate(), now)?)).await;
    assert!(end.is_err());
    let id = ProductId::parse("MUG-BLUE").unwrap();
    let found = store(&app).read(move |db, now| Ok(products::find(db, &[id], now)?)).await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_needs_the_database() {
    let app = TestApp::on_sqlite(|_| ()).await;
    let get = |path: &'static str| send(app.shopper().request(Method::GET, path));
    assert_eq!((get("/healthz").await.status, get("/readyz").await.status), (200, 200));
    app.context.store.close().await;
    assert_eq!((get("/healthz").await.status, get("/readyz").await.status), (200, 503));
}
