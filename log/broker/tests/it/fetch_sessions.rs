//! Fetch sessions (KIP-227): what a fetch need not name, and what its answer leaves out.

use std::time::{Duration, Instant};

use thalweg_broker::AllowAll;
use thalweg_protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use thalweg_protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic,
};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::calls::{
    PRODUCE, batch, create_topic, delete_topic, fetch_request, produce, produce_request, values,
};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways!(
    an_answer_has_only_what_has_changed,
    a_fetch_within_a_session_is_parked_and_woken,
    epochs_and_ids_are_checked,
    a_session_ends_when_the_client_says_so,
    partitions_come_and_go,
    topics_come_and_go,
    a_log_that_begins_elsewhere_is_told_of,
    every_version_with_sessions,
    everyone_gets_a_turn,
);

/// Long enough that a test which waits for it has failed.
const LONG_MS: i32 = 60_000;

/// A session as its client sees it.
struct Session {
    client: Client,
    version: i16,
    id: i32,
    epoch: i32,
}

/// The version of Fetch that names topics.
const NAMED: i16 = 12;

impl Session {
    async fn open(client: &Client, version: i16, request: FetchRequest) -> (Self, FetchResponse) {
        let request = FetchRequest { session_epoch: 0, ..request };
        let response = client.call(request, version).await;
        assert_eq!(response.error_code, 0);
        assert!(response.session_id > 0, "there is room for a session");
        (Self { client: client.clone(), version, id: response.session_id, epoch: 1 }, response)
    }

    /// The next fetch, which names only what is new.
    fn next(&mut self, topics: Vec<FetchTopic>) -> FetchRequest {
        let request =
            FetchRequest { session_id: self.id, session_epoch: self.epoch, topics, ..fetch_request("", &[]) };
        self.epoch += 1;
        request
    }

    async fn fetch(&mut self, topics: Vec<FetchTopic>) -> FetchResponse {
        let request = self.next(topics);
        let response = self.client.call(request, self.version).await;
        assert_eq!((response.error_code, response.session_id), (0, self.id));
        response
    }
}

fn named(topic: &str, offsets: &[(i32, i64)]) -> Vec<FetchTopic> {
    fetch_request(topic, offsets).topics
}

/// The partitions of an answer, with their high watermarks and how many records they have.
fn told(response: &FetchResponse) -> Vec<(i32, i64, usize)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|data| (data.partition_index, data.high_watermark, values(data).len())).collect()
}

fn codes(response: &FetchResponse) -> Vec<ErrorCode> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|data| data.error_code.into()).collect()
}

async fn produce_to(client: &Client, topic: &str, partition: i32, value: &str) {
    let answer = client.call(produce_request(topic, -1, vec![(partition, batch([value]))]), PRODUCE).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

async fn an_answer_has_only_what_has_changed(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 3).await;
    produce_to(&client, "t", 1, "a").await;
    let request = fetch_request("t", &[(0, 0), (1, 0), (2, 0)]);
    let (mut session, response) = Session::open(&client, NAMED, request).await;
    assert_eq!(told(&response), [(0, 0, 0), (1, 1, 1), (2, 0, 0)], "the first answer has everything");
    assert_eq!(told(&session.fetch(named("t", &[(1, 1)])).await), []);
    produce_to(&client, "t", 2, "b").await;
    assert_eq!(told(&session.fetch(Vec::new()).await), [(2, 1, 1)]);
    // The client has not said that it has the record: it gets it again.
    assert_eq!(told(&session.fetch(Vec::new()).await), [(2, 1, 1)]);
    assert_eq!(told(&session.fetch(named("t", &[(2, 1)])).await), []);
    // A partition that is named anew, from the beginning.
    assert_eq!(told(&session.fetch(named("t", &[(1, 0)])).await), [(1, 1, 1)]);
    let response = session.fetch(named("t", &[(1, 7)])).await;
    assert_eq!(codes(&response), [ErrorCode::OffsetOutOfRange]);
    assert_eq!(
        codes(&session.fetch(Vec::new()).await),
        [ErrorCode::OffsetOutOfRange],
        "as long as it is one"
    );
    let response = session.fetch(named("t", &[(1, 1)])).await;
    assert_eq!(told(&response), [(1, 1, 0)], "an error has gone");
    assert_eq!(told(&session.fetch(Vec::new()).await), []);
}

