//! What PostgreSQL does to us: it cuts connections, goes away and comes back, keeps rows from us, aborts transactions.
//! These need a server: `scripts/with-postgres cargo test --features failpoints -- --include-ignored`.

use crate::support::*;
use countersign::database::{DatabaseUrl, Db};
use countersign::domain::error::{Code, Problem};
use countersign::domain::time::Timestamp;
use countersign::store::actors;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                         WHERE datname = current_database() AND pid <> pg_backend_pid()";

fn server(app: &TestApp) -> PgConnection {
    PgConnection::establish(&app.database().address()).expect("PostgreSQL")
}

/// Purchases whose every call is repeated until it settles, while something is done to the database again and again.
async fn buy_while(app: &TestApp, mut harm: impl FnMut(), pause: Duration) {
    let stop = AtomicBool::new(false);
    let harming = async {
        while !stop.load(Ordering::SeqCst) {
            tokio::task::block_in_place(&mut harm);
            app.clock.advance(Duration::from_secs(1)); // leases of those who were cut off run out
            tokio::time::sleep(pause).await;
        }
    };
    let buying = async {
        join_all((0..4).map(|n| buy_stubbornly(app.caller([SHOPPER, SECOND, STRANGER][n % 3]), n))).await;
        stop.store(true, Ordering::SeqCst);
    };
    tokio::join!(harming, buying);
    assert_eq!(app.number("SELECT count(*) AS n FROM orders"), 60);
    assert_eq!(app.charges(), 60);
    app.assert_consistent();
}

