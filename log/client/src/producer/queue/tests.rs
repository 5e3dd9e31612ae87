use std::time::Duration;

use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, Compressor};

use super::*;

/// A queue, and the batches as the broker would see them: `sequence@epoch` of each that is sent.
struct Bench {
    queue: PartitionQueue,
    identity: Identity,
    now: Instant,
}

fn identity(epoch: i16) -> Identity {
    Identity { id: ProducerId(7), epoch: ProducerEpoch(epoch), transactional: false }
}

fn batch(records: i32, handed_over: Instant) -> Batch {
    let mut builder = BatchBuilder::new(Compression::None, None, 0);
    for _ in 0..records {
        builder.append(0, None, Some(b"value"), []).expect("it fits");
    }
    let records = builder.finish(&mut Compressor::new(), None);
    let partition = TopicPartition::new("t", 0);
    Batch {
        partition,
        reserved: records.size_in_bytes(),
        records,
        handed_over,
        notify: None,
        serial: 0,
        place: (0, 0),
        span: u32::MAX,
        generation: 0,
        sequence: None,
        attempts: 0,
        maybe_written: false,
        unsent: None,
    }
}

impl Bench {
    fn new(is_idempotent: bool, max_in_flight: usize) -> Self {
        let queue = PartitionQueue::new(TopicPartition::new("t", 0), is_idempotent, max_in_flight);
        Self { queue, identity: identity(0), now: Instant::now() }
    }

    fn push(&mut self, count: usize) {
        for _ in 0..count {
            self.queue.push(batch(2, self.now));
        }
    }

    /// Sends all that can be sent: serials with their sequence number and epoch.
    fn send(&mut self) -> Vec<(u64, i32, i16)> {
        let mut sent = Vec::new();
        loop {
            match self.queue.next(Some(self.identity), self.now) {
                Next::Send { serial, records } => {
                    records.verify().expect("the checksum is renewed");
                    let header = records.header();
                    sent.push((serial, header.base_sequence, header.producer_epoch.0));
                }
                Next::NeedsIdentity => self.identity = identity(self.identity.epoch.0 + 1),
                Next::Nothing | Next::Wait(_) => return sent,
            }
        }
    }
}

#[test]
fn five_batches_are_in_flight_in_sequence() {
    let mut bench = Bench::new(true, 5);
    bench.push(7);
    assert_eq!(bench.send(), [(0, 0, 0), (1, 2, 0), (2, 4, 0), (3, 6, 0), (4, 8, 0)]);
    assert!(bench.queue.acknowledged(0).is_some());
    assert_eq!(bench.send(), [(5, 10, 0)]);
}

#[test]
fn without_sequence_numbers_only_one_batch_keeps_the_order() {
    let mut bench = Bench::new(false, 1);
    bench.push(2);
    assert_eq!(bench.send(), [(0, -1, -1)]);
    bench.queue.again(0, true, bench.now);
    assert_eq!(bench.send(), [(0, -1, -1)], "the first one again, before the second");
}

#[test]
fn a_batch_that_fails_is_sent_again_before_the_later_ones_and_alone() {
    let mut bench = Bench::new(true, 5);
    bench.push(4);
    assert_eq!(bench.send().len(), 4);
    // The first one gets lost, the second and third are refused for that.
    bench.queue.again(0, true, bench.now);
    assert!(!bench.queue.is_first(1), "the first one will be sent again");
    bench.queue.again(2, false, bench.now);
    bench.queue.again(1, false, bench.now);
    assert_eq!(bench.send(), [], "the fourth is in flight");
    bench.queue.again(3, false, bench.now);
    for (serial, sequence) in [(0, 0), (1, 2), (2, 4), (3, 6)] {
        assert_eq!(bench.send(), [(serial, sequence, 0)], "in the old order under the old numbers");
        assert!(bench.queue.acknowledged(serial).is_some());
    }
    bench.push(1);
    assert_eq!(bench.send(), [(4, 8, 0)]);
}

#[test]
fn no_batch_overtakes_an_older_one_by_more_than_brokers_remember() {
    let mut bench = Bench::new(true, 5);
    bench.push(9);
    assert_eq!(bench.send().len(), 5);
    for serial in 1..5 {
        assert!(bench.queue.acknowledged(serial).is_some());
    }
    assert_eq!(bench.send(), [], "the first one may have to be sent again");
    assert!(bench.queue.acknowledged(0).is_some());
    assert_eq!(bench.send().len(), 4);
}

#[test]
fn a_pause_holds_up_all_batches() {
    let mut bench = Bench::new(true, 5);
    bench.push(2);
    assert_eq!(bench.send().len(), 2);
    let later = bench.now + Duration::from_millis(50);
    bench.queue.again(0, false, later);
    assert!(bench.queue.acknowledged(1).is_some());
    assert_eq!(bench.queue.next(Some(bench.identity), bench.now), Next::Wait(later));
    bench.now = later;
    assert_eq!(bench.send(), [(0, 0, 0)]);
}

