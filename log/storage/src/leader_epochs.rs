//! Where each leader epoch of a log began (KIP-101, KIP-279).

use thalweg_protocol::{LeaderEpoch, Offset};

use crate::log::EpochEnd;

/// Epoch and start offset of each epoch, oldest first; both grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaderEpochs {
    entries: Vec<(LeaderEpoch, Offset)>,
}

impl LeaderEpochs {
    /// Notes that `epoch` begins at `start`, unless it is known or older than one that is. Returns whether
    /// anything changed.
    pub(crate) fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if epoch.0 < 0 || self.latest().is_some_and(|latest| latest >= epoch) {
            return false;
        }
        // An epoch in which nothing was appended leaves no trace.
        self.entries.retain(|&(_, other)| other < start);
        self.entries.push((epoch, start));
        true
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Epoch and start of each, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (LeaderEpoch, Offset)> + '_ {
        self.entries.iter().rev().copied()
    }

    pub(crate) fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|&(epoch, _)| epoch)
    }

    /// The epoch of the record at `offset`.
    pub(crate) fn of_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        let at = self.entries.partition_point(|&(_, start)| start <= offset);
        at.checked_sub(1).map(|at| self.entries[at].0)
    }

    /// Where `asked`, or the newest epoch before it, ended.
    pub(crate) fn end_of(&self, asked: LeaderEpoch, log_end: Offset) -> EpochEnd {
        let unknown = EpochEnd { epoch: LeaderEpoch::UNKNOWN, end_offset: Offset(-1) };
        if asked.0 < 0 {
            return unknown;
        }
        if self.latest() == Some(asked) {
            return EpochEnd { epoch: asked, end_offset: log_end };
        }
        let after = self.entries.partition_point(|&(epoch, _)| epoch <= asked);
        match self.entries.get(after) {
            // Newer than any epoch here: only a newer leader could say.
            None => unknown,
            Some(&(_, end_offset)) => {
                let epoch = after.checked_sub(1).map_or(asked, |at| self.entries[at].0);
                EpochEnd { epoch, end_offset }
            }
        }
    }

    /// Forgets what begins at `end` or after it. Returns whether anything changed.
    pub(crate) fn truncate_to(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|&(_, start)| start < end);
        before != self.entries.len()
    }

    /// Forgets the epochs that ended at or before `start`; the one `start` is in begins there.
    pub(crate) fn begin_at(&mut self, start: Offset) -> bool {
        let at = self.entries.partition_point(|&(_, from)| from <= start);
        let Some(current) = at.checked_sub(1) else { return false };
        let changed = current > 0 || self.entries[current].1 != start;
        self.entries.drain(..current);
        self.entries[0].1 = start;
        changed
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Kafka's text.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for (epoch, start) in &self.entries {
            text.push_str(&format!("{epoch} {start}\n"));
        }
        text
    }

    /// What [`encode`](Self::encode) wrote; `None` when the text is not that.
    pub(crate) fn decode(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut entries = Vec::new();
        for line in lines {
            let (epoch, start) = line.split_once(' ')?;
            entries.push((LeaderEpoch(epoch.parse().ok()?), Offset(start.parse().ok()?)));
        }
        let grows = entries.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        (entries.len() == count && grows).then_some(Self { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        for &(epoch, start) in entries {
            assert!(epochs.assign(LeaderEpoch(epoch), Offset(start)));
        }
        epochs
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next() {
        let epochs = epochs(&[(2, 0), (3, 10), (7, 40)]);
        let cases = [
            (-1, (-1, -1)),
            (0, (0, 0)),
            (2, (2, 10)),
            (3, (3, 40)),
            (5, (3, 40)),
            (7, (7, 55)),
            (8, (-1, -1)),
        ];
        for (asked, (epoch, end)) in cases {
            let found = epochs.end_of(LeaderEpoch(asked), Offset(55));
            assert_eq!((found.epoch.0, found.end_offset.0), (epoch, end), "of epoch {asked}");
        }
        assert_eq!(LeaderEpochs::default().end_of(LeaderEpoch(0), Offset(0)).end_offset, Offset(-1));
    }

    #[test]
    fn epochs_are_assigned_once_and_leave_no_trace_when_empty() {
        let mut epochs = epochs(&[(2, 0), (3, 10)]);
        assert!(!epochs.assign(LeaderEpoch(3), Offset(12)), "known");
        assert!(!epochs.assign(LeaderEpoch(1), Offset(12)), "older");
        assert!(epochs.assign(LeaderEpoch(4), Offset(10)));
        assert_eq!(epochs.encode(), "0\n2\n2 0\n4 10\n");
        assert_eq!(epochs.of_offset(Offset(9)), Some(LeaderEpoch(2)));
        assert_eq!(epochs.of_offset(Offset(10)), Some(LeaderEpoch(4)));
    }

    #[test]
    fn truncating_at_either_end_keeps_what_is_between() {
        let mut epochs = epochs(&[(2, 0), (3, 10), (7, 40)]);
        assert!(!epochs.truncate_to(Offset(41)));
        assert!(epochs.truncate_to(Offset(40)));
        assert!(epochs.begin_at(Offset(12)));
        assert_eq!(epochs.encode(), "0\n1\n3 12\n");
        assert!(!epochs.begin_at(Offset(12)));
    }

    #[test]
    fn the_text_is_read_as_it_is_written() {
        let epochs = epochs(&[(2, 0), (3, 10), (7, 40)]);
        assert_eq!(LeaderEpochs::decode(epochs.encode().as_bytes()), Some(epochs));
        for bad in ["", "1\n0\n", "0\n2\n1 0\n", "0\n2\n2 0\n1 5\n", "0\n1\nx 0\n", "0\n1\n1 0 0\n"] {
            assert_eq!(LeaderEpochs::decode(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
