use crate::support::*;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn f41_one_call_reads_many_products_in_the_order_asked() {
    let app = TestApp::start().await;
    let ids = json!({"product_ids": ["TEA-SENCHA", "NO-SUCH", "MUG-BLUE", "TEA-SENCHA"]});
    let body = app.shopper().post("/products-batch-get", &ids).await.json();
    let got: Vec<_> = body["products"].as_array().unwrap().iter().map(|p| p["product_id"].clone()).collect();
    assert_eq!(got, [json!("TEA-SENCHA"), json!("MUG-BLUE")]);
    assert_eq!(body["not_found"], json!(["NO-SUCH"]));
    assert_eq!(body["products"][0]["price"], json!({"amount": "1450", "currency": "JPY"}));
    assert_eq!(body["products"][1], app.shopper().get("/products/MUG-BLUE").await.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn f46_a_batch_has_one_to_a_hundred_ids() {
    let app = TestApp::start().await;
    let read = async |n: usize| {
        let ids: Vec<String> = (0..n).map(|i| format!("P{i}")).collect();
        app.shopper().post("/products-batch-get", &json!({"product_ids": ids})).await
    };
    assert_eq!(read(1).await.status, 200);
    assert_eq!(read(100).await.status, 200);
    for n in [0, 101] {
        let problem = read(n).await.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], "/product_ids");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("1 to 100"));
    }
    let problem = app.shopper().post("/products-batch-get", &json!({"product_ids": ["A", "b c", ""]})).await;
    let problem = problem.assert_problem(422, "validation_failed");
    assert_eq!(problem["errors"][0]["pointer"], "/product_ids/1");
    assert_eq!(problem["errors"][1]["pointer"], "/product_ids/2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_id_is_case_sensitive() {
    let app = TestApp::start().await;
    assert_eq!(app.shopper().get("/products/MUG-BLUE").await.status, 200);
    for unknown in ["/products/mug-blue", "/products/NO-SUCH", "/products/a%20b", "/products/%00"] {
        app.shopper().get(unknown).await.assert_problem(404, "not_found");
    }
}
