//! The records that a share consumer has before it, and what it says of them: pure.

use std::collections::BTreeMap;
use std::ops::Bound;

use thalweg_protocol::Offset;

use super::session::SessionNumber;

/// What a consumer says of a record that it has acquired (KIP-932).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcknowledgeType {
    /// It has been processed, and is done with.
    Accept,
    /// It was not processed, and is to be delivered again, to this consumer or another, as often as the group's
    /// `share.delivery.count.limit` says.
    Release,
    /// It cannot be processed, and is not to be delivered again.
    Reject,
    /// It is still being processed: the consumer keeps it for another lock duration, and says later what became of it
    /// (KIP-1222). Needs Apache Kafka 4.2 or a broker that offers version 2 of ShareAcknowledge, and the group's
    /// `share.renew.acknowledge.enable`.
    Renew,
}

/// What a request says of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// There is none at the offset.
    Gap,
    /// The consumer said so.
    Of(AcknowledgeType),
}

impl Said {
    /// As it stands in requests.
    pub(super) fn code(self) -> i8 {
        match self {
            Self::Gap => 0,
            Self::Of(AcknowledgeType::Accept) => 1,
            Self::Of(AcknowledgeType::Release) => 2,
            Self::Of(AcknowledgeType::Reject) => 3,
            Self::Of(AcknowledgeType::Renew) => 4,
        }
    }
}

/// Records side by side of which a request says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckRange {
    pub(super) first: Offset,
    pub(super) last: Offset,
    pub(super) said: Said,
}

/// Where records stand with the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanState {
    /// Nothing was said of them since they were delivered.
    Open,
    /// They were renewed: something will be said of them at some time.
    Kept,
    /// What is to be told the broker.
    Said(Said),
}

/// Records side by side that came in one session and stand alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    last: Offset,
    session: SessionNumber,
    state: SpanState,
}

/// The records of one partition that were delivered and that the broker has not been told about.
///
/// What is said of whole batches stays one entry; single offsets that follow one another become one again.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// By their first offset; they do not overlap.
    spans: BTreeMap<Offset, Span>,
}

impl Held {
    /// Takes in records that are delivered now. Those with the same offsets that were delivered before were lost since.
    pub(super) fn deliver(&mut self, first: Offset, last: Offset, session: SessionNumber) {
        self.put(first, Span { last, session, state: SpanState::Open });
    }

    /// Takes in offsets of which something is to be said without the caller.
    pub(super) fn note(&mut self, first: Offset, last: Offset, session: SessionNumber, said: Said) {
        self.put(first, Span { last, session, state: SpanState::Said(said) });
    }

    /// Says something of all records from `first` to `last` that are before the consumer. Returns whether there are any.
    pub(super) fn say(&mut self, first: Offset, last: Offset, what: AcknowledgeType) -> bool {
        if last < first {
            return false;
        }
        self.split_at(first);
        self.split_at(last.plus(1));
        let mut is_any = false;
        for (_, span) in self.spans.range_mut(first..=last) {
            if span.state != SpanState::Said(Said::Gap) {
                span.state = SpanState::Said(Said::Of(what));
                is_any = true;
            }
        }
        self.join_at(first);
        self.join_at(last.plus(1));
        is_any
    }

    /// Says something of all records of which nothing was said.
    pub(super) fn say_rest(&mut self, what: AcknowledgeType) {
        for span in self.spans.values_mut().filter(|span| span.state == SpanState::Open) {
            span.state = SpanState::Said(Said::Of(what));
        }
    }

    /// Whether there are records of which nothing was said.
    pub(super) fn has_open(&self) -> bool {
        self.spans.values().any(|span| span.state == SpanState::Open)
    }

    /// Whether there is nothing of the partition before the consumer.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Takes out what was said, in the order of the offsets and by session. What is renewed stays.
    pub(super) fn take_said(&mut self) -> BTreeMap<SessionNumber, Vec<AckRange>> {
        let mut taken: BTreeMap<SessionNumber, Vec<AckRange>> = BTreeMap::new();
        self.spans.retain(|first, span| {
            let SpanState::Said(said) = span.state else { return true };
            let ranges = taken.entry(span.session).or_default();
            match ranges.last_mut() {
                Some(before) if before.said == said && before.last.plus(1) == *first => {
                    before.last = span.last;
                }
                _ => ranges.push(AckRange { first: *first, last: span.last, said }),
            }
            span.state = SpanState::Kept;
            said == Said::Of(AcknowledgeType::Renew)
        });
        taken
    }

