//! Who has something to do when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines in monotonic ms. One that has been put off stays here until it comes; whoever is woken by it finds
/// nothing to do and notes the later one.
#[derive(Debug)]
pub(crate) struct Deadlines<K: Ord> {
    heap: BinaryHeap<Reverse<(u64, K)>>,
}

impl<K: Ord> Default for Deadlines<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new() }
    }
}

impl<K: Ord> Deadlines<K> {
    /// Notes that `key` has something to do at `at`. Returns whether that is the earliest of all.
    pub(crate) fn note(&mut self, at: u64, key: K) -> bool {
        let is_earliest = self.next().is_none_or(|next| at < next);
        self.heap.push(Reverse((at, key)));
        is_earliest
    }

    /// How many are noted.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out a deadline that has come.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, key))| key)
    }
}

#[cfg(test)]
mod tests {
    use super::Deadlines;

    #[test]
    fn deadlines_come_in_order() {
        let mut deadlines = Deadlines::default();
        assert!(deadlines.note(20, 'b'));
        assert!(!deadlines.note(30, 'c'));
        assert!(deadlines.note(10, 'a'));
        assert_eq!((deadlines.next(), deadlines.pop_due(9)), (Some(10), None));
        assert_eq!(
            [deadlines.pop_due(20), deadlines.pop_due(20), deadlines.pop_due(20)],
            [Some('a'), Some('b'), None]
        );
        assert_eq!(deadlines.next(), Some(30));
    }
}
