//! The fetch sessions of all clients: so many at once, with so many partitions in all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::epoch::SessionId;
use super::session::Session;
use crate::handlers::Client;
use crate::partition::{Bell, Partition};
use crate::server::Principal;

/// What the sessions of all clients may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    /// How many there may be at once.
    pub(crate) sessions: usize,
    /// How many partitions they may have in all.
    pub(crate) partitions: usize,
    /// How long one has to be unused, or to have been there, before it may make way for another.
    pub(crate) min_idle: Duration,
}

/// The fetch sessions of all clients.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    limits: SessionLimits,
    room: Arc<Room>,
    /// Guards the index of sessions; held for a look-up, or to choose one that makes way.
    open: Mutex<HashMap<SessionId, Entry>>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<OpenSession>,
    created: Instant,
    last_used: Instant,
    /// The connection that used it last.
    last_user: Weak<Client>,
}

/// The partitions of all sessions, counted.
#[derive(Debug)]
struct Room {
    limit: usize,
    taken: AtomicUsize,
}

/// A session that the broker remembers.
#[derive(Debug)]
pub(crate) struct OpenSession {
    owner: (&'static str, ByteString),
    /// Rung by its partitions.
    pub(crate) bell: Arc<Bell>,
    /// How much of the room is taken for it.
    size: AtomicUsize,
    room: Arc<Room>,
    /// Guards the session; held to decide, never to read a log.
    state: Mutex<SessionState>,
}

/// What is guarded of an open session.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) session: Session<Weak<Partition>>,
    /// How many changes of the partitions of this node had been seen when the leaders were last looked up.
    pub(crate) changes_seen: u64,
}

impl FetchSessions {
    pub(crate) fn new(limits: SessionLimits) -> Self {
        let room = Arc::new(Room { limit: limits.partitions, taken: AtomicUsize::new(0) });
        Self { limits, room, open: Mutex::default() }
    }

    /// The session of this id, which `client` uses now; `None` when there is none that is its principal's.
    pub(crate) fn take_up(
        &self,
        id: SessionId,
        client: &Arc<Client>,
        now: Instant,
    ) -> Option<Arc<OpenSession>> {
        let mut open = self.open.lock();
        let entry = open.get_mut(&id)?;
        if !entry.session.belongs_to(&client.principal) {
            return None;
        }
        entry.last_used = now;
        if !std::ptr::eq(entry.last_user.as_ptr(), Arc::as_ptr(client)) {
            entry.last_user = Arc::downgrade(client);
        }
        Some(Arc::clone(&entry.session))
    }

    /// Ends the session of this id if it is `client`'s.
    pub(crate) fn end(&self, id: SessionId, client: &Client) {
        let mut open = self.open.lock();
        if open.get(&id).is_some_and(|entry| entry.session.belongs_to(&client.principal)) {
            let ended = open.remove(&id);
            // It takes its bell out of all partitions, and nobody has to wait for that.
            drop(open);
            drop(ended);
        }
    }

    /// Opens a session of `size` partitions for `client`, which `state` makes once there is room. Another one may have to
    /// make way; `None` when none can.
    pub(crate) fn open(
        &self,
        client: &Arc<Client>,
        size: usize,
        now: Instant,
        state: impl FnOnce() -> SessionState,
    ) -> Option<SessionId> {
        let mut evicted = Vec::new();
        let has_room = {
            let mut open = self.open.lock();
            self.make_room(&mut open, size, now, &mut evicted)
        };
        drop(evicted);
        if !has_room {
            return None;
        }
        let (kind, name) = (client.principal.kind, client.principal.name.clone());
        let session = Arc::new(OpenSession {
            owner: (kind, name),
            bell: Arc::default(),
            size: AtomicUsize::new(size),
            room: Arc::clone(&self.room),
            state: Mutex::new(state()),
        });
        session.resized(session.lock().session.len());
        let mut open = self.open.lock();
        if open.len() >= self.limits.sessions {
            // Others were faster.
            return None;
        }
        let id = loop {
            let id = SessionId(fastrand::i32(1..));
            if !open.contains_key(&id) {
                break id;
            }
        };
        let last_user = Arc::downgrade(client);
        open.insert(id, Entry { session, created: now, last_used: now, last_user });
        Some(id)
    }

