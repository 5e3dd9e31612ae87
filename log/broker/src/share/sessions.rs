//! Share sessions: which partitions a member reads, so that it need not say so in each fetch. Every session belongs to the
//! connection that opened it.

use std::collections::HashMap;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::{ErrorCode, Uuid};

use crate::group::TopicIdPartition;

/// What the sessions of all members may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    /// How many there may be at once: Kafka's `group.share.max.share.sessions`.
    pub(crate) sessions: usize,
    /// How many partitions they may have in all.
    pub(crate) partitions: usize,
}

/// Whose session it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    pub(crate) group: ByteString,
    pub(crate) member: ByteString,
}

/// The share sessions of a node.
#[derive(Debug)]
pub(crate) struct ShareSessions {
    limits: SessionLimits,
    /// Guards the sessions; held for one request's change of one.
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    sessions: HashMap<SessionKey, Session>,
    /// How many have been opened so far.
    opened: u64,
    /// How many partitions they have in all.
    partitions: usize,
}

/// The epochs of a session, as requests name them (as those of fetch sessions, KIP-227).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionStart {
    /// The member begins a session.
    Opens,
    /// The member goes on with one that is in this epoch.
    Continues(i32),
    /// The member ends its session.
    Ends,
}

impl SessionStart {
    /// What this epoch of a request says.
    pub(crate) fn of(epoch: i32) -> Self {
        match epoch {
            0 => Self::Opens,
            -1 => Self::Ends,
            epoch => Self::Continues(epoch),
        }
    }
}

/// A topic as requests of sessions name it.
pub(crate) type SessionTopic = (Uuid, Vec<i32>);

