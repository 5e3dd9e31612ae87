//! The client's half of a fetch session with one broker (KIP-227): pure.
//!
//! Within a session a fetch names only what has changed since the last one, and an answer leaves out the partitions of which
//! there is nothing new. A broker may decline: then every fetch names all.

use std::collections::BTreeMap;

use thalweg_protocol::messages::fetch::{FetchPartition, FetchTopic, ForgottenTopic};
use thalweg_protocol::{ErrorCode, TopicPartition, Uuid};

use super::position::Known;

/// The first version of Fetch that knows sessions.
const FIRST_VERSION: i16 = 7;

/// The first version of Fetch that names topics by their ids.
const FIRST_VERSION_WITH_IDS: i16 = 13;

/// The session id of none.
const NO_SESSION: i32 = 0;

/// The epoch of a fetch that names all partitions and asks for a session.
const OPENS: i32 = 0;

/// The epoch of a fetch outside of any session.
const OUTSIDE: i32 = -1;

/// What a fetch says of a session.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) session_id: i32,
    pub(super) session_epoch: i32,
    /// The partitions that it names.
    pub(super) topics: Vec<FetchTopic>,
    pub(super) forgotten: Vec<ForgottenTopic>,
}

impl Plan {
    /// Whether it names all partitions, so that each of them is answered.
    pub(super) fn is_full(&self) -> bool {
        self.session_epoch <= OPENS
    }
}

/// A partition as the broker was last asked for it, and what it said.
#[derive(Debug)]
struct Named {
    topic_id: Uuid,
    asked: FetchPartition,
    known: Option<Known>,
}

/// The session with one broker, open or not.
#[derive(Debug, Default)]
pub(super) struct FetchSession {
    id: i32,
    /// Of the next fetch.
    epoch: i32,
    uses_ids: bool,
    named: BTreeMap<TopicPartition, Named>,
}

impl FetchSession {
    /// What the next fetch says, that wants these partitions in the order of their topics.
    pub(super) fn plan(&mut self, wanted: Vec<(TopicPartition, Uuid, FetchPartition)>, version: i16) -> Plan {
        let uses_ids = version >= FIRST_VERSION_WITH_IDS;
        if self.uses_ids != uses_ids {
            self.epoch = OPENS;
            self.uses_ids = uses_ids;
        }
        let mut plan = Plan {
            session_id: self.id,
            session_epoch: self.epoch,
            topics: Vec::new(),
            forgotten: Vec::new(),
        };
        let mut before = std::mem::take(&mut self.named);
        if version < FIRST_VERSION {
            (plan.session_id, plan.session_epoch) = (NO_SESSION, OUTSIDE);
        }
        if plan.is_full() {
            before.clear();
        }
        for (partition, topic_id, asked) in wanted {
            let mut known = None;
            match before.remove(&partition) {
                // Of a topic that was created anew the session has another one.
                Some(named) if uses_ids && named.topic_id != topic_id => {
                    plan.forget(&partition, named.topic_id);
                    plan.name(&partition, topic_id, &asked);
                }
                Some(named) => {
                    known = named.known;
                    if named.asked != asked {
                        plan.name(&partition, topic_id, &asked);
                    }
                }
                None => plan.name(&partition, topic_id, &asked),
            }
            self.named.insert(partition, Named { topic_id, asked, known });
        }
        for (partition, named) in before {
            plan.forget(&partition, named.topic_id);
        }
        plan
    }

    /// The fetch was answered, within the session of this id or with an offer of it.
    pub(super) fn answered(&mut self, session_id: i32) {
        self.epoch = match (session_id, self.epoch) {
            (NO_SESSION, _) => OPENS,
            (_, OPENS) => 1,
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
        self.id = session_id;
    }

    /// The fetch was not answered, or was refused as a whole: the next one opens another session. Returns whether it was
    /// about the session alone, so that the same can be asked for at once.
    pub(super) fn failed(&mut self, code: Option<ErrorCode>) -> bool {
        let was_within = self.epoch > OPENS;
        self.epoch = OPENS;
        match code {
            Some(ErrorCode::FetchSessionIdNotFound) => {
                self.id = NO_SESSION;
                was_within
            }
            Some(ErrorCode::InvalidFetchSessionEpoch | ErrorCode::FetchSessionTopicIdError) => was_within,
            _ => false,
        }
    }

    /// Notes what the broker has said of a partition.
    pub(super) fn learn(&mut self, partition: &TopicPartition, known: Known) {
        if let Some(named) = self.named.get_mut(partition) {
            named.known = Some(known);
        }
    }

    /// What the broker has said last of a partition that it leaves out of an answer.
    pub(super) fn known(&self, partition: &TopicPartition) -> Option<Known> {
        self.named.get(partition)?.known
    }
}

impl Plan {
    fn name(&mut self, partition: &TopicPartition, topic_id: Uuid, asked: &FetchPartition) {
        match self.topics.last_mut().filter(|last| last.topic == partition.topic) {
            Some(last) => last.partitions.push(asked.clone()),
            None => self.topics.push(FetchTopic {
                topic: partition.topic.clone(),
                topic_id,
                partitions: vec![asked.clone()],
            }),
        }
    }

