//! Decides the high watermark: everything below it is committed, and consumers may read it.

use thalweg_protocol::Offset;

/// The high watermark that follows from how far the leader has its log for good, and from the log ends of the followers in
/// the ISR: the least of them. It does not go back.
pub(crate) fn decide(current: Offset, own: Offset, followers: impl IntoIterator<Item = Offset>) -> Offset {
    followers.into_iter().fold(own, Offset::min).max(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_watermark_is_the_least_of_the_isr_and_does_not_go_back() {
        let check = |current, own, followers: &[i64], expected| {
            let followers = followers.iter().map(|&end| Offset(end));
            assert_eq!(decide(Offset(current), Offset(own), followers), Offset(expected));
        };
        check(0, 7, &[], 7);
        check(0, 7, &[8, 5], 5);
        check(0, 10, &[9, 8], 8);
        check(6, 4, &[3], 6);
    }
}
