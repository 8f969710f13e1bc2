//! The OpenAPI document: collected from the handlers, and completed with what holds for all of them. Keys, scopes and
//! `x-ai-metadata` come from the effect catalogue.

use crate::domain::error::ProblemBody;
use crate::domain::operation::Operation;
use crate::effects::{EffectProfile, KeyRule, Retention};
use utoipa::OpenApi as _;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation as Documented, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Required, ResponseBuilder};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Countersign",
        description = "A commerce backend that software agents can retry without fear. Send it again; it happens once.",
    ),
    components(schemas(ProblemBody)),
    tags(
        (name = "products", description = "What is sold, and how much of it is available"),
        (name = "checkout", description = "Dry run → propose → confirm"),
        (name = "confirmations", description = "Firm, single-use offers"),
        (name = "orders", description = "What confirmed plans became"),
        (name = "refunds", description = "Giving money back, at most once and never too much"),
        (name = "tasks", description = "What became of keys and tasks"),
    ),
)]
struct Base;

/// What the document starts from.
pub fn base() -> OpenApi {
    Base::openapi()
}

/// Adds to each operation what its profile says of it.
pub fn complete(mut document: OpenApi, retention: Retention) -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    for item in document.paths.paths.values_mut() {
        for documented in [&mut item.get, &mut item.post, &mut item.put, &mut item.delete].into_iter().flatten() {
            let operation = documented.operation_id.as_deref().and_then(Operation::parse);
            if let Some(operation) = operation {
                describe(documented, operation.profile(), retention);
            }
        }
    }
    document
}

fn describe(documented: &mut Documented, profile: &EffectProfile, retention: Retention) {
    documented.extensions = Some(Extensions::from_iter([("x-ai-metadata".to_owned(), profile.ai_metadata(retention))]));
    documented.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);

    let parameters = documented.parameters.get_or_insert_default();
    if profile.key != KeyRule::None {
        let required = if profile.key == KeyRule::Required { Required::True } else { Required::False };
        let about = "Names this one intended effect. Make it once, store it, keep it on every retry: 1–255 visible \
                     ASCII characters.";
        parameters.push(header("Idempotency-Key", about, required));
    }
    let about = "Groups the calls of one task: 1–128 visible ASCII characters.";
    parameters.push(header("Agent-Task-Id", about, Required::False));

    let problem = ResponseBuilder::new()
        .description("A problem: see `code` and `recovery`, and `/problems/{code}`")
        .content("application/problem+json", Content::new(Some(Ref::from_schema_name("Problem"))));
    documented.responses.responses.insert("default".to_owned(), problem.build().into());
}

fn header(name: &str, about: &str, required: Required) -> RefOr<Parameter> {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .description(Some(about))
        .required(required)
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
        .into()
}
