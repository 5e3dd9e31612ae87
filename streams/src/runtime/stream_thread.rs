//! A stream thread: it polls, lets its tasks process, and commits them together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_client::{FetchedBatches, RebalanceEvent};
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use super::client_error::translate;
use super::client_log::ClientLog;
use super::committer::commit;
use super::events::{Committed, Event};
use super::log::TransactionLog;
use super::opener::{Cancel, OPEN_REQUESTS, OpenRequest, Opened};
use super::purge::Purge;
use super::restore::DECOMPRESSED_BYTES;
use super::shared::Shared;
use super::task::Task;
use crate::assignment::TaskAssignor;
use crate::error::{Error, ErrorKind};
use crate::program::TaskId;
use crate::records::InputBatch;

/// A stream thread and everything it owns.
pub(super) struct StreamThread {
    number: usize,
    shared: Arc<Shared>,
    log: ClientLog,
    assignor: Arc<TaskAssignor>,
    /// It has had the group share out anew what another plan had shared out.
    has_enforced: bool,
    tasks: BTreeMap<TaskId, Task>,
    /// The tasks that were asked for but are not open yet.
    opening: BTreeMap<TaskId, Cancel>,
    opened: Receiver<Opened>,
    opened_sender: Sender<Opened>,
    /// The task and input of each partition that is read.
    readers: HashMap<TopicPartition, (TaskId, usize)>,
    /// The partitions whose queues are full.
    full: HashSet<TopicPartition>,
    committed_at: Instant,
    counted: Counted,
    scratch: Scratch,
    purge: Purge,
    /// How often in a row the tasks had to be opened again without a commit between.
    reopened: u32,
}

/// What had been counted at the last commit, over the tasks as they are now.
#[derive(Clone, Copy, Default)]
struct Counted {
    taken: u64,
    sent: u64,
    late: u64,
    without_key: u64,
    dead: u64,
}

/// How long a poll waits when there is nothing else to do.
const IDLE_POLL: Duration = Duration::from_millis(100);

/// How many runs each task may process before the thread polls again, so that fetches are sent in time.
const RUNS_A_ROUND: usize = 8;

/// The first pause before tasks are opened again, which doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

impl StreamThread {
    pub(super) fn new(
        number: usize,
        shared: Arc<Shared>,
        log: ClientLog,
        assignor: Arc<TaskAssignor>,
    ) -> Self {
        let (opened_sender, opened) = bounded(OPEN_REQUESTS);
        shared.add_waker(log.consumer.waker());
        Self {
            number,
            shared,
            log,
            assignor,
            has_enforced: false,
            tasks: BTreeMap::new(),
            opening: BTreeMap::new(),
            opened,
            opened_sender,
            readers: HashMap::new(),
            full: HashSet::new(),
            committed_at: Instant::now(),
            counted: Counted::default(),
            scratch: Scratch::new(DECOMPRESSED_BYTES),
            purge: Purge::new(),
            reopened: 0,
        }
    }

    /// Runs until the application closes.
    pub(super) fn run(mut self) -> Result<(), Error> {
        let ran = self.run_to_the_end();
        self.close_tasks();
        let closed = self.log.close();
        ran.and(closed)
    }

