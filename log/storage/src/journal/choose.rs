//! Which logs of a round go into the journal.

/// A log goes into the journal when at most this many bytes of it are unsynced. More are better written once, into
/// their segment: the cost of a sync is then small beside that of the bytes.
pub(crate) const MOST_TAIL_BYTES: u64 = 128 << 10;

/// So many logs must share a record for it to be written: one log is synced as fast by itself.
pub(crate) const LEAST_LOGS: usize = 2;

/// What a log lacks to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// This many bytes at the end of its active segment, and nothing else.
    Tail(u64),
    /// Nothing; or files and names as well; or it is being synced or changed by somebody else.
    Other,
}

/// Says of each log whether it goes into the journal.
pub(crate) fn choose(needs: &[Need]) -> Vec<bool> {
    let is_small = |need: &Need| matches!(need, Need::Tail(bytes) if (1..=MOST_TAIL_BYTES).contains(bytes));
    let chosen: Vec<bool> = needs.iter().map(is_small).collect();
    match chosen.iter().filter(|&&is_chosen| is_chosen).count() {
        LEAST_LOGS.. => chosen,
        _ => vec![false; needs.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::Need::{Other, Tail};
    use super::*;

    #[test]
    fn small_tails_of_several_logs_are_gathered() {
        let (least, most, more) = (Tail(1), Tail(MOST_TAIL_BYTES), Tail(MOST_TAIL_BYTES + 1));
        let cases: [(&[Need], &[bool]); 8] = [
            (&[], &[]),
            (&[least], &[false]),
            (&[least, most], &[true, true]),
            (&[least, more, most], &[true, false, true]),
            (&[more, more], &[false, false]),
            (&[Other, least, Other, most], &[false, true, false, true]),
            (&[Other, least], &[false, false]),
            (&[Tail(0), least], &[false, false]),
        ];
        for (needs, expected) in cases {
            assert_eq!(choose(needs), expected, "{needs:?}");
        }
    }
}
