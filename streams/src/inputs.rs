//! The queues of a task's input partitions, and the order in which records leave them.

use std::collections::VecDeque;
use std::ops::Range;

use thalweg_protocol::record::Record as RawRecord;

use crate::records::{InputBatch, RecordEntry};

/// The inputs of a task: one queue of batches per source topic of its sub-topology, in the order in which
/// the sub-topology names them.
///
/// A [`Program`](crate::Program) takes records off with [`next_by_timestamp`](Self::next_by_timestamp) or
/// [`next_in_any_order`](Self::next_in_any_order). What it has taken counts as processed: the next commit
/// covers it.
#[derive(Debug, Default)]
pub struct Inputs {
    queues: Vec<Queue>,
    /// The batch that the last run came from, kept alive while the program looks at it.
    current: Option<InputBatch>,
    /// Where the search for the next batch in any order begins, so that no input starves.
    turn: usize,
    taken: u64,
    spare: Vec<Vec<RecordEntry>>,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<InputBatch>,
    /// How many records of the front batch are processed.
    cursor: usize,
    /// The offset of the next record to process.
    position: i64,
    /// How many records lie in `batches` unprocessed.
    records: usize,
    /// Nothing more is known to be in the log: an empty queue isn't waited for.
    caught_up: bool,
}

impl Queue {
    fn head_timestamp(&self) -> Option<i64> {
        self.batches.front().map(|batch| batch.timestamp(self.cursor))
    }
}

/// How many spent indexes are kept to be used again.
const SPARE_LIMIT: usize = 64;

/// A stretch of consecutive records of one input.
#[derive(Debug)]
pub struct InputRun<'a> {
    input: usize,
    batch: &'a InputBatch,
    range: Range<usize>,
}

impl<'a> InputRun<'a> {
    /// The input it came from, as an index into the sub-topology's sources.
    pub fn input(&self) -> usize {
        self.input
    }

    /// How many records it holds; at least one.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it holds no record, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The record at `at`, counted from 0.
    ///
    /// # Panics
    /// When there are not that many.
    pub fn record(&self, at: usize) -> RawRecord<'a> {
        self.batch.record(self.range.start + at)
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = RawRecord<'a>> + use<'a> {
        let batch = self.batch;
        self.range.clone().map(move |at| batch.record(at))
    }
}

impl Inputs {
    /// Empty queues, one per starting position.
    pub(crate) fn new(positions: &[i64]) -> Self {
        let queue = |&position| Queue { position, ..Queue::default() };
        Self { queues: positions.iter().map(queue).collect(), ..Self::default() }
    }

    /// How many inputs there are.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The offset of the next record of `input` to be processed.
    pub fn position(&self, input: usize) -> i64 {
        self.queues[input].position
    }

    /// The next run in the order of the records' timestamps across inputs: the longest stretch of one queue
    /// whose timestamps do not pass the other queues' heads (ties go to the input named first). That is one
    /// record at worst, and a whole batch where inputs do not interleave.
    ///
    /// Returns `None` when there is nothing, or when an input is empty that may still have records in the
    /// log: so a replay takes records in the same order as the live run did (KIP-695).
    pub fn next_by_timestamp(&mut self) -> Option<InputRun<'_>> {
        if self.queues.iter().any(|queue| queue.batches.is_empty() && !queue.caught_up) {
            return None;
        }
        let heads = || {
            let head = |(input, queue): (usize, &Queue)| Some((queue.head_timestamp()?, input));
            self.queues.iter().enumerate().filter_map(head)
        };
        let (_, input) = heads().min()?;
        let bound = heads().filter(|&(_, other)| other != input).min();
        let queue = &self.queues[input];
        let batch = queue.batches.front().expect("it has a head");
        let end = match bound {
            None => batch.len(),
            Some(bound) if (batch.max_timestamp(), input) <= bound => batch.len(),
            Some(bound) => (queue.cursor + 1..batch.len())
                .find(|&at| (batch.timestamp(at), input) > bound)
                .unwrap_or(batch.len()),
        };
        Some(self.take(input, end))
    }

    /// The rest of the front batch of the input whose turn it is, however the inputs' times compare.
    pub fn next_in_any_order(&mut self) -> Option<InputRun<'_>> {
        let inputs = self.queues.len();
        let input = (0..inputs)
            .map(|step| (self.turn + step) % inputs)
            .find(|&input| !self.queues[input].batches.is_empty())?;
        self.turn = input + 1;
        let end = self.queues[input].batches.front().map_or(0, InputBatch::len);
        Some(self.take(input, end))
    }

    /// Takes the records up to `end` off the front batch of `input`.
    fn take(&mut self, input: usize, end: usize) -> InputRun<'_> {
        let queue = &mut self.queues[input];
        let range = queue.cursor..end;
        queue.records -= range.len();
        self.taken += range.len() as u64;
        let front = queue.batches.front().expect("the input was chosen because it has a batch");
        if end < front.len() {
            queue.cursor = end;
            queue.position = front.offset(end);
            let batch = queue.batches.front().expect("it was there a line ago");
            return InputRun { input, batch, range };
        }
        let batch = queue.batches.pop_front().expect("it was there a line ago");
        queue.cursor = 0;
        queue.position = batch.next_offset();
        queue.skip_empty();
        if let Some(spent) = self.current.replace(batch)
            && self.spare.len() < SPARE_LIMIT
        {
            self.spare.push(spent.into_entries());
        }
        InputRun { input, batch: self.current.as_ref().expect("it was just put there"), range }
    }

    /// Appends a batch that was fetched to the queue of `input`.
    pub(crate) fn enqueue(&mut self, input: usize, batch: InputBatch) {
        let queue = &mut self.queues[input];
        queue.records += batch.len();
        queue.batches.push_back(batch);
        queue.skip_empty();
    }

    /// Says whether `input` has been fetched to the end of what is stable in the log.
    pub(crate) fn set_caught_up(&mut self, input: usize, caught_up: bool) {
        self.queues[input].caught_up = caught_up;
    }

    /// Whether `input` is known to have no more in the log.
    pub(crate) fn is_caught_up(&self, input: usize) -> bool {
        self.queues[input].caught_up
    }

    /// How many records of `input` wait to be processed.
    pub(crate) fn queued(&self, input: usize) -> usize {
        self.queues[input].records
    }

    /// Whether records wait in any queue.
    pub(crate) fn has_records(&self) -> bool {
        self.queues.iter().any(|queue| queue.records > 0)
    }

    /// How many records have been taken off since the start.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// An index allocation to decode the next batch into.
    pub(crate) fn spare_entries(&mut self) -> Vec<RecordEntry> {
        let mut entries = self.spare.pop().unwrap_or_default();
        entries.clear();
        entries
    }
}

