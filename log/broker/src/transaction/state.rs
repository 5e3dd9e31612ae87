//! The state of a transactional id.

use std::collections::BTreeSet;

use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

use crate::coordinator::Now;

/// Where the transaction of a transactional id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionState {
    /// None has begun since the producer was initialised.
    Empty,
    /// Partitions have been added.
    Ongoing,
    /// It is decided that it commits; markers are on their way.
    PrepareCommit,
    /// It is decided that it aborts; markers are on their way.
    PrepareAbort,
    /// It has committed and every marker is written.
    CompleteCommit,
    /// It has aborted and every marker is written.
    CompleteAbort,
}

impl TransactionState {
    /// The number that stands for the state in `__transaction_state`.
    pub(crate) fn id(self) -> i8 {
        match self {
            Self::Empty => 0,
            Self::Ongoing => 1,
            Self::PrepareCommit => 2,
            Self::PrepareAbort => 3,
            Self::CompleteCommit => 4,
            Self::CompleteAbort => 5,
        }
    }

    /// The state that `id` stands for. Kafka has two more that it never writes.
    pub(crate) fn from_id(id: i8) -> Option<Self> {
        Some(match id {
            0 => Self::Empty,
            1 => Self::Ongoing,
            2 => Self::PrepareCommit,
            3 => Self::PrepareAbort,
            4 => Self::CompleteCommit,
            5 => Self::CompleteAbort,
            _ => return None,
        })
    }

    /// The name that admins know the state by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// The state of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        (0..=5).filter_map(Self::from_id).find(|state| state.name() == name)
    }

    /// Whether the end is decided and the markers are on their way.
    pub(crate) fn is_prepared(self) -> bool {
        matches!(self, Self::PrepareCommit | Self::PrepareAbort)
    }

    /// Whether the last transaction has ended.
    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::CompleteCommit | Self::CompleteAbort)
    }
}

/// Which rules the producer plays by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TransactionVersion {
    /// Partitions are added explicitly; the epoch stays when a transaction ends (KIP-98).
    Classic,
    /// Partitions are added by writing to them; every end bumps the epoch (KIP-890).
    EpochBump,
}

impl TransactionVersion {
    /// The number that stands for the version in `__transaction_state`.
    pub(crate) fn id(self) -> i16 {
        match self {
            Self::Classic => 1,
            Self::EpochBump => 2,
        }
    }

    /// The version that `id` stands for.
    pub(crate) fn from_id(id: i16) -> Self {
        if id >= 2 { Self::EpochBump } else { Self::Classic }
    }
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Commit,
    Abort,
}

/// A producer's id and epoch, which together say which incarnation of it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) id: ProducerId,
    pub(crate) epoch: ProducerEpoch,
}

/// From this epoch on a producer gets a new id at the next bump: `i16::MAX` itself is kept for the markers that
/// fence it.
pub(crate) const EXHAUSTED_EPOCH: ProducerEpoch = ProducerEpoch(i16::MAX - 1);

/// Everything that is known of a transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transaction {
    /// Who may use the transactional id. In a prepared state: with which epoch the markers are written.
    pub(crate) producer: Producer,
    /// The id before the last one that ran out of epochs.
    pub(crate) previous_producer_id: ProducerId,
    /// In a prepared state whose epoch is exhausted: the id that takes over, with epoch 0.
    pub(crate) next_producer_id: ProducerId,
    /// The epoch before the last bump that the producer itself asked for, so that it may ask again after a lost
    /// answer (KIP-360); NONE after anybody else's. Not written down.
    pub(crate) last_epoch: ProducerEpoch,
    /// How long a transaction may be open, in ms.
    pub(crate) timeout_ms: i32,
    pub(crate) state: TransactionState,
    pub(crate) partitions: BTreeSet<TopicPartition>,
    /// When the transaction began, in wall-clock ms; −1 if none has.
    pub(crate) start_ms: i64,
    /// When anything changed, in wall-clock ms.
    pub(crate) last_update_ms: i64,
    pub(crate) version: TransactionVersion,
    /// When an ongoing transaction is given up, in monotonic ms. Not written down.
    pub(crate) deadline: Option<u64>,
}

/// What is to be done about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision<A> {
    /// Answer; nothing changes.
    Answer(A),
    /// Append `next`, which stands from then on, and answer once it is committed.
    Change { next: Transaction, answer: A },
    /// Append `next`, a prepared state, see it through, and decide again.
    EndFirst { next: Transaction },
    /// Decide again when the prepared transaction is complete.
    Wait,
    /// Decide again with a fresh producer id.
    NeedsProducerId,
}

impl Transaction {
    /// A transactional id that has just come up.
    pub(crate) fn new(id: ProducerId, timeout_ms: i32, now: Now) -> Self {
        Self {
            producer: Producer { id, epoch: ProducerEpoch(0) },
            previous_producer_id: ProducerId::NONE,
            next_producer_id: ProducerId::NONE,
            last_epoch: ProducerEpoch::NONE,
            timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start_ms: -1,
            last_update_ms: now.wall_ms,
            version: TransactionVersion::Classic,
            deadline: None,
        }
    }

    /// Refuses everybody but the current producer.
    pub(super) fn check(&self, producer: Producer) -> Result<(), ErrorCode> {
        if producer.id != self.producer.id {
            Err(ErrorCode::InvalidProducerIdMapping)
        } else if producer.epoch != self.producer.epoch {
            Err(ErrorCode::ProducerFenced)
        } else {
            Ok(())
        }
    }

    /// Whether `producer` is the one that takes over when the prepared transaction is complete.
    pub(super) fn is_successor(&self, producer: Producer) -> bool {
        self.state.is_prepared()
            && self.next_producer_id != ProducerId::NONE
            && producer == Producer { id: self.next_producer_id, epoch: ProducerEpoch(0) }
    }

    /// Sets the in-memory deadline of a transaction that was read back from the log.
    pub(crate) fn resume(&mut self, now: Now) {
        if self.state == TransactionState::Ongoing {
            let timeout_ms = i64::from(self.timeout_ms.max(0));
            let left_ms = self.start_ms.saturating_add(timeout_ms).saturating_sub(now.wall_ms);
            self.deadline = Some(now.monotonic_ms + left_ms.clamp(0, timeout_ms).unsigned_abs());
        }
    }

    /// Whether the transactional id has been idle for `expiration_ms` at `ageing_ms` of the wall clock and may be forgotten.
    pub(crate) fn is_expired(&self, expiration_ms: i64, ageing_ms: i64) -> bool {
        let is_idle = self.state == TransactionState::Empty || self.state.is_complete();
        is_idle && self.last_update_ms.saturating_add(expiration_ms) <= ageing_ms
    }
}