async fn buy_stubbornly(caller: Caller<'_>, n: usize) {
    for round in 0..15 {
        let key = format!("{n}-{round}");
        let cart = with(cart("GIFT-WRAP", 1, "pm_sandbox_ok"), "/shipping_address/line1", json!(key));
        let mut id = String::new();
        eventually("it is proposed", async || {
            let got = caller.propose(&key, &cart).await;
            assert!(matches!(got.status, 201 | 409 | 503), "{}", got.text());
            id = got.json()["confirmation_id"].as_str().unwrap_or_default().to_owned();
            got.status == 201
        })
        .await;
        eventually("it is confirmed", async || {
            let got = caller.confirm_keyed(&id, &format!("c{key}")).await;
            assert!(matches!(got.status, 200 | 409 | 503), "{}", got.text());
            got.status == 200
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn connections_cut_under_load_lose_nothing_and_every_key_settles() {
    let app = TestApp::with(|config| config.settings.lease = Duration::from_secs(2)).await;
    let mut admin = server(&app);
    buy_while(&app, || admin.batch_execute(TERMINATE).unwrap(), Duration::from_millis(100)).await;
}

/// Runs alone, on a cluster of its own: `scripts/test`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL that may be restarted"]
async fn restarted_under_load_nothing_is_lost_and_every_key_settles() {
    let app = TestApp::with(|config| config.settings.lease = Duration::from_secs(2)).await;
    let restart = std::env::var("COUNTERSIGN_TEST_POSTGRES_RESTART").expect("a command that restarts it");
    let restart = || assert!(Command::new("sh").args(["-c", &restart]).status().unwrap().success());
    buy_while(&app, restart, Duration::from_millis(500)).await;
}

/// Passes everything on between clients and the server, and cuts off the answer of the first COMMIT of a claim.
async fn cut_after_first_claim(listener: UnixListener, server: PathBuf, cut: Arc<AtomicBool>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (server, cut) = (UnixStream::connect(&server).await.unwrap(), cut.clone());
        tokio::spawn(async move {
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let answers = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
            let (mut bytes, mut claims) = (vec![0; 64 * 1024], false);
            while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
                let has = |word: &[u8]| bytes[..n].windows(word.len()).any(|sent| sent == word);
                claims |= has(b"INSERT INTO \"claims\"");
                if claims && has(b"COMMIT\0") && cut.swap(false, Ordering::SeqCst) {
                    answers.abort();
                    let _ = answers.await;
                    to_server.write_all(&bytes[..n]).await.unwrap();
                    return;
                }
                if to_server.write_all(&bytes[..n]).await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_commit_whose_answer_is_lost_is_unknown_and_its_key_replays() {
    let folder = tempfile::TempDir::new().unwrap();
    let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let cut = Arc::new(AtomicBool::new(false));
    let through = folder.path().to_string_lossy().replace('/', "%2F");
    let app = TestApp::with(|config| {
        let address = config.store.url.address();
        let socket = address.split_once('@').unwrap().1.split('/').next().unwrap().replace("%2F", "/");
        tokio::spawn(cut_after_first_claim(listener, PathBuf::from(socket).join(".s.PGSQL.5432"), cut.clone()));
        let name = address.rsplit('/').next().unwrap();
        config.store.url = DatabaseUrl::Postgres(format!("postgres://postgres@{through}/{name}"));
    })
    .await;
    cut.store(true, Ordering::SeqCst);
    app.shopper().propose("k", &mugs()).await.assert_problem(503, "storage_unavailable");
    assert!(!cut.load(Ordering::SeqCst));
    let got = app.shopper().propose("k", &mugs()).await;
    assert_eq!((got.status, got.is_replay()), (201, true), "{}", got.text());
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn readiness_goes_with_the_database_and_comes_back_with_it() {
    let app = TestApp::start().await;
    let ready = async || send(app.shopper().request(Method::GET, "/readyz")).await.status;
    assert_eq!(ready().await, 200);
    let name = app.database().address().rsplit('/').next().unwrap().to_owned();
    let (base, _) = app.database().address().rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let mut admin = PgConnection::establish(&format!("{base}/postgres")).unwrap();
    admin.batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).unwrap();
    let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    admin.batch_execute(&cut).unwrap();
    assert_eq!(ready().await, 503);
    let away = app.shopper().propose("k", &mugs()).await;
    away.assert_problem(503, "overloaded");
    admin.batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).unwrap();
    eventually("it is back", async || ready().await == 200).await;
    assert_eq!(app.shopper().propose("k", &mugs()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn f29_a_duplicate_is_told_to_wait_when_the_first_takes_longer_than_the_lock_time_out() {
    let app = TestApp::with(|config| config.store.postgres.lock_timeout = Duration::from_millis(100)).await;
    app.shopper().propose("k", &mugs()).await;
    let mut other = server(&app);
    other.batch_execute(CLAIM_K2).unwrap();
    app.shopper().propose("k2", &mugs()).await.assert_problem(409, "idempotency_in_flight");
}

/// Another instance has claimed the key and has not committed yet.
const CLAIM_K2: &str = "BEGIN; INSERT INTO claims SELECT actor_id, 'k2', operation, fingerprint, 1, NULL, NULL, created_at, \
                        expires_at, answer_status, answer_body, answer_location FROM claims WHERE idempotency_key = 'k'";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn f29_a_duplicate_waits_for_the_first_and_replays_it() {
    let app = TestApp::with(|config| config.store.postgres.lock_timeout = Duration::from_secs(10)).await;
    let first = app.shopper().propose("k", &mugs()).await;
    let mut other = server(&app);
    other.batch_execute(CLAIM_K2).unwrap();
    let cart = mugs();
    let (got, ()) = tokio::join!(app.shopper().propose("k2", &cart), async {
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("it waits", async || app.number(waiting) == 1).await;
        other.batch_execute("COMMIT").unwrap();
    });
    got.assert_replay_of(&first);
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_job_that_hides_a_failure_is_never_answered_as_done() {
    let app = TestApp::start().await;
    app.execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room'; END $$; \
         CREATE TRIGGER t BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    let hiding = |db: &mut Db, now: Timestamp| -> Result<(), Problem> {
        let _ = actors::account_named(db, "poison", now);
        Ok(())
    };
    let end = app.context.store.write(hiding).await;
    assert_eq!(end.unwrap_err().code, Code::Overloaded, "rolled back for certain");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_failing_or_panicking_job_leaves_its_connection_fit_for_the_next() {
    let app = TestApp::start().await;
    for i in 0..20 {
        let end = app.context.store.write(move |db: &mut Db, now| -> Result<(), Problem> {
            actors::account_named(db, &format!("bad{i}"), now)?;
            if i % 2 == 0 { panic!("in a job") } else { Err(Problem::not_found("thing")) }
        });
        assert!(end.await.is_err());
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM accounts WHERE name LIKE 'bad%'"), 0);
    assert_eq!(app.shopper().propose("k", &mugs()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_reader_sees_one_snapshot_and_cannot_write() {
    let app = TestApp::start().await;
    let url = app.database();
    let seen = app.context.store.read(move |db, _| {
        let before = actors::list(db)?.len();
        batch(&url, "UPDATE actors SET disabled_at = created_at; DELETE FROM actors WHERE name = 'readonly'");
        Ok((before, actors::list(db)?.iter().filter(|(actor, _)| actor.disabled_at.is_none()).count()))
    });
    let (before, after) = seen.await.unwrap();
    assert_eq!(before, after);
    let end = app.context.store.read(|db, now| Ok(actors::account_named(db, "written", now)?)).await;
    assert!(end.is_err());
    assert_eq!(app.number("SELECT count(*) AS n FROM accounts WHERE name = 'written'"), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn instances_that_start_together_migrate_once() {
    let home = Home::new();
    let starts = (0..4).map(|_| {
        let config = store_config(&home.database);
        tokio::task::spawn_blocking(move || {
            countersign::store::Store::open(&config, countersign::clock::Clock::System).map(|_| ())
        })
    });
    for started in join_all(starts).await {
        started.unwrap().unwrap();
    }
    let migrations = std::fs::read_dir("migrations/postgres").unwrap().count() as i64;
    assert_eq!(number(&home.database, "SELECT count(*) AS n FROM __diesel_schema_migrations"), migrations);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn the_hot_path_uses_indexes() {
    let app = TestApp::start().await;
    app.shopper().ordered("k", &mugs()).await;
    let mut conn = server(&app);
    conn.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off").unwrap();
    for (statement, index) in [
        ("SELECT * FROM actors WHERE key_sha256 = 'x'", "actors_key_sha256_key"),
        ("SELECT * FROM claims WHERE actor_id = 'a' AND idempotency_key = 'k'", "claims_pkey"),
        ("UPDATE claims SET answer_status = 1 WHERE actor_id = 'a' AND idempotency_key = 'k'", "claims_pkey"),
        ("SELECT * FROM confirmations WHERE confirmation_id = 'c'", "confirmations_pkey"),
        (
            "SELECT 1 FROM confirmations WHERE actor_id = 'a' AND attempt_digest = 'd' AND status = 'committing'",
            "one_undecided_attempt",
        ),
        ("SELECT * FROM payments WHERE confirmation_id = 'c'", "payments_confirmation_id_key"),
        ("UPDATE payments SET status = 'succeeded' WHERE payment_id = 'p'", "payments_pkey"),
        ("SELECT * FROM orders WHERE order_id = 'o'", "orders_pkey"),
        (
            "SELECT 1 FROM orders WHERE actor_id = 'a' AND attempt_digest = 'd' AND created_at > now()",
            "orders_by_attempt",
        ),
        ("UPDATE orders SET reserved_minor = 1 WHERE order_id = 'o'", "orders_pkey"),
        ("UPDATE products SET held = held + 1 WHERE product_id = 'p' AND stock - held >= 1", "products_pkey"),
        ("SELECT * FROM refunds WHERE order_id = 'o' AND amount_minor = 1", "refunds_by_order"),
    ] {
        #[derive(QueryableByName)]
        struct Plan {
            #[diesel(sql_type = diesel::sql_types::Text, column_name = "QUERY PLAN")]
            line: String,
        }
        let plan: Vec<Plan> = diesel::sql_query(format!("EXPLAIN {statement}")).load(&mut conn).unwrap();
        let plan = plan.into_iter().map(|row| row.line).collect::<Vec<_>>().join("\n");
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{statement}\n{plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn f30_a_row_that_is_kept_from_us_is_503_after_the_lock_time_out_and_nothing_is_done() {
    let app = TestApp::with(|config| config.store.postgres.lock_timeout = Duration::from_millis(100)).await;
    let mut other = server(&app);
    other.batch_execute("BEGIN; SELECT * FROM products WHERE product_id = 'MUG-BLUE' FOR UPDATE").unwrap();
    let keys: Vec<String> = (0..8).map(|i| format!("k{i}")).collect();
    let cart = mugs();
    for got in join_all(keys.iter().map(|key| app.shopper().propose(key, &cart))).await {
        got.assert_problem(503, "overloaded");
    }
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 0);
    assert_eq!(app.shopper().propose("k1", &mugs()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_instance_waits_for_anothers_migration_however_long_it_takes() {
    let home = Home::new();
    let mut other = PgConnection::establish(&home.database.address()).unwrap();
    other.batch_execute("SELECT pg_advisory_lock(x'636f756e74657273'::bigint)").unwrap();
    let mut config = store_config(&home.database);
    config.postgres.statement_timeout = Duration::from_millis(50);
    let opening = tokio::task::spawn_blocking(move || {
        countersign::store::Store::open(&config, countersign::clock::Clock::System).map(|_| ())
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!opening.is_finished());
    other.batch_execute("SELECT pg_advisory_unlock_all()").unwrap();
    opening.await.unwrap().unwrap();
}

#[cfg(feature = "failpoints")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn f42_a_repeat_that_meets_the_writing_of_the_decision_is_not_told_that_nothing_was_done() {
    let (home, now) = (Home::new(), countersign::clock::Clock::System.now());
    let flags = ["--database-lock-timeout", "100ms", "--provider-timeout", "10s", "--lease", "20s"];
    let process = crate::process::Process::start_at(&home, now, &flags);
    let id = process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_ok")).await;
    process.control().arm("before_phase_three_commit=1*return(hold)");
    let first = tokio::spawn(send(process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"))));
    eventually("it stops before it commits", async || process.control().is_held()).await;
    process.control().set_clock(now.after(Duration::from_secs(21)));
    let repeat = process.shopper().confirm(&id).await;
    process.control().release();
    repeat.assert_problem(409, "operation_in_flight");
    let first = first.await.unwrap();
    assert_eq!(first.status, 200, "{}", first.text());
    process.shopper().confirm(&id).await.assert_replay_of(&first);
}
