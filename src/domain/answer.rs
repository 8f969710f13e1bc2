//! A decided answer, as it is stored and replayed: byte for byte.

use super::error::Problem;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// JSON, or nothing (204).
    pub body: String,
    pub location: Option<String>,
}

impl Answer {
    pub fn json(status: u16, body: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_string(body).map_err(Problem::internal)?;
        Ok(Self { status, body, location: None })
    }

    pub fn no_content() -> Self {
        Self { status: 204, body: String::new(), location: None }
    }

    pub fn at(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }
}

/// How an answer reaches the caller: as the outcome of this call, or as that of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Executed,
    Replayed,
}
