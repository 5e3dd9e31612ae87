use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// A log of a model: its records are one byte each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ModelLog {
    log_start: i64,
    high_watermark: i64,
}

/// The logs of a broker and who is parked on them.
#[derive(Default)]
struct Model {
    logs: BTreeMap<i32, ModelLog>,
    parked: BTreeMap<i32, Place>,
    rung: Vec<Place>,
    has_changed: bool,
}

/// The topic that partition `index` belongs to: there are three to each.
fn topic_of(index: i32) -> ByteString {
    ByteString::from(format!("topic-{}", index / 3))
}

fn data(index: i32, log: ModelLog, offset: i64, most: i64) -> (PartitionData, bool) {
    let data = PartitionData { partition_index: index, ..Default::default() };
    if offset < log.log_start || offset > log.high_watermark {
        let error_code = ErrorCode::OffsetOutOfRange.code();
        let nothing = PartitionData {
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            records: Some(Records::Bytes(Bytes::new())),
            error_code,
            ..data
        };
        return (nothing, false);
    }
    let len = (log.high_watermark - offset).min(most);
    let data = PartitionData {
        high_watermark: log.high_watermark,
        last_stable_offset: log.high_watermark,
        log_start_offset: log.log_start,
        records: Some(Records::Bytes(vec![0; len as usize].into())),
        ..data
    };
    (data, len == 0 && offset < log.high_watermark)
}

impl Model {
    fn resolve(&self, partition: i32) -> Result<i32, ErrorCode> {
        self.logs.get(&partition).map(|_| partition).ok_or(ErrorCode::UnknownTopicOrPartition)
    }

    fn append(&mut self, partition: i32, count: i64) {
        if let Some(log) = self.logs.get_mut(&partition) {
            log.high_watermark += count;
            self.rung.extend(self.parked.remove(&partition));
        }
    }

    fn read(&self, partition: i32, offset: i64, most: i64) -> (PartitionData, bool) {
        match self.logs.get(&partition) {
            Some(log) => data(partition, *log, offset, most),
            None => {
                let (mut gone, _) = data(partition, ModelLog::default(), -1, 0);
                gone.error_code = ErrorCode::UnknownTopicOrPartition.code();
                (gone, false)
            }
        }
    }

    /// What the driver does, on a model.
    fn fetch(&mut self, session: &mut Session<i32>, max_bytes: i64) -> Vec<FetchableTopicResponse> {
        if std::mem::take(&mut self.has_changed) {
            session.resolve_again(|_, partition| self.resolve(partition));
        }
        session.rung(std::mem::take(&mut self.rung));
        let (mut found, mut bytes) = (Vec::new(), 0);
        for Look { place, asked, leader } in session.looks() {
            if bytes >= max_bytes {
                break;
            }
            let (data, has_more) = match leader {
                Ok(partition) => {
                    self.parked.insert(partition, place);
                    self.read(partition, asked.fetch_offset, max_bytes - bytes)
                }
                Err(_) => self.read(asked.partition, asked.fetch_offset, 0),
            };
            bytes += data.records.as_ref().map_or(0, Records::len) as i64;
            found.push(Found { place, data, has_more });
        }
        session.settle(found, true)
    }
}

/// What a client knows of a partition: (error, high watermark, log start).
type Known = (i16, i64, i64);

fn known(data: &PartitionData) -> Known {
    (data.error_code, data.high_watermark, data.log_start_offset)
}

/// A client that keeps its side of a session.
#[derive(Default)]
struct ModelClient {
    wanted: BTreeMap<i32, i64>,
    /// What the session has been told.
    named: BTreeMap<i32, i64>,
    known: BTreeMap<i32, Known>,
}

fn asked(partitions: impl IntoIterator<Item = (i32, i64)>) -> Vec<FetchTopic> {
    let mut topics: BTreeMap<ByteString, Vec<FetchPartition>> = BTreeMap::new();
    for (partition, fetch_offset) in partitions {
        let asked = FetchPartition { partition, fetch_offset, ..Default::default() };
        topics.entry(topic_of(partition)).or_default().push(asked);
    }
    let topic = |(topic, partitions)| FetchTopic { topic, partitions, ..Default::default() };
    topics.into_iter().map(topic).collect()
}

impl ModelClient {
    /// What it names in the next fetch, and what it forgets.
    fn next(&mut self) -> (Vec<FetchTopic>, Vec<ForgottenTopic>) {
        let changed = self.wanted.iter().filter(|(index, offset)| self.named.get(index) != Some(offset));
        let topics = asked(changed.map(|(&index, &offset)| (index, offset)));
        let gone = self.named.keys().filter(|index| !self.wanted.contains_key(index));
        let forgotten = gone.map(|&index| ForgottenTopic {
            topic: topic_of(index),
            partitions: vec![index],
            ..Default::default()
        });
        let forgotten = forgotten.collect();
        self.named = self.wanted.clone();
        self.known.retain(|index, _| self.wanted.contains_key(index));
        (topics, forgotten)
    }

