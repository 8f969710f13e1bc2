//! Lists come a page at a time: from a position, not from an offset, so that what is added meanwhile neither repeats
//! nor hides anything.

/// Items of a page, unless asked otherwise.
pub const DEFAULT_LIMIT: usize = 20;
pub const MAX_LIMIT: usize = 100;

/// Which part of a list is asked for.
#[derive(Clone, Debug)]
pub struct PageRequest<P> {
    pub limit: usize,
    /// The last item of the page before.
    pub after: Option<P>,
}

impl<P> PageRequest<P> {
    /// How many rows to fetch: one more than is shown tells whether there is a next page.
    pub fn fetch(&self) -> usize {
        self.limit + 1
    }

    /// Keeps what is shown, and returns the position of its last item if there is more.
    pub fn cut<T>(&self, rows: &mut Vec<T>, position: impl Fn(&T) -> P) -> Option<P> {
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        rows.last().filter(|_| more).map(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_the_list_ends() {
        let page = PageRequest { limit: 2, after: None };
        for (rows, shown, next) in
            [(vec![], vec![], None), (vec![1, 2], vec![1, 2], None), (vec![1, 2, 3], vec![1, 2], Some(2))]
        {
            let mut rows = rows;
            assert_eq!(page.cut(&mut rows, |n| *n), next);
            assert_eq!(rows, shown);
        }
    }
}