    fn forget(&mut self, partition: &TopicPartition, topic_id: Uuid) {
        let same = |last: &&mut ForgottenTopic| last.topic == partition.topic && last.topic_id == topic_id;
        match self.forgotten.last_mut().filter(same) {
            Some(last) => last.partitions.push(partition.partition),
            None => self.forgotten.push(ForgottenTopic {
                topic: partition.topic.clone(),
                topic_id,
                partitions: vec![partition.partition],
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::Offset;

    use super::*;

    fn wanted(partitions: &[(i32, i64)]) -> Vec<(TopicPartition, Uuid, FetchPartition)> {
        let asked = |&(partition, fetch_offset)| {
            let asked = FetchPartition { partition, fetch_offset, ..Default::default() };
            (TopicPartition::new("t", partition), Uuid([1; 16]), asked)
        };
        partitions.iter().map(asked).collect()
    }

    /// (id, epoch, what is named, what is forgotten)
    type Said = (i32, i32, Vec<(i32, i64)>, Vec<i32>);

    fn said(plan: &Plan) -> Said {
        let topics = plan.topics.iter().flat_map(|topic| &topic.partitions);
        let named = topics.map(|asked| (asked.partition, asked.fetch_offset)).collect();
        let forgotten = plan.forgotten.iter().flat_map(|topic| topic.partitions.clone()).collect();
        (plan.session_id, plan.session_epoch, named, forgotten)
    }

    #[test]
    fn only_what_has_changed_is_named() {
        let mut session = FetchSession::default();
        let check = |session: &mut FetchSession, partitions: &[(i32, i64)], version, expected: Said| {
            assert_eq!(said(&session.plan(wanted(partitions), version)), expected);
        };
        check(&mut session, &[(0, 0), (1, 0)], 18, (0, 0, vec![(0, 0), (1, 0)], vec![]));
        session.answered(7);
        check(&mut session, &[(0, 0), (1, 5)], 18, (7, 1, vec![(1, 5)], vec![]));
        session.answered(7);
        check(&mut session, &[(1, 5), (2, 0)], 18, (7, 2, vec![(2, 0)], vec![0]));
        session.answered(7);
        check(&mut session, &[(0, 0), (1, 5), (2, 0)], 18, (7, 3, vec![(0, 0)], vec![]));
        // Names instead of ids are not for this session.
        check(&mut session, &[(0, 0), (1, 5)], 12, (7, 0, vec![(0, 0), (1, 5)], vec![]));
        session.answered(8);
        check(&mut session, &[(0, 0), (1, 5)], 12, (8, 1, vec![], vec![]));
        // The broker ends the session.
        session.answered(0);
        check(&mut session, &[(0, 0)], 12, (0, 0, vec![(0, 0)], vec![]));
        session.answered(0);
        check(&mut session, &[(0, 0)], 12, (0, 0, vec![(0, 0)], vec![]));
        check(&mut session, &[(0, 0)], 6, (0, -1, vec![(0, 0)], vec![]));
    }

    #[test]
    fn after_a_failure_everything_is_named_again() {
        for (code, id, is_about_session) in [
            (None, 7, false),
            (Some(ErrorCode::KafkaStorageError), 7, false),
            (Some(ErrorCode::FetchSessionIdNotFound), 0, true),
            (Some(ErrorCode::InvalidFetchSessionEpoch), 7, true),
            (Some(ErrorCode::FetchSessionTopicIdError), 7, true),
        ] {
            let mut session = FetchSession::default();
            session.plan(wanted(&[(0, 0), (1, 0)]), 18);
            session.answered(7);
            session.plan(wanted(&[(0, 3), (1, 0)]), 18);
            assert_eq!(session.failed(code), is_about_session, "{code:?}");
            let again = session.plan(wanted(&[(0, 3), (1, 0)]), 18);
            assert_eq!(said(&again), (id, 0, vec![(0, 3), (1, 0)], vec![]), "{code:?}");
            assert!(!session.failed(code), "a fetch that opens one has no session to be refused for");
        }
    }

    #[test]
    fn a_topic_that_was_created_anew_is_another_one() {
        let mut session = FetchSession::default();
        session.plan(wanted(&[(0, 0)]), 18);
        session.answered(7);
        let (partition, _, asked) = wanted(&[(0, 0)]).remove(0);
        let plan = session.plan(vec![(partition, Uuid([2; 16]), asked)], 18);
        assert_eq!(said(&plan), (7, 1, vec![(0, 0)], vec![0]));
        assert_eq!((plan.topics[0].topic_id, plan.forgotten[0].topic_id), (Uuid([2; 16]), Uuid([1; 16])));
    }

    #[test]
    fn what_the_broker_has_said_is_remembered_as_long_as_it_is() {
        let mut session = FetchSession::default();
        let partition = TopicPartition::new("t", 0);
        let offset = Offset(4);
        let known =
            Known { log_start: Offset(0), high_watermark: offset, last_stable_offset: offset, end: offset };
        session.plan(wanted(&[(0, 0)]), 18);
        session.learn(&partition, known);
        session.answered(7);
        session.plan(wanted(&[(0, 4)]), 18);
        assert_eq!(session.known(&partition), Some(known));
        session.answered(7);
        // Once it was forgotten, the broker tells of it anew.
        session.plan(wanted(&[(1, 0)]), 18);
        session.answered(7);
        session.plan(wanted(&[(0, 4)]), 18);
        assert_eq!(session.known(&partition), None);
    }
}
