//! The state that a driver applies commands to and everyone reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, ThreadId};

use arc_swap::ArcSwap;
use thalweg_protocol::Offset;

use crate::apply::apply;
use crate::command::{Command, Response};
use crate::state::ClusterState;

/// The state that a driver applies commands to and everyone reads.
pub struct StateMachine {
    published: ArcSwap<ClusterState>,
    /// Held while the state changes: it keeps changes, and the observers' calls, in one order.
    changing: Mutex<()>,
    observers: Arc<Observers>,
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

/// Those who have subscribed. Guarded for the time of a look: observers may subscribe, and end subscriptions.
type Observers = Mutex<Vec<Arc<Subscriber>>>;

struct Subscriber {
    has_ended: AtomicBool,
    /// The thread of the call that is going on. Guarded for the time of a look.
    called_on: Mutex<Option<ThreadId>>,
    /// Held over a call.
    observer: Mutex<Observer>,
}

/// Ends the calls to an observer when it is dropped: one that is going on is waited for, unless it is the one that
/// does so.
#[must_use = "the observer is called only as long as this is kept"]
pub struct Subscription {
    observers: Weak<Observers>,
    subscriber: Arc<Subscriber>,
}

impl StateMachine {
    /// Starts with this state.
    pub fn new(state: ClusterState) -> Self {
        Self {
            published: ArcSwap::from_pointee(state),
            changing: Mutex::default(),
            observers: Arc::default(),
        }
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
        let _changing = lock(&self.changing);
        let old = self.published.load_full();
        let mut state = ClusterState::clone(&old);
        let responses = entries.iter().map(|entry| apply_entry(&mut state, entry)).collect();
        if state.offset != old.offset {
            self.publish(&old, state);
        }
        responses
    }

    /// Puts the state of a snapshot in the place of this one.
    pub fn install(&self, state: ClusterState) {
        let _changing = lock(&self.changing);
        let old = self.published.load_full();
        self.publish(&old, state);
    }

    /// Has `observer` called after each change, with the states before and after it, in order and without
    /// gaps, on the thread that applies: it must be quick, and must not propose and wait. A proposal is
    /// answered after the observers have seen its effect.
    pub fn subscribe(
        &self,
        observer: impl FnMut(&Arc<ClusterState>, &Arc<ClusterState>) + Send + 'static,
    ) -> Subscription {
        let subscriber = Arc::new(Subscriber {
            has_ended: AtomicBool::new(false),
            called_on: Mutex::new(None),
            observer: Mutex::new(Box::new(observer)),
        });
        lock(&self.observers).push(Arc::clone(&subscriber));
        Subscription { observers: Arc::downgrade(&self.observers), subscriber }
    }

    /// For the holder of `changing`.
    fn publish(&self, old: &Arc<ClusterState>, state: ClusterState) {
        let new = Arc::new(state);
        self.published.store(Arc::clone(&new));
        let subscribers = lock(&self.observers).clone();
        for subscriber in subscribers {
            subscriber.call(old, &new);
        }
    }
}

impl Subscriber {
    fn call(&self, old: &Arc<ClusterState>, new: &Arc<ClusterState>) {
        let mut observer = lock(&self.observer);
        if self.has_ended.load(Ordering::SeqCst) {
            return;
        }
        *lock(&self.called_on) = Some(thread::current().id());
        observer(old, new);
        *lock(&self.called_on) = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(observers) = self.observers.upgrade() {
            lock(&observers).retain(|subscriber| !Arc::ptr_eq(subscriber, &self.subscriber));
        }
        self.subscriber.has_ended.store(true, Ordering::SeqCst);
        let is_called_here = *lock(&self.subscriber.called_on) == Some(thread::current().id());
        if !is_called_here {
            drop(lock(&self.subscriber.observer));
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

/// An observer that panicked has touched nothing of what is guarded here: it is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
