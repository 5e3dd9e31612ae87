//! One fetch session: the partitions that a client reads, and what it has been told of each.
//!
//! A fetch looks only at the partitions in the queue: those that the client has named, that have rung, or that had
//! something to say the last time. All others are as the client knows them, and cost nothing.

use std::collections::{HashMap, VecDeque};

use bytestring::ByteString;
use thalweg_protocol::messages::fetch::{
    FetchPartition, FetchResponse, FetchTopic, FetchableTopicResponse, ForgottenTopic, PartitionData,
};
use thalweg_protocol::{ErrorCode, Records, Uuid};

use super::epoch::SessionEpoch;
use crate::partition::Place;

/// A topic in the way of its session: by its name or by its id, and the other one empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TopicKey {
    pub(crate) name: ByteString,
    pub(crate) id: Uuid,
}

impl TopicKey {
    fn new(name: &ByteString, id: Uuid, uses_ids: bool) -> Self {
        match uses_ids {
            true => Self { name: ByteString::new(), id },
            false => Self { name: name.clone(), id: Uuid::ZERO },
        }
    }

    /// The same in memory of its own: a name as it came keeps the frame of its request.
    fn owned(&self) -> Self {
        Self { name: ByteString::from(self.name.to_string()), id: self.id }
    }
}

/// A partition to look at. `L` is what reaches its leader.
#[derive(Clone, Debug)]
pub(crate) struct Look<L> {
    pub(crate) place: Place,
    pub(crate) asked: FetchPartition,
    pub(crate) leader: Result<L, ErrorCode>,
}

/// What a look at a partition found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) data: PartitionData,
    /// Whether there is something to read that `data` had no room for.
    pub(crate) has_more: bool,
}

/// What the client knows of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    high_watermark: i64,
    last_stable_offset: i64,
    log_start_offset: i64,
}

impl Told {
    /// Nothing yet. An error tells the same, so that the partition is told of again when the error has gone.
    const NOTHING: Self = Self { high_watermark: -1, last_stable_offset: -1, log_start_offset: -1 };

    fn by(data: &PartitionData) -> Self {
        if data.error_code != 0 {
            return Self::NOTHING;
        }
        Self {
            high_watermark: data.high_watermark,
            last_stable_offset: data.last_stable_offset,
            log_start_offset: data.log_start_offset,
        }
    }

    /// Whether `data` is worth an answer to someone who knows this. Kafka leaves out the last stable offset, which never
    /// moves for long without the high watermark.
    fn leaves_news(self, data: &PartitionData) -> bool {
        data.error_code != 0
            || has_records(data)
            || data.preferred_read_replica >= 0
            || self != Self::by(data)
    }
}

fn has_records(data: &PartitionData) -> bool {
    data.records.as_ref().is_some_and(|records| Records::len(records) > 0)
}

#[derive(Debug)]
struct Member<L> {
    topic: TopicKey,
    asked: FetchPartition,
    leader: Result<L, ErrorCode>,
    told: Told,
}

/// Room for a partition. One whose partition was forgotten is given to another only once it has left the queue.
#[derive(Debug)]
struct Seat<L> {
    member: Option<Member<L>>,
    is_queued: bool,
}

/// A session, pure. `L` is what reaches the leader of a partition.
#[derive(Debug)]
pub(crate) struct Session<L> {
    /// That of the next fetch.
    epoch: SessionEpoch,
    uses_ids: bool,
    isolation_level: i8,
    seats: Vec<Seat<L>>,
    free: Vec<Place>,
    by_topic: HashMap<TopicKey, HashMap<i32, Place>>,
    /// The partitions to look at, the one whose turn it is first. None is in it twice.
    queue: VecDeque<Place>,
    len: usize,
}

impl<L: Clone> Session<L> {
    /// The session of a client that has named `topics` and was answered with `response`, which has the same shape.
    pub(crate) fn open(
        uses_ids: bool,
        isolation_level: i8,
        topics: &[FetchTopic],
        response: &FetchResponse,
        resolve: impl FnMut(&TopicKey, i32) -> Result<L, ErrorCode>,
    ) -> Self {
        let mut session = Self {
            epoch: SessionEpoch::FIRST,
            uses_ids,
            isolation_level,
            seats: Vec::new(),
            free: Vec::new(),
            by_topic: HashMap::new(),
            queue: VecDeque::new(),
            len: 0,
        };
        session.name(topics, resolve);
        for (topic, answered) in topics.iter().zip(&response.responses) {
            let key = TopicKey::new(&topic.topic, topic.topic_id, uses_ids);
            for data in &answered.partitions {
                if let Some(place) = session.place(&key, data.partition_index)
                    && let Some(member) = session.member(place)
                {
                    member.told = Told::by(data);
                }
            }
        }
        session
    }

