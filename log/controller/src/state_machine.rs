//! The state that a driver applies commands to and everyone reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;
use thalweg_protocol::Offset;

use crate::apply::apply;
use crate::command::{Command, Response};
use crate::state::ClusterState;

/// The state that a driver applies commands to and everyone reads.
pub struct StateMachine {
    published: ArcSwap<ClusterState>,
    /// Held while the state changes: it keeps changes, and the observers' calls, in one order.
    observers: Arc<Mutex<Observers>>,
}

/// A command with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its offset; `None` for a command that only asks what would happen and is in no log.
    pub offset: Option<Offset>,
    /// The command.
    pub command: Command,
}

/// Is called with the states before and after a change.
type Observer = Box<dyn FnMut(&Arc<ClusterState>, &Arc<ClusterState>) + Send>;

#[derive(Default)]
struct Observers {
    next_id: u64,
    list: Vec<(u64, Observer)>,
}

/// Ends the calls to an observer when it is dropped.
#[must_use = "the observer is called only as long as this is kept"]
pub struct Subscription {
    observers: Weak<Mutex<Observers>>,
    id: u64,
}

impl StateMachine {
    /// Starts with this state.
    pub fn new(state: ClusterState) -> Self {
        Self { published: ArcSwap::from_pointee(state), observers: Arc::default() }
    }

    /// The state as it stands. Takes no lock.
    pub fn state(&self) -> Arc<ClusterState> {
        self.published.load_full()
    }

    /// Applies commands in their order, publishes the state after the last one, and calls the observers.
    /// Gives one response for each command.
    ///
    /// # Panics
    ///
    /// If an offset is not the one after the last: then log and state no longer belong together.
    pub fn apply(&self, entries: &[Entry]) -> Vec<Response> {
        let mut observers = lock(&self.observers);
        let old = self.published.load_full();
        let mut state = ClusterState::clone(&old);
        let responses = entries.iter().map(|entry| apply_entry(&mut state, entry)).collect();
        if state.offset != old.offset {
            self.publish(&mut observers, &old, state);
        }
        responses
    }

    /// Puts the state of a snapshot in the place of this one.
    pub fn install(&self, state: ClusterState) {
        let mut observers = lock(&self.observers);
        let old = self.published.load_full();
        self.publish(&mut observers, &old, state);
    }

    /// Has `observer` called after each change, with the states before and after it, in order and without
    /// gaps, on the thread that applies: it must be quick, and must not propose and wait. A proposal is
    /// answered after the observers have seen its effect.
    pub fn subscribe(
        &self,
        observer: impl FnMut(&Arc<ClusterState>, &Arc<ClusterState>) + Send + 'static,
    ) -> Subscription {
        let mut observers = lock(&self.observers);
        let id = observers.next_id;
        observers.next_id += 1;
        observers.list.push((id, Box::new(observer)));
        Subscription { observers: Arc::downgrade(&self.observers), id }
    }

    fn publish(&self, observers: &mut Observers, old: &Arc<ClusterState>, state: ClusterState) {
        let new = Arc::new(state);
        self.published.store(Arc::clone(&new));
        for (_, observer) in &mut observers.list {
            observer(old, &new);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(observers) = self.observers.upgrade() {
            lock(&observers).list.retain(|(id, _)| *id != self.id);
        }
    }
}

fn apply_entry(state: &mut ClusterState, entry: &Entry) -> Response {
    match entry.offset {
        Some(offset) => apply(state, offset, &entry.command),
        None => {
            let mut scratch = state.clone();
            let next = Offset(state.offset.0 + 1);
            apply(&mut scratch, next, &entry.command)
        }
    }
}

/// An observer that panicked has not touched the list: it is as good as before.
fn lock(observers: &Mutex<Observers>) -> MutexGuard<'_, Observers> {
    observers.lock().unwrap_or_else(PoisonError::into_inner)
}
