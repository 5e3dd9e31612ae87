//! Decides the high watermark: everything below it is committed, and consumers may read it.

use thalweg_protocol::Offset;
use thalweg_storage::Durability;

/// What the leader knows of its own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// The offset the next record will get.
    pub(crate) log_end: Offset,
    /// Everything below has been synced.
    pub(crate) synced: Offset,
    /// Whether the topic's records count only once they are on disk.
    pub(crate) durability: Durability,
}

/// The high watermark that follows from the leader's log and the log ends of the followers in the ISR: the
/// least of them, and on a durable topic never past what the leader has synced. It does not go back.
pub(crate) fn decide(current: Offset, own: Own, followers: impl IntoIterator<Item = Offset>) -> Offset {
    let own_end = match own.durability {
        Durability::Synced => own.synced.min(own.log_end),
        Durability::Relaxed => own.log_end,
    };
    followers.into_iter().fold(own_end, Offset::min).max(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_watermark_is_the_least_of_the_isr_and_of_the_synced_offset() {
        let check = |current, log_end, synced, durability, followers: &[i64], expected| {
            let own = Own { log_end: Offset(log_end), synced: Offset(synced), durability };
            let followers = followers.iter().map(|&end| Offset(end));
            assert_eq!(decide(Offset(current), own, followers), Offset(expected));
        };
        check(0, 10, 7, Durability::Synced, &[], 7);
        check(0, 10, 7, Durability::Relaxed, &[], 10);
        check(0, 10, 7, Durability::Synced, &[8, 5], 5);
        check(0, 10, 7, Durability::Relaxed, &[9, 8], 8);
        check(6, 10, 4, Durability::Synced, &[3], 6);
    }
}