#[test]
fn after_a_refused_batch_the_later_ones_go_under_a_newer_epoch() {
    let mut bench = Bench::new(true, 5);
    bench.push(3);
    assert_eq!(bench.send().len(), 3);
    assert!(bench.queue.refused(0).is_some(), "too large, say");
    // The broker refuses the sequence numbers of the others, since there is a gap now.
    assert!(bench.queue.is_first(1));
    bench.queue.renumber(1, bench.now);
    assert_eq!(bench.send(), [], "the third is in flight");
    assert!(!bench.queue.is_first(2));
    bench.queue.again(2, false, bench.now);
    assert_eq!(bench.send(), [(1, 0, 1), (2, 2, 1)]);
    assert!(bench.queue.acknowledged(1).is_some() && bench.queue.acknowledged(2).is_some());
    bench.push(1);
    assert_eq!(bench.send(), [(3, 4, 1)]);
}

#[test]
fn after_a_batch_of_unknown_fate_the_sent_ones_keep_their_numbers_and_new_ones_do_not() {
    let mut bench = Bench::new(true, 5);
    bench.push(2);
    assert_eq!(bench.send().len(), 2);
    bench.queue.again(0, true, bench.now);
    bench.queue.again(1, true, bench.now);
    bench.push(1);
    let handed_over = bench.now;
    bench.queue.waiting[1].handed_over += Duration::from_secs(1);
    bench.queue.waiting[2].handed_over += Duration::from_secs(1);
    let expired = bench.queue.expire(handed_over);
    assert!(expired.len() == 1 && expired[0].maybe_written);
    // If the broker has the first one, it takes (or has) the second one under its number, and there is no
    // gap.
    assert_eq!(bench.send(), [(1, 2, 0)]);
    assert!(bench.queue.acknowledged(1).is_some());
    assert_eq!(bench.send(), [(2, 0, 1)], "what was never sent goes under a newer epoch");
}

#[test]
fn another_partitions_newer_epoch_is_taken_up_when_nothing_is_in_flight() {
    let mut bench = Bench::new(true, 5);
    bench.push(2);
    assert_eq!(bench.send().len(), 2);
    bench.push(1);
    bench.identity = identity(3);
    assert_eq!(bench.send(), []);
    bench.queue.again(1, true, bench.now);
    assert!(bench.queue.acknowledged(0).is_some());
    assert_eq!(bench.send(), [(1, 2, 0)], "a duplicate would not be found under another epoch");
    assert!(bench.queue.acknowledged(1).is_some());
    assert_eq!(bench.send(), [(2, 0, 3)]);
}

#[test]
fn sequence_numbers_wrap_to_zero() {
    let mut bench = Bench::new(true, 5);
    bench.push(1);
    assert_eq!(bench.send().len(), 1);
    bench.queue.next_sequence = i32::MAX - 1;
    bench.push(2);
    assert_eq!(bench.send(), [(1, i32::MAX - 1, 0), (2, 0, 0)]);
}

#[test]
fn halves_take_the_place_and_the_sequence_numbers_of_the_whole() {
    let mut bench = Bench::new(true, 5);
    bench.queue.push(batch(4, bench.now));
    bench.queue.push(batch(7, bench.now));
    bench.queue.push(batch(2, bench.now));
    assert_eq!(bench.send(), [(0, 0, 0), (1, 4, 0), (2, 11, 0)]);
    assert!(bench.queue.acknowledged(0).is_some());
    // The last is refused because the one before it has not been taken.
    let mut whole = bench.queue.taken_apart(1).expect("it is in flight");
    bench.queue.again(2, false, bench.now);
    bench.queue.put_parts(whole.halve().expect("it is whole"));
    bench.push(1);
    assert_eq!(bench.send(), [(3, 4, 0)], "alone, and before what comes later");
    let mut half = bench.queue.taken_apart(3).expect("it is in flight");
    bench.queue.put_parts(half.halve().expect("it is whole"));
    for (serial, sequence) in [(6, 4), (7, 5), (4, 7)] {
        assert_eq!(bench.send(), [(serial, sequence, 0)]);
        assert!(bench.queue.is_first(serial));
        assert!(bench.queue.acknowledged(serial).is_some());
    }
    assert_eq!(bench.send(), [(2, 11, 0), (5, 13, 0)], "what is new fits on without a gap");
}

#[test]
fn what_is_left_of_a_batch_goes_under_new_numbers_before_what_comes_later() {
    let mut bench = Bench::new(true, 5);
    bench.queue.push(batch(3, bench.now));
    bench.push(2);
    assert_eq!(bench.send(), [(0, 0, 0), (1, 3, 0), (2, 5, 0)]);
    let mut refused = bench.queue.refused(0).expect("it is in flight");
    let (rest, _) = refused.without(&std::collections::BTreeSet::from([1])).expect("it is whole");
    assert_eq!(rest.records.header().records_count, 2);
    bench.queue.put_parts([rest]);
    bench.queue.again(1, false, bench.now);
    bench.queue.again(2, false, bench.now);
    assert_eq!(bench.send(), [(3, 0, 1)], "under a newer epoch");
    assert!(bench.queue.acknowledged(3).is_some());
    // The others were sent under the older epoch, which is refused now.
    assert_eq!(bench.send(), [(1, 3, 0)]);
    bench.queue.renumber(1, bench.now);
    assert_eq!(bench.send(), [(1, 0, 2), (2, 2, 2)]);
}