async fn a_fetch_within_a_session_is_parked_and_woken(harness: &Harness) {
    let (consumer, producer) = (harness.connect().await, harness.connect().await);
    create_topic(&producer, "t", 50).await;
    let offsets: Vec<_> = (0..50).map(|partition| (partition, 0)).collect();
    let (mut session, _) = Session::open(&consumer, NAMED, fetch_request("t", &offsets)).await;
    let start = Instant::now();
    let request = FetchRequest { max_wait_ms: 100, ..session.next(Vec::new()) };
    assert_eq!(told(&consumer.call(request, NAMED).await), []);
    assert!(start.elapsed() >= Duration::from_millis(100), "there was nothing to say");
    let mut moved = Vec::new();
    for round in 0..20 {
        let partition = round * 7 % 50;
        let request = FetchRequest { max_wait_ms: LONG_MS, ..session.next(std::mem::take(&mut moved)) };
        let parked = tokio::spawn(consumer.send(request, NAMED));
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        produce_to(&producer, "t", partition, "v").await;
        assert_eq!(told(&parked.await.expect("it is answered")), [(partition, 1, 1)]);
        moved = named("t", &[(partition, 1)]);
    }
    // One batch is not enough; what is there stays to be looked at.
    let min_bytes = 3 * batch(["v"]).len() as i32;
    let request = FetchRequest { max_wait_ms: LONG_MS, min_bytes, ..session.next(moved) };
    let parked = tokio::spawn(consumer.send(request, NAMED));
    produce_to(&producer, "t", 1, "v").await;
    produce_to(&producer, "t", 3, "v").await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(!parked.is_finished());
    produce_to(&producer, "t", 4, "v").await;
    let mut partitions = told(&parked.await.expect("it is answered"));
    partitions.sort_unstable();
    assert_eq!(partitions, [(1, 1, 1), (3, 1, 1), (4, 1, 1)]);
}

async fn epochs_and_ids_are_checked(harness: &Harness) {
    let client = harness.connect().await;
    let topic_id = create_topic(&client, "t", 1).await;
    let (mut session, _) = Session::open(&client, NAMED, fetch_request("t", &[(0, 0)])).await;
    session.fetch(Vec::new()).await;
    for (id, epoch, version, expected) in [
        (session.id, 1, NAMED, ErrorCode::InvalidFetchSessionEpoch),
        (session.id, 3, NAMED, ErrorCode::InvalidFetchSessionEpoch),
        (session.id, -7, NAMED, ErrorCode::InvalidFetchSessionEpoch),
        (session.id ^ 1, 2, NAMED, ErrorCode::FetchSessionIdNotFound),
        (0, 2, NAMED, ErrorCode::FetchSessionIdNotFound),
        (session.id, 2, 13, ErrorCode::FetchSessionTopicIdError),
    ] {
        let request = FetchRequest { session_id: id, session_epoch: epoch, ..fetch_request("t", &[(0, 0)]) };
        let mut request = FetchRequest { max_wait_ms: LONG_MS, ..request };
        request.topics[0].topic_id = topic_id;
        let response = client.call(request, version).await;
        assert_eq!(ErrorCode::from(response.error_code), expected, "{id} {epoch} {version}");
        assert_eq!((response.session_id, response.responses.len()), (0, 0));
    }
    session.fetch(Vec::new()).await;
    // Two fetches of the same epoch: the second is refused, whether or not the first has been answered.
    let waiting = FetchRequest { max_wait_ms: LONG_MS, ..session.next(Vec::new()) };
    let again = waiting.clone();
    let (first, other) = (tokio::spawn(client.send(waiting, NAMED)), harness.connect().await);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let response = other.call(again, NAMED).await;
    assert_eq!(ErrorCode::from(response.error_code), ErrorCode::InvalidFetchSessionEpoch);
    // One of the next epoch overtakes the first, which has nothing more to say.
    let next = FetchRequest { max_wait_ms: LONG_MS, ..session.next(Vec::new()) };
    let second = tokio::spawn(other.send(next, NAMED));
    tokio::time::sleep(Duration::from_millis(10)).await;
    produce(&harness.connect().await, "t", batch(["v"])).await;
    assert_eq!(told(&second.await.expect("it is answered")), [(0, 1, 1)]);
    let response = first.await.expect("it is answered");
    assert_eq!(ErrorCode::from(response.error_code), ErrorCode::InvalidFetchSessionEpoch);
}

