use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};

fn batch(mode: &str, updates: &[(&str, Value)]) -> Value {
    let updates: Vec<Value> = updates.iter().map(|(id, set)| json!({"product_id": id, "set": set})).collect();
    json!({"mode": mode, "updates": updates})
}

fn new_product(title: &str) -> Value {
    json!({"title": title, "price": {"amount": "9.50", "currency": "USD"}, "stock": 5})
}

/// The member of every result, in order.
fn results(got: &Got, member: &str) -> Vec<Value> {
    got.json()["results"].as_array().unwrap().iter().map(|result| result[member].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_created_updated_or_left_as_it_is() {
    let app = TestApp::start().await;
    let merchant = app.caller(MERCHANT);
    let mug = merchant.get("/products/MUG-BLUE").await.json();
    let updates = [
        ("NEW-1", new_product("New one")),
        ("MUG-BLUE", json!({"price": {"amount": 15, "currency": "usd"}, "stock": 90})),
        ("MUG-TRAVEL", json!({"title": "Steel travel mug"})),
    ];
    let got = merchant.update("k", &batch("atomic", &updates)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(results(&got, "product_id"), ["NEW-1", "MUG-BLUE", "MUG-TRAVEL"]);
    assert_eq!(results(&got, "status"), ["created", "updated", "unchanged"]);
    assert_eq!(results(&got, "version"), [1, 2, 1]);

    let new = merchant.get("/products/NEW-1").await.json();
    assert_eq!(
        (&new["category"], &new["tax_class"], &new["description"]),
        (&json!("other"), &json!("standard"), &json!(""))
    );
    assert_eq!((&new["available"], &new["version"]), (&json!(5), &json!(1)));
    let changed = merchant.get("/products/MUG-BLUE").await.json();
    assert_eq!(
        (&changed["price"]["amount"], &changed["available"], &changed["version"]),
        (&json!("15.00"), &json!(90), &json!(2))
    );
    assert_eq!(changed["title"], mug["title"]);
    assert_eq!(app.number("SELECT count(*) AS n FROM stock_changes WHERE actor_id IS NOT NULL"), 2);
    assert_eq!(app.shopper().ordered("o", &cart("NEW-1", 1, "pm_sandbox_ok")).await.len(), 36, "it can be bought");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f41_a_partly_failed_batch_says_so_item_by_item_and_replays_byte_for_byte() {
    let app = TestApp::start().await;
    let merchant = app.caller(MERCHANT);
    app.shopper().proposed("hold", &mugs()).await;
    let updates = [
        ("TEA-ASSAM", json!({"stock": 7})),
        ("NO-SUCH", json!({"stock": 7})),
        ("MUG-BLUE", json!({"stock": 1})),
        ("NEW-1", new_product("New one")),
    ];
    let batch = batch("per_item", &updates);
    let got = merchant.update("k", &batch).await;
    assert_eq!(got.status, 200);
    assert_eq!(results(&got, "product_id"), ["TEA-ASSAM", "NO-SUCH", "MUG-BLUE", "NEW-1"]);
    assert_eq!(results(&got, "status"), ["updated", "refused", "refused", "created"]);
    let codes: Vec<Value> = results(&got, "problem").iter().map(|problem| problem["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("product_incomplete"), json!("stock_below_held"), Value::Null]);
    assert_eq!(results(&got, "problem")[2]["held"], 2);
    assert_eq!(results(&got, "problem")[1]["status"], 409);

    // The world moves on; the answer doesn't.
    let later = json!({"mode": "atomic", "updates": [{"product_id": "TEA-ASSAM", "set": {"stock": 3}}]});
    assert_eq!(merchant.update("later", &later).await.status, 200);
    merchant.update("k", &batch).await.assert_replay_of(&got);
    let pretty = serde_json::to_string_pretty(&batch).unwrap().replace("\"9.50\"", "9.5").replace("USD", "usd");
    merchant.post_raw("/products-batch-update", "k", pretty).await.assert_replay_of(&got);
    assert_eq!(merchant.get("/products/TEA-ASSAM").await.json()["available"], 3, "a late retry overwrites nothing");
    let other = with(batch, "/mode", json!("atomic"));
    merchant.update("k", &other).await.assert_problem(422, "idempotency_key_reused");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_batch_that_its_last_item_stops_writes_nothing() {
    let app = TestApp::start().await;
    let merchant = app.caller(MERCHANT);
    let updates = [
        ("NEW-1", new_product("New one")),
        ("MUG-BLUE", json!({"stock": 3, "title": "Another"})),
        ("TEA-ASSAM", json!({"stock": 150})),
        ("NO-SUCH", json!({"title": "Incomplete"})),
    ];
    let products = "SELECT count(*) AS n FROM products";
    let before = (merchant.get("/products/MUG-BLUE").await.json(), app.number(products));
    let batch = batch("atomic", &updates);
    let got = merchant.update("k", &batch).await;
    let problem = got.assert_problem(409, "batch_stopped");
    assert_eq!(results(&got, "status"), ["not_written", "not_written", "not_written", "refused"]);
    assert_eq!(problem["results"][3]["problem"]["code"], "product_incomplete");
    assert_eq!((merchant.get("/products/MUG-BLUE").await.json(), app.number(products)), before);
    assert_eq!(app.number("SELECT count(*) AS n FROM stock_changes WHERE actor_id IS NOT NULL"), 0);
    assert_eq!(app.number("SELECT count(*) AS n FROM product_words WHERE product_id = 'NEW-1'"), 0);

    // Decided: it replays, even when it could be written by now.
    let made = json!({"mode": "per_item", "updates": [{"product_id": "NO-SUCH", "set": new_product("Now")}]});
    assert_eq!(merchant.update("other", &made).await.status, 200);
    merchant.update("k", &batch).await.assert_replay_of(&got);
    assert_eq!(merchant.update("new-key", &batch).await.status, 200);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f41_a_stopped_batch_names_every_item_that_was_refused() {
    let app = TestApp::start().await;
    let updates = [
        ("NO-SUCH-1", json!({"stock": 1})),
        ("MUG-BLUE", json!({"stock": 1})),
        ("NO-SUCH-2", json!({"title": "Incomplete"})),
    ];
    let got = app.caller(MERCHANT).update("k", &batch("atomic", &updates)).await;
    got.assert_problem(409, "batch_stopped");
    assert_eq!(results(&got, "status"), ["refused", "not_written", "refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sku_is_created_once_however_many_create_it_at_once() {
    let app = TestApp::start().await;
    let keys: Vec<String> = (0..20).map(|i| format!("k{i}")).collect();
    let same = batch("per_item", &[("NEW-1", new_product("New one"))]);
    let got = join_all(keys.iter().map(|key| app.caller(MERCHANT).update(key, &same))).await;
    let count = |status: &str, got: &[Got]| got.iter().filter(|got| results(got, "status") == [status]).count();
    assert_eq!((count("created", &got), count("unchanged", &got)), (1, 19));

    let only_new = |key: &str| {
        let named = batch("per_item", &[("NEW-2", new_product(key))]);
        with(named, "/updates/0/if_version", json!(0))
    };
    let keys: Vec<String> = (0..20).map(|i| format!("n{i}")).collect();
    let got = join_all(keys.iter().map(|key| async { app.caller(MERCHANT).update(key, &only_new(key)).await })).await;
    assert_eq!((count("created", &got), count("refused", &got)), (1, 19));
    assert_eq!(app.number("SELECT count(*) AS n FROM stock_changes WHERE product_id IN ('NEW-1', 'NEW-2')"), 2);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f46_a_batch_has_one_to_a_hundred_items() {
    let app = TestApp::start().await;
    let update = async |key: &str, n: usize| {
        let ids: Vec<String> = (0..n).map(|i| format!("P{i}")).collect();
        let updates: Vec<(&str, Value)> = ids.iter().map(|id| (id.as_str(), new_product(id))).collect();
        app.caller(MERCHANT).update(key, &batch("atomic", &updates)).await
    };
    for n in [0, 101] {
        let problem = update("k", n).await.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], "/updates");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("1 to 100"));
        assert_eq!(app.number("SELECT count(*) AS n FROM products WHERE product_id LIKE 'P%' AND title LIKE 'P%'"), 0);
    }
    assert_eq!(results(&update("k", 1).await, "status"), ["created"]);
    let got = update("all", 100).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(
        (results(&got, "status")[0].clone(), results(&got, "status")[99].clone()),
        (json!("unchanged"), json!("created"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn f34_f41_every_unacceptable_value_is_named_before_anything_is_written() {
    let app = TestApp::start().await;
    let price = |amount: Value, currency: &str| json!({"price": {"amount": amount, "currency": currency}});
    let cases = [
        ("/updates/0/product_id", json!({"product_id": "a b", "set": {"stock": 1}})),
        ("/updates/0/set", json!({"product_id": "MUG-BLUE", "set": {}})),
        ("/updates/0/set", json!({"product_id": "MUG-BLUE", "set": {"title": null}})),
        ("/updates/0/set/title", json!({"product_id": "MUG-BLUE", "set": {"title": " "}})),
        ("/updates/0/set/title", json!({"product_id": "MUG-BLUE", "set": {"title": "x".repeat(501)}})),
        ("/updates/0/set/description", json!({"product_id": "MUG-BLUE", "set": {"description": "x".repeat(2001)}})),
        ("/updates/0/set/category", json!({"product_id": "MUG-BLUE", "set": {"category": "Mugs"}})),
        ("/updates/0/set/price/amount", json!({"product_id": "MUG-BLUE", "set": price(json!(-1), "USD")})),
        ("/updates/0/set/price/amount", json!({"product_id": "MUG-BLUE", "set": price(json!("1.001"), "USD")})),
        ("/updates/0/set/price/amount", json!({"product_id": "MUG-BLUE", "set": price(json!("1.5"), "JPY")})),
        ("/updates/0/set/price/currency", json!({"product_id": "MUG-BLUE", "set": price(json!(1), "GBP")})),
        ("/updates/0/set/stock", json!({"product_id": "MUG-BLUE", "set": {"stock": -1}})),
        ("/updates/0/set/stock", json!({"product_id": "MUG-BLUE", "set": {"stock": 1_000_000_001}})),
        ("/updates/0/if_version", json!({"product_id": "MUG-BLUE", "set": {"stock": 1}, "if_version": -1})),
        // F34: beyond 2^53 two versions could look like one.
        ("/updates/0/if_version", json!({"product_id": "MUG-BLUE", "set": {"stock": 1}, "if_version": 1_i64 << 53})),
    ];
    let before = app.dump();
    for (pointer, update) in cases {
        let good = json!({"product_id": "TEA-ASSAM", "set": {"stock": 1}});
        let body = json!({"mode": "per_item", "updates": [update, good]});
        let problem = app.caller(MERCHANT).update("k", &body).await.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{update}");
    }
    let twice = batch(
        "per_item",
        &[("MUG-BLUE", json!({"stock": 1})), ("X", json!({"stock": 0})), ("MUG-BLUE", json!({"stock": 2}))],
    );
    let problem = app.caller(MERCHANT).update("k", &twice).await.assert_problem(422, "validation_failed");
    assert_eq!(problem["errors"][0]["pointer"], "/updates/2/product_id");
    assert_eq!(problem["errors"][0]["code"], "duplicate");
    for malformed in [
        json!({"mode": "some", "updates": [{"product_id": "A", "set": {"stock": 1}}]}),
        json!({"updates": [{"product_id": "A", "set": {"stock": 1}}]}),
        json!({"mode": "atomic", "updates": [{"product_id": "A"}]}),
        json!({"mode": "atomic", "updates": [{"product_id": "A", "set": {"stock": 1.5}}]}),
        json!({"mode": "atomic", "updates": [{"product_id": "A", "set": {"held": 1}}]}),
        json!({"mode": "atomic", "updates": [{"product_id": "A", "set": {"tax_class": "none"}}]}),
    ] {
        app.caller(MERCHANT).update("k", &malformed).await.assert_problem(400, "malformed_request");
    }
    assert_eq!(app.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_batch_with_if_version_does_nothing_the_second_time() {
    let app = TestApp::start().await;
    let merchant = app.caller(MERCHANT);
    let guarded = json!({"mode": "per_item", "updates": [
        {"product_id": "MUG-BLUE", "set": {"stock": 99}, "if_version": 1},
        {"product_id": "NO-SUCH", "set": {"stock": 99}, "if_version": 1},
    ]});
    let first = merchant.update("first", &guarded).await;
    assert_eq!(results(&first, "status"), ["updated", "refused"]);
    assert_eq!(results(&first, "problem")[1]["version"], 0);
    merchant.update("first", &guarded).await.assert_replay_of(&first);
    let again = merchant.update("again", &guarded).await;
    assert_eq!(results(&again, "status"), ["refused", "refused"]);
    let problem = &results(&again, "problem")[0];
    assert_eq!((&problem["code"], &problem["version"]), (&json!("version_mismatch"), &json!(2)));
    assert_eq!(merchant.get("/products/MUG-BLUE").await.json()["version"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_can_be_set_down_to_what_is_held_and_due_holds_count_no_more() {
    let app = TestApp::start().await;
    let merchant = app.caller(MERCHANT);
    let set = |stock: i64| batch("atomic", &[("MUG-BLUE", json!({"stock": stock}))]);
    app.shopper().proposed("hold", &mugs()).await;
    assert_eq!(merchant.update("1", &set(1)).await.json()["results"][0]["problem"]["held"], 2);
    assert_eq!(merchant.update("2", &set(2)).await.status, 200);
    assert_eq!(merchant.get("/products/MUG-BLUE").await.json()["available"], 0);
    app.clock.advance(TTL);
    assert_eq!(merchant.update("3", &set(0)).await.status, 200, "no worker has run");
    assert_eq!(merchant.get("/products/MUG-BLUE").await.json()["available"], 0);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f10_f18_a_changed_catalogue_never_changes_a_confirmation() {
    let app = TestApp::start().await;
    let proposal = app.shopper().propose("k", &mugs()).await.json();
    let guarded = with(mugs(), "/expected_plan_digest", proposal["plan_digest"].clone());
    for price in ["99.00", "0.01"] {
        let set = json!({"price": {"amount": price, "currency": "USD"}, "title": "Gold mug"});
        assert_eq!(app.caller(MERCHANT).update(price, &batch("atomic", &[("MUG-BLUE", set)])).await.status, 200);
        let problem = app.shopper().propose(price, &guarded).await.assert_problem(409, "plan_changed");
        assert_eq!(problem["plan"]["lines"][0]["unit_price"]["amount"], price);
    }
    let id = proposal["confirmation_id"].as_str().unwrap();
    let confirmed = app.shopper().confirm(id).await.json();
    assert_eq!((&confirmed["plan"], &confirmed["total"]), (&proposal["plan"], &proposal["total"]));
    let charged = number(&app.ledger(), "SELECT sum(amount_minor) AS n FROM ledger");
    assert_eq!(format!("{}.{:02}", charged / 100, charged % 100), proposal["total"]["amount"]);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f41_a_product_named_twice_or_a_caller_without_the_scope_stops_a_batch_before_any_write() {
    let app = TestApp::start().await;
    let (once, set) = (json!({"stock": 7}), json!({"stock": 8}));
    let good = [("TEA-ASSAM", once.clone()), ("NO-SUCH", once.clone()), ("MUG-BLUE", once)];
    let twice = [&good[..], &[("TEA-ASSAM", set)]].concat();
    let before = app.dump();
    for mode in ["atomic", "per_item"] {
        let problem = app.caller(MERCHANT).update("k", &batch(mode, &twice)).await;
        let problem = problem.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"].as_array().unwrap().len(), 1);
        assert_eq!(problem["errors"][0]["pointer"], "/updates/3/product_id");
        let refused = app.shopper().update("k", &batch(mode, &good)).await;
        refused.assert_problem(403, "insufficient_scope");
    }
    assert_eq!(app.dump(), before);
    let got = app.caller(MERCHANT).update("k", &batch("per_item", &good)).await;
    assert_eq!(results(&got, "status"), ["updated", "refused", "updated"]);
}
