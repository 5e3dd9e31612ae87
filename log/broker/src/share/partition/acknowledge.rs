//! Members say what they have done with records, keep them too long, or go.

use thalweg_protocol::{ErrorCode, Offset};

use super::{Change, Lock, RecordState, SharePartition, Transition, count};

/// What a member says of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    /// There was no record at the offset.
    Gap,
    /// It has been dealt with.
    Accept,
    /// It was not, and is to be delivered again.
    Release,
    /// It cannot be dealt with, and is not to be delivered again.
    Reject,
    /// It is being dealt with, and that takes longer (KIP-1222).
    Renew,
}

impl Acknowledgement {
    /// Its number in ShareFetch and ShareAcknowledge, to count by.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Gap => 0,
            Self::Accept => 1,
            Self::Release => 2,
            Self::Reject => 3,
            Self::Renew => 4,
        }
    }

    /// The acknowledgement of this number in ShareFetch and ShareAcknowledge.
    pub(crate) fn from_number(number: i8) -> Option<Self> {
        match number {
            0 => Some(Self::Gap),
            1 => Some(Self::Accept),
            2 => Some(Self::Release),
            3 => Some(Self::Reject),
            4 => Some(Self::Renew),
            _ => None,
        }
    }
}

/// What a member says of records side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AckBatch {
    first: Offset,
    last: Offset,
    /// One for all, or one for each.
    types: Vec<Acknowledgement>,
}

impl AckBatch {
    /// Reads a batch of a request. `may_renew` says whether locks may be renewed by it.
    ///
    /// # Errors
    /// INVALID_REQUEST.
    pub(crate) fn new(first: i64, last: i64, types: &[i8], may_renew: bool) -> Result<Self, ErrorCode> {
        let is_sound = 0 <= first
            && first <= last
            && last < i64::MAX
            && (types.len() == 1 || i64::try_from(types.len()) == Ok(last - first + 1));
        if !is_sound {
            return Err(ErrorCode::InvalidRequest);
        }
        let read = |number: &i8| match Acknowledgement::from_number(*number) {
            Some(Acknowledgement::Renew) if !may_renew => Err(ErrorCode::InvalidRequest),
            Some(known) => Ok(known),
            None => Err(ErrorCode::InvalidRequest),
        };
        let types = types.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { first: Offset(first), last: Offset(last), types })
    }

    /// Of how many records what is said.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Acknowledgement, u64)> + '_ {
        let each = match self.types.len() {
            1 => count(self.first, self.last),
            _ => 1,
        };
        self.types.iter().map(move |said| (*said, each))
    }

    /// What is said of the record at `offset`, and up to which one the same is said.
    fn at(&self, offset: Offset, last: Offset) -> Option<(Acknowledgement, Offset)> {
        if let [one] = *self.types.as_slice() {
            return Some((one, last));
        }
        let at = usize::try_from(offset.0 - self.first.0).ok()?;
        let rest = self.types.get(at..)?;
        let said = *rest.first()?;
        let same = rest.iter().take_while(|other| **other == said).count();
        Some((said, offset.plus(same as i64 - 1).min(last)))
    }
}

/// What a group lets its members do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTerms {
    /// A record that was delivered so often is given up instead of being delivered again.
    pub(crate) max_deliveries: i16,
    /// Until when a member has what it renews, in monotonic ms.
    pub(crate) until_ms: u64,
}

impl SharePartition {
    /// What becomes of records of which `member` says something. Those before the start offset are done with already.
    ///
    /// # Errors
    /// INVALID_REQUEST for offsets that nobody was given, or out of order; INVALID_RECORD_STATE for records that the member
    /// does not have. Then nothing of it counts.
    pub(crate) fn acknowledge(
        &self,
        member: &str,
        batches: &[AckBatch],
        terms: AckTerms,
    ) -> Result<Transition, ErrorCode> {
        let mut transition = Transition::default();
        let mut after = Offset(0);
        for batch in batches {
            if batch.first < after {
                return Err(ErrorCode::InvalidRequest);
            }
            after = batch.last.plus(1);
            if batch.last < self.start {
                continue;
            }
            if batch.last >= self.end {
                return Err(ErrorCode::InvalidRequest);
            }
            for (first, last, run) in self.cut(batch.first.max(self.start), batch.last) {
                let RecordState::Acquired(lock) = &run.state else {
                    return Err(ErrorCode::InvalidRecordState);
                };
                if lock.member != member {
                    return Err(ErrorCode::InvalidRecordState);
                }
                let mut at = first;
                while at <= last {
                    let (said, until) = batch.at(at, last).ok_or(ErrorCode::InvalidRequest)?;
                    let state = outcome(said, lock, run.deliveries, terms);
                    transition.push(Change { first: at, last: until, state, deliveries: run.deliveries });
                    at = until.plus(1);
                }
            }
        }
        Ok(transition)
    }

    /// What becomes of what `member` has, now that it has gone. The delivery counts, as in Kafka: a record that its readers
    /// perish of is given up in the end.
    pub(crate) fn release(&self, member: &str, max_deliveries: i16) -> Transition {
        self.give_back(max_deliveries, |lock| lock.member == member)
    }

    /// What becomes of what members have had for too long.
    pub(crate) fn expire(&self, now_ms: u64, max_deliveries: i16) -> Transition {
        self.give_back(max_deliveries, |lock| lock.until_ms <= now_ms)
    }

    fn give_back(&self, max_deliveries: i16, is_over: impl Fn(&Lock) -> bool) -> Transition {
        let mut transition = Transition::default();
        for (&first, run) in &self.runs {
            let RecordState::Acquired(lock) = &run.state else { continue };
            if is_over(lock) {
                let state = redelivered(run.deliveries, max_deliveries);
                transition.push(Change { first, last: run.last, state, deliveries: run.deliveries });
            }
        }
        transition
    }
}

fn outcome(said: Acknowledgement, lock: &Lock, deliveries: i16, terms: AckTerms) -> RecordState {
    match said {
        Acknowledgement::Accept => RecordState::Acknowledged,
        Acknowledgement::Gap | Acknowledgement::Reject => RecordState::Archived,
        Acknowledgement::Release => redelivered(deliveries, terms.max_deliveries),
        Acknowledgement::Renew => {
            RecordState::Acquired(Lock { member: lock.member.clone(), until_ms: terms.until_ms })
        }
    }
}

/// How a record stands that somebody has given back.
fn redelivered(deliveries: i16, max_deliveries: i16) -> RecordState {
    if deliveries >= max_deliveries { RecordState::Archived } else { RecordState::Available }
}

impl Transition {
    /// Adds a change after all others, to the last one if it says the same.
    fn push(&mut self, change: Change) {
        match self.changes.last_mut() {
            Some(last)
                if last.last.plus(1) == change.first
                    && last.state == change.state
                    && last.deliveries == change.deliveries =>
            {
                last.last = change.last;
            }
            _ => self.changes.push(change),
        }
    }
}
