use crate::support::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

fn rows(app: &TestApp) -> Vec<i64> {
    ["claims", "confirmations", "stock_holds", "discount_holds", "payments", "orders", "products", "actors"]
        .iter()
        .map(|table| app.number(&format!("SELECT count(*) AS n FROM {table}")))
        .chain([app.number("SELECT sum(held) + sum(stock) + sum(version) AS n FROM products")])
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing() {
    let app = TestApp::start().await;
    let before = rows(&app);
    let cart = with(mugs(), "/discount_codes", json!(["FIRST3", "FIVEOFF"]));
    let first = app.shopper().post("/checkout-dry-run", &cart).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.json()["dry_run"], true);
    for key in ["k", "k"] {
        let again = app.shopper().post_keyed("/checkout-dry-run", key, &cart).await;
        assert_eq!(again.body, first.body);
        assert!(!again.is_replay());
    }
    assert_eq!(rows(&app), before);
    assert_eq!(number(&app.ledger(), "SELECT count(*) AS n FROM attempts"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_fails_where_propose_would_with_the_same_problem() {
    let app = TestApp::start().await;
    for cart in [
        cart("NO-SUCH", 1, "pm_sandbox_ok"),
        cart("LAST-ONE", 2, "pm_sandbox_ok"),
        cart("MUG-BLUE", 0, "pm_sandbox_ok"),
        cart("MUG-BLUE", 1, "pm_other"),
        with(
            mugs(),
            "/items",
            json!([{"product_id": "MUG-BLUE", "quantity": 1}, {"product_id": "TEA-ASSAM", "quantity": 1}]),
        ),
        with(mugs(), "/shipping_option", json!("teleport")),
        with(mugs(), "/shipping_address", address("BR")),
        with(mugs(), "/discount_codes", json!(["SUMMER2025"])),
        with(mugs(), "/discount_codes", json!(["BIGCART"])),
        with(mugs(), "/expected_total", json!({"amount": "1.00", "currency": "USD"})),
    ] {
        let shown = app.shopper().post("/checkout-dry-run", &cart).await;
        let proposed = app.shopper().propose("k", &cart).await;
        assert_eq!(shown.status, proposed.status, "{cart}");
        let without_instance = |got: &Got| with(got.json(), "/instance", Value::Null);
        assert_eq!(without_instance(&shown), without_instance(&proposed));
        app.execute("DELETE FROM claims");
    }
}

/// A cart in one of the four currencies, with or without codes.
fn any_cart() -> impl Strategy<Value = Value> {
    let products = [
        ("US", vec!["MUG-BLUE", "MUG-TRAVEL", "SHIRT-M", "BOOK-ATLAS", "GIFT-WRAP"]),
        ("DE", vec!["POSTER-MOON", "TEA-ASSAM"]),
        ("JP", vec!["TEA-SENCHA", "TEAPOT-IRON"]),
        ("KW", vec!["DATES-BOX", "INCENSE"]),
    ];
    let codes = prop::sample::subsequence(vec!["WELCOME10", "FIRST3", "GOODWILL"], 0..=2);
    let fixed = any::<bool>();
    (prop::sample::select(products.to_vec()), codes, fixed, prop::sample::select(vec!["standard", "pickup"]))
        .prop_flat_map(|((country, products), codes, fixed, option)| {
            let items = prop::collection::vec((prop::sample::select(products), 1_i64..4), 1..6);
            items.prop_map(move |items| {
                let mut codes: Vec<&str> = codes.clone();
                if fixed && country == "US" {
                    codes.push("FIVEOFF");
                }
                let items: Vec<Value> =
                    items.iter().map(|(id, quantity)| json!({"product_id": id, "quantity": quantity})).collect();
                json!({
                    "items": items, "discount_codes": codes, "shipping_option": option,
                    "shipping_address": address(country), "payment_method": "pm_sandbox_ok",
                })
            })
        })
}

/// A decimal string as minor units, without any of the code under test.
fn minor(money: &Value) -> i64 {
    let digits = match money["currency"].as_str().unwrap() {
        "JPY" => 0,
        "KWD" => 3,
        _ => 2,
    };
    let amount = money["amount"].as_str().unwrap();
    assert_eq!(amount.split_once('.').map_or(0, |(_, fraction)| fraction.len()), digits, "{amount}");
    amount.replace('.', "").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_f16_f17_over_hundreds_of_carts_dry_run_is_propose_is_charged() {
    let app = TestApp::start().await;
    app.set_stock("%", 1_000_000);
    app.execute("UPDATE discounts SET use_limit = NULL");
    let mut runner = TestRunner::deterministic();
    let mut charged = 0;
    for i in 0..300 {
        let cart = any_cart().new_tree(&mut runner).unwrap().current();
        let shown = app.shopper().post("/checkout-dry-run", &cart).await.json();
        let proposed = app.shopper().propose(&format!("k{i}"), &cart).await.json();
        assert_eq!(shown["plan"], proposed["plan"], "{cart}");
        assert_eq!(shown["plan_digest"], proposed["plan_digest"]);
        assert_adds_up(&shown["plan"]);
        let id = proposed["confirmation_id"].as_str().unwrap();
        let confirmed = app.shopper().confirm(id).await.json();
        assert_eq!(confirmed["plan"], shown["plan"]);
        assert_eq!(confirmed["total"], shown["plan"]["total"]);

        let total = minor(&shown["plan"]["total"]);
        let sql = "SELECT coalesce(sum(amount_minor), 0) AS n FROM ledger";
        let in_ledger = number(&app.ledger(), sql);
        assert_eq!(in_ledger - charged, total, "{cart}");
        assert_eq!(confirmed["payment"] == Value::Null, total == 0);
        charged = in_ledger;
    }
    app.assert_consistent();
}

fn assert_adds_up(plan: &Value) {
    let sum = |member: &str| plan["lines"].as_array().unwrap().iter().map(|line| minor(&line[member])).sum::<i64>();
    let whole = |member: &str| minor(&plan[member]);
    assert_eq!(sum("subtotal"), whole("subtotal"));
    assert_eq!(sum("discount"), whole("discount"));
    assert_eq!(
        plan["discounts"].as_array().unwrap().iter().map(|d| minor(&d["amount"])).sum::<i64>(),
        whole("discount")
    );
    assert_eq!(sum("tax") + whole("shipping_tax"), whole("tax"));
    assert_eq!(sum("total") + whole("shipping") + whole("shipping_tax"), whole("total"));
    assert!(whole("total") >= 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn f17_a_tax_of_seven_percent_is_rounded_once_and_adds_up() {
    let app = TestApp::start().await;
    // 3 × 1.18 exempt; 27.77 + shipping 4.95 at 7 % = 2.2904 → 2.29
    let cart = with(
        mugs(),
        "/items",
        json!([{"product_id": "GIFT-WRAP", "quantity": 3}, {"product_id": "MUG-TRAVEL", "quantity": 1}]),
    );
    let plan = app.shopper().post("/checkout-dry-run", &cart).await.json()["plan"].clone();
    assert_eq!(plan["subtotal"]["amount"], "31.31");
    assert_eq!(plan["tax"]["amount"], "2.29");
    assert_eq!(plan["total"]["amount"], "38.55");
}
