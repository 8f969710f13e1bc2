use crate::support::*;
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<&str> {
    list["products"].as_array().unwrap().iter().map(|product| product["product_id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_word_must_be_found_and_the_best_answers_come_first() {
    let app = TestApp::start().await;
    let list = app.shopper().get("/products?q=Stoneware%20MUGS").await.json();
    assert_eq!(ids(&list)[0], "MUG-BLUE");
    let found = app.shopper().get("/products?q=stoneware").await.json();
    let places: Vec<(bool, bool)> = found["products"]
        .as_array()
        .unwrap()
        .iter()
        .map(|product| {
            let has = |member: &str| product[member].as_str().unwrap().to_lowercase().contains("stoneware");
            (has("title"), has("description"))
        })
        .collect();
    assert!(places.iter().all(|(title, description)| *title || *description));
    assert!(places.is_sorted_by_key(|(title, _)| !title), "in the title before in the description: {places:?}");
    assert!(places[0].0 && !places[places.len() - 1].0, "{places:?}");
    assert_eq!(ids(&app.shopper().get("/products?q=senc").await.json()), ["TEA-SENCHA"], "the beginning of a word");
    assert_eq!(ids(&app.shopper().get("/products?q=first+harvest+Shizuoka").await.json()), ["TEA-SENCHA"]);
    // Punctuation is no word, and a q without words is no filter.
    for (q, count) in [("encha", 0), ("stoneware%20sencha", 0), ("no-such-thing", 0), ("%25", 20), ("_", 20)] {
        let list = app.shopper().get(&format!("/products?q={q}")).await.json();
        assert_eq!(list["products"].as_array().unwrap().len(), count, "{q}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn category_and_stock_narrow_a_search() {
    let app = TestApp::start().await;
    let tea = app.shopper().get("/products?category=tea&limit=100").await.json();
    assert!(ids(&tea).contains(&"TEAPOT-IRON"));
    assert!(tea["products"].as_array().unwrap().iter().all(|product| product["category"] == "tea"));
    assert_eq!(ids(&app.shopper().get("/products?category=no-such").await.json()), [""; 0]);
    assert_eq!(
        app.shopper().get("/products?q=&category=&in_stock=&limit=").await.json(),
        app.shopper().get("/products").await.json()
    );

    let print = async |in_stock: &str| {
        let list = app.shopper().get(&format!("/products?q=numbered+print&in_stock={in_stock}")).await.json();
        ids(&list).contains(&"LAST-ONE")
    };
    assert!(print("true").await && !print("false").await);
    app.shopper().proposed("k", &cart("LAST-ONE", 1, "pm_sandbox_ok")).await;
    assert!(!print("true").await && print("false").await, "the last one is held");
    app.clock.advance(TTL);
    assert!(print("true").await && !print("false").await, "the clock has freed it, no worker has");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_everything_once_in_one_order() {
    let app = TestApp::start().await;
    for search in ["/products?", "/products?q=cotton&", "/products?category=tea&in_stock=true&", "/products?q=ste&"] {
        let all = app.shopper().get(&format!("{search}limit=100")).await.json();
        assert!(all["next_cursor"].is_null() && ids(&all).len() > 3, "{search}");
        let mut paged: Vec<String> = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = app.shopper().get(&format!("{search}limit=3{cursor}")).await.json();
            paged.extend(ids(&page).iter().map(|id| (*id).to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            assert_eq!(ids(&page).len(), 3);
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, ids(&all), "{search}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_another_search_and_values_out_of_range_are_refused() {
    let app = TestApp::start().await;
    let next = app.shopper().get("/products?q=cotton&limit=1").await.json()["next_cursor"].as_str().unwrap().to_owned();
    for (query, pointer) in [
        (format!("q=steel&cursor={next}"), "/cursor"),
        (format!("cursor={next}"), "/cursor"),
        ("cursor=".into(), "/cursor"),
        ("cursor=x".into(), "/cursor"),
        ("limit=0".into(), "/limit"),
        ("limit=101".into(), "/limit"),
        ("limit=-1".into(), "/limit"),
        ("limit=99999999999999999999".into(), "/limit"),
        ("category=Tea".into(), "/category"),
        (format!("q={}", "x".repeat(501)), "/q"),
        (format!("q={}", (0..21).map(|i| format!("w{i}")).collect::<Vec<_>>().join("+")), "/q"),
    ] {
        let problem = app.shopper().get(&format!("/products?{query}")).await.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{query}");
    }
    for query in [
        "limit=x",
        "limit=1.5",
        "in_stock=yes",
        "in_stock",
        "page=2",
        "page=",
        "limit=0=",
        "limit=&limit=2",
        "q=a&q=b",
        "q=%00",
        "q=%FF",
        "q=caf%C3",
    ] {
        app.shopper().get(&format!("/products?{query}")).await.assert_problem(400, "malformed_request");
    }
    app.shopper().get("/products?cursor=x=").await.assert_problem(422, "validation_failed");
    app.shopper().post("/checkout-dry-run?dry_run=", &mugs()).await.assert_problem(400, "malformed_request");
    app.shopper().get("/products/MUG-BLUE?dry_run=true").await.assert_problem(400, "malformed_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn f46_one_call_searches_many_times_in_order() {
    let app = TestApp::start().await;
    let queries =
        json!({"queries": [{"q": "sencha"}, {"q": "no-such-thing"}, {"q": "", "category": "tea", "limit": 2}]});
    let results = app.shopper().post("/products-batch-search", &queries).await.json()["results"].clone();
    assert_eq!(ids(&results[0]), ["TEA-SENCHA"]);
    assert_eq!(ids(&results[1]), [""; 0]);
    assert_eq!(ids(&results[2]).len(), 2);
    let next = results[2]["next_cursor"].as_str().unwrap();
    let page = app.shopper().get(&format!("/products?category=tea&cursor={next}")).await;
    assert_eq!(page.status, 200, "the search goes on as a single one: {}", page.text());

    for n in [0, 21] {
        let many = json!({"queries": vec![json!({"q": "mug"}); n]});
        let problem =
            app.shopper().post("/products-batch-search", &many).await.assert_problem(422, "validation_failed");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("1 to 20"));
    }
    let many = json!({"queries": vec![json!({"q": "mug", "limit": 1}); 20]});
    assert_eq!(
        app.shopper().post("/products-batch-search", &many).await.json()["results"].as_array().unwrap().len(),
        20
    );
    let bad = json!({"queries": [{"q": "mug", "limit": 0}, {"q": "mug", "category": "?"}]});
    let problem = app.shopper().post("/products-batch-search", &bad).await.assert_problem(422, "validation_failed");
    assert_eq!(problem["errors"][0]["pointer"], "/queries/0/limit");
    assert_eq!(problem["errors"][1]["pointer"], "/queries/1/category");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_product_is_found_by_its_new_words() {
    let app = TestApp::start().await;
    let set = |id: &str, set: Value| json!({"mode": "atomic", "updates": [{"product_id": id, "set": set}]});
    let found = async |q: &str| ids(&app.shopper().get(&format!("/products?q={q}")).await.json()).join(" ");
    app.caller(MERCHANT).update("1", &set("MUG-BLUE", json!({"title": "Azure beaker"}))).await;
    assert_eq!(found("azure").await, "MUG-BLUE");
    assert!(!found("blue+stoneware").await.contains("MUG-BLUE"));
    let new = json!({"title": "Périscope", "price": {"amount": 5, "currency": "USD"}, "stock": 1});
    app.caller(MERCHANT).update("2", &set("NEW", new)).await;
    assert_eq!(found("p%C3%89riscope").await, "NEW");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_shop_has_something_of_everything() {
    let app = TestApp::start().await;
    let count = |sql: &str| app.number(&format!("SELECT {sql} AS n FROM products"));
    assert!(count("count(*)") >= 60);
    assert!(count("count(DISTINCT category)") >= 8);
    assert_eq!(count("count(DISTINCT currency)"), 4);
    assert_eq!(count("sum(CASE WHEN description = '' THEN 1 ELSE 0 END)"), 0);
    assert_eq!(count("count(DISTINCT title)"), count("count(*)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn short_words_are_found_whole_and_a_call_has_a_budget_of_words() {
    let app = TestApp::start().await;
    let found = async |q: &str| ids(&app.shopper().get(&format!("/products?q={q}&limit=100")).await.json()).len();
    assert_eq!(found("mu").await + found("st").await, 0, "no product has these as words");
    assert!(found("tea").await > 0 && found("cm").await > 0);
    let query = |from: usize| json!({"q": (from..from + 20).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ")});
    let search =
        async |queries: Vec<Value>| app.shopper().post("/products-batch-search", &json!({"queries": queries})).await;
    assert_eq!(search(vec![query(0), query(20), query(40), query(0)]).await.status, 200);
    let problem = search((0..4).map(|i| query(20 * i)).collect()).await.assert_problem(422, "validation_failed");
    assert_eq!(problem["errors"][0]["pointer"], "/queries");
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_leave_readers_for_others() {
    let app = TestApp::start().await;
    let many = json!({"queries": vec![json!({"q": "cotton organic steel", "limit": 100}); 20]});
    let searches = futures_util::future::join_all((0..40).map(|_| app.shopper().post("/products-batch-search", &many)));
    let purchases = async {
        for i in 0..5 {
            app.shopper()
                .ordered(&format!("k{i}"), &with(mugs(), "/shipping_address/line1", json!(i.to_string())))
                .await;
        }
    };
    let (searches, ()) = tokio::join!(searches, purchases);
    assert!(searches.iter().all(|got| got.status == 200));
}
