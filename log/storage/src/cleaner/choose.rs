//! Which log is cleaned next.

/// What the choice looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// Bytes that have been cleaned before.
    pub(super) clean_bytes: u64,
    /// Bytes that could be and have not been.
    pub(super) dirty_bytes: u64,
    /// The part of all these that must be dirty for the log to be cleaned.
    pub(super) min_dirty_ratio: f64,
    /// Whether a record has waited longer than it may.
    pub(super) is_overdue: bool,
    /// Whether tombstones or markers may go by now.
    pub(super) has_due_horizon: bool,
}

/// The order among those that are due.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Urgency {
    /// Some tombstones could go; nothing else.
    Horizon,
    /// That much of it is dirty.
    Dirty(f64),
    /// It is too late already; that much of it is dirty.
    Overdue(f64),
}

impl Candidate {
    fn dirty_ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 { 0.0 } else { self.dirty_bytes as f64 / all as f64 }
    }

    fn urgency(&self) -> Option<Urgency> {
        let ratio = self.dirty_ratio();
        match () {
            () if self.dirty_bytes > 0 && self.is_overdue => Some(Urgency::Overdue(ratio)),
            () if self.dirty_bytes > 0 && ratio > self.min_dirty_ratio => Some(Urgency::Dirty(ratio)),
            () if self.has_due_horizon => Some(Urgency::Horizon),
            () => None,
        }
    }
}

/// The index of the one to clean: what is overdue comes first, then what is dirtiest, then what only has tombstones to lose.
pub(super) fn choose(candidates: impl IntoIterator<Item = Candidate>) -> Option<usize> {
    let mut best: Option<(Urgency, usize)> = None;
    for (at, candidate) in candidates.into_iter().enumerate() {
        if let Some(urgency) = candidate.urgency()
            && best.is_none_or(|(most, _)| urgency > most)
        {
            best = Some((urgency, at));
        }
    }
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(clean_bytes: u64, dirty_bytes: u64) -> Candidate {
        Candidate {
            clean_bytes,
            dirty_bytes,
            min_dirty_ratio: 0.5,
            is_overdue: false,
            has_due_horizon: false,
        }
    }

    #[test]
    fn the_dirtiest_is_chosen() {
        let overdue = |candidate| Candidate { is_overdue: true, ..candidate };
        let horizon = |candidate| Candidate { has_due_horizon: true, ..candidate };
        let eager = |candidate| Candidate { min_dirty_ratio: 0.0, ..candidate };
        let cases = [
            (vec![], None),
            (vec![candidate(0, 0), candidate(50, 50), candidate(100, 0)], None),
            (vec![candidate(50, 51)], Some(0)),
            (vec![candidate(50, 60), candidate(0, 1), candidate(10, 90)], Some(1)),
            (vec![candidate(0, 100), overdue(candidate(1000, 1))], Some(1)),
            (vec![overdue(candidate(1000, 0))], None),
            (vec![horizon(candidate(100, 0)), candidate(49, 50)], Some(1)),
            (vec![candidate(100, 0), horizon(candidate(100, 0))], Some(1)),
            (vec![eager(candidate(100, 0)), eager(candidate(1000, 1))], Some(1)),
        ];
        for (candidates, expected) in cases {
            assert_eq!(choose(candidates.clone()), expected, "of {candidates:?}");
        }
    }
}
