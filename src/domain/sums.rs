//! Adding up what belongs together.

use std::collections::BTreeMap;

/// The sum of the parts of each key. Sums of SQL would come as decimals from some databases.
pub fn sums<K: Ord>(parts: impl IntoIterator<Item = (K, i64)>) -> BTreeMap<K, i64> {
    parts.into_iter().fold(BTreeMap::new(), |mut sums, (key, part)| {
        *sums.entry(key).or_insert(0) += part;
        sums
    })
}