    /// Takes room for one more session of `size` partitions. Those that make way for it are moved to `evicted`.
    fn make_room(
        &self,
        open: &mut HashMap<SessionId, Entry>,
        size: usize,
        now: Instant,
        evicted: &mut Vec<Entry>,
    ) -> bool {
        loop {
            // Those that are gone take their room with them, but only once they are dropped.
            let going: usize = evicted.iter().map(|entry| entry.session.size()).sum();
            let has_seat = open.len() < self.limits.sessions;
            if has_seat && self.room.take_with(size, going) {
                return true;
            }
            let candidates = open.iter().map(|(&id, entry)| Candidate {
                id,
                size: entry.session.size(),
                age: now - entry.created,
                idle: now - entry.last_used,
                is_deserted: entry.last_user.strong_count() == 0,
            });
            let Some(entry) = choose(candidates, size, self.limits.min_idle).and_then(|id| open.remove(&id))
            else {
                return false;
            };
            evicted.push(entry);
        }
    }

    #[cfg(test)]
    fn count(&self) -> (usize, usize) {
        (self.open.lock().len(), self.room.taken.load(Ordering::Relaxed))
    }
}

impl Room {
    fn take(&self, partitions: usize) -> bool {
        self.take_with(partitions, 0)
    }

    /// Takes room of which so much is about to be given back.
    fn take_with(&self, partitions: usize, going: usize) -> bool {
        let limit = self.limit.saturating_add(going);
        let take = |taken: usize| taken.checked_add(partitions).filter(|&after| after <= limit);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn give_back(&self, partitions: usize) {
        self.taken.fetch_sub(partitions, Ordering::Relaxed);
    }
}

impl OpenSession {
    fn belongs_to(&self, principal: &Principal) -> bool {
        self.owner.0 == principal.kind && self.owner.1 == principal.name
    }

    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// The session itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }

    /// Takes room for `added` partitions more; whether there is some. [`OpenSession::resized`] says how many it were.
    pub(crate) fn grow(&self, added: usize) -> bool {
        let has_room = self.room.take(added);
        if has_room {
            self.size.fetch_add(added, Ordering::Relaxed);
        }
        has_room
    }

    /// Notes that the session has `partitions` now, for which room has been taken.
    pub(crate) fn resized(&self, partitions: usize) {
        let before = self.size.swap(partitions, Ordering::Relaxed);
        self.room.give_back(before.saturating_sub(partitions));
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        for partition in self.state.get_mut().session.leaders().filter_map(Weak::upgrade) {
            partition.unpark(&self.bell);
        }
        self.room.give_back(self.size());
    }
}

/// A session that may have to make way.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: SessionId,
    size: usize,
    /// How long it has been there.
    age: Duration,
    /// How long it has not been used.
    idle: Duration,
    /// Whether the connection is gone that used it last.
    is_deserted: bool,
}

