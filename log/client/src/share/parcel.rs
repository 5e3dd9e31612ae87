//! What is to be said of records to one broker, in one request.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use thalweg_protocol::messages::{share_acknowledge, share_fetch};
use thalweg_protocol::{ErrorCode, Offset, TopicPartition};
use tokio::time::Instant;

use super::acquired::AcknowledgementOutcome;
use super::held::{AckRange, AcknowledgeType, Said};
use super::session::Key;
use crate::error::{Error, Result};

/// What is said of the records of one partition.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    pub(super) partition: TopicPartition,
    /// In the order of their offsets.
    pub(super) ranges: Vec<AckRange>,
}

/// What is said of records in one request.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub(super) sayings: BTreeMap<Key, Saying>,
    /// It is tried again until then.
    pub(super) deadline: Instant,
    /// Whether it was sent before: what was refused then may have taken effect all the same.
    pub(super) is_repeated: bool,
}

/// What the answer of a broker means for what was said of a partition.
pub(super) enum Verdict {
    Done(Result<()>),
    /// The broker cannot write it down at present: it may be told once more.
    Again,
}

impl Parcel {
    pub(super) fn new(deadline: Instant) -> Self {
        Self { sayings: BTreeMap::new(), deadline, is_repeated: false }
    }

    /// Whether locks are renewed by it, which no fetch can do.
    pub(super) fn renews(&self) -> bool {
        let renewal = Said::Of(AcknowledgeType::Renew);
        self.sayings.values().any(|saying| saying.ranges.iter().any(|range| range.said == renewal))
    }

    /// Takes renewals out, where the session is about to end.
    pub(super) fn without_renewals(mut self) -> Self {
        let renewal = Said::Of(AcknowledgeType::Renew);
        self.sayings.values_mut().for_each(|saying| saying.ranges.retain(|range| range.said != renewal));
        self.sayings.retain(|_, saying| !saying.ranges.is_empty());
        self
    }

    /// What the answer `code` for one of its partitions means.
    pub(super) fn judge(&self, partition: &TopicPartition, error: Error, now: Instant) -> Verdict {
        let passes = matches!(
            error.code(),
            Some(
                ErrorCode::CoordinatorNotAvailable
                    | ErrorCode::CoordinatorLoadInProgress
                    | ErrorCode::NotCoordinator
            )
        );
        if passes && now < self.deadline {
            return Verdict::Again;
        }
        let is_unclear = passes || self.is_repeated || error.code() == Some(ErrorCode::UnknownServerError);
        Verdict::Done(Err(match is_unclear {
            true => unknown(partition, error),
            false => refused(partition, error),
        }))
    }

    /// The outcomes, where all of it ends alike.
    pub(super) fn ended(self, result: impl Fn(&TopicPartition) -> Result<()>) -> Vec<AcknowledgementOutcome> {
        self.sayings.into_values().filter_map(|saying| saying.ended(&result)).collect()
    }
}

impl Saying {
    /// The outcome; `None` where the caller has said nothing, but the client alone of offsets without a record.
    pub(super) fn ended(
        self,
        result: impl FnOnce(&TopicPartition) -> Result<()>,
    ) -> Option<AcknowledgementOutcome> {
        let mut offsets: Vec<RangeInclusive<Offset>> = Vec::new();
        for range in self.ranges.iter().filter(|range| range.said != Said::Gap) {
            match offsets.last_mut() {
                Some(before) if before.end().plus(1) == range.first => {
                    *before = *before.start()..=range.last;
                }
                _ => offsets.push(range.first..=range.last),
            }
        }
        if offsets.is_empty() {
            return None;
        }
        let result = result(&self.partition);
        Some(AcknowledgementOutcome { partition: self.partition, offsets, result })
    }

    pub(super) fn in_fetch(&self) -> Vec<share_fetch::AcknowledgementBatch> {
        let batch = |range: &AckRange| share_fetch::AcknowledgementBatch {
            first_offset: range.first.0,
            last_offset: range.last.0,
            acknowledge_types: vec![range.said.code()],
        };
        self.ranges.iter().map(batch).collect()
    }

    pub(super) fn in_acknowledge(&self) -> Vec<share_acknowledge::AcknowledgementBatch> {
        let batch = |range: &AckRange| share_acknowledge::AcknowledgementBatch {
            first_offset: range.first.0,
            last_offset: range.last.0,
            acknowledge_types: vec![range.said.code()],
        };
        self.ranges.iter().map(batch).collect()
    }
}

/// What was said does not count.
pub(super) fn refused(partition: &TopicPartition, source: Error) -> Error {
    Error::NotAcknowledged { partition: partition.clone(), source: Arc::new(source) }
}

/// Whether what was said counts is not known.
pub(super) fn unknown(partition: &TopicPartition, source: Error) -> Error {
    Error::AcknowledgementUnknown { partition: partition.clone(), source: Arc::new(source) }
}
