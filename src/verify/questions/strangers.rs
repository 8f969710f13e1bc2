//! Everybody else: no credential opens nothing, and another actor's sees nothing of this one's.

use crate::verify::client::{Call, Credential};
use crate::verify::shop::{Shop, new_key};
use crate::verify::{Stop, ensure};
use reqwest::Method;

pub async fn others_see_nothing(shop: &Shop, other_key: Option<&str>) -> Result<String, Stop> {
    let proposal = shop.proposed().await?;
    let of_it = format!("/confirmations/{}", proposal.id);
    let calls = [
        Call::get(&of_it),
        Call::get("/orders"),
        Call::post("/checkout").key(&new_key()).json(&shop.cart()),
        Shop::confirm(&proposal.id),
        Call::new(Method::DELETE, &of_it),
    ];
    let mut labels = Vec::new();
    for call in calls {
        let answer = shop.client.send(call.by(Credential::Nobody)).await?.expect_problem(401, "unauthenticated")?;
        labels.push(answer.label);
    }
    let strangers = match other_key {
        None => "another actor's look wasn't tried: it takes --other-key".to_owned(),
        Some(key) => {
            let other = Credential::Of(key.to_owned());
            let look = shop.client.send(Call::get(&of_it).by(other.clone())).await?;
            let look = look.expect_problem(404, "not_found")?;
            shop.client.send(Shop::confirm(&proposal.id).by(other)).await?.expect_problem(404, "not_found")?;
            format!("{} to another actor, who can't confirm it either", look.says())
        }
    };
    let status = shop.get(&of_it).await?.text("/status")?.to_owned();
    ensure(status == "pending", || format!("they were refused, but the confirmation is {status} now"))?;
    Ok(format!("{} without a credential: 401 each; {strangers}", labels.join(", ")))
}