    /// How many partitions it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The epoch that its next fetch must have.
    pub(crate) fn epoch(&self) -> SessionEpoch {
        self.epoch
    }

    /// Whether topics are named by their ids.
    pub(crate) fn uses_ids(&self) -> bool {
        self.uses_ids
    }

    /// Begins a fetch, which has a new epoch from now on.
    ///
    /// # Errors
    /// INVALID_FETCH_SESSION_EPOCH when it is not the one that is due, FETCH_SESSION_TOPIC_ID_ERROR when it names topics in
    /// another way than the session does.
    pub(crate) fn begin(
        &mut self,
        epoch: SessionEpoch,
        uses_ids: bool,
        isolation_level: i8,
    ) -> Result<SessionEpoch, ErrorCode> {
        if epoch != self.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if uses_ids != self.uses_ids {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        self.epoch = epoch.next();
        if isolation_level != self.isolation_level {
            // What there is to read ends elsewhere now.
            self.isolation_level = isolation_level;
            self.queue_all();
        }
        Ok(self.epoch)
    }

    /// How many partitions `topics` would add, or more where it names some twice.
    pub(crate) fn count_new(&self, topics: &[FetchTopic]) -> usize {
        let new_in = |topic: &FetchTopic| {
            let known = self.by_topic.get(&TopicKey::new(&topic.topic, topic.topic_id, self.uses_ids));
            let is_new = |asked: &&FetchPartition| {
                known.is_none_or(|partitions| !partitions.contains_key(&asked.partition))
            };
            topic.partitions.iter().filter(is_new).count()
        };
        topics.iter().map(new_in).sum()
    }

    /// Takes over what a fetch says of partitions, and forgets those that it wants no longer. Returns what reached these.
    pub(crate) fn update(
        &mut self,
        topics: &[FetchTopic],
        forgotten: &[ForgottenTopic],
        resolve: impl FnMut(&TopicKey, i32) -> Result<L, ErrorCode>,
    ) -> Vec<L> {
        self.name(topics, resolve);
        let mut gone = Vec::new();
        for topic in forgotten {
            let key = TopicKey::new(&topic.topic, topic.topic_id, self.uses_ids);
            let Some(mut partitions) = self.by_topic.remove(&key) else { continue };
            for partition in &topic.partitions {
                let place = partitions.remove(partition);
                gone.extend(place.and_then(|place| self.vacate(place)));
            }
            if !partitions.is_empty() {
                self.by_topic.insert(key, partitions);
            }
        }
        gone
    }

    fn name(
        &mut self,
        topics: &[FetchTopic],
        mut resolve: impl FnMut(&TopicKey, i32) -> Result<L, ErrorCode>,
    ) {
        for topic in topics {
            let mut key = TopicKey::new(&topic.topic, topic.topic_id, self.uses_ids);
            // Taken out meanwhile, so that the key is looked up once.
            let (kept, mut partitions) = self.by_topic.remove_entry(&key).unwrap_or_else(|| {
                key = key.owned();
                (key.clone(), HashMap::with_capacity(topic.partitions.len()))
            });
            for asked in &topic.partitions {
                let known = partitions.get(&asked.partition).copied();
                let place = match known {
                    Some(place) => {
                        if let Some(member) = self.member(place) {
                            member.asked = asked.clone();
                        }
                        place
                    }
                    None => {
                        let leader = resolve(&kept, asked.partition);
                        let topic = kept.clone();
                        let place =
                            self.seat(Member { topic, asked: asked.clone(), leader, told: Told::NOTHING });
                        partitions.insert(asked.partition, place);
                        place
                    }
                };
                self.enqueue(place);
            }
            self.by_topic.insert(kept, partitions);
        }
    }

    /// Looks up again what reaches each leader, and has all partitions looked at.
    pub(crate) fn resolve_again(&mut self, mut resolve: impl FnMut(&TopicKey, i32) -> Result<L, ErrorCode>) {
        for seat in &mut self.seats {
            if let Some(member) = &mut seat.member {
                member.leader = resolve(&member.topic, member.asked.partition);
            }
        }
        self.queue_all();
    }

    /// Has the partitions at `places` looked at.
    pub(crate) fn rung(&mut self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            // It may have been forgotten meanwhile.
            if self.member(place).is_some() {
                self.enqueue(place);
            }
        }
    }