async fn a_session_ends_when_the_client_says_so(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    for epoch in [-1, 0] {
        let (mut session, _) = Session::open(&client, NAMED, fetch_request("t", &[(0, 0)])).await;
        let request = fetch_request("t", &[(0, 0)]);
        let request = FetchRequest { session_id: session.id, session_epoch: epoch, ..request };
        let response = client.call(request, NAMED).await;
        assert_eq!((response.error_code, told(&response)), (0, vec![(0, 0, 0)]));
        assert_eq!(response.session_id > 0, epoch == 0);
        assert_ne!(response.session_id, session.id);
        let request = session.next(Vec::new());
        let response = client.call(request, NAMED).await;
        assert_eq!(ErrorCode::from(response.error_code), ErrorCode::FetchSessionIdNotFound);
    }
}

async fn partitions_come_and_go(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 2).await;
    create_topic(&client, "u", 1).await;
    let (mut session, _) = Session::open(&client, NAMED, fetch_request("t", &[(0, 0), (1, 0)])).await;
    let response = session.fetch(named("u", &[(0, 0)])).await;
    assert_eq!((told(&response), &*response.responses[0].topic), (vec![(0, 0, 0)], "u"), "it is new");
    for (topic, partition) in [("t", 0), ("t", 1), ("u", 0)] {
        produce_to(&client, topic, partition, "v").await;
    }
    let forget = |topic: &str, partitions: &[i32]| ForgottenTopic {
        topic: topic.into(),
        partitions: partitions.to_vec(),
        ..Default::default()
    };
    let mut request = session.next(Vec::new());
    request.forgotten_topics_data = vec![forget("t", &[0, 9]), forget("nowhere", &[0])];
    let response = client.call(request, NAMED).await;
    let mut topics: Vec<_> =
        response.responses.iter().map(|topic| (topic.topic.to_string(), topic.partitions.len())).collect();
    topics.sort();
    assert_eq!(topics, [("t".to_owned(), 1), ("u".to_owned(), 1)]);
    // With the last partition the session goes.
    let mut request = session.next(Vec::new());
    request.max_wait_ms = LONG_MS;
    request.forgotten_topics_data = vec![forget("t", &[1]), forget("u", &[0])];
    let response = client.call(request, NAMED).await;
    assert_eq!((response.error_code, response.session_id, response.responses.len()), (0, 0, 0));
    let request = session.next(Vec::new());
    let response = client.call(request, NAMED).await;
    assert_eq!(ErrorCode::from(response.error_code), ErrorCode::FetchSessionIdNotFound);
}

async fn topics_come_and_go(harness: &Harness) {
    let client = harness.connect().await;
    let id = create_topic(&client, "t", 1).await;
    let mut by_id = fetch_request("", &[(0, 0)]);
    by_id.topics[0].topic_id = id;
    by_id.topics.push(FetchTopic { topic_id: Uuid([9; 16]), ..by_id.topics[0].clone() });
    let (mut by_id, response) = Session::open(&client, 18, by_id).await;
    assert_eq!(codes(&response), [ErrorCode::None, ErrorCode::UnknownTopicId]);
    let mut by_name = fetch_request("t", &[(0, 0)]);
    by_name.topics.extend(named("later", &[(0, 0)]));
    let (mut by_name, response) = Session::open(&client, NAMED, by_name).await;
    assert_eq!(codes(&response), [ErrorCode::None, ErrorCode::UnknownTopicOrPartition]);
    assert_eq!(codes(&by_name.fetch(Vec::new()).await), [ErrorCode::UnknownTopicOrPartition]);

    create_topic(&client, "later", 1).await;
    let response = by_name.fetch(Vec::new()).await;
    assert_eq!((told(&response), &*response.responses[0].topic), (vec![(0, 0, 0)], "later"));
    assert_eq!(told(&by_name.fetch(Vec::new()).await), []);

    // A fetch that waits for a topic is told when it goes.
    let request = FetchRequest { max_wait_ms: LONG_MS, ..by_name.next(Vec::new()) };
    let parked = tokio::spawn(client.send(request, NAMED));
    let other = harness.connect().await;
    delete_topic(&other, "t").await;
    assert_eq!(codes(&parked.await.expect("it is answered")), [ErrorCode::UnknownTopicOrPartition]);
    assert_eq!(codes(&by_id.fetch(Vec::new()).await), [ErrorCode::UnknownTopicId; 2]);
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["v"])).await;
    assert_eq!(told(&by_name.fetch(Vec::new()).await), [(0, 1, 1)], "the new topic of that name");
    assert_eq!(codes(&by_id.fetch(Vec::new()).await), [ErrorCode::UnknownTopicId; 2], "it has another id");
}

