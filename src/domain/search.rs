//! Searching products: what counts as a word, how well a product answers, and where a page of answers ends.

use super::digest::Digest;
use super::ids::ProductId;
use super::page::PageRequest;
use super::product::Category;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Words of one query: each is a look-up.
pub const MAX_WORDS: usize = 20;
/// Different words of all queries of one call.
pub const MAX_BATCH_WORDS: usize = 60;
/// Letters of a word; what is longer is cut, on both sides.
const MAX_LETTERS: usize = 64;
/// Shorter words are found whole only: too many others begin with them.
const MIN_PREFIX: usize = 3;
/// What a word is worth where it stands.
const IN_TITLE: i64 = 2;
const IN_DESCRIPTION: i64 = 1;

/// The words of a text: runs of letters and digits in lower case, each once. The final s of a longer word is dropped, so
/// that "mugs" finds a mug.
pub fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    let stem = |run: &str| {
        let stem = run.strip_suffix('s').filter(|stem| stem.chars().count() > 2).unwrap_or(run);
        stem.chars().take(MAX_LETTERS).collect()
    };
    runs.map(stem).collect()
}

/// Whether a word that is asked for is also found as the beginning of a longer one.
pub fn is_prefix(asked: &str) -> bool {
    asked.chars().count() >= MIN_PREFIX
}

/// The words that find a product, with their weights.
pub fn indexed(title: &str, description: &str) -> BTreeMap<String, i64> {
    let described = words(description).into_iter().map(|word| (word, IN_DESCRIPTION));
    let titled = words(title).into_iter().map(|word| (word, IN_TITLE));
    described.chain(titled).collect()
}

/// How well an indexed word answers a word that is asked for, of which it is the same or a longer one. Where it stands
/// says more than whether it is the whole word.
pub fn score(asked: &str, word: &str, weight: i64) -> i64 {
    2 * weight + i64::from(asked == word)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    Any,
    InStock,
    OutOfStock,
}

/// Which products are wanted: those that have every word, or a longer one that begins with it.
#[derive(Clone, Debug, Serialize)]
pub struct ProductQuery {
    pub words: BTreeSet<String>,
    pub category: Option<Category>,
    pub availability: Availability,
}

/// A query, and which part of its answers.
#[derive(Clone, Debug)]
pub struct Search {
    pub query: ProductQuery,
    pub page: PageRequest<Position>,
}

/// A place in the answers to one query: best score first, then by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub score: i64,
    pub product_id: ProductId,
}

impl Position {
    /// A cursor, which no other query takes.
    pub fn cursor(&self, query: &ProductQuery) -> String {
        format!("{}.{}.{}", tag(query), self.score, self.product_id)
    }

    pub fn parse(cursor: &str, query: &ProductQuery) -> Option<Self> {
        let rest = cursor.strip_prefix(tag(query).as_str())?.strip_prefix('.')?;
        let (score, product_id) = rest.split_once('.')?;
        let position = Self { score: score.parse().ok()?, product_id: ProductId::parse(product_id)? };
        Some(position).filter(|position| position.cursor(query) == cursor) // not `+5`, not `05`
    }
}

fn tag(query: &ProductQuery) -> String {
    Digest::of(query).as_str().trim_start_matches("sha256:")[..12].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> ProductQuery {
        ProductQuery { words: words(text), category: None, availability: Availability::Any }
    }

    #[test]
    fn words_are_lower_case_letters_and_digits_without_a_final_s() {
        let of = |text: &str| words(text).into_iter().collect::<Vec<_>>();
        assert_eq!(of("Blue stoneware MUGS, blue!"), ["blue", "mug", "stoneware"]);
        assert_eq!(of("50 × 70 cm; 0.6 l"), ["0", "50", "6", "70", "cm", "l"]);
        assert_eq!(of("Café CAFÉ s gas glass"), ["café", "gas", "glas", "s"]);
        assert!(of(" -–— ").is_empty());
        assert_eq!(of(&"é".repeat(100)), ["é".repeat(64)]);
    }

    #[test]
    fn the_title_counts_more_than_the_description() {
        let index = indexed("Blue mug", "A mug for tea");
        assert_eq!((index["mug"], index["tea"]), (2, 1));
        assert!(score("mug", "mug", 2) > score("mug", "mugwort", 2));
        assert!(score("mug", "mugwort", 2) > score("tea", "tea", 1));
    }

    #[test]
    fn a_cursor_belongs_to_its_query() {
        let position = Position { score: 5, product_id: ProductId::parse("MUG-BLUE").unwrap() };
        let cursor = position.cursor(&query("mug"));
        assert_eq!(Position::parse(&cursor, &query("Mugs")), Some(position));
        assert_eq!(Position::parse(&cursor, &query("tea")), None);
        for bad in ["", "x", "1.2.3"] {
            assert_eq!(Position::parse(bad, &query("mug")), None);
        }
        for other_notation in [".+5.", ".05."] {
            assert_eq!(Position::parse(&cursor.replace(".5.", other_notation), &query("mug")), None);
        }
    }
}
