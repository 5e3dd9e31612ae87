//! Rounds of syncs: group commit for the whole data directory.
//!
//! Where there is a journal, a round begins with one thread that gathers what can go into one write; the rest is synced
//! beside it, log by log. Where the disk is swift and nothing else is under way, that thread is the one that appended.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use thalweg_protocol::Offset;

use crate::error::Error;
use crate::journal::{Gathered, Journal};
use crate::log::Log;
use crate::pacing::Pacing;
use crate::swiftness::Swiftness;
use crate::synced_to::SyncedTo;

/// Called from a sync thread after each sync of a log: with the offset up to which it is synced now, or with
/// the error that took the directory offline. Must not block.
pub type SyncListener = Arc<dyn Fn(&Arc<Log>, Result<Offset, &Error>) + Send + Sync>;

/// Syncs logs in rounds: a round syncs every log that asked for it, in parallel, while the next one collects.
pub struct SyncRounds {
    queue: Arc<RoundQueue>,
    threads: Vec<JoinHandle<()>>,
    /// With the thread that does its upkeep.
    journal: Option<(Arc<Journal>, JoinHandle<()>)>,
}

/// The checkpoint is told this often what rounds have done, and after this long without one: telling takes a sync, too.
const TELLING: Duration = Duration::from_millis(100);

/// A round of at most so many bytes may be carried out by the thread that appended them.
const MOST_BYTES_HERE: u64 = 512 << 10;

/// After this long a log whose sync was put off (a full disk, no descriptors) is tried again, whatever the others do.
const POSTPONEMENT: Duration = Duration::from_millis(100);

/// What the sync threads share with the logs.
pub(crate) struct RoundQueue {
    /// Guards the rounds: what is to be done now and next.
    state: Mutex<Rounds>,
    /// Signalled when there is something to do.
    wake: Condvar,
    /// Signalled when a round that waits has enough.
    has_enough: Condvar,
    /// Bytes that were appended since the last round began.
    unsynced: AtomicU64,
    /// With so many bytes a round that waits has enough; `u64::MAX` when none waits.
    enough: AtomicU64,
    rounds: AtomicU64,
    listener: SyncListener,
    checkpoint: Option<Arc<SyncedTo>>,
    journal: Option<Arc<Journal>>,
}

#[derive(Default)]
struct Rounds {
    /// The logs of the current round, before it is decided which of them go into the journal.
    ungathered: Vec<Arc<Log>>,
    /// What remains of the current round to be synced log by log.
    current: VecDeque<Arc<Log>>,
    /// How many threads are at work on the current round.
    in_progress: usize,
    /// The logs of the next round. Bounded by the number of logs: each is in it once.
    next: VecDeque<Arc<Log>>,
    /// Logs whose sync was put off, with the time from which it is tried again, the earliest first. They count as
    /// queued: their own appends do not ask for a round.
    postponed: VecDeque<(Instant, Arc<Log>)>,
    /// Logs that were synced and of which the checkpoint has not been told, each once.
    untold: Vec<Arc<Log>>,
    /// Whether a thread should tell the checkpoint, and when one last did.
    telling_is_due: bool,
    told: Option<Instant>,
    /// How rounds wait for more, since when the last one is under way, and whether one waits.
    pacing: Pacing,
    swiftness: Swiftness,
    began: Option<Instant>,
    is_waiting: bool,
    is_stopping: bool,
}

/// Keeps what this thread appends from beginning rounds one by one: all until this is dropped shares one. The drop sees to
/// it, and may carry it out on this thread, which blocks on the disk then: for a small part of a millisecond, and when the disk
/// turns slow, once for longer.
#[derive(Debug)]
pub struct RoundHold<'a> {
    queue: Option<&'a RoundQueue>,
    _of_this_thread: PhantomData<*const ()>,
}

impl RoundHold<'_> {
    /// Where there are no rounds.
    pub(crate) fn none() -> Self {
        Self { queue: None, _of_this_thread: PhantomData }
    }
}

impl Drop for RoundHold<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue
            && queue.let_go()
        {
            queue.see_to_a_round();
        }
    }
}

/// Which rounds a thread holds, by their address, how often, and whether it has asked for one meanwhile.
#[derive(Clone, Copy)]
struct Held {
    address: usize,
    depth: usize,
    has_asked: bool,
}

