//! Opens tasks on a thread of its own, so that a restore holds up no task that runs.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use parking_lot::Mutex;
use thalweg_client::{Isolation, OffsetSpec, Waker};
use thalweg_protocol::TopicPartition;

use super::client_log::committed_inputs;
use super::events::Event;
use super::log::CommittedInput;
use super::opening::{LastCommit, Opening, compare, replays};
use super::restore;
use super::shared::Shared;
use crate::config::{Guarantee, StartAt};
use crate::error::{Error, ErrorKind};
use crate::program::TaskId;
use crate::state::TaskState;

/// How many requests, or answers, may wait: far more than there are tasks.
pub(super) const OPEN_REQUESTS: usize = 1 << 16;

/// Asks for a task to be opened.
pub(super) struct OpenRequest {
    pub(super) task: TaskId,
    pub(super) cancel: Cancel,
    pub(super) reply: Sender<Opened>,
    pub(super) waker: Waker,
}

/// The answer, unless the request was cancelled.
pub(super) struct Opened {
    pub(super) task: TaskId,
    pub(super) result: Result<OpenedTask, Error>,
}

/// What a task can be made of.
pub(super) struct OpenedTask {
    /// Per source, where to read from.
    pub(super) positions: Vec<i64>,
    pub(super) state: TaskState,
    pub(super) last: LastCommit,
}

/// Takes an [`OpenRequest`] back. Once that has returned, no answer comes any more.
#[derive(Clone, Default)]
pub(super) struct Cancel {
    /// Guards whether it is cancelled; held while the answer is sent.
    cancelled: Arc<Mutex<bool>>,
}

impl Cancel {
    pub(super) fn cancel(&self) {
        *self.cancelled.lock() = true;
    }

    fn is_cancelled(&self) -> bool {
        *self.cancelled.lock()
    }
}

/// How long to wait before a cluster that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves requests until the application closes.
pub(super) fn run(shared: &Shared, requests: &Receiver<OpenRequest>) {
    while !shared.is_closing() {
        match requests.recv_timeout(PAUSE) {
            Ok(request) => serve(shared, request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn serve(shared: &Shared, request: OpenRequest) {
    let OpenRequest { task, cancel, reply, waker } = request;
    let may_go_on = || !shared.is_closing() && !cancel.is_cancelled();
    let result = loop {
        match open(shared, task, &may_go_on) {
            Err(error) if error.kind() == ErrorKind::Reopen => {
                if !may_go_on() {
                    return;
                }
                tracing::warn!(%task, %error, "a task cannot be opened yet");
                std::thread::sleep(PAUSE);
            }
            result => break result,
        }
    };
    let cancelled = cancel.cancelled.lock();
    if !*cancelled {
        // A thread that has ended does not miss it.
        let _gone = reply.send(Opened { task, result });
        waker.wake();
    }
}

/// Brings the task's state to where the log says it was committed.
fn open(shared: &Shared, task: TaskId, may_go_on: &dyn Fn() -> bool) -> Result<OpenedTask, Error> {
    let sources = shared.plan.sources(task);
    let committed = committed(shared, &sources)?;
    let last = LastCommit::read(&committed)?;
    let mut state = open_state(shared, task)?;
    if compare(state.checkpoint(), &last.checkpoint) == Opening::Ahead {
        let reason = format!(
            "its state is at commit {} but the log at {}: the offsets were reset, or the directory is another's",
            state.checkpoint().sequence,
            last.checkpoint.sequence
        );
        drop(state);
        drop_state(shared, task, reason)?;
        state = open_state(shared, task)?;
    }
    if compare(state.checkpoint(), &last.checkpoint) == Opening::Behind {
        let exactly_once = shared.config().guarantee == Guarantee::ExactlyOnce;
        let changelogs = shared.plan.changelogs(task);
        let replays = replays(&changelogs, state.checkpoint(), &last.checkpoint, exactly_once);
        restore::replay(shared, task, &mut state, replays, may_go_on)?;
        state.restored(last.checkpoint.clone())?;
    }
    let positions = positions(shared, &sources, &committed)?;
    Ok(OpenedTask { positions, state, last })
}

/// What is committed for the sources, one entry a source that exists.
fn committed(
    shared: &Shared,
    sources: &[Option<TopicPartition>],
) -> Result<Vec<Option<CommittedInput>>, Error> {
    let partitions: Vec<TopicPartition> = sources.iter().flatten().cloned().collect();
    let admin = shared.client.admin();
    let group = &shared.config().application_id;
    let committed = admin.committed_offsets(group, Some(&partitions), true);
    let committed = shared.waiting().on("asking for committed offsets", committed)?;
    Ok(committed_inputs(&partitions, committed))
}

/// Opens the state; one that is damaged is dropped, and restored from the changelogs.
fn open_state(shared: &Shared, task: TaskId) -> Result<TaskState, Error> {
    let stores = shared.plan.stores(task);
    let open = || {
        let backend = shared.directory.backend(task, !stores.is_empty())?;
        TaskState::open(task, backend, stores)
    };
    match open() {
        Err(Error::StateDamaged { reason, .. }) => {
            drop_state(shared, task, format!("its state is damaged: {reason}"))?;
            open().map_err(|error| match error {
                // Dropping a new one again would not help either.
                Error::StateDamaged { task, store, reason } => Error::State { task, store, reason },
                error => error,
            })
        }
        opened => opened,
    }
}

fn drop_state(shared: &Shared, task: TaskId, reason: String) -> Result<(), Error> {
    tracing::warn!(%task, reason, "dropping a task's state; it is restored from its changelogs");
    shared.events.send(Event::StateDropped { task, reason });
    shared.directory.drop_task(task)
}

/// Where each source is read from: after what was committed, else where the configuration says. Internal
/// topics are always read from their beginning.
fn positions(
    shared: &Shared,
    sources: &[Option<TopicPartition>],
    committed: &[Option<CommittedInput>],
) -> Result<Vec<i64>, Error> {
    let mut committed = committed.iter();
    let mut positions = Vec::new();
    for source in sources {
        let Some(partition) = source else {
            positions.push(0);
            continue;
        };
        if let Some(Some(committed)) = committed.next() {
            positions.push(committed.offset);
            continue;
        }
        let spec = match shared.config().start_at {
            StartAt::Latest if !shared.plan.is_repartition(&partition.topic) => OffsetSpec::Latest,
            _ => OffsetSpec::Earliest,
        };
        let admin = shared.client.admin();
        let wanted = [(partition.clone(), spec)];
        let listed = admin.list_offsets(&wanted, Isolation::ReadCommitted);
        let listed = shared.waiting().on("asking where a topic begins", listed)?;
        let offset = listed.get(partition).and_then(|listed| listed.offset);
        positions.push(offset.map_or(0, |offset| offset.0));
    }
    Ok(positions)
}