    fn put(&mut self, first: Offset, span: Span) {
        self.split_at(first);
        self.split_at(span.last.plus(1));
        let over: Vec<Offset> = self.spans.range(first..=span.last).map(|(at, _)| *at).collect();
        for at in over {
            self.spans.remove(&at);
        }
        self.spans.insert(first, span);
    }

    /// Cuts the span that goes over the border before `offset`, if there is one.
    fn split_at(&mut self, offset: Offset) {
        let before = (Bound::Unbounded, Bound::Excluded(offset));
        let Some((_, span)) = self.spans.range_mut(before).next_back() else { return };
        if span.last < offset {
            return;
        }
        let right = *span;
        span.last = Offset(offset.0 - 1);
        self.spans.insert(offset, right);
    }

    /// Makes one of the spans on both sides of the border before `offset`, if they stand alike.
    fn join_at(&mut self, offset: Offset) {
        let Some(right) = self.spans.get(&offset).copied() else { return };
        let before = (Bound::Unbounded, Bound::Excluded(offset));
        let Some((_, left)) = self.spans.range_mut(before).next_back() else { return };
        if left.last.plus(1) == offset && left.session == right.session && left.state == right.state {
            left.last = right.last;
            self.spans.remove(&offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AcknowledgeType::{Accept, Reject, Release, Renew};
    use super::*;

    const ONE: SessionNumber = SessionNumber(1);
    const TWO: SessionNumber = SessionNumber(2);

    fn said(held: &mut Held) -> Vec<(u64, i64, i64, i8)> {
        let taken = held.take_said().into_iter();
        let each = taken.flat_map(|(session, ranges)| ranges.into_iter().map(move |range| (session, range)));
        each.map(|(session, range)| (session.0, range.first.0, range.last.0, range.said.code())).collect()
    }

    fn say(held: &mut Held, first: i64, last: i64, what: AcknowledgeType) -> bool {
        held.say(Offset(first), Offset(last), what)
    }

    #[test]
    fn what_is_said_is_taken_once_and_side_by_side_becomes_one() {
        let mut held = Held::default();
        held.deliver(Offset(10), Offset(19), ONE);
        assert!(held.has_open());
        for offset in 10..15 {
            assert!(say(&mut held, offset, offset, Accept));
        }
        assert_eq!(held.spans.len(), 2, "what follows one another is one");
        assert!(say(&mut held, 15, 15, Reject) && say(&mut held, 16, 30, Release));
        assert!(!held.has_open());
        assert!(
            !say(&mut held, 20, 25, Accept)
                && !say(&mut held, 9, 9, Accept)
                && !say(&mut held, 12, 11, Accept)
        );
        assert!(say(&mut held, 12, 12, Release), "it can be said otherwise until it is told");
        let expected = [(1, 10, 11, 1), (1, 12, 12, 2), (1, 13, 14, 1), (1, 15, 15, 3), (1, 16, 19, 2)];
        assert_eq!(said(&mut held), expected);
        assert!(held.is_empty() && said(&mut held).is_empty());
        assert!(!say(&mut held, 12, 12, Accept), "it was told");
    }

    #[test]
    fn what_is_renewed_stays_and_waits_for_a_word() {
        let mut held = Held::default();
        held.deliver(Offset(0), Offset(3), ONE);
        assert!(say(&mut held, 1, 1, Renew));
        held.say_rest(Accept);
        assert_eq!(said(&mut held), [(1, 0, 0, 1), (1, 1, 1, 4), (1, 2, 3, 1)]);
        assert!(!held.has_open() && !held.is_empty(), "it may stay over polls");
        held.say_rest(Accept);
        assert_eq!(said(&mut held), [], "and is not accepted by saying nothing");
        assert!(say(&mut held, 1, 1, Accept));
        assert_eq!(said(&mut held), [(1, 1, 1, 1)]);
    }

    #[test]
    fn gaps_are_told_without_the_caller_and_what_comes_again_takes_the_place_of_what_was() {
        let mut held = Held::default();
        held.deliver(Offset(0), Offset(1), ONE);
        held.note(Offset(2), Offset(2), ONE, Said::Gap);
        held.deliver(Offset(3), Offset(9), ONE);
        assert!(!say(&mut held, 2, 2, Reject), "there is none");
        assert!(say(&mut held, 0, 9, Accept));
        held.deliver(Offset(5), Offset(6), TWO);
        assert!(held.has_open());
        held.say_rest(Release);
        assert_eq!(said(&mut held), [(1, 0, 1, 1), (1, 2, 2, 0), (1, 3, 4, 1), (1, 7, 9, 1), (2, 5, 6, 2)]);
    }
}