async fn a_log_that_begins_elsewhere_is_told_of(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["0", "1", "2"])).await;
    let (mut session, _) = Session::open(&client, NAMED, fetch_request("t", &[(0, 3)])).await;
    assert_eq!(told(&session.fetch(Vec::new()).await), []);
    let partition = DeleteRecordsPartition { partition_index: 0, offset: 2 };
    let topic = DeleteRecordsTopic { name: "t".into(), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000 };
    client.call(request, 2).await;
    let response = session.fetch(Vec::new()).await;
    assert_eq!(response.responses[0].partitions[0].log_start_offset, 2);
    assert_eq!(told(&session.fetch(Vec::new()).await), []);
}

async fn every_version_with_sessions(harness: &Harness) {
    let client = harness.connect().await;
    let id = create_topic(&client, "t", 2).await;
    for version in 4..=18 {
        let mut request = fetch_request("t", &[(0, i64::from(version) - 4), (1, 0)]);
        request.topics[0].topic_id = id;
        if version < 7 {
            let request = FetchRequest { session_id: 0, session_epoch: 0, ..request };
            assert_eq!(client.call(request, version).await.session_id, 0, "version {version} knows none");
        } else {
            let (mut session, _) = Session::open(&client, version, request).await;
            produce(&client, "t", batch(["v"])).await;
            let response = session.fetch(Vec::new()).await;
            let offset = i64::from(version) - 4;
            assert_eq!(told(&response), [(0, offset + 1, 1)], "version {version}");
            let answered = &response.responses[0];
            assert_eq!((answered.topic == "t", answered.topic_id == id), (version < 13, version >= 13));
            assert_eq!(values(&answered.partitions[0])[0].0, offset);
            let mut topics = named("t", &[(0, offset + 1)]);
            topics[0].topic_id = id;
            assert_eq!(told(&session.fetch(topics).await), [], "version {version}");
            continue;
        }
        produce(&client, "t", batch(["v"])).await;
    }
}

async fn everyone_gets_a_turn(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 4).await;
    let filled = "x".repeat(10_000);
    for partition in 0..4 {
        produce_to(&client, "t", partition, &filled).await;
    }
    let offsets = [(0, 0), (1, 0), (2, 0), (3, 0)];
    let request = FetchRequest { max_bytes: 1, ..fetch_request("t", &offsets) };
    let (mut session, _) = Session::open(&client, NAMED, request).await;
    let mut served = [0; 4];
    for _ in 0..8 {
        let mut request = session.next(Vec::new());
        request.max_bytes = 15_000;
        let response = client.call(request, NAMED).await;
        for (partition, _, records) in told(&response) {
            served[partition as usize] += records;
        }
    }
    assert!(served.iter().all(|&times| times >= 2), "{served:?}");
}

#[tokio::test]
async fn no_more_sessions_than_configured() {
    let limit = |config: &mut thalweg_broker::BrokerConfig| {
        (config.fetch_sessions, config.fetch_session_partitions) = (2, 4);
    };
    let harness = Harness::start_with(Way::Tcp, limit, AllowAll).await;
    let (client, other) = (harness.connect().await, harness.connect().await);
    create_topic(&client, "t", 9).await;
    let request = |count: i32| FetchRequest {
        session_epoch: 0,
        ..fetch_request("t", &(0..count).map(|partition| (partition, 0)).collect::<Vec<_>>())
    };
    let declined = client.call(request(5), NAMED).await;
    assert_eq!((declined.session_id, told(&declined).len()), (0, 5), "a full answer without a session");
    let (mut first, _) = Session::open(&other, NAMED, request(2)).await;
    let (mut second, _) = Session::open(&client, NAMED, request(1)).await;
    assert_eq!(client.call(request(1), NAMED).await.session_id, 0, "both are in use");
    // A session that wants more than there is room for ends.
    let more: Vec<_> = (1..4).map(|partition| FetchPartition { partition, ..Default::default() }).collect();
    let topics = vec![FetchTopic { topic: "t".into(), partitions: more, ..Default::default() }];
    let request_more = second.next(topics);
    let response = client.call(request_more, NAMED).await;
    assert_eq!(ErrorCode::from(response.error_code), ErrorCode::FetchSessionIdNotFound);
    let (_, _) = Session::open(&client, NAMED, request(1)).await;
    assert_eq!(told(&first.fetch(Vec::new()).await), []);
    harness.finish().await;
}
