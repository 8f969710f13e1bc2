//! Who calls: known only from the credential, never from a body.

use super::ids::{AccountId, ActorId};
use super::words::{text_column, words};

words! {
    /// What an actor may do. Written as OAuth 2.0 writes scopes: words with spaces between (RFC 6749, 3.3).
    pub enum Scope {
        CatalogRead = "catalog:read",
        CatalogWrite = "catalog:write",
        CheckoutPropose = "checkout:propose",
        CheckoutConfirm = "checkout:confirm",
        OrdersRead = "orders:read",
        OrdersWrite = "orders:write",
        OrdersAny = "orders:any",
        RefundsCreate = "refunds:create",
        RefundsConfirm = "refunds:confirm",
    }
}

/// A set of scopes, kept in its written form.
#[derive(Clone, Debug, PartialEq, Eq, diesel::AsExpression, diesel::FromSqlRow)]
#[diesel(sql_type = diesel::sql_types::Text)]
pub struct Scopes(String);

impl Scopes {
    pub fn new(scopes: &[Scope]) -> Self {
        let words: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
        Self(words.join(" "))
    }

    /// Known words with single spaces between, at least one.
    pub fn parse(text: &str) -> Option<Self> {
        let scopes: Vec<Scope> = text.split(' ').map(Scope::parse).collect::<Option<_>>()?;
        Some(Self::new(&scopes))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn allow(&self, scope: Scope) -> bool {
        self.0.split(' ').any(|word| word == scope.as_str())
    }
}

text_column!(Scopes);

/// An authenticated actor.
#[derive(Clone, Debug)]
pub struct Caller {
    pub actor: ActorId,
    pub account: AccountId,
    pub scopes: Scopes,
}
