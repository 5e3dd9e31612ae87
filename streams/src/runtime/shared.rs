//! What the threads of an application share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use parking_lot::Mutex;
use thalweg_client::{Client, Waker};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::events::{Committed, Event, EventSender};
use super::live::LiveTracker;
use super::opener::OpenRequest;
use super::plan::Plan;
use super::waiting::Waiting;
use crate::config::StreamsConfig;
use crate::error::Error;
use crate::program::TaskId;
use crate::state::{StateDirectory, StorePart, TaskState};

/// Shared by the stream threads, the opener and the handle.
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) directory: Arc<StateDirectory>,
    pub(super) client: Client,
    pub(super) handle: Handle,
    pub(super) events: EventSender,
    pub(super) opener: Sender<OpenRequest>,
    started: Instant,
    closing: AtomicBool,
    /// Guards how far the inputs are; held for a few map look-ups at a time.
    live: Mutex<LiveTracker>,
    /// Guards how many inputs each thread was assigned; `None` before its first assignment.
    assigned: Mutex<Vec<Option<usize>>>,
    /// Guards the sum of all commits.
    committed: Mutex<Committed>,
    /// Guards the stores that can be read from outside.
    views: Mutex<BTreeMap<TaskId, Vec<(String, StorePart)>>>,
    /// Guards why the application has failed.
    failure: Mutex<Option<Arc<Error>>>,
    /// Tells waiting threads that it has.
    failed: watch::Sender<bool>,
    /// Guards what makes waiting threads look around.
    wakers: Mutex<Vec<Waker>>,
}

impl Shared {
    pub(super) fn new(
        plan: Arc<Plan>,
        directory: Arc<StateDirectory>,
        client: Client,
        handle: Handle,
        opener: Sender<OpenRequest>,
    ) -> Self {
        let inputs = plan.inputs();
        let depth = inputs.iter().map(|&(_, level)| level).max().unwrap_or(0) as u32 + 1;
        let commit_interval = Duration::from_millis(plan.config().commit_interval_ms);
        let patience = Duration::from_secs(1) + commit_interval * (2 * depth);
        let threads = plan.config().threads;
        Self {
            plan,
            directory,
            client,
            handle,
            events: EventSender::new(),
            opener,
            started: Instant::now(),
            closing: AtomicBool::new(false),
            live: Mutex::new(LiveTracker::new(inputs, patience)),
            assigned: Mutex::new(vec![None; threads]),
            committed: Mutex::default(),
            views: Mutex::default(),
            failure: Mutex::default(),
            failed: watch::Sender::new(false),
            wakers: Mutex::default(),
        }
    }

    pub(super) fn config(&self) -> &StreamsConfig {
        self.plan.config()
    }

    /// Blocks on calls of the client.
    pub(super) fn waiting(&self) -> Waiting {
        Waiting::new(self.handle.clone(), self.failed.subscribe())
    }

    /// The time since the start.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Makes all threads end.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wakers.lock().iter().for_each(Waker::wake);
    }

    /// Ends the application because of `error`.
    pub(super) fn fail(&self, error: Error) {
        tracing::error!(%error, "the streams application fails");
        let reason = Arc::new(error);
        // What fails after that fails because of it.
        let mut failure = self.failure.lock();
        if failure.is_some() {
            return;
        }
        *failure = Some(Arc::clone(&reason));
        drop(failure);
        self.events.send(Event::Failed { reason });
        self.failed.send_replace(true);
        self.close();
    }

    pub(super) fn failure(&self) -> Option<Arc<Error>> {
        self.failure.lock().clone()
    }

    pub(super) fn add_waker(&self, waker: Waker) {
        self.wakers.lock().push(waker);
    }

    /// Looks at or changes how far the inputs are.
    pub(super) fn with_live<T>(&self, work: impl FnOnce(&mut LiveTracker) -> T) -> T {
        work(&mut self.live.lock())
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.lock().is_live()
    }

    pub(super) fn set_assigned(&self, thread: usize, inputs: usize) {
        self.assigned.lock()[thread] = Some(inputs);
    }

    /// How many inputs the threads have together, once each has had an assignment.
    pub(super) fn assigned(&self) -> Option<usize> {
        self.assigned.lock().iter().copied().sum()
    }

    pub(super) fn note_commit(&self, committed: Committed) {
        self.committed.lock().add(&committed);
        self.events.send(Event::Committed(committed));
    }

    pub(super) fn committed(&self) -> Committed {
        *self.committed.lock()
    }

    pub(super) fn add_views(&self, task: TaskId, state: &TaskState) {
        let views = state.views().map(|(name, part)| (name.to_owned(), part)).collect();
        self.views.lock().insert(task, views);
    }

    pub(super) fn remove_views(&self, task: TaskId) {
        self.views.lock().remove(&task);
    }

    /// The parts of a store.
    pub(super) fn views(&self, store: &str) -> Vec<StorePart> {
        let views = self.views.lock();
        let parts = views.values().flatten().filter(|(name, _)| name == store);
        parts.map(|(_, part)| part.clone()).collect()
    }
}