thread_local! {
    static HELD: Cell<Held> = const { Cell::new(Held { address: 0, depth: 0, has_asked: false }) };
}

enum Job {
    Gather(Arc<Journal>, Vec<Arc<Log>>),
    Sync(Arc<Log>),
    Tell(Vec<Arc<Log>>),
    Stop,
}

impl SyncRounds {
    /// Starts `threads` threads that sync and call `listener`.
    pub fn new(threads: usize, listener: SyncListener) -> Self {
        Self::with_checkpoint(threads, listener, None, None)
    }

    /// With the checkpoint that is told what the rounds have done, and the journal that makes them cheaper.
    pub(crate) fn with_checkpoint(
        threads: usize,
        listener: SyncListener,
        checkpoint: Option<Arc<SyncedTo>>,
        journal: Option<Arc<Journal>>,
    ) -> Self {
        let queue = Arc::new(RoundQueue {
            state: Mutex::default(),
            wake: Condvar::new(),
            has_enough: Condvar::new(),
            unsynced: AtomicU64::new(0),
            enough: AtomicU64::new(u64::MAX),
            rounds: AtomicU64::new(0),
            listener,
            checkpoint,
            journal: journal.clone(),
        });
        let spawn = |name: String, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name);
            thread.spawn(work).expect("the system has a thread left at start-up")
        };
        let threads = (0..threads.max(1)).map(|at| {
            let queue = Arc::clone(&queue);
            spawn(format!("sync-{at}"), Box::new(move || queue.work()))
        });
        let threads = threads.collect();
        let journal = journal.map(|journal| {
            let running = Arc::clone(&journal);
            (journal, spawn("journal".to_owned(), Box::new(move || running.run())))
        });
        Self { queue, threads, journal }
    }

    /// Puts `log` into the next round. Asking again before that round begins changes nothing.
    pub fn request(&self, log: &Arc<Log>) {
        self.queue.request(Arc::clone(log), 0);
    }

    /// From now on every append to `log` joins the next round, if its topic is durable.
    pub fn attach(&self, log: &Log) {
        log.join_rounds(&self.queue);
    }

    /// Until the hold is dropped the appends of this thread begin no round.
    pub(crate) fn hold(&self) -> RoundHold<'_> {
        let queue = self.queue.take_hold().then_some(&*self.queue);
        RoundHold { queue, _of_this_thread: PhantomData }
    }

    /// How many rounds have begun.
    pub fn rounds(&self) -> u64 {
        self.queue.rounds.load(Ordering::SeqCst)
    }
}

impl Drop for SyncRounds {
    /// Ends the threads; what waits for a round is not synced.
    fn drop(&mut self) {
        self.queue.state.lock().is_stopping = true;
        self.queue.wake.notify_all();
        self.queue.has_enough.notify_all();
        let mut is_listener = false;
        for thread in self.threads.drain(..) {
            // The listener may own the last handle on all of this.
            match thread.thread().id() == thread::current().id() {
                true => is_listener = true,
                false => drop(thread.join()),
            }
        }
        if let Some((journal, thread)) = self.journal.take() {
            journal.stop();
            // It may wait for a log that the listener is told of.
            if !is_listener {
                drop(thread.join());
            }
            journal.forget();
        }
        // The logs hold the queue.
        let mut state = self.queue.state.lock();
        let Rounds { ungathered, current, next, postponed, untold, .. } = &mut *state;
        let waiting = (take(ungathered), take(current), take(next), take(postponed), take(untold));
        drop(state);
        drop(waiting);
    }
}

impl fmt::Debug for SyncRounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncRounds").field("rounds", &self.rounds()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RoundQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundQueue").finish_non_exhaustive()
    }
}

impl Rounds {
    /// Whether there is no round, nor one that waits.
    fn is_idle(&self) -> bool {
        self.in_progress == 0 && self.current.is_empty() && self.ungathered.is_empty() && !self.is_waiting
    }

    /// Puts the logs whose time has come into the next round.
    fn resume_postponed(&mut self) {
        if self.postponed.is_empty() {
            return;
        }
        let now = Instant::now();
        while self.postponed.front().is_some_and(|&(due, _)| due <= now) {
            self.next.extend(self.postponed.pop_front().map(|(_, log)| log));
        }
    }
}

