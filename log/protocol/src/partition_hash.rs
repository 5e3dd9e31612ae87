//! The hash by which Kafka's clients choose a partition for a key.

/// Kafka's variant of murmur2, as its Java client and Streams compute it over a serialised key.
pub fn murmur2(key: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;

    let mut hash = SEED ^ key.len() as u32;
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        for (at, &byte) in tail.iter().enumerate() {
            hash ^= u32::from(byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    (hash ^ hash >> 15) as i32
}

/// The partition of `partitions` that records with this key belong to, as Java's default partitioner has it.
///
/// # Panics
/// When `partitions` is not positive: every topic has at least one.
pub fn partition_for_key(key: &[u8], partitions: i32) -> i32 {
    assert!(partitions > 0, "a topic has at least one partition");
    (murmur2(key) & i32::MAX) % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own `UtilsTest`.
    #[test]
    fn hashes_are_those_of_java() {
        let vectors: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key), hash, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn a_negative_hash_still_gives_a_partition() {
        assert!(murmur2(b"21") < 0);
        assert_eq!(partition_for_key(b"21", 4), (-973_932_308 & i32::MAX) % 4);
        assert_eq!(partition_for_key(b"anything", 1), 0);
    }
}
