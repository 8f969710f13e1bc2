//! Identifiers. Ours are a prefix and a UUIDv7 (RFC 9562) in its simple form, so that they sort by time and
//! say what they name; product ids are the merchant's own SKUs.

use super::words::text_newtype;
use serde::Serialize;

macro_rules! ids {
    ($(#[doc = $doc:literal] $name:ident = $prefix:literal;)+) => {$(
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(Serialize, diesel::AsExpression, diesel::FromSqlRow)]
        #[diesel(sql_type = diesel::sql_types::Text)]
        pub struct $name(String);

        impl $name {
            pub fn generate() -> Self {
                Self(format!(concat!($prefix, "_{}"), uuid::Uuid::now_v7().simple()))
            }

            pub fn parse(text: &str) -> Option<Self> {
                let hex = text.strip_prefix(concat!($prefix, "_"))?;
                let well_formed = hex.len() == 32 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                well_formed.then(|| Self(text.to_owned()))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                id_schema($prefix, $doc)
            }
        }

        impl utoipa::ToSchema for $name {}

        text_newtype!($name);
    )+};
}

fn id_schema(prefix: &str, about: &str) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
    utoipa::openapi::schema::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .description(Some(about.trim_start()))
        .pattern(Some(format!("^{prefix}_[0-9a-f]{{32}}$")))
        .into()
}

ids! {
    /// A confirmation's id: `cnf_…`.
    ConfirmationId = "cnf";
    /// An order's id: `ord_…`.
    OrderId = "ord";
    /// A payment's id: `pay_…`.
    PaymentId = "pay";
    /// A refund's id: `rfd_…`.
    RefundId = "rfd";
    /// An actor's id: `act_…`.
    ActorId = "act";
    /// An account's id: `acc_…`.
    AccountId = "acc";
    /// The id of a change of a product's stock: `stc_…`.
    StockChangeId = "stc";
}

macro_rules! resources {
    ($($name:ident at $folder:literal;)+) => {$(
        impl $name {
            /// Where it is read.
            pub fn path(&self) -> String {
                format!(concat!($folder, "{}"), self)
            }

            pub fn at(path: &str) -> Option<Self> {
                path.strip_prefix($folder).and_then(Self::parse)
            }
        }
    )+};
}

resources! {
    ConfirmationId at "/confirmations/";
    OrderId at "/orders/";
    RefundId at "/refunds/";
}

/// The caller's name for one task of its agent, from `Agent-Task-Id`: 1–128 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(Serialize, diesel::AsExpression, diesel::FromSqlRow, utoipa::ToSchema)]
#[diesel(sql_type = diesel::sql_types::Text)]
#[schema(value_type = String, pattern = "^[!-~]{1,128}$", example = "task-7f3a")]
pub struct TaskId(String);

impl TaskId {
    pub fn parse(text: &str) -> Option<Self> {
        let well_formed = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        well_formed.then(|| Self(text.to_owned()))
    }
}

text_newtype!(TaskId);

/// A merchant's SKU: `[A-Za-z0-9_-]{1,64}`, case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(Serialize, diesel::AsExpression, diesel::FromSqlRow, utoipa::ToSchema)]
#[diesel(sql_type = diesel::sql_types::Text)]
#[schema(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$", example = "MUG-BLUE")]
pub struct ProductId(String);

impl ProductId {
    pub const NOTATION: &str = "[A-Za-z0-9_-]{1,64}";

    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let well_formed = (1..=64).contains(&text.len()) && text.bytes().all(allowed);
        well_formed.then(|| Self(text.to_owned()))
    }
}

text_newtype!(ProductId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_id_parses_and_another_kind_does_not() {
        let id = ConfirmationId::generate();
        assert_eq!(ConfirmationId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(OrderId::parse(id.as_str()), None);
        assert_eq!(ConfirmationId::parse(&id.as_str().to_uppercase()), None);
        assert_eq!(ConfirmationId::parse("cnf_1"), None);
    }

    #[test]
    fn a_product_id_is_the_merchants_word() {
        for good in ["A", "mug_1", "MUG-BLUE", &"x".repeat(64)] {
            assert_eq!(ProductId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "é", "a/b", &"x".repeat(65)] {
            assert_eq!(ProductId::parse(bad), None, "{bad}");
        }
    }
}