impl RoundQueue {
    /// Puts `log`, to which so many bytes were appended, into the next round.
    pub(crate) fn request(&self, log: Arc<Log>, bytes: u64) {
        let unsynced = self.unsynced.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let enough = self.enough.load(Ordering::SeqCst);
        let is_enough = unsynced >= enough && unsynced - bytes < enough;
        let is_held = self.ask_here();
        if log.enter_queue() {
            let mut state = self.state.lock();
            state.next.push_back(log);
            // The thread that ends a round begins the next, and whoever holds sees to one.
            if state.is_idle() && !is_held {
                self.wake.notify_one();
            }
        } else if is_enough {
            // Whoever is about to wait has looked before, under the lock.
            drop(self.state.lock());
        }
        if is_enough {
            self.has_enough.notify_one();
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Whether this thread will see to a round itself, which it is to do from now on if it holds.
    fn ask_here(&self) -> bool {
        let held = HELD.get();
        let is_held = held.depth > 0 && held.address == self.address();
        if is_held {
            HELD.set(Held { has_asked: true, ..held });
        }
        is_held
    }

    /// False where the thread holds the rounds of another directory.
    fn take_hold(&self) -> bool {
        let held = HELD.get();
        let may_hold = held.depth == 0 || held.address == self.address();
        if may_hold {
            HELD.set(Held { address: self.address(), depth: held.depth + 1, ..held });
        }
        may_hold
    }

    /// Ends a hold. Returns whether it was the outermost, and a round was asked for.
    fn let_go(&self) -> bool {
        let held = HELD.get();
        let is_outermost = held.depth == 1;
        HELD.set(Held { depth: held.depth - 1, has_asked: held.has_asked && !is_outermost, ..held });
        is_outermost && held.has_asked
    }

    /// Carries out a round with what was appended, or has another thread do it, unless one is under way, which the next follows.
    fn see_to_a_round(&self) {
        let mut state = self.state.lock();
        if !state.is_idle() || state.next.is_empty() {
            return;
        }
        let Some(journal) = self.journal.as_ref().filter(|_| self.may_carry_out_here(&state)) else {
            self.wake.notify_one();
            return;
        };
        self.begin_round(&mut state, false);
        let logs = take(&mut state.ungathered);
        state.in_progress += 1;
        drop(state);
        self.gather(journal, &logs);
        let mut state = self.state.lock();
        state.in_progress -= 1;
        if state.is_idle() && !state.next.is_empty() {
            self.wake.notify_one();
        }
    }

    /// Whether a round is so small, and the disk so swift, that waking another thread for it would cost more.
    fn may_carry_out_here(&self, state: &Rounds) -> bool {
        !state.is_stopping
            && state.swiftness.is_swift(Instant::now())
            && self.unsynced.load(Ordering::SeqCst) <= MOST_BYTES_HERE
    }

    fn work(&self) {
        loop {
            match self.next_job() {
                Job::Gather(journal, logs) => {
                    self.gather(&journal, &logs);
                    self.finished();
                }
                Job::Sync(log) => {
                    self.sync(&log);
                    self.finished();
                }
                Job::Tell(logs) => self.tell(logs),
                Job::Stop => return,
            }
        }
    }

    fn finished(&self) {
        self.state.lock().in_progress -= 1;
    }

    fn next_job(&self) -> Job {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return Job::Stop;
            }
            if state.is_idle() {
                state.resume_postponed();
                if !state.next.is_empty() {
                    let has_waited = self.wait_for_enough(&mut state);
                    if state.is_stopping {
                        return Job::Stop;
                    }
                    self.begin_round(&mut state, has_waited);
                }
            }
            if let Some(journal) = &self.journal
                && !state.ungathered.is_empty()
            {
                state.in_progress += 1;
                return Job::Gather(Arc::clone(journal), take(&mut state.ungathered));
            }
            if let Some(log) = state.current.pop_front() {
                state.in_progress += 1;
                return Job::Sync(log);
            }
            if state.telling_is_due {
                state.telling_is_due = false;
                state.told = Some(Instant::now());
                return Job::Tell(take(&mut state.untold));
            }
            if state.untold.is_empty() && state.postponed.is_empty() {
                self.wake.wait(&mut state);
            } else if self.wake.wait_for(&mut state, TELLING).timed_out() && state.next.is_empty() {
                state.telling_is_due = !state.untold.is_empty();
            }
        }
    }