    /// What is to be looked at, in this order.
    pub(crate) fn looks(&mut self) -> Vec<Look<L>> {
        let mut looks = Vec::with_capacity(self.queue.len());
        let (seats, free) = (&mut self.seats, &mut self.free);
        self.queue.retain(|&place| {
            let Some(seat) = seats.get_mut(place.0 as usize) else { return false };
            match &seat.member {
                Some(member) => {
                    looks.push(Look { place, asked: member.asked.clone(), leader: member.leader.clone() });
                    true
                }
                None => {
                    seat.is_queued = false;
                    free.push(place);
                    false
                }
            }
        });
        looks
    }

    /// Takes in what was found at the first places of the queue, in its order. Where nothing is new, nobody looks again
    /// until it rings. Returns what is new, if `is_sent`: the client knows it then.
    pub(crate) fn settle(&mut self, found: Vec<Found>, is_sent: bool) -> Vec<FetchableTopicResponse> {
        let mut answers = Answers::default();
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for Found { place, data, has_more } in found {
            debug_assert_eq!(
                self.queue.front(),
                Some(&place),
                "nothing else is done with the queue meanwhile"
            );
            self.queue.pop_front();
            let Some(seat) = self.seats.get_mut(place.0 as usize) else { continue };
            let Some(member) = &mut seat.member else { continue };
            let (has_records, has_error) = (has_records(&data), data.error_code != 0);
            let has_news = member.told.leaves_news(&data);
            let stays = has_records || has_error || has_more || (has_news && !is_sent);
            if is_sent && has_news {
                member.told = Told::by(&data);
                answers.push(&member.topic, data);
            }
            match stays {
                // Those that could be read make way for those that could not.
                true if is_sent && has_records => last.push(place),
                true => first.push(place),
                false => seat.is_queued = false,
            }
        }
        for place in first.into_iter().rev() {
            self.queue.push_front(place);
        }
        self.queue.extend(last);
        answers.topics
    }

    /// What reaches each of its leaders.
    pub(crate) fn leaders(&self) -> impl Iterator<Item = &L> {
        let members = self.seats.iter().filter_map(|seat| seat.member.as_ref());
        members.filter_map(|member| member.leader.as_ref().ok())
    }

    fn place(&self, topic: &TopicKey, partition: i32) -> Option<Place> {
        self.by_topic.get(topic)?.get(&partition).copied()
    }

    fn member(&mut self, place: Place) -> Option<&mut Member<L>> {
        self.seats.get_mut(place.0 as usize)?.member.as_mut()
    }

    fn seat(&mut self, member: Member<L>) -> Place {
        self.len += 1;
        if let Some(place) = self.free.pop()
            && let Some(seat) = self.seats.get_mut(place.0 as usize)
        {
            seat.member = Some(member);
            return place;
        }
        self.seats.push(Seat { member: Some(member), is_queued: false });
        Place(self.seats.len() as u32 - 1)
    }

    fn vacate(&mut self, place: Place) -> Option<L> {
        let seat = self.seats.get_mut(place.0 as usize)?;
        let member = seat.member.take()?;
        if !seat.is_queued {
            self.free.push(place);
        }
        self.len -= 1;
        member.leader.ok()
    }

    fn enqueue(&mut self, place: Place) {
        if let Some(seat) = self.seats.get_mut(place.0 as usize)
            && !std::mem::replace(&mut seat.is_queued, true)
        {
            self.queue.push_back(place);
        }
    }

    fn queue_all(&mut self) {
        for index in 0..self.seats.len() {
            if self.seats.get(index).is_some_and(|seat| seat.member.is_some()) {
                self.enqueue(Place(index as u32));
            }
        }
    }
}

/// The partitions of an answer, by topic.
#[derive(Default)]
struct Answers {
    topics: Vec<FetchableTopicResponse>,
    /// Where each topic stands in `topics`.
    by_topic: HashMap<TopicKey, usize>,
}

impl Answers {
    fn push(&mut self, topic: &TopicKey, data: PartitionData) {
        let at = match self.by_topic.get(topic) {
            Some(&at) => at,
            None => {
                let (name, topic_id) = (topic.name.clone(), topic.id);
                self.topics.push(FetchableTopicResponse { topic: name, topic_id, partitions: Vec::new() });
                self.by_topic.insert(topic.clone(), self.topics.len() - 1);
                self.topics.len() - 1
            }
        };
        if let Some(answered) = self.topics.get_mut(at) {
            answered.partitions.push(data);
        }
    }
}

#[cfg(test)]
mod tests;
