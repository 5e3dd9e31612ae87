//! Which partition of an internal topic a group or a transactional id belongs to.

/// The partition that keeps what belongs to `key`, as Kafka computes it: Java's `String.hashCode` without its sign,
/// modulo the number of partitions.
pub(crate) fn partition_for(key: &str, partitions: i32) -> i32 {
    let hash =
        key.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::partition_for;

    #[test]
    fn partitions_are_those_of_java() {
        // "polygenelubricants".hashCode() is Integer.MIN_VALUE; the others come from a computation apart.
        for (key, partitions, expected) in [
            ("", 50, 0),
            ("polygenelubricants", 50, 0),
            ("abc", 50, 96354 % 50),
            ("hello", 50, 99162322 % 50),
            ("\u{1F600}", 4, (1772899 & i32::MAX) % 4),
            ("abc", 0, 0),
        ] {
            assert_eq!(partition_for(key, partitions), expected, "{key:?} of {partitions}");
        }
    }
}
