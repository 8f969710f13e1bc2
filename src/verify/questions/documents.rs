//! What is published: an effect profile on every operation, as its schema has it and as its header says.

use crate::verify::document::{Effect, KeyHeader, KeyRule, Metadata, Operation};
use crate::verify::shop::Shop;
use crate::verify::{Stop, ensure};

const SCHEMA: &str = "/schemas/x-ai-metadata.json";

pub async fn effect_profile_published(shop: &Shop) -> Result<String, Stop> {
    let schema = shop.client.page(SCHEMA).await?;
    ensure(schema.status == 200 && schema.json.is_object(), || {
        format!("{}, which isn't a JSON Schema", schema.says())
    })?;
    let document = shop.document()?;
    let known = |id: &Option<String>| id.as_deref().is_none_or(|id| document.find(id).is_some());
    for operation in &document.operations {
        let found = operation.metadata.as_ref().map_err(Clone::clone).and_then(|profile| {
            let linked = [&profile.dry_run, &profile.confirm, &profile.compensate].into_iter().all(known);
            if linked { agrees(operation, profile) } else { Err("it names operations that aren't there".into()) }
        });
        found.map_err(|why| Stop::Failed(format!("x-ai-metadata of {}: {why}", label(operation))))?;
    }
    let count = document.operations.len();
    let agrees = "valid x-ai-metadata, whose key rule is what the Idempotency-Key parameter says";
    Ok(format!("GET /openapi.json: {count} of {count} operations have {agrees}; GET {SCHEMA}: 200"))
}

fn label(operation: &Operation) -> String {
    match operation.id.as_str() {
        "" => format!("{} {}", operation.method, operation.path),
        id => id.to_owned(),
    }
}

/// What the members have to do with each other and with the rest of the operation.
fn agrees(operation: &Operation, profile: &Metadata) -> Result<(), String> {
    let (key, header) = (profile.idempotency.key, operation.key_header);
    let pure = profile.effect == Effect::Pure;
    let rules = [
        (pure == profile.side_effects.is_empty(), "side_effects are there exactly where effect isn't pure"),
        (pure == (key == KeyRule::None), "a write says what makes a repeat harmless, a read needs nothing"),
        ((key == KeyRule::Natural) == profile.idempotency.natural_key.is_some(), "natural_key goes with key natural"),
        (
            (key == KeyRule::None) == profile.idempotency.retention_seconds.is_none_or(|seconds| seconds == 0),
            "retention_seconds goes with keys",
        ),
        // A read may have the header as its parameter: the key to look up.
        (pure || (key == KeyRule::Required) == (header == KeyHeader::Required), "key required is header required"),
        (profile.scopes.iter().all(|scope| scope.contains(':')), "scopes are like checkout:confirm"),
        (profile.mcp.annotations.read_only_hint == pure, "readOnlyHint is effect pure"),
        (profile.mcp.annotations.idempotent_hint, "every operation can be repeated"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, rule)) => Err(format!("not so: {rule}")),
        None => Ok(()),
    }
}
