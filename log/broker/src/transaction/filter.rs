//! ListTransactions: which transactional ids are wanted (KIP-664, KIP-994, KIP-1152).

use std::collections::HashSet;

use bytestring::ByteString;
use thalweg_protocol::ProducerId;

use super::state::{Transaction, TransactionState};
use crate::coordinator::Now;
use crate::pattern::Pattern;

/// The states that Kafka knows and nothing here is ever in: asking for them is fine, and finds nothing.
const NEVER: [&str; 2] = ["Dead", "PrepareEpochFence"];

/// Which transactional ids are wanted. What is empty or `None` admits all.
#[derive(Debug, Default)]
pub(crate) struct TransactionFilter {
    /// Those in one of these states; `None` for any.
    pub(crate) states: Option<Vec<TransactionState>>,
    pub(crate) producer_ids: HashSet<ProducerId>,
    /// Those whose transaction has been running for longer than this.
    pub(crate) longer_than_ms: Option<i64>,
    /// Those whose transactional id matches as a whole.
    pub(crate) pattern: Option<Pattern>,
}

impl TransactionFilter {
    /// The states that `names` mean, `None` when there are no names, and the names that nobody knows.
    pub(crate) fn states(names: Vec<ByteString>) -> (Option<Vec<TransactionState>>, Vec<ByteString>) {
        if names.is_empty() {
            return (None, Vec::new());
        }
        let is_known =
            |name: &ByteString| TransactionState::from_name(name).is_some() || NEVER.contains(&&**name);
        let states = names.iter().filter_map(|name| TransactionState::from_name(name)).collect();
        (Some(states), names.into_iter().filter(|name| !is_known(name)).collect())
    }

    /// Whether `transaction` of transactional id `id` is wanted.
    pub(crate) fn admits(&self, id: &str, transaction: &Transaction, now: Now) -> bool {
        self.states.as_ref().is_none_or(|states| states.contains(&transaction.state))
            && (self.producer_ids.is_empty() || self.producer_ids.contains(&transaction.producer.id))
            && self.longer_than_ms.is_none_or(|ms| transaction.running_ms(now).is_some_and(|ran| ran > ms))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(id))
    }
}

impl Transaction {
    /// For how long the transaction has been running, in ms; `None` when none is.
    fn running_ms(&self, now: Now) -> Option<i64> {
        let runs = self.state == TransactionState::Ongoing || self.state.is_prepared();
        (runs && self.start_ms >= 0).then(|| now.wall_ms.saturating_sub(self.start_ms))
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::ProducerEpoch;

    use super::*;
    use crate::transaction::Producer;
    use TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};

    const NOW: Now = Now { monotonic_ms: 0, wall_ms: 1_700_000_060_000 };
    const ALL: [(&str, i64, TransactionState, i64); 6] = [
        // Id, producer, state, for how long in ms.
        ("orders-1", 1, Empty, -1),
        ("orders-2", 2, Ongoing, 1_000),
        ("orders-22", 22, Ongoing, 60_000),
        ("sales-1", 3, PrepareCommit, 2_000),
        ("sales-2", 4, PrepareAbort, 1_001),
        ("sales-3", 5, CompleteCommit, 50_000),
    ];

    fn admitted(filter: &TransactionFilter) -> Vec<&'static str> {
        let admits = |&&(id, producer, state, age_ms): &&(&str, i64, TransactionState, i64)| {
            let mut transaction = Transaction::new(ProducerId(producer), 60_000, NOW);
            transaction.producer = Producer { id: ProducerId(producer), epoch: ProducerEpoch(0) };
            transaction.state = state;
            transaction.start_ms = if age_ms < 0 { -1 } else { NOW.wall_ms - age_ms };
            filter.admits(id, &transaction, NOW)
        };
        ALL.iter().filter(admits).map(|(id, ..)| *id).collect()
    }

    #[test]
    fn every_part_of_a_filter_has_to_admit() {
        let pattern = |pattern| Some(Pattern::compile(pattern).expect("it can be used"));
        let ids = |ids: &[i64]| ids.iter().map(|id| ProducerId(*id)).collect();
        let any = TransactionFilter::default;
        let all: Vec<_> = ALL.iter().map(|(id, ..)| *id).collect();
        for (filter, expected) in [
            (any(), all.as_slice()),
            (TransactionFilter { states: Some(vec![Ongoing]), ..any() }, &["orders-2", "orders-22"]),
            (
                TransactionFilter { states: Some(vec![Empty, PrepareAbort]), ..any() },
                &["orders-1", "sales-2"],
            ),
            (TransactionFilter { states: Some(vec![CompleteAbort]), ..any() }, &[]),
            (TransactionFilter { states: Some(Vec::new()), ..any() }, &[]),
            (TransactionFilter { producer_ids: ids(&[2, 5, 99]), ..any() }, &["orders-2", "sales-3"]),
            // Longer than, and only what still runs.
            (
                TransactionFilter { longer_than_ms: Some(0), ..any() },
                &["orders-2", "orders-22", "sales-1", "sales-2"],
            ),
            (
                TransactionFilter { longer_than_ms: Some(1_000), ..any() },
                &["orders-22", "sales-1", "sales-2"],
            ),
            (TransactionFilter { longer_than_ms: Some(60_000), ..any() }, &[]),
            (TransactionFilter { longer_than_ms: Some(i64::MAX), ..any() }, &[]),
            (TransactionFilter { pattern: pattern("orders-2"), ..any() }, &["orders-2"]),
            (TransactionFilter { pattern: pattern(".*-2"), ..any() }, &["orders-2", "sales-2"]),
            (
                TransactionFilter {
                    states: Some(vec![Ongoing, PrepareCommit]),
                    producer_ids: ids(&[2, 3, 22]),
                    longer_than_ms: Some(1_500),
                    pattern: pattern("orders.*"),
                },
                &["orders-22"],
            ),
        ] {
            assert_eq!(admitted(&filter), expected, "{filter:?}");
        }
    }

    #[test]
    fn states_go_by_the_names_that_kafka_gives_them() {
        for (names, states, unknown) in [
            (&[][..], None, &[][..]),
            (&["Ongoing", "CompleteAbort"], Some(vec![Ongoing, CompleteAbort]), &[]),
            (&["ongoing", "Empty", "Odd"], Some(vec![Empty]), &["ongoing", "Odd"]),
            (&["Dead", "PrepareEpochFence"], Some(vec![]), &[]),
        ] {
            let given = names.iter().map(|name| ByteString::from_static(name)).collect();
            let found = TransactionFilter::states(given);
            let unknown = unknown.iter().map(|name| ByteString::from_static(name)).collect();
            assert_eq!(found, (states, unknown), "{names:?}");
        }
        for state in [Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort] {
            assert_eq!(TransactionState::from_name(state.name()), Some(state));
        }
    }
}
