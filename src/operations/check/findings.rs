//! What is found: which invariant doesn't hold, and where.

/// An invariant, and what breaks it, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub invariant: &'static str,
    pub what: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Wrong(Breach),
    /// Not wrong yet: a payment without a decision and without anybody who asks for it.
    Undecided(Breach),
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::Wrong(Breach { invariant, what }) | Finding::Undecided(Breach { invariant, what }) => {
                write!(f, "{invariant}: {what}")
            }
        }
    }
}

/// The findings about one invariant.
pub(super) struct Findings {
    invariant: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    pub fn about(invariant: &'static str) -> Self {
        Self { invariant, found: Vec::new() }
    }

    pub fn wrong(&mut self, what: String) {
        self.found.push(Finding::Wrong(Breach { invariant: self.invariant, what }));
    }

    pub fn undecided(&mut self, what: String) {
        self.found.push(Finding::Undecided(Breach { invariant: self.invariant, what }));
    }

    /// Says in which of these members an answer and what it is about differ.
    pub fn compare(&mut self, whose: impl std::fmt::Display, what: impl std::fmt::Display, same: &[(&str, bool)]) {
        let differing: Vec<&str> = same.iter().filter(|(_, same)| !same).map(|(member, _)| *member).collect();
        if !differing.is_empty() {
            self.wrong(format!("the answer of {whose} and {what} differ in {}", differing.join(", ")));
        }
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}