    /// Takes in an answer; every partition of it is news.
    fn take(&mut self, answer: &[FetchableTopicResponse]) {
        let topics: BTreeSet<_> = answer.iter().map(|topic| &topic.topic).collect();
        assert_eq!(topics.len(), answer.len(), "each topic stands in an answer once");
        for data in answer.iter().flat_map(|topic| &topic.partitions) {
            let len = data.records.as_ref().map_or(0, Records::len) as i64;
            let before = self.known.insert(data.partition_index, known(data));
            assert!(before != Some(known(data)) || len > 0 || data.error_code != 0, "nothing new: {data:?}");
            *self.wanted.get_mut(&data.partition_index).expect("it is wanted") += len;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append(i32, i64),
    Trim(i32),
    Delete(i32),
    Create(i32),
    Want(i32),
    Unwant(i32),
    Rewind(i32),
    Isolate(i8),
    WrongEpoch,
    Fetch(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let partition = || 0..7_i32;
    let step = prop_oneof![
        6 => (partition(), 1..5_i64).prop_map(|(partition, count)| Step::Append(partition, count)),
        1 => partition().prop_map(Step::Trim),
        1 => partition().prop_map(Step::Delete),
        2 => partition().prop_map(Step::Create),
        2 => partition().prop_map(Step::Want),
        1 => partition().prop_map(Step::Unwant),
        1 => partition().prop_map(Step::Rewind),
        1 => (0..2_i8).prop_map(Step::Isolate),
        1 => Just(Step::WrongEpoch),
        8 => prop_oneof![1..6_i64, Just(1000)].prop_map(Step::Fetch),
    ];
    prop::collection::vec(step, 1..80)
}

struct History {
    model: Model,
    client: ModelClient,
    session: Session<i32>,
    isolation_level: i8,
}

impl History {
    fn new() -> Self {
        let mut model = Model::default();
        model.logs.extend((0..5).map(|index| (index, ModelLog::default())));
        let client = ModelClient { wanted: (0..4).map(|index| (index, 0)).collect(), ..Default::default() };
        let mut history = Self { session: empty_session(), client, model, isolation_level: 0 };
        history.open();
        history
    }

    /// A full fetch that opens a session.
    fn open(&mut self) {
        let (topics, _) = self.client.next();
        let responses = topics.iter().map(|topic| FetchableTopicResponse {
            topic: topic.topic.clone(),
            topic_id: topic.topic_id,
            partitions: topic
                .partitions
                .iter()
                .map(|asked| self.model.read(asked.partition, asked.fetch_offset, 1000).0)
                .collect(),
        });
        let response = FetchResponse { responses: responses.collect(), ..Default::default() };
        let resolve = |_: &TopicKey, partition| self.model.resolve(partition);
        self.session = Session::open(false, self.isolation_level, &topics, &response, resolve);
        self.client.take(&response.responses);
    }

    fn fetch(&mut self, max_bytes: i64) {
        if self.client.wanted.is_empty() {
            return;
        }
        let (topics, forgotten) = self.client.next();
        let epoch = self.session.epoch();
        let begun = self.session.begin(epoch, false, self.isolation_level);
        assert_eq!(begun, Ok(epoch.next()));
        let most = self.session.len() + self.session.count_new(&topics);
        let gone = self.session.update(&topics, &forgotten, |_, partition| self.model.resolve(partition));
        assert_eq!(self.session.len(), self.client.wanted.len());
        assert!(self.session.len() <= most);
        for partition in gone {
            self.model.parked.remove(&partition);
        }
        let answer = self.model.fetch(&mut self.session, max_bytes);
        self.client.take(&answer);
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Append(partition, count) => self.model.append(partition, count),
            Step::Trim(partition) => {
                if let Some(log) = self.model.logs.get_mut(&partition) {
                    log.log_start = (log.log_start + 2).min(log.high_watermark);
                    self.model.has_changed = true;
                }
            }
            Step::Delete(partition) => {
                self.model.logs.remove(&partition);
                self.model.rung.extend(self.model.parked.remove(&partition));
                self.model.has_changed = true;
            }
            Step::Create(partition) => {
                self.model.logs.entry(partition).or_default();
                self.model.has_changed = true;
            }
            Step::Want(partition) => {
                self.client.wanted.entry(partition).or_insert(0);
            }
            Step::Unwant(partition) => {
                self.client.wanted.remove(&partition);
            }
            Step::Rewind(partition) => {
                if let Some(offset) = self.client.wanted.get_mut(&partition) {
                    *offset = 0;
                }
            }
            Step::Isolate(level) => self.isolation_level = level,
            Step::WrongEpoch => {
                let wrong = self.session.epoch().next();
                let refused = self.session.begin(wrong, false, self.isolation_level);
                assert_eq!(refused, Err(ErrorCode::InvalidFetchSessionEpoch));
            }
            Step::Fetch(max_bytes) => self.fetch(max_bytes),
        }
    }

    /// Whatever happened before: all that full fetches would return is returned, and then nothing is looked at any more
    /// but errors.
    fn check(&mut self) {
        for _ in 0..20 {
            self.fetch(1000);
        }
        let mut errors = 0;
        for (&partition, &offset) in &self.client.wanted {
            let (full, _) = self.model.read(partition, offset, 1000);
            assert!(!has_records(&full), "partition {partition} was not read to its end: {full:?}");
            assert_eq!(self.client.known.get(&partition), Some(&known(&full)), "partition {partition}");
            errors += usize::from(full.error_code != 0);
        }
        if !self.client.wanted.is_empty() {
            assert_eq!(self.session.looks().len(), errors);
        }
    }
}

fn empty_session() -> Session<i32> {
    Session::open(false, 0, &[], &FetchResponse::default(), |_, partition| Ok(partition))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_session_returns_what_full_fetches_would(steps in steps()) {
        let mut history = History::new();
        for step in &steps {
            history.run(step);
        }
        history.check();
    }
}

#[test]
fn every_partition_gets_its_turn() {
    let mut history = History::new();
    for partition in 0..4 {
        history.model.append(partition, 40);
    }
    let mut served = [0; 4];
    for _ in 0..8 {
        history.fetch(10);
        for (&partition, &offset) in &history.client.wanted {
            served[partition as usize] = offset;
        }
    }
    assert_eq!(served, [20; 4]);
}

/// What `before` and `after` say of the same partition, and whether that is news.
#[test]
fn what_is_worth_an_answer() {
    let quiet = |high_watermark, last_stable_offset, log_start_offset| PartitionData {
        high_watermark,
        last_stable_offset,
        log_start_offset,
        records: Some(Records::Bytes(Bytes::new())),
        ..Default::default()
    };
    let records = PartitionData { records: Some(Records::Bytes(Bytes::from_static(b"r"))), ..quiet(9, 8, 1) };
    let error = PartitionData { error_code: 1, ..quiet(-1, -1, -1) };
    let nearer = PartitionData { preferred_read_replica: 2, ..quiet(9, 8, 1) };
    for (before, after, is_news) in [
        (quiet(9, 8, 1), quiet(9, 8, 1), false),
        (quiet(9, 8, 1), quiet(10, 8, 1), true),
        (quiet(9, 8, 1), quiet(9, 9, 1), true),
        (quiet(9, 8, 1), quiet(9, 8, 2), true),
        (quiet(9, 8, 1), records.clone(), true),
        (records.clone(), records, true),
        (quiet(9, 8, 1), nearer, true),
        (quiet(9, 8, 1), error.clone(), true),
        (error.clone(), error.clone(), true),
        (error, quiet(9, 8, 1), true),
    ] {
        assert_eq!(Told::by(&before).leaves_news(&after), is_news, "{before:?} {after:?}");
    }
    assert!(Told::NOTHING.leaves_news(&quiet(0, 0, 0)), "a new partition is told of, even an empty one");
}

#[test]
fn epochs_and_ids_are_checked_before_anything_changes() {
    let mut session = History::new().session;
    for (epoch, uses_ids, expected) in [
        (SessionEpoch(2), false, Err(ErrorCode::InvalidFetchSessionEpoch)),
        (SessionEpoch(-5), false, Err(ErrorCode::InvalidFetchSessionEpoch)),
        (SessionEpoch(1), true, Err(ErrorCode::FetchSessionTopicIdError)),
        (SessionEpoch(1), false, Ok(SessionEpoch(2))),
        (SessionEpoch(1), false, Err(ErrorCode::InvalidFetchSessionEpoch)),
        (SessionEpoch(2), false, Ok(SessionEpoch(3))),
    ] {
        assert_eq!(session.begin(epoch, uses_ids, 0), expected, "{epoch:?} {uses_ids}");
    }
}

#[test]
fn a_seat_is_given_away_only_once_it_has_left_the_queue() {
    let mut session = empty_session();
    let forget = |partition| ForgottenTopic {
        topic: topic_of(partition),
        partitions: vec![partition],
        ..Default::default()
    };
    // Both are in the queue when the first is forgotten, and another one comes.
    session.update(&asked([(0, 0), (1, 0)]), &[], |_, partition| Ok(partition));
    assert_eq!(session.update(&[], &[forget(0), forget(6)], |_, partition| Ok(partition)), [0]);
    session.update(&asked([(2, 0)]), &[], |_, partition| Ok(partition));
    let looked = |session: &mut Session<i32>| -> Vec<i32> {
        session.looks().iter().map(|look| look.asked.partition).collect()
    };
    assert_eq!((looked(&mut session), session.len()), (vec![1, 2], 2));
    session.update(&asked([(0, 0)]), &[], |_, partition| Ok(partition));
    assert_eq!((looked(&mut session), session.len()), (vec![1, 2, 0], 3));
    assert_eq!(session.seats.len(), 3, "the seat of the first is used again");
}
