//! Which logs of a round go into the journal.

/// A log goes into the journal when at most this many bytes of it are unsynced. More are better written once, into
/// their segment: the cost of a sync is then small beside that of the bytes.
pub(crate) const MOST_TAIL_BYTES: u64 = 128 << 10;

/// What a log lacks to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// This many bytes at the end of its active segment, and nothing else.
    Tail(u64),
    /// Nothing; or files and names as well; or it is being synced or changed by somebody else.
    Other,
}

impl Need {
    /// Whether the log goes into the journal. One alone gains by it, too: its segment grows, so that a sync of it writes the
    /// file's metadata as well.
    pub(crate) fn is_small(self) -> bool {
        matches!(self, Self::Tail(1..=MOST_TAIL_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::Need::{Other, Tail};
    use super::*;

    #[test]
    fn small_tails_are_gathered() {
        let cases = [
            (Tail(0), false),
            (Tail(1), true),
            (Tail(MOST_TAIL_BYTES), true),
            (Tail(MOST_TAIL_BYTES + 1), false),
            (Other, false),
        ];
        for (need, expected) in cases {
            assert_eq!(need.is_small(), expected, "{need:?}");
        }
    }
}