    /// Lets more logs and bytes come into the round that could begin, if that is worth it. Returns whether it has waited.
    fn wait_for_enough(&self, state: &mut MutexGuard<'_, Rounds>) -> bool {
        let Some(began) = state.began.filter(|_| !state.swiftness.is_swift(Instant::now())) else {
            return false;
        };
        let pacing = state.pacing;
        let wait = || pacing.wait(self.unsynced.load(Ordering::SeqCst), began.elapsed());
        if wait().is_zero() {
            return false;
        }
        state.is_waiting = true;
        self.enough.store(pacing.enough(), Ordering::SeqCst);
        loop {
            let wait = wait();
            if wait.is_zero() || state.is_stopping {
                break;
            }
            self.has_enough.wait_for(state, wait);
        }
        self.enough.store(u64::MAX, Ordering::SeqCst);
        state.is_waiting = false;
        true
    }

    /// The logs that asked are synced, and beside them the checkpoint is told of rounds before, if it is time.
    fn begin_round(&self, state: &mut Rounds, has_waited: bool) {
        self.rounds.fetch_add(1, Ordering::SeqCst);
        state.pacing.begin(self.unsynced.swap(0, Ordering::SeqCst), has_waited);
        state.began = Some(Instant::now());
        let is_time = state.told.is_none_or(|told| told.elapsed() >= TELLING);
        state.telling_is_due |= is_time && !state.untold.is_empty();
        let logs = take(&mut state.next);
        let jobs = match &self.journal {
            Some(_) => {
                state.ungathered = logs.into();
                1
            }
            None => {
                state.current = logs;
                state.current.len()
            }
        };
        for _ in 1..jobs + usize::from(state.telling_is_due) {
            self.wake.notify_one();
        }
    }

    /// Puts what can go into the journal there, and leaves the rest to be synced log by log.
    fn gather(&self, journal: &Journal, logs: &[Arc<Log>]) {
        let Gathered { captured, direct } = journal.gather(logs);
        self.hand_out(direct);
        if captured.is_empty() {
            return;
        }
        let begun = Instant::now();
        let refused = journal.write(captured, |log, result| (self.listener)(log, result));
        let ended = Instant::now();
        self.state.lock().swiftness.note(ended - begun, ended);
        self.hand_out(refused);
    }

    fn hand_out(&self, logs: Vec<&Arc<Log>>) {
        if logs.is_empty() {
            return;
        }
        let count = logs.len();
        self.state.lock().current.extend(logs.into_iter().cloned());
        for _ in 0..count {
            self.wake.notify_one();
        }
    }

    fn sync(&self, log: &Arc<Log>) {
        log.leave_queue();
        match log.sync() {
            Ok(synced) => {
                if self.checkpoint.is_some() && log.enter_untold() {
                    self.state.lock().untold.push(Arc::clone(log));
                }
                (self.listener)(log, Ok(synced));
            }
            Err(Error::LogClosed { .. }) => {}
            Err(error) if error.is_retriable() => {
                tracing::warn!(partition = %log.partition(), %error, "the sync is put off");
                if log.enter_queue() {
                    let due = Instant::now() + POSTPONEMENT;
                    self.state.lock().postponed.push_back((due, Arc::clone(log)));
                }
            }
            Err(error) => (self.listener)(log, Err(&error)),
        }
    }

    fn tell(&self, logs: Vec<Arc<Log>>) {
        let Some(checkpoint) = &self.checkpoint else { return };
        logs.iter().for_each(|log| log.leave_untold());
        let told = logs
            .iter()
            .try_for_each(|log| checkpoint.record(log.partition(), || log.recorded_while_open()))
            .and_then(|()| checkpoint.sync());
        if let Err(error) = told {
            tracing::warn!(%error, "the checkpoint is not told of a round");
            if error.is_retriable() {
                let again = logs.into_iter().filter(|log| log.enter_untold());
                self.state.lock().untold.extend(again);
            }
        }
    }
}