impl Queue {
    /// Moves past batches without records, which only carry a position.
    fn skip_empty(&mut self) {
        while self.batches.front().is_some_and(InputBatch::is_empty) {
            self.position = self.batches.pop_front().map_or(self.position, |batch| batch.next_offset());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::RecordBuffer;

    fn batch(base_offset: i64, timestamps: &[i64]) -> InputBatch {
        let mut buffer = RecordBuffer::new();
        for &timestamp in timestamps {
            buffer.push(timestamp, None, Some(b"v"), []);
        }
        InputBatch::from_buffer(&buffer, base_offset)
    }

    /// Enqueues the batches per input, takes all runs by timestamp, and shows them as `input:timestamps`.
    fn runs(inputs: &mut Inputs) -> String {
        let mut shown = Vec::new();
        while let Some(run) = inputs.next_by_timestamp() {
            let times: Vec<_> = run.iter().map(|record| record.timestamp.to_string()).collect();
            shown.push(format!("{}:{}", run.input(), times.join(",")));
        }
        shown.join(" ")
    }

    #[test]
    fn runs_are_as_long_as_the_other_heads_allow() {
        for (first, second, expected) in [
            (&[1, 2, 3][..], &[4, 5][..], "0:1,2,3 1:4,5"),
            (&[1, 4, 5], &[2, 3, 6], "0:1 1:2,3 0:4,5 1:6"),
            (&[5, 1, 2], &[3, 4], "1:3,4 0:5,1,2"),
            (&[1, 9, 2], &[3, 4], "0:1 1:3,4 0:9,2"),
            (&[2, 2], &[2, 2], "0:2,2 1:2,2"),
        ] {
            let mut inputs = Inputs::new(&[0, 0]);
            inputs.enqueue(0, batch(0, first));
            inputs.enqueue(1, batch(0, second));
            inputs.set_caught_up(0, true);
            inputs.set_caught_up(1, true);
            assert_eq!(runs(&mut inputs), expected);
        }
    }

    #[test]
    fn an_empty_input_is_waited_for_until_it_is_caught_up() {
        let mut inputs = Inputs::new(&[0, 7]);
        inputs.enqueue(0, batch(0, &[1, 2]));
        assert_eq!(runs(&mut inputs), "");
        inputs.set_caught_up(1, true);
        inputs.set_caught_up(0, true);
        assert_eq!(runs(&mut inputs), "0:1,2");
        assert_eq!((inputs.position(0), inputs.position(1)), (2, 7));
    }

    #[test]
    fn positions_follow_the_records_and_pass_over_markers() {
        let mut inputs = Inputs::new(&[10, 0]);
        inputs.enqueue(0, batch(10, &[1, 5]));
        inputs.enqueue(0, InputBatch::new(bytes::Bytes::new(), Vec::new(), 13));
        inputs.enqueue(1, batch(0, &[3]));
        inputs.set_caught_up(0, true);
        inputs.set_caught_up(1, true);
        assert_eq!(inputs.next_by_timestamp().map(|run| run.len()), Some(1));
        assert_eq!(inputs.position(0), 11);
        assert_eq!(runs(&mut inputs), "1:3 0:5");
        assert_eq!(inputs.position(0), 13, "the marker after the last record is passed too");
        assert_eq!(inputs.taken(), 3);
    }

    #[test]
    fn any_order_takes_turns() {
        let mut inputs = Inputs::new(&[0, 0]);
        inputs.enqueue(0, batch(0, &[1]));
        inputs.enqueue(0, batch(1, &[2]));
        inputs.enqueue(1, batch(0, &[9]));
        let mut order = Vec::new();
        while let Some(run) = inputs.next_in_any_order() {
            order.push(run.input());
        }
        assert_eq!(order, [0, 1, 0]);
    }
}