    fn run_to_the_end(&mut self) -> Result<(), Error> {
        self.fence()?;
        let topics = self.shared.plan.source_topics();
        self.log.consumer.subscribe(topics).map_err(translate("subscribing"))?;
        while !self.shared.is_closing() {
            // Whatever a program makes of it: when its state is damaged, that is why it failed.
            let ran = self.run_once().map_err(|error| self.damage().unwrap_or(error));
            match ran {
                // What is not committed is processed after the next start.
                Err(error) if error.kind() == ErrorKind::Reopen && self.shared.is_closing() => {
                    tracing::warn!(%error, "the last work is not committed");
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Reopen => self.reopen(error)?,
                ran => ran?,
            }
        }
        match self.shared.failure() {
            None => self.commit(),
            Some(_) => Ok(()),
        }
    }

    /// One round of the thread.
    fn run_once(&mut self) -> Result<(), Error> {
        let (events, batches) = self.poll()?;
        self.follow_assignment(events)?;
        self.enqueue(batches)?;
        self.take_opened()?;
        if let Some(damage) = self.damage() {
            return Err(damage);
        }
        self.process()?;
        self.punctuate()?;
        self.commit_if_due()
    }

    fn poll(&mut self) -> Result<(Vec<RebalanceEvent>, Vec<FetchedBatches>), Error> {
        let timeout = self.poll_timeout();
        match self.log.poll(timeout) {
            Ok(polled) => Ok((polled.events, polled.batches)),
            // The next poll tries again, and nothing was lost; what is there can be processed meanwhile.
            Err(Error::Unavailable { reason }) => {
                tracing::warn!(reason, "the cluster does not answer");
                std::thread::sleep(FIRST_PAUSE);
                Ok((Vec::new(), Vec::new()))
            }
            Err(error) => Err(error),
        }
    }

    fn poll_timeout(&self) -> Duration {
        if self.tasks.values().any(Task::can_process) {
            return Duration::ZERO;
        }
        let mut timeout = IDLE_POLL;
        if self.tasks.values().any(Task::has_work) {
            timeout = timeout.min(self.commit_interval().saturating_sub(self.committed_at.elapsed()));
        }
        if let Some(next) = self.tasks.values().filter_map(Task::next_punctuation).min() {
            timeout = timeout.min(Duration::from_millis((next - wall_clock_ms()).max(0) as u64));
        }
        timeout
    }

    fn damage(&self) -> Option<Error> {
        self.tasks.values().find_map(Task::damage)
    }

    /// Opens and closes tasks as the group has decided.
    fn follow_assignment(&mut self, events: Vec<RebalanceEvent>) -> Result<(), Error> {
        for event in events {
            match event {
                RebalanceEvent::Revoked(partitions) => {
                    // The partitions are this thread's until the next poll, so its work is committed first.
                    let committed = self.commit();
                    self.close_readers_of(&partitions);
                    committed?;
                }
                RebalanceEvent::Lost(partitions) => {
                    let reason = format!("the group has given partitions away: {}", partitions.len());
                    self.close_readers_of(&partitions);
                    return Err(Error::Aborted { reason });
                }
                RebalanceEvent::Assigned(partitions) => {
                    self.request_tasks(&partitions);
                    self.refuse_foreign_assignment();
                }
            }
            self.tell_assigned();
        }
        Ok(())
    }

    fn tell_assigned(&self) {
        self.shared.set_assigned(self.number, self.log.consumer.assignment().len());
    }

    /// A static member that comes back gets what it had, though the topology may be another one now. Once is
    /// enough: where the leader still runs the old one, its own restart brings the next rebalance.
    fn refuse_foreign_assignment(&mut self) {
        if !self.assignor.is_foreign() {
            return;
        }
        if self.has_enforced {
            tracing::warn!("the group's leader runs another topology; waiting for it to be restarted");
            return;
        }
        self.has_enforced = true;
        self.log.consumer.enforce_rebalance();
    }

    /// Asks for the tasks that read these partitions; nothing of them is fetched until they are open.
    fn request_tasks(&mut self, partitions: &[TopicPartition]) {
        self.log.consumer.pause(partitions);
        let tasks = partitions.iter().filter_map(|partition| self.shared.plan.task_of(partition));
        for task in tasks {
            if self.tasks.contains_key(&task) || self.opening.contains_key(&task) {
                continue;
            }
            let cancel = Cancel::default();
            self.opening.insert(task, cancel.clone());
            let (reply, waker) = (self.opened_sender.clone(), self.log.consumer.waker());
            // The opener ends only when the application does.
            let _ending = self.shared.opener.send(OpenRequest { task, cancel, reply, waker });
        }
        let tasks = self.tasks.keys().chain(self.opening.keys()).copied().collect();
        self.shared.events.send(Event::Assigned { tasks });
    }

    /// Takes over the tasks that are ready, and begins to read for them.
    fn take_opened(&mut self) -> Result<(), Error> {
        if self.opened.is_empty() {
            return Ok(());
        }
        let assigned: HashSet<TopicPartition> = self.log.consumer.assignment().into_iter().collect();
        while let Ok(Opened { task: id, result }) = self.opened.try_recv() {
            if self.opening.remove(&id).is_none() {
                continue;
            }
            let opened = result?;
            if !self.shared.plan.sources(id).iter().flatten().all(|source| assigned.contains(source)) {
                // The group has taken it back; if it returns it is asked for again.
                continue;
            }
            let task = self.shared.plan.open(id, opened.positions.clone(), opened.state, &opened.last)?;
            let sources: Vec<(usize, TopicPartition)> =
                task.sources().map(|(input, partition)| (input, partition.clone())).collect();
            for (input, partition) in &sources {
                let position = opened.positions[*input];
                let sought = self.log.consumer.seek(partition, Offset(position));
                sought.map_err(translate("seeking to the committed offset"))?;
                self.readers.insert(partition.clone(), (id, *input));
                self.shared.with_live(|live| live.opened(self.number, partition, position));
            }
            self.log.consumer.resume(sources.iter().map(|(_, partition)| partition));
            self.shared.add_views(id, task.state());
            self.tasks.insert(id, task);
        }
        Ok(())
    }

    /// Closes the tasks that read these partitions; what they have not committed is dropped.
    fn close_readers_of(&mut self, partitions: &[TopicPartition]) {
        let tasks: HashSet<TaskId> =
            partitions.iter().filter_map(|partition| self.shared.plan.task_of(partition)).collect();
        for task in tasks {
            self.close_task(task);
        }
        self.recount();
    }

    fn close_task(&mut self, id: TaskId) {
        if let Some(cancel) = self.opening.remove(&id) {
            cancel.cancel();
        }
        // An answer that came before the cancel holds the task's store open.
        let answers: Vec<Opened> = self.opened.try_iter().filter(|opened| opened.task != id).collect();
        for answer in answers {
            let _own_receiver = self.opened_sender.send(answer);
        }
        self.shared.remove_views(id);
        if let Some(task) = self.tasks.remove(&id) {
            for (_, partition) in task.sources() {
                self.readers.remove(partition);
                self.full.remove(partition);
                self.shared.with_live(|live| live.closed(self.number, partition));
            }
        }
    }

    fn close_tasks(&mut self) {
        let tasks: Vec<TaskId> = self.tasks.keys().chain(self.opening.keys()).copied().collect();
        for task in tasks {
            self.close_task(task);
        }
        self.recount();
    }

    /// Hands what was fetched to the tasks' queues; a partition whose queue is full is not fetched.
    fn enqueue(&mut self, fetched: Vec<FetchedBatches>) -> Result<(), Error> {
        let limit = self.shared.config().queued_records;
        for fetched in fetched {
            let Some(&(id, input)) = self.readers.get(&fetched.partition) else { continue };
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            decode(task, input, &fetched, &mut self.scratch)?;
            task.set_caught_up(input, fetched.is_caught_up());
            if task.inputs().queued(input) >= limit && self.full.insert(fetched.partition.clone()) {
                self.log.consumer.pause([&fetched.partition]);
            }
        }
        for task in self.tasks.values_mut().filter(|task| task.inputs().len() > 1) {
            // Whether an empty input may still bring something, before the others are waited no longer.
            let sources: Vec<_> = task.sources().map(|(input, at)| (input, at.clone())).collect();
            for (input, partition) in sources {
                if task.inputs().queued(input) == 0 {
                    let progress = self.log.consumer.progress(&partition);
                    let caught_up = progress.is_some_and(|progress| progress.is_caught_up());
                    task.set_caught_up(input, caught_up);
                }
            }
        }
        Ok(())
    }

    /// Lets the tasks take turns, and hands their results to the producer.
    fn process(&mut self) -> Result<(), Error> {
        for _ in 0..RUNS_A_ROUND {
            let mut taken = 0;
            for task in self.tasks.values_mut().filter(|task| task.can_process()) {
                taken += task.process()?;
                for topic in task.output_topics() {
                    self.log.send(topic)?;
                }
            }
            if taken == 0 || self.is_commit_due() {
                break;
            }
        }
        self.log.linger();
        self.resume_drained();
        Ok(())
    }

    /// Fetches again for the queues that are half empty.
    fn resume_drained(&mut self) {
        let limit = self.shared.config().queued_records / 2;
        let drained: Vec<TopicPartition> = self
            .full
            .iter()
            .filter(|partition| {
                let reader = self.readers.get(*partition);
                let queued = reader.and_then(|(id, input)| Some(self.tasks.get(id)?.inputs().queued(*input)));
                queued.is_none_or(|queued| queued <= limit)
            })
            .cloned()
            .collect();
        if !drained.is_empty() {
            self.log.consumer.resume(&drained);
            self.full.retain(|partition| !drained.contains(partition));
        }
    }

    fn punctuate(&mut self) -> Result<(), Error> {
        if self.tasks.values().all(|task| task.next_punctuation().is_none()) {
            return Ok(());
        }
        let now_ms = wall_clock_ms();
        for task in self.tasks.values_mut() {
            task.punctuate(now_ms)?;
        }
        Ok(())
    }

    fn commit_interval(&self) -> Duration {
        Duration::from_millis(self.shared.config().commit_interval_ms)
    }

    fn is_commit_due(&self) -> bool {
        let bytes: usize = self.tasks.values().map(Task::uncommitted_bytes).sum();
        self.committed_at.elapsed() >= self.commit_interval()
            || bytes >= self.shared.config().uncommitted_bytes
    }

    fn commit_if_due(&mut self) -> Result<(), Error> {
        if self.is_commit_due() {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits everything that is processed.
    fn commit(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let mut working: Vec<&mut Task> = self.tasks.values_mut().filter(|task| task.has_work()).collect();
        if !working.is_empty() {
            commit(&mut working, &mut self.log, &self.shared.config().test_hooks)?;
            self.reopened = 0;
            self.tell_commit(began.elapsed());
            self.purge.run(&self.shared, self.tasks.values());
        }
        self.committed_at = Instant::now();
        if !self.shared.is_live() {
            self.tell_positions();
        }
        Ok(())
    }

    fn tell_commit(&mut self, took: Duration) {
        let before = std::mem::take(&mut self.counted);
        self.recount();
        self.shared.note_commit(Committed {
            records_in: self.counted.taken - before.taken,
            records_out: self.counted.sent - before.sent,
            late: self.counted.late - before.late,
            without_key: self.counted.without_key - before.without_key,
            dead_letters: self.counted.dead - before.dead,
            took,
        });
    }

    fn recount(&mut self) {
        let mut counted = Counted::default();
        for task in self.tasks.values() {
            counted.taken += task.inputs().taken();
            counted.sent += task.output().sent();
            counted.dead += task.output().dead();
            counted.late += task.counters().late;
            counted.without_key += task.counters().without_key;
        }
        self.counted = counted;
    }

    fn tell_positions(&self) {
        self.shared.with_live(|live| {
            for task in self.tasks.values() {
                for (input, partition) in task.sources() {
                    live.committed(self.number, partition, task.inputs().position(input));
                }
            }
        });
    }

    /// Drops what is not committed and opens the tasks again from the last commit.
    fn reopen(&mut self, error: Error) -> Result<(), Error> {
        tracing::warn!(%error, "dropping what is not committed and opening the tasks again");
        self.shared.events.send(Event::Reopened { reason: Arc::new(error) });
        self.close_tasks();
        self.pause_before_reopening();
        self.fence()?;
        // Without those that are being revoked: their tasks are the next owner's.
        let partitions = self.log.consumer.assignment();
        self.request_tasks(&partitions);
        self.tell_assigned();
        Ok(())
    }

    fn pause_before_reopening(&mut self) {
        if self.reopened > 0 {
            let doubled = FIRST_PAUSE.saturating_mul(1 << self.reopened.min(10));
            std::thread::sleep(doubled.min(LONGEST_PAUSE));
        }
        self.reopened += 1;
    }

    /// Ends whatever transaction was left open, trying until the cluster answers or the application closes.
    fn fence(&mut self) -> Result<(), Error> {
        loop {
            match self.log.fence() {
                Err(error) if error.kind() == ErrorKind::Reopen && !self.shared.is_closing() => {
                    tracing::warn!(%error, "the transactional id cannot be taken over yet");
                    std::thread::sleep(FIRST_PAUSE);
                }
                Err(error) if error.kind() == ErrorKind::Reopen => return Ok(()),
                fenced => return fenced,
            }
        }
    }
}

/// Decodes the batches into the queue of `input`.
fn decode(
    task: &mut Task,
    input: usize,
    fetched: &FetchedBatches,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    for batch in &fetched.batches {
        let damaged = |source| Error::Refused {
            action: "reading",
            reason: format!(
                "the batch at offset {} of {} cannot be read: {source}",
                batch.header().base_offset,
                fetched.partition
            ),
        };
        let decoded = batch.decode(scratch).map_err(damaged)?;
        let entries = task.spare_entries();
        let mut batch = InputBatch::decode(&decoded, entries).map_err(damaged)?;
        batch.skip_before(fetched.position.0);
        task.enqueue(input, batch);
    }
    task.enqueue(input, InputBatch::marker(fetched.next_offset.0));
    Ok(())
}

/// The time in ms since 1970.
#[expect(clippy::disallowed_methods, reason = "the wall clock of the stream thread is read here only")]
fn wall_clock_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