/// Which of `candidates` makes way for a new session of `size` partitions: one that nobody uses any more, else the
/// smallest of those that have been there for long, if the new one is larger (KIP-227). One whose connection is gone
/// counts as unused at once; Kafka waits.
fn choose(
    candidates: impl Iterator<Item = Candidate> + Clone,
    size: usize,
    min_idle: Duration,
) -> Option<SessionId> {
    let unused = candidates.clone().filter(|candidate| candidate.is_deserted || candidate.idle > min_idle);
    let longest = unused.max_by_key(|candidate| (candidate.is_deserted, candidate.idle));
    let settled = candidates.filter(|candidate| candidate.age > min_idle && candidate.size < size);
    longest.or_else(|| settled.min_by_key(|candidate| (candidate.size, candidate.id))).map(|chosen| chosen.id)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use thalweg_protocol::messages::fetch::{FetchPartition, FetchResponse, FetchTopic};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_unused_make_way_and_then_the_small() {
        let candidate = |id, size, age, idle| Candidate {
            id: SessionId(id),
            size,
            age: age * MINUTE,
            idle: idle * MINUTE,
            is_deserted: false,
        };
        let check = |candidates: &[Candidate], size, chosen: Option<i32>| {
            let found = choose(candidates.iter().copied(), size, 2 * MINUTE);
            assert_eq!(found, chosen.map(SessionId), "{candidates:?} {size}");
        };
        check(&[], 10, None);
        // Neither old nor unused.
        check(&[candidate(1, 1, 2, 2)], 10, None);
        check(&[candidate(1, 1, 9, 3), candidate(2, 1, 9, 4)], 0, Some(2));
        // In use, but old.
        check(&[candidate(1, 5, 9, 0), candidate(2, 4, 9, 0), candidate(3, 1, 1, 0)], 5, Some(2));
        check(&[candidate(1, 5, 9, 0), candidate(2, 4, 9, 0), candidate(3, 1, 1, 0)], 4, None);
        let deserted = Candidate { is_deserted: true, ..candidate(4, 9, 0, 0) };
        check(&[candidate(1, 1, 9, 9), deserted], 1, Some(4));
    }

    fn topics(partitions: i32) -> Vec<FetchTopic> {
        let asked = |partition| FetchPartition { partition, ..Default::default() };
        let partitions = (0..partitions).map(asked).collect();
        vec![FetchTopic { topic: ByteString::from_static("t"), partitions, ..Default::default() }]
    }

    fn open(
        sessions: &FetchSessions,
        client: &Arc<Client>,
        partitions: i32,
        now: Instant,
    ) -> Option<SessionId> {
        sessions.open(client, partitions as usize, now, || {
            let resolve = |_: &_, _| Ok(Weak::new());
            let response = FetchResponse::default();
            let session = Session::open(false, 0, &topics(partitions), &response, resolve);
            SessionState { session, changes_seen: 0 }
        })
    }

    fn client() -> Arc<Client> {
        Arc::new(Client::new(Some(IpAddr::from([127, 0, 0, 1]))))
    }

    #[test]
    fn there_are_never_more_sessions_and_partitions_than_allowed() {
        let limits = SessionLimits { sessions: 2, partitions: 100, min_idle: 2 * MINUTE };
        let (sessions, user, start) = (FetchSessions::new(limits), client(), Instant::now());
        let first = open(&sessions, &user, 10, start).expect("there is room");
        assert_eq!(open(&sessions, &user, 91, start), None, "too many partitions in all");
        let second = open(&sessions, &user, 90, start).expect("there is room");
        assert_eq!(open(&sessions, &user, 1, start), None, "two are open and in use");
        assert_eq!(sessions.count(), (2, 100));
        // The first is unused after a while.
        let later = start + 3 * MINUTE;
        assert!(sessions.take_up(second, &user, later).is_some());
        let third = open(&sessions, &user, 10, later).expect("the first makes way");
        assert!(sessions.take_up(first, &user, later).is_none());
        sessions.end(third, &user);
        assert_eq!(sessions.count(), (1, 90));
        // One whose user is gone makes way at once.
        let other = client();
        assert!(sessions.take_up(second, &other, later).is_some());
        drop(other);
        let fourth = open(&sessions, &user, 100, later).expect("the second makes way");
        assert_eq!(sessions.count(), (1, 100));
        sessions.end(fourth, &user);
        assert_eq!(sessions.count(), (0, 0));
    }

    #[test]
    fn a_session_grows_as_far_as_there_is_room() {
        let limits = SessionLimits { sessions: 2, partitions: 10, min_idle: MINUTE };
        let (sessions, user, now) = (FetchSessions::new(limits), client(), Instant::now());
        let id = open(&sessions, &user, 6, now).expect("there is room");
        let session = sessions.take_up(id, &user, now).expect("it is open");
        assert!(!session.grow(5));
        assert!(session.grow(4));
        assert_eq!(sessions.count(), (1, 10));
        session.resized(3);
        assert_eq!(sessions.count(), (1, 3));
        sessions.end(id, &user);
        assert_eq!(sessions.count(), (0, 3), "a fetch still uses it");
        drop(session);
        assert_eq!(sessions.count(), (0, 0));
    }

    #[test]
    fn a_session_is_only_its_principals() {
        let limits = SessionLimits { sessions: 2, partitions: 10, min_idle: MINUTE };
        let (sessions, now) = (FetchSessions::new(limits), Instant::now());
        let id = open(&sessions, &client(), 1, now).expect("there is room");
        let mut other = Client::new(None);
        other.principal.name = ByteString::from_static("other");
        let other = Arc::new(other);
        assert!(sessions.take_up(id, &other, now).is_none());
        sessions.end(id, &other);
        assert!(sessions.take_up(id, &client(), now).is_some(), "from another connection");
    }
}
