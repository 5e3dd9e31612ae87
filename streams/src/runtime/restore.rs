//! Replays changelogs into a task's stores.

use std::time::{Duration, Instant};

use thalweg_client::{ConsumerConfig, FetchedBatches, Isolation, OffsetReset};
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use super::client_error::translate;
use super::events::Event;
use super::opening::Replay;
use super::shared::Shared;
use crate::error::Error;
use crate::program::TaskId;
use crate::records::InputBatch;
use crate::state::TaskState;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// How long one poll waits.
const POLL: Duration = Duration::from_millis(100);

/// The most bytes that one batch may have decompressed.
pub(super) const DECOMPRESSED_BYTES: usize = 256 << 20;

/// A stretch that is being replayed.
struct Stretch {
    store: usize,
    partition: TopicPartition,
    from: i64,
    position: i64,
    to: i64,
}

/// Reads all of `replays` into `state`.
pub(super) fn replay(
    shared: &Shared,
    task: TaskId,
    state: &mut TaskState,
    replays: Vec<Replay>,
    may_go_on: &dyn Fn() -> bool,
) -> Result<(), Error> {
    if replays.is_empty() {
        return Ok(());
    }
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() };
    let mut consumer = {
        let _entered = shared.handle.enter();
        shared.client.consumer(config).map_err(translate("making a consumer"))?
    };
    let mut stretches = stretches(shared, &consumer, replays)?;
    let partitions: Vec<TopicPartition> = stretches.iter().map(|stretch| stretch.partition.clone()).collect();
    consumer.assign(partitions).map_err(translate("assigning changelogs"))?;
    for stretch in &stretches {
        let sought = consumer.seek(&stretch.partition, Offset(stretch.from));
        sought.map_err(translate("seeking in a changelog"))?;
    }
    let waiting = shared.waiting();
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    let mut told = Instant::now();
    while stretches.iter().any(|stretch| stretch.position < stretch.to) {
        if !may_go_on() {
            return Err(Error::Unavailable {
                reason: "the task was taken back while it was restored".into(),
            });
        }
        let polled = waiting.on("reading a changelog", consumer.poll(POLL))?;
        for fetched in polled.batches {
            let found = stretches.iter_mut().find(|stretch| stretch.partition == fetched.partition);
            if let Some(stretch) = found {
                apply(state, stretch, &fetched, &mut scratch)?;
            }
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            stretches.iter().for_each(|stretch| tell(shared, task, stretch));
        }
    }
    stretches.iter().for_each(|stretch| tell(shared, task, stretch));
    waiting.on("closing a consumer", consumer.close())
}

/// Finds out where each stretch ends, and that the log reaches that far.
fn stretches(
    shared: &Shared,
    consumer: &thalweg_client::Consumer,
    replays: Vec<Replay>,
) -> Result<Vec<Stretch>, Error> {
    let partitions: Vec<TopicPartition> = replays.iter().map(|replay| replay.partition.clone()).collect();
    let wanted: Vec<_> =
        partitions.iter().map(|partition| (partition.clone(), thalweg_client::OffsetSpec::Latest)).collect();
    let admin = shared.client.admin();
    let ends = async {
        let all = admin.list_offsets(&wanted, Isolation::ReadUncommitted).await?;
        let stable = consumer.end_offsets(&partitions).await?;
        Ok((all, stable))
    };
    let (all, stable) = shared.waiting().on("asking for the ends of changelogs", ends)?;
    let stretch = |replay: Replay| {
        let Replay { store, partition, from, to } = replay;
        let end = all.get(&partition).and_then(|listed| listed.offset).map_or(0, |offset| offset.0);
        let to = to.unwrap_or_else(|| stable.get(&partition).map_or(0, |offset| offset.0));
        match end < to {
            true => Err(Error::ChangelogLost { partition, end, needed: to }),
            false => Ok(Stretch { store, partition, from, position: from, to }),
        }
    };
    replays.into_iter().map(stretch).collect()
}

/// Takes what was fetched, up to the stretch's end, into the store in one write.
fn apply(
    state: &mut TaskState,
    stretch: &mut Stretch,
    fetched: &FetchedBatches,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let damaged = |source| Error::Refused {
        action: "reading a changelog",
        reason: format!("a batch of {} is damaged: {source}", fetched.partition),
    };
    let mut batches = Vec::new();
    for batch in &fetched.batches {
        let decoded = batch.decode(scratch).map_err(damaged)?;
        batches.push(InputBatch::decode(&decoded, Vec::new()).map_err(damaged)?);
    }
    let (from, to) = (stretch.position, stretch.to);
    let records = batches.iter().flat_map(InputBatch::iter);
    let records = records.filter(|record| (from..to).contains(&record.offset.0));
    let position = fetched.next_offset.0.min(to);
    state.restore(stretch.store, records, position)?;
    stretch.position = position;
    Ok(())
}

fn tell(shared: &Shared, task: TaskId, stretch: &Stretch) {
    let changelogs = shared.plan.changelogs(task);
    let store = changelogs.into_iter().nth(stretch.store).map(|(name, _)| name).unwrap_or_default();
    let (done, total) = (stretch.position - stretch.from, stretch.to - stretch.from);
    shared.events.send(Event::Restoring { task, store, done, total });
}
