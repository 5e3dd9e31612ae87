//! Narrows what is acquired of records that were delivered often already: whoever reads them may perish of one of them, and
//! all that it has then counts as delivered once more. Near the limit they are acquired in smaller and smaller ranges, and the
//! last time one by one, so that only the bad record is given up, as in Kafka 4.4.

/// How many records at most may be acquired of a range of `length` whose first were delivered `deliveries` times so far, where
/// they are given up after `limit` times. `None` when as many as are wanted.
pub(super) fn most(limit: i16, deliveries: i16, length: u64) -> Option<u64> {
    let (limit, deliveries) = (i32::from(limit), i32::from(deliveries));
    let threshold = ((limit + 1) / 2).max(2);
    if deliveries < threshold {
        return None;
    }
    if deliveries >= limit - 1 {
        return Some(1);
    }
    let halvings = u32::try_from(deliveries - threshold + 1).unwrap_or(1);
    Some(length.checked_shr(halvings).unwrap_or(0).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is acquired of `length` records delivery by delivery, until they are given up; 0 where nothing is narrowed.
    #[track_caller]
    fn check(limit: i16, length: u64, expected: &[u64]) {
        let ranges: Vec<u64> =
            (0..limit).map(|deliveries| most(limit, deliveries, length).unwrap_or(0)).collect();
        assert_eq!(ranges, expected, "limit {limit}, {length} records");
    }

    #[test]
    fn ranges_become_smaller_from_half_the_limit_on() {
        check(2, 6, &[0, 0]);
        check(3, 6, &[0, 0, 1]);
        check(4, 12, &[0, 0, 6, 1]);
        check(5, 16, &[0, 0, 0, 8, 1]);
        check(5, 10, &[0, 0, 0, 5, 1]);
        check(6, 12, &[0, 0, 0, 6, 3, 1]);
        check(7, 20, &[0, 0, 0, 0, 10, 5, 1]);
        check(10, 40, &[0, 0, 0, 0, 0, 20, 10, 5, 2, 1]);
        check(10, 3, &[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn no_numbers_are_too_large() {
        // The limit has been lowered since they were delivered.
        assert_eq!(most(3, 9, 100), Some(1));
        assert_eq!(most(1, 0, 100), None);
        assert_eq!(most(i16::MAX, i16::MAX - 2, u64::MAX), Some(1));
        assert_eq!(most(i16::MAX, i16::MAX, u64::MAX), Some(1));
    }
}