/// What a member reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// Tells it from others of the same member.
    number: u64,
    /// The epoch of the next request.
    epoch: i32,
    /// The connection that opened it.
    connection: u64,
    /// Whose it is.
    owner: (&'static str, ByteString),
    /// Its member has left the group: it acquires nothing until it joins again, but may still say what became of what it has.
    has_left: bool,
    /// In the order in which they came.
    partitions: Vec<SessionPartition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SessionPartition {
    at: TopicIdPartition,
    /// Cleared when the member does not read it any more: it may have acquired records of it all the same.
    is_read: bool,
}

impl Session {
    fn new(number: u64, connection: u64, owner: (&'static str, ByteString)) -> Self {
        Self { number, epoch: 1, connection, owner, has_left: false, partitions: Vec::new() }
    }

    /// Tells it from others of the same member.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The partitions that the member reads; whose turn it is goes by the epoch.
    pub(crate) fn read(&self) -> Vec<TopicIdPartition> {
        let read = self.partitions.iter().filter(|partition| partition.is_read);
        let mut read: Vec<_> = read.map(|partition| partition.at).collect();
        if !read.is_empty() {
            let turn = usize::try_from(self.epoch).unwrap_or(0) % read.len();
            read.rotate_left(turn);
        }
        read
    }

    /// All partitions that the member may have acquired records of.
    pub(crate) fn touched(&self) -> impl Iterator<Item = TopicIdPartition> + '_ {
        self.partitions.iter().map(|partition| partition.at)
    }

    /// Takes over what a request says of the partitions. Returns by how many there are more.
    fn update(&mut self, added: &[SessionTopic], forgotten: &[SessionTopic], room: usize) -> Option<usize> {
        let before = self.partitions.len();
        // Requests name few that are new, but the first one may name thousands.
        let mut index: HashMap<TopicIdPartition, usize> =
            self.partitions.iter().enumerate().map(|(at, partition)| (partition.at, at)).collect();
        let each = |topics: &[SessionTopic]| -> Vec<TopicIdPartition> {
            let one = |(id, partitions): &SessionTopic| {
                let id = *id;
                partitions.iter().map(move |at| TopicIdPartition::new(id, *at)).collect::<Vec<_>>()
            };
            topics.iter().flat_map(one).collect()
        };
        for at in each(added) {
            match index.get(&at).and_then(|place| self.partitions.get_mut(*place)) {
                Some(known) => known.is_read = true,
                None => {
                    if self.partitions.len() - before >= room {
                        self.partitions.truncate(before);
                        return None;
                    }
                    index.insert(at, self.partitions.len());
                    self.partitions.push(SessionPartition { at, is_read: true });
                }
            }
        }
        for at in each(forgotten) {
            if let Some(known) = index.get(&at).and_then(|place| self.partitions.get_mut(*place)) {
                known.is_read = false;
            }
        }
        Some(self.partitions.len() - before)
    }

    fn next_epoch(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
    }
}

impl ShareSessions {
    pub(crate) fn new(limits: SessionLimits) -> Self {
        Self { limits, open: Mutex::default() }
    }

    /// How many there are, and how many partitions they have.
    pub(crate) fn counted(&self) -> (usize, usize) {
        let open = self.open.lock();
        (open.sessions.len(), open.partitions)
    }

    /// Opens a session in the place of one that the member may have had.
    ///
    /// # Errors
    /// SHARE_SESSION_LIMIT_REACHED.
    pub(crate) fn open(
        &self,
        key: &SessionKey,
        connection: u64,
        owner: (&'static str, ByteString),
        added: &[SessionTopic],
    ) -> Result<Session, ErrorCode> {
        let mut open = self.open.lock();
        let old = open.sessions.get(key);
        if old.is_some_and(|old| old.owner != owner) {
            return Err(ErrorCode::InvalidRequest);
        }
        if old.is_none() && open.sessions.len() >= self.limits.sessions {
            return Err(ErrorCode::ShareSessionLimitReached);
        }
        if let Some(old) = open.sessions.remove(key) {
            open.partitions -= old.partitions.len();
        }
        open.opened += 1;
        let mut session = Session::new(open.opened, connection, owner);
        let room = self.limits.partitions.saturating_sub(open.partitions);
        let size = session.update(added, &[], room).ok_or(ErrorCode::ShareSessionLimitReached)?;
        open.partitions += size;
        open.sessions.insert(key.clone(), session.clone());
        Ok(session)
    }

    /// Goes on with a session in this epoch, and takes over what the request says of the partitions. `owner` is who asks.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH or SHARE_SESSION_LIMIT_REACHED.
    pub(crate) fn go_on(
        &self,
        key: &SessionKey,
        epoch: i32,
        owner: &(&'static str, ByteString),
        added: &[SessionTopic],
        forgotten: &[SessionTopic],
    ) -> Result<Session, ErrorCode> {
        let mut open = self.open.lock();
        let room = self.limits.partitions.saturating_sub(open.partitions);
        let session = open.sessions.get_mut(key).filter(|session| session.owner == *owner);
        let session = session.ok_or(ErrorCode::ShareSessionNotFound)?;
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        let more = session.update(added, forgotten, room).ok_or(ErrorCode::ShareSessionLimitReached)?;
        session.next_epoch();
        let session = session.clone();
        open.partitions += more;
        Ok(session)
    }

    /// Looks at a session that is about to end. `owner` is who asks.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND.
    pub(crate) fn check(
        &self,
        key: &SessionKey,
        owner: &(&'static str, ByteString),
    ) -> Result<(), ErrorCode> {
        let open = self.open.lock();
        let is_its = open.sessions.get(key).is_some_and(|session| session.owner == *owner);
        if is_its { Ok(()) } else { Err(ErrorCode::ShareSessionNotFound) }
    }

    /// Whether the member has a session.
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        self.open.lock().sessions.contains_key(key)
    }

    /// Whether the session of this number is the member's, and may acquire records.
    pub(crate) fn may_acquire(&self, key: &SessionKey, number: u64) -> bool {
        let open = self.open.lock();
        open.sessions.get(key).is_some_and(|session| session.number == number && !session.has_left)
    }

    /// The member has left its group. Its session stays until it ends it, or its connection ends: what it says of the records
    /// that it has comes by another connection than its leave, and may come later.
    pub(crate) fn leave(&self, key: &SessionKey) {
        self.note(key, true);
    }

    /// The member has joined its group, maybe again: then it may go on with the session that it has.
    pub(crate) fn join(&self, key: &SessionKey) {
        self.note(key, false);
    }

    fn note(&self, key: &SessionKey, has_left: bool) {
        if let Some(session) = self.open.lock().sessions.get_mut(key) {
            session.has_left = has_left;
        }
    }

    /// Ends a session; one of a certain connection only if that is given.
    pub(crate) fn end(&self, key: &SessionKey, connection: Option<u64>) -> Option<Session> {
        let mut open = self.open.lock();
        let is_right =
            |session: &Session| connection.is_none_or(|connection| session.connection == connection);
        if !open.sessions.get(key).is_some_and(is_right) {
            return None;
        }
        let ended = open.sessions.remove(key)?;
        open.partitions -= ended.partitions.len();
        Some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: (&str, ByteString) = ("User", ByteString::from_static("u"));
    const TOPIC: Uuid = Uuid([7; 16]);

    fn key(member: &str) -> SessionKey {
        SessionKey { group: "g".into(), member: member.into() }
    }

    fn read(session: &Session) -> Vec<i32> {
        session.read().iter().map(|at| at.partition).collect()
    }

    #[test]
    fn sessions_go_by_epochs_and_remember_what_is_read() {
        let sessions = ShareSessions::new(SessionLimits { sessions: 2, partitions: 5 });
        let topics = |partitions: &[i32]| vec![(TOPIC, partitions.to_vec())];
        let go_on = |member: &str, epoch, added: &[i32], forgotten: &[i32]| {
            sessions.go_on(&key(member), epoch, &OWNER, &topics(added), &topics(forgotten))
        };
        assert_eq!(go_on("a", 1, &[], &[]), Err(ErrorCode::ShareSessionNotFound));
        let opened = sessions.open(&key("a"), 1, OWNER, &topics(&[0, 1, 2, 1])).expect("there is room");
        assert_eq!(read(&opened), [1, 2, 0]);
        assert_eq!(go_on("a", 2, &[], &[]), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(go_on("a", 1, &[3], &[0]).map(|session| read(&session)), Ok(vec![3, 1, 2]));
        let session = go_on("a", 2, &[], &[3]).expect("the epoch is right");
        assert_eq!((read(&session), session.touched().count()), (vec![2, 1], 4));
        // There is room for one more partition, and for one more session.
        assert_eq!(go_on("a", 3, &[4, 5], &[]), Err(ErrorCode::ShareSessionLimitReached));
        assert_eq!(go_on("a", 3, &[4], &[]).map(|session| session.touched().count()), Ok(5));
        sessions.open(&key("b"), 2, OWNER, &[]).expect("there is room");
        assert_eq!(sessions.open(&key("c"), 2, OWNER, &[]), Err(ErrorCode::ShareSessionLimitReached));
        // Beginning anew takes the place of what was before.
        assert_eq!(
            sessions.open(&key("a"), 3, OWNER, &topics(&[1])).map(|session| read(&session)),
            Ok(vec![1])
        );
        let other = ("User", ByteString::from_static("v"));
        assert_eq!(sessions.check(&key("a"), &other), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(sessions.open(&key("a"), 3, other, &[]), Err(ErrorCode::InvalidRequest));
        assert_eq!(sessions.end(&key("a"), Some(1)), None);
        assert!(sessions.end(&key("a"), Some(3)).is_some() && sessions.end(&key("b"), None).is_some());
        assert_eq!(sessions.open.lock().partitions, 0);
    }
}
