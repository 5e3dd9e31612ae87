//! Share groups (KIP-932) over the wire: records go to one member at a time, come back, and are done with for good.

use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_broker::AllowAll;
use thalweg_protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::api_versions::ApiVersionsRequest;
use thalweg_protocol::messages::delete_groups::DeleteGroupsRequest;
use thalweg_protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::find_coordinator::FindCoordinatorRequest;
use thalweg_protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use thalweg_protocol::messages::list_groups::ListGroupsRequest;
use thalweg_protocol::messages::share_acknowledge::{
    self, AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest, ShareAcknowledgeResponse,
};
use thalweg_protocol::messages::share_fetch::{
    AcknowledgementBatch, FetchPartition, FetchTopic, PartitionData, ShareFetchRequest, ShareFetchResponse,
};
use thalweg_protocol::messages::share_group_describe::ShareGroupDescribeRequest;
use thalweg_protocol::messages::share_group_heartbeat::{
    ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
};
use thalweg_protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use thalweg_protocol::record::Batches;
use thalweg_protocol::{ErrorCode, Records, Scratch, Uuid};

use crate::calls::{batch, create_topic, delete_topic, produce};
use crate::grouping::{code, find_coordinator, join_request};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways! {
    records_go_to_one_member_at_a_time,
    batches_that_do_not_fit_are_left_for_the_next_fetch,
    a_fetch_waits_for_new_records_and_for_those_that_come_back,
    what_a_member_leaves_behind_is_delivered_again,
    who_has_left_may_still_say_what_became_of_its_records,
    who_joins_again_goes_on_with_its_session,
    of_many_records_the_bad_one_is_given_up_alone,
    who_has_gone_acquires_nothing_more,
    sessions_and_acknowledgements_are_checked,
    members_share_partitions_and_groups_are_described,
    offsets_are_described_altered_and_deleted,
    offsets_are_set_before_anybody_has_joined,
    what_is_not_there_has_begun_nowhere,
}

/// The newest version of ShareFetch and ShareAcknowledge.
const NEWEST: i16 = 2;
const HEARTBEAT: i16 = 1;

const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const RENEW: i8 = 4;

fn beat(group: &str, member: &str, epoch: i32, topics: Option<&[&str]>) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: member.into(),
        member_epoch: epoch,
        subscribed_topic_names: topics.map(|topics| topics.iter().map(|&topic| topic.into()).collect()),
        ..Default::default()
    }
}

/// The epoch, and the partitions of all topics if they were told.
fn told(answer: &ShareGroupHeartbeatResponse) -> (i32, Option<Vec<i32>>) {
    assert_eq!(code(answer.error_code), ErrorCode::None, "{answer:?}");
    let partitions = answer.assignment.as_ref().map(|assignment| {
        let topics = assignment.topic_partitions.iter();
        topics.flat_map(|topic| topic.partitions.iter().copied()).collect()
    });
    (answer.member_epoch, partitions)
}

/// A member with its session on partition 0 of a topic.
struct Member {
    client: Client,
    id: &'static str,
    topic: Uuid,
    epoch: i32,
}

impl Member {
    async fn join(harness: &Harness, id: &'static str, topic: (&str, Uuid)) -> Self {
        let client = harness.connect().await;
        find_coordinator(&client, "g", 0).await;
        told(&client.call(beat("g", id, 0, Some(&[topic.0])), HEARTBEAT).await);
        Self { client, id, topic: topic.1, epoch: 0 }
    }

    fn request(&self, acks: &[(i64, i64, &[i8])]) -> ShareFetchRequest {
        let batches = acks.iter().map(|(first, last, types)| AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: types.to_vec(),
        });
        let partition = FetchPartition { partition_index: 0, acknowledgement_batches: batches.collect() };
        ShareFetchRequest {
            group_id: Some("g".into()),
            member_id: Some(self.id.into()),
            share_session_epoch: self.epoch,
            max_wait_ms: 0,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 100,
            batch_size: 100,
            topics: vec![FetchTopic { topic_id: self.topic, partitions: vec![partition] }],
            ..Default::default()
        }
    }

    async fn send(&mut self, request: ShareFetchRequest) -> ShareFetchResponse {
        let answer = self.client.call(request, NEWEST).await;
        assert_eq!(code(answer.error_code), ErrorCode::None, "{answer:?}");
        self.epoch += 1;
        answer
    }

    /// Fetches without waiting: what is acquired, and the values of those records.
    async fn fetch(&mut self, acks: &[(i64, i64, &[i8])]) -> Acquired {
        let request = self.request(acks);
        acquired(&self.send(request).await)
    }

    /// The same with so many records at most.
    async fn fetch_few(&mut self, max_records: i32) -> Acquired {
        let request = ShareFetchRequest { max_records, share_acquire_mode: 1, ..self.request(&[]) };
        acquired(&self.send(request).await)
    }

    /// Leaves the group, and ends the session.
    async fn leave(mut self) {
        assert_eq!(told(&self.client.call(beat("g", self.id, -1, None), HEARTBEAT).await).0, -1);
        self.epoch = -1;
        assert_eq!(self.acknowledge(&[]).await, ErrorCode::None);
    }

    async fn acknowledge(&mut self, acks: &[(i64, i64, &[i8])]) -> ErrorCode {
        let answer =
            self.client.call(acknowledge_request(self.id, self.epoch, self.topic, acks), NEWEST).await;
        assert_eq!(code(answer.error_code), ErrorCode::None, "{answer:?}");
        self.epoch += 1;
        code(answer.responses[0].partitions[0].error_code)
    }
}

fn acknowledge_request(
    member: &str,
    epoch: i32,
    topic_id: Uuid,
    acks: &[(i64, i64, &[i8])],
) -> ShareAcknowledgeRequest {
    let batches = acks.iter().map(|(first, last, types)| share_acknowledge::AcknowledgementBatch {
        first_offset: *first,
        last_offset: *last,
        acknowledge_types: types.to_vec(),
    });
    let partition = AcknowledgePartition { partition_index: 0, acknowledgement_batches: batches.collect() };
    ShareAcknowledgeRequest {
        group_id: Some("g".into()),
        member_id: Some(member.into()),
        share_session_epoch: epoch,
        is_renew_ack: acks.iter().any(|(_, _, types)| types.contains(&RENEW)),
        topics: vec![AcknowledgeTopic { topic_id, partitions: vec![partition] }],
    }
}

/// The ranges that were acquired with their delivery counts, and the values of their records.
type Acquired = (Vec<(i64, i64, i16)>, Vec<String>);

fn acquired(answer: &ShareFetchResponse) -> Acquired {
    let Some(topic) = answer.responses.first() else { return Acquired::default() };
    let partition = &topic.partitions[0];
    assert_eq!(code(partition.error_code), ErrorCode::None, "{partition:?}");
    assert_eq!(code(partition.acknowledge_error_code), ErrorCode::None, "{partition:?}");
    let ranges = partition.acquired_records.iter();
    let ranges = ranges.map(|range| (range.first_offset, range.last_offset, range.delivery_count)).collect();
    (ranges, values(partition))
}

/// The values of the records that were acquired.
fn values(partition: &PartitionData) -> Vec<String> {
    let records = partition.records.clone().unwrap_or(Records::Bytes(Default::default()));
    let mut values = Vec::new();
    for batch in Batches::new(records.into_bytes().expect("they can be read")) {
        let batch = batch.expect("a whole batch");
        let mut scratch = Scratch::new(1 << 20);
        for record in batch.records(&mut scratch).expect("sound") {
            let record = record.expect("sound");
            let is_acquired = partition
                .acquired_records
                .iter()
                .any(|range| (range.first_offset..=range.last_offset).contains(&record.offset.0));
            if is_acquired {
                values.push(String::from_utf8(record.value.unwrap_or_default().to_vec()).expect("text"));
            }
        }
    }
    values
}

async fn records_go_to_one_member_at_a_time(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    produce(&client, "t", batch(["before"])).await;
    let mut a = Member::join(harness, "a", topic).await;
    let mut b = Member::join(harness, "b", topic).await;
    // The group begins at the end.
    assert_eq!((a.fetch(&[]).await, b.fetch(&[]).await), Default::default());
    produce(&client, "t", batch(["1", "2", "3"])).await;
    produce(&client, "t", batch(["4", "5"])).await;

    assert_eq!(a.fetch_few(2).await, (vec![(1, 2, 1)], vec!["1".into(), "2".into()]));
    assert_eq!(b.fetch(&[]).await.0, [(3, 5, 1)]);
    assert_eq!(a.fetch(&[]).await, Default::default(), "everything is taken");
    // Record 1 is done with, 2 comes back; 3 is rejected.
    assert_eq!(a.fetch(&[(1, 1, &[ACCEPT])]).await, Default::default());
    assert_eq!(a.acknowledge(&[(2, 2, &[RELEASE])]).await, ErrorCode::None);
    assert_eq!(b.acknowledge(&[(3, 3, &[REJECT])]).await, ErrorCode::None);
    assert_eq!(b.fetch(&[]).await, (vec![(2, 2, 2)], vec!["2".into()]));
    assert_eq!(b.acknowledge(&[(2, 2, &[ACCEPT]), (4, 5, &[ACCEPT, RENEW])]).await, ErrorCode::None);
    // Who has a record decides about it.
    assert_eq!(a.acknowledge(&[(5, 5, &[ACCEPT])]).await, ErrorCode::InvalidRecordState);
    assert_eq!(b.acknowledge(&[(5, 5, &[ACCEPT])]).await, ErrorCode::None);
    assert_eq!(a.fetch(&[]).await, Default::default());
    produce(&client, "t", batch(["6"])).await;
    assert_eq!(a.fetch(&[]).await, (vec![(6, 6, 1)], vec!["6".into()]));
}

/// A fetch ends at a number of bytes, wherever that is within a batch; the first one comes whole, and without room there is none.
async fn batches_that_do_not_fit_are_left_for_the_next_fetch(harness: &Harness) {
    let client = harness.connect().await;
    let id = create_topic(&client, "t", 1).await;
    let mut member = Member::join(harness, "a", ("t", id)).await;
    // The group begins at the end.
    assert_eq!(member.fetch(&[]).await, Default::default());
    for n in 0..6 {
        produce(&client, "t", batch([n.to_string().repeat(1_000)])).await;
    }
    let mut next = 0;
    for (max_bytes, expected) in [(1, 1), (1_500, 1), (2_200, 2), (0, 0), (1 << 20, 2)] {
        let request = member.request(&[]);
        let response = member.send(ShareFetchRequest { max_bytes, max_wait_ms: 100, ..request }).await;
        let partitions: Vec<_> = response.responses.iter().flat_map(|topic| &topic.partitions).collect();
        assert!(partitions.iter().all(|data| data.error_code == 0), "{max_bytes}: {partitions:?}");
        let acquired = partitions.iter().flat_map(|data| &data.acquired_records);
        let acquired: Vec<_> = acquired.flat_map(|range| range.first_offset..=range.last_offset).collect();
        assert_eq!(acquired, (next..next + expected).collect::<Vec<_>>(), "{max_bytes}");
        next += expected;
    }
}

async fn a_fetch_waits_for_new_records_and_for_those_that_come_back(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(harness, "a", topic).await;
    let mut b = Member::join(harness, "b", topic).await;
    a.fetch(&[]).await;
    b.fetch(&[]).await;
    let patient = |member: &Member| ShareFetchRequest { max_wait_ms: 20_000, ..member.request(&[]) };
    let waiting = a.client.send(patient(&a), NEWEST);
    a.epoch += 1;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    produce(&client, "t", batch(["1"])).await;
    assert_eq!(acquired(&waiting.await).0, [(0, 0, 1)]);
    let waiting = b.client.send(patient(&b), NEWEST);
    b.epoch += 1;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(a.acknowledge(&[(0, 0, &[RELEASE])]).await, ErrorCode::None);
    assert_eq!(acquired(&waiting.await).0, [(0, 0, 2)]);
    assert!(begun.elapsed() < Duration::from_secs(15), "both were woken");
}

async fn what_a_member_leaves_behind_is_delivered_again(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut rest = Member::join(harness, "rest", topic).await;
    rest.fetch(&[]).await;
    produce(&client, "t", batch(["1", "2"])).await;
    let come_back = async |rest: &mut Member| {
        let request = ShareFetchRequest { max_wait_ms: 20_000, ..rest.request(&[]) };
        let ranges = acquired(&rest.send(request).await).0;
        assert_eq!(rest.acknowledge(&[(0, ranges[0].1, &[RELEASE])]).await, ErrorCode::None);
        ranges
    };
    // Its connection ends.
    let mut a = Member::join(harness, "a", topic).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 1, 1)]);
    drop(a);
    assert_eq!(come_back(&mut rest).await, [(0, 1, 2)]);
    // It leaves the group, and ends its session.
    let mut b = Member::join(harness, "b", topic).await;
    assert_eq!(b.fetch(&[]).await.0, [(0, 1, 3)]);
    b.leave().await;
    assert_eq!(come_back(&mut rest).await, [(0, 0, 4)]);
    // It ends its session, with a word about one of its records. Another was delivered as often as it may be, which is five
    // times: its readers may have perished of it.
    produce(&client, "t", batch(["3"])).await;
    let mut c = Member::join(harness, "c", topic).await;
    for range in [(0, 0, 5), (1, 1, 4), (2, 2, 1)] {
        assert_eq!(c.fetch(&[]).await.0, [range]);
    }
    c.epoch = -1;
    assert_eq!(c.acknowledge(&[(2, 2, &[ACCEPT])]).await, ErrorCode::None);
    assert_eq!(rest.fetch(&[]).await.0, [(1, 1, 5)]);
}

async fn of_many_records_the_bad_one_is_given_up_alone(harness: &Harness) {
    const BAD: i64 = 6;
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    Member::join(harness, "first", topic).await.fetch(&[]).await;
    let values: Vec<String> = (0..16).map(|at| at.to_string()).collect();
    produce(&client, "t", batch(values.iter().map(String::as_str))).await;
    let (mut accepted, mut fatal) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let mut reader = Member::join(harness, "reader", topic).await;
        let ranges = reader.fetch(&[]).await.0;
        let Some(&(first, last, deliveries)) = ranges.first() else { break };
        assert_eq!(ranges.len(), 1);
        if (first..=last).contains(&BAD) {
            fatal.push((first, last, deliveries));
        } else {
            assert_eq!(reader.acknowledge(&[(first, last, &[ACCEPT])]).await, ErrorCode::None);
            accepted.extend(first..=last);
        }
        reader.leave().await;
    }
    assert_eq!(fatal, [(0, 15, 1), (0, 15, 2), (0, 15, 3), (0, 7, 4), (6, 6, 5)]);
    assert_eq!(accepted, (0..16).filter(|at| *at != BAD).collect::<Vec<_>>());
    assert_eq!(described(&client).await, [(0, 16, 0)]);
}

async fn who_has_gone_acquires_nothing_more(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut gone = Member::join(harness, "gone", topic).await;
    let mut rest = Member::join(harness, "rest", topic).await;
    gone.fetch(&[]).await;
    rest.fetch(&[]).await;
    let patient = |member: &Member| ShareFetchRequest { max_wait_ms: 2_000, ..member.request(&[]) };
    let waiting = gone.client.send(patient(&gone), NEWEST);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(told(&client.call(beat("g", "gone", -1, None), HEARTBEAT).await).0, -1);
    produce(&client, "t", batch(["1"])).await;
    assert_eq!(acquired(&waiting.await), Acquired::default());
    assert_eq!(rest.fetch(&[]).await.0, [(0, 0, 1)]);
}

/// The leave and what is said of records come by different connections, in either order.
async fn who_has_left_may_still_say_what_became_of_its_records(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut rest = Member::join(harness, "rest", topic).await;
    rest.fetch(&[]).await;
    produce(&client, "t", batch(["1", "2", "3"])).await;
    let mut left = Member::join(harness, "left", topic).await;
    assert_eq!(left.fetch(&[]).await.0, [(0, 2, 1)]);
    assert_eq!(told(&client.call(beat("g", "left", -1, None), HEARTBEAT).await).0, -1);
    assert_eq!(rest.fetch(&[]).await, Default::default(), "nothing has been said of them");
    assert_eq!(left.acknowledge(&[(0, 0, &[ACCEPT])]).await, ErrorCode::None);
    left.epoch = -1;
    assert_eq!(left.acknowledge(&[(1, 1, &[ACCEPT])]).await, ErrorCode::None);
    assert_eq!(rest.fetch(&[]).await.0, [(2, 2, 2)]);
}

/// As librdkafka does after a member has not polled for too long.
async fn who_joins_again_goes_on_with_its_session(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut back = Member::join(harness, "back", topic).await;
    back.fetch(&[]).await;
    produce(&client, "t", batch(["1", "2"])).await;
    assert_eq!(back.fetch(&[]).await.0, [(0, 1, 1)]);
    assert_eq!(told(&client.call(beat("g", "back", -1, None), HEARTBEAT).await).0, -1);
    produce(&client, "t", batch(["3"])).await;
    assert_eq!(back.fetch(&[(0, 0, &[ACCEPT])]).await, Default::default(), "it is not in the group");
    told(&client.call(beat("g", "back", 0, Some(&["t"])), HEARTBEAT).await);
    assert_eq!(back.fetch(&[(1, 1, &[RELEASE])]).await.0, [(1, 1, 2), (2, 2, 1)]);
}

async fn sessions_and_acknowledgements_are_checked(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(harness, "a", topic).await;
    let fetch = async |request: ShareFetchRequest| code(client.call(request, NEWEST).await.error_code);
    let with = |epoch: i32| ShareFetchRequest { share_session_epoch: epoch, ..a.request(&[]) };
    let acks =
        |epoch: i32| ShareFetchRequest { share_session_epoch: epoch, ..a.request(&[(0, 0, &[ACCEPT])]) };
    for (request, expected) in [
        (with(1), ErrorCode::ShareSessionNotFound),
        (with(-1), ErrorCode::ShareSessionNotFound),
        (acks(0), ErrorCode::InvalidRequest),
        (ShareFetchRequest { group_id: None, ..with(0) }, ErrorCode::InvalidRequest),
        (ShareFetchRequest { member_id: Some("".into()), ..with(0) }, ErrorCode::InvalidRequest),
        (ShareFetchRequest { share_acquire_mode: 2, ..with(0) }, ErrorCode::InvalidRequest),
        (ShareFetchRequest { is_renew_ack: true, ..with(0) }, ErrorCode::InvalidRequest),
        (with(0), ErrorCode::None),
        (with(2), ErrorCode::InvalidShareSessionEpoch),
        (with(1), ErrorCode::None),
        (with(1), ErrorCode::InvalidShareSessionEpoch),
    ] {
        assert_eq!(fetch(request.clone()).await, expected, "{request:?}");
    }
    let acknowledge = async |epoch: i32, acks: &[(i64, i64, &[i8])]| -> ShareAcknowledgeResponse {
        client.call(acknowledge_request("a", epoch, topic.1, acks), NEWEST).await
    };
    assert_eq!(code(acknowledge(0, &[]).await.error_code), ErrorCode::InvalidShareSessionEpoch);
    produce(&client, "t", batch(["1", "2", "3"])).await;
    assert_eq!(acquired(&client.call(with(2), NEWEST).await).0, [(0, 2, 1)]);
    for (epoch, acks, expected) in [
        (3, &[(0, 3, &[ACCEPT][..])][..], ErrorCode::InvalidRequest),
        (4, &[(1, 0, &[ACCEPT])], ErrorCode::InvalidRequest),
        (5, &[(0, 2, &[ACCEPT, ACCEPT])], ErrorCode::InvalidRequest),
        (6, &[(0, 0, &[9])], ErrorCode::InvalidRequest),
        (7, &[(0, 1, &[ACCEPT]), (1, 1, &[ACCEPT])], ErrorCode::InvalidRequest),
        (8, &[(0, 0, &[ACCEPT])], ErrorCode::None),
        (9, &[(0, 1, &[ACCEPT])], ErrorCode::None),
        (10, &[(1, 1, &[ACCEPT])], ErrorCode::None),
    ] {
        let answer = acknowledge(epoch, acks).await;
        let found = code(answer.responses[0].partitions[0].error_code);
        assert_eq!((code(answer.error_code), found), (ErrorCode::None, expected), "{acks:?}");
    }
    // A topic that goes takes what was read of it along.
    delete_topic(&client, "t").await;
    a.epoch = 11;
    let request = a.request(&[]);
    let answer = a.send(request).await;
    assert_eq!(code(answer.responses[0].partitions[0].error_code), ErrorCode::UnknownTopicId);
    // Nobody reads for a group that there is not.
    let id = create_topic(&client, "u", 1).await;
    let stranger = Member { client: client.clone(), id: "s", topic: id, epoch: 0 };
    let request = ShareFetchRequest { group_id: Some("nobody".into()), ..stranger.request(&[]) };
    let answer = client.call(request, NEWEST).await;
    assert_eq!(code(answer.responses[0].partitions[0].error_code), ErrorCode::GroupIdNotFound);
}

async fn members_share_partitions_and_groups_are_described(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 2).await;
    find_coordinator(&client, "g", 0).await;
    assert_eq!(told(&client.call(beat("g", "a", 0, Some(&["t"])), HEARTBEAT).await), (1, Some(vec![0, 1])));
    assert_eq!(told(&client.call(beat("g", "b", 0, Some(&["t"])), HEARTBEAT).await), (2, Some(vec![1])));
    assert_eq!(told(&client.call(beat("g", "c", 0, Some(&["t"])), HEARTBEAT).await), (3, Some(vec![0])));
    assert_eq!(told(&client.call(beat("g", "a", 1, None), HEARTBEAT).await), (3, Some(vec![0])));
    assert_eq!(told(&client.call(beat("g", "a", 3, None), HEARTBEAT).await), (3, None));
    for (request, expected) in [
        (beat("g", "a", 2, None), ErrorCode::FencedMemberEpoch),
        (beat("g", "x", 1, None), ErrorCode::UnknownMemberId),
        (beat("nobody", "a", 1, None), ErrorCode::GroupIdNotFound),
        (beat("", "a", 0, Some(&["t"])), ErrorCode::InvalidRequest),
        (beat("g", "", 0, Some(&["t"])), ErrorCode::InvalidRequest),
        (beat("g", "y", 0, None), ErrorCode::InvalidRequest),
        (beat("g", "a", -2, None), ErrorCode::InvalidRequest),
    ] {
        let answer = client.call(request.clone(), HEARTBEAT).await;
        assert_eq!(code(answer.error_code), expected, "{request:?}");
    }
    let request = ShareGroupDescribeRequest {
        group_ids: vec!["g".into(), "nobody".into()],
        include_authorized_operations: true,
    };
    let groups = client.call(request, HEARTBEAT).await.groups;
    assert_eq!(code(groups[1].error_code), ErrorCode::GroupIdNotFound);
    let group = &groups[0];
    assert_eq!((&*group.group_state, &*group.assignor_name, group.group_epoch), ("Stable", "simple", 3));
    assert_eq!((group.members.len(), group.authorized_operations == i32::MIN), (3, false));
    let assigned = &group.members[0].assignment.topic_partitions[0];
    assert_eq!((&*assigned.topic_name, &*assigned.partitions), ("t", &[0][..]));
    let epochs = async || {
        let request = ShareGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() };
        let group = client.call(request, HEARTBEAT).await.groups.remove(0);
        (group.group_state, group.group_epoch, group.assignment_epoch)
    };
    told(&client.call(beat("g", "a", -1, None), HEARTBEAT).await);
    assert_eq!(epochs().await, ("Stable".into(), 4, 3), "the next heartbeat assigns");
    told(&client.call(beat("g", "b", -1, None), HEARTBEAT).await);
    told(&client.call(beat("g", "c", -1, None), HEARTBEAT).await);
    assert_eq!(epochs().await, ("Empty".into(), 6, 6), "there is nobody left to assign to");
    // It is no group of another kind.
    let classic = client.call(join_request("g", "", None), 9).await;
    assert_eq!(code(classic.error_code), ErrorCode::InconsistentGroupProtocol);
    let listed = async |types: &[&str]| {
        let types_filter = types.iter().map(|&kind| kind.into()).collect();
        client.call(ListGroupsRequest { types_filter, ..Default::default() }, 5).await.groups
    };
    let share = listed(&["share"]).await;
    assert_eq!(
        (&*share[0].group_id, &*share[0].group_type, &*share[0].protocol_type),
        ("g", "share", "share")
    );
    assert!(listed(&["classic"]).await.is_empty());
}

async fn offsets_are_described_altered_and_deleted(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 2).await);
    let mut a = Member::join(harness, "a", topic).await;
    a.fetch(&[]).await;
    produce(&client, "t", batch(["1", "2", "3", "4"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 3, 1)]);
    assert_eq!(a.acknowledge(&[(0, 0, &[ACCEPT]), (2, 2, &[ACCEPT])]).await, ErrorCode::None);
    assert_eq!(described(&client).await, [(0, 1, 2)]);
    let alter = async |partition, start| alter(&client, "t", partition, start).await;
    let delete = async || {
        let topic = DeleteShareGroupOffsetsRequestTopic { topic_name: "t".into() };
        let request = DeleteShareGroupOffsetsRequest { group_id: "g".into(), topics: vec![topic] };
        let answer = client.call(request, 0).await;
        answer.responses.first().map_or(code(answer.error_code), |topic| code(topic.error_code))
    };
    assert_eq!((alter(0, 0).await, delete().await), (ErrorCode::NonEmptyGroup, ErrorCode::NonEmptyGroup));
    told(&client.call(beat("g", "a", -1, None), HEARTBEAT).await);
    assert_eq!((alter(0, 2).await, alter(7, 0).await), (ErrorCode::None, ErrorCode::UnknownTopicOrPartition));
    assert_eq!(described(&client).await, [(0, 2, 2)]);
    let mut b = Member::join(harness, "b", topic).await;
    assert_eq!(b.fetch(&[]).await, (vec![(2, 3, 1)], vec!["3".into(), "4".into()]));
    told(&client.call(beat("g", "b", -1, None), HEARTBEAT).await);
    assert_eq!((delete().await, delete().await), (ErrorCode::None, ErrorCode::UnknownTopicOrPartition));
    assert_eq!(described(&client).await, []);
    // −1 has the group begin anew as well, and no other negative offset means anything.
    assert_eq!((alter(0, 1).await, alter(1, 0).await), (ErrorCode::None, ErrorCode::None));
    assert_eq!((alter(0, -2).await, alter(0, -1).await), (ErrorCode::InvalidRequest, ErrorCode::None));
    assert_eq!(described(&client).await, [(1, 0, 0)]);
    let mut c = Member::join(harness, "c", topic).await;
    assert_eq!(c.fetch(&[]).await, Default::default(), "it begins at the end again");
    let request = DeleteGroupsRequest { groups_names: vec!["g".into()] };
    let delete_group = async || code(client.call(request.clone(), 2).await.results[0].error_code);
    assert_eq!(delete_group().await, ErrorCode::NonEmptyGroup);
    told(&client.call(beat("g", "c", -1, None), HEARTBEAT).await);
    assert_eq!((delete_group().await, delete_group().await), (ErrorCode::None, ErrorCode::GroupIdNotFound));
    let key = |key: &str| FindCoordinatorRequest {
        key_type: 2,
        coordinator_keys: vec![key.into()],
        ..Default::default()
    };
    let find = async |text: &str| code(client.call(key(text), 6).await.coordinators[0].error_code);
    let sound = format!("g:{}:0", topic.1);
    assert_eq!((find(&sound).await, find("g").await), (ErrorCode::None, ErrorCode::InvalidRequest));
}

async fn offsets_are_set_before_anybody_has_joined(harness: &Harness) {
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    find_coordinator(&client, "g", 0).await;
    let list = async || {
        let groups = client.call(ListGroupsRequest::default(), 5).await.groups;
        groups.into_iter().map(|group| (group.group_state, group.group_type)).collect::<Vec<_>>()
    };
    assert_eq!(alter(&client, "none", 0, 0).await, ErrorCode::UnknownTopicOrPartition);
    assert_eq!(list().await, []);
    produce(&client, "t", batch(["1", "2", "3", "4"])).await;
    assert_eq!(alter(&client, "t", 0, 2).await, ErrorCode::None);
    assert_eq!(list().await, [("Empty".into(), "share".into())]);
    assert_eq!(described(&client).await, [(0, 2, 2)]);
    let mut a = Member::join(harness, "a", topic).await;
    assert_eq!(a.fetch(&[]).await, (vec![(2, 3, 1)], vec!["3".into(), "4".into()]));
    told(&client.call(beat("g", "a", -1, None), HEARTBEAT).await);
    let request = DeleteGroupsRequest { groups_names: vec!["g".into()] };
    assert_eq!(code(client.call(request, 2).await.results[0].error_code), ErrorCode::None);
    assert_eq!(list().await, []);
}

async fn what_is_not_there_has_begun_nowhere(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    let check = async || {
        let topic = |name: &str| DescribeShareGroupOffsetsRequestTopic {
            topic_name: name.into(),
            partitions: vec![0, 9],
        };
        let topics = Some(vec![topic("t"), topic("none")]);
        let group = DescribeShareGroupOffsetsRequestGroup { group_id: "g".into(), topics };
        let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
        let group = client.call(request, 1).await.groups.remove(0);
        assert_eq!((code(group.error_code), group.topics.len()), (ErrorCode::None, 2), "{group:?}");
        for partition in group.topics.iter().flat_map(|topic| &topic.partitions) {
            assert_eq!(code(partition.error_code), ErrorCode::None);
            assert_eq!((partition.start_offset, partition.lag), (-1, -1), "{partition:?}");
        }
        assert_eq!(described(&client).await, []);
    };
    check().await;
    // Now there is the group, but it has read nothing yet.
    told(&client.call(beat("g", "a", 0, Some(&["t"])), HEARTBEAT).await);
    check().await;
}

/// What becomes of one start offset that is set.
async fn alter(client: &Client, topic: &str, partition_index: i32, start_offset: i64) -> ErrorCode {
    let partition = AlterShareGroupOffsetsRequestPartition { partition_index, start_offset };
    let topic = AlterShareGroupOffsetsRequestTopic { topic_name: topic.into(), partitions: vec![partition] };
    let request = AlterShareGroupOffsetsRequest { group_id: "g".into(), topics: vec![topic] };
    let answer = client.call(request, 0).await;
    match code(answer.error_code) {
        ErrorCode::None => code(answer.responses[0].partitions[0].error_code),
        code => code,
    }
}

/// The partitions that the group has read: start offset and lag.
async fn described(client: &Client) -> Vec<(i32, i64, i64)> {
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: "g".into(), topics: None };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    let group = client.call(request, 1).await.groups.remove(0);
    assert_eq!(code(group.error_code), ErrorCode::None);
    let partitions = group.topics.into_iter().flat_map(|topic| topic.partitions);
    partitions.map(|partition| (partition.partition_index, partition.start_offset, partition.lag)).collect()
}

#[tokio::test]
async fn records_that_are_kept_too_long_are_delivered_again_until_the_limit() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.group_share_record_lock_duration_ms = 200;
        config.group_share_delivery_count_limit = 2;
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(&harness, "a", topic).await;
    a.fetch(&[]).await;
    produce(&client, "t", batch(["1"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 0, 1)]);
    let request = ShareFetchRequest { max_wait_ms: 20_000, ..a.request(&[]) };
    assert_eq!(acquired(&a.send(request).await).0, [(0, 0, 2)], "its time is over");
    // It is given up after that, and what comes later is delivered.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(a.acknowledge(&[(0, 0, &[ACCEPT])]).await, ErrorCode::None, "it is done with already");
    produce(&client, "t", batch(["2"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(1, 1, 1)]);
    assert_eq!(described(&client).await, [(0, 1, 1)]);
    drop((a, client));
    harness.finish().await;
}

#[tokio::test]
async fn group_configs_say_where_to_begin_and_what_is_delivered() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    produce(&client, "t", batch(["1", "2"])).await;
    let configs = [
        ("share.auto.offset.reset", "earliest"),
        ("share.isolation.level", "read_committed"),
        ("share.partition.max.record.locks", "100"),
        ("share.renew.acknowledge.enable", "false"),
        ("share.heartbeat.interval.ms", "6000"),
    ];
    let configs = configs.map(|(name, value)| AlterableConfig {
        name: name.into(),
        config_operation: 0,
        value: Some(value.into()),
    });
    let resource =
        AlterConfigsResource { resource_type: 32, resource_name: "g".into(), configs: configs.into() };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = client.call(request, 1).await.responses.remove(0);
    assert_eq!(code(answer.error_code), ErrorCode::None, "{answer:?}");
    let mut a = Member::join(&harness, "a", topic).await;
    let beaten = a.client.call(beat("g", "a", 1, None), HEARTBEAT).await;
    assert_eq!(beaten.heartbeat_interval_ms, 6_000);
    assert_eq!(a.fetch(&[]).await, (vec![(0, 1, 1)], vec!["1".into(), "2".into()]));
    assert_eq!(a.acknowledge(&[(0, 0, &[RENEW])]).await, ErrorCode::InvalidRequest);
    drop((a, client));
    harness.finish().await;
}

#[tokio::test]
async fn sessions_and_locks_are_limited() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.group_share_max_share_sessions = 1;
        config.group_share_max_size = 2;
        config.group_share_partition_max_record_locks = 3;
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(&harness, "a", topic).await;
    let b = Member::join(&harness, "b", topic).await;
    let third = client.call(beat("g", "c", 0, Some(&["t"])), HEARTBEAT).await;
    assert_eq!(code(third.error_code), ErrorCode::GroupMaxSizeReached);
    a.fetch(&[]).await;
    let refused = b.client.call(b.request(&[]), NEWEST).await;
    assert_eq!(code(refused.error_code), ErrorCode::ShareSessionLimitReached);
    produce(&client, "t", batch(["1", "2", "3", "4", "5"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 2, 1)]);
    assert_eq!(a.fetch(&[]).await, Default::default());
    assert_eq!(a.acknowledge(&[(1, 1, &[ACCEPT])]).await, ErrorCode::None);
    assert_eq!(a.fetch(&[]).await.0, [(3, 3, 1)]);
    drop((a, b, client));
    harness.finish().await;
}

#[tokio::test]
async fn a_node_that_is_killed_keeps_what_was_acknowledged() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(&harness, "a", topic).await;
    a.fetch(&[]).await;
    produce(&client, "t", batch(["1", "2", "3", "4", "5"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 4, 1)]);
    assert_eq!(a.acknowledge(&[(0, 1, &[ACCEPT]), (3, 4, &[ACCEPT, RELEASE])]).await, ErrorCode::None);
    // What a process that is killed leaves behind is what is in its files at that moment.
    let killed = TempDir::new().expect("a temporary directory");
    copy(harness.dir(), killed.path());
    for harness in [Harness::resume(Way::Tcp, killed).await, {
        drop((a, client));
        harness.restart().await
    }] {
        let client = harness.connect().await;
        let groups = client.call(ListGroupsRequest::default(), 5).await.groups;
        assert_eq!((&*groups[0].group_id, &*groups[0].group_type), ("g", "share"));
        let mut b = Member::join(&harness, "b", topic).await;
        // Record 2 was with the member when the node ended. Its delivery counts if the member was seen to go before.
        let came = b.fetch(&[]).await.0;
        assert!(came == [(2, 2, 1), (4, 4, 2)] || came == [(2, 2, 2), (4, 4, 2)], "{came:?}");
        assert_eq!(described(&client).await, [(0, 2, 2)]);
        drop((b, client));
        harness.finish().await;
    }
}

#[tokio::test]
async fn what_happens_to_records_is_counted() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        crate::metrics::listening(config);
        config.group_share_record_lock_duration_ms = 300;
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let address = harness.broker.metrics_address().expect("it listens");
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(&harness, "a", topic).await;
    a.fetch(&[]).await;
    produce(&client, "t", batch(["1", "2", "3", "4"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 3, 1)]);
    let said = a.acknowledge(&[(0, 1, &[ACCEPT]), (2, 3, &[RELEASE, REJECT])]).await;
    assert_eq!(said, ErrorCode::None);
    assert_eq!(a.fetch(&[]).await.0, [(2, 2, 2)]);
    // Its time ends.
    let request = ShareFetchRequest { max_wait_ms: 20_000, ..a.request(&[]) };
    assert_eq!(acquired(&a.send(request).await).0, [(2, 2, 3)]);
    assert_eq!(a.acknowledge(&[(2, 2, &[RELEASE])]).await, ErrorCode::None);
    let refused = a.acknowledge(&[(2, 2, &[ACCEPT])]).await;
    assert_eq!(refused, ErrorCode::InvalidRecordState, "which is not counted");
    let page = crate::metrics::get(address, "/metrics").await;
    for line in [
        "thalweg_groups{state=\"Stable\"} 1\n",
        "thalweg_share_partitions{group=\"g\"} 1\n",
        "thalweg_share_acquired_records{group=\"g\"} 0\n",
        "thalweg_share_available_records{group=\"g\"} 1\n",
        "thalweg_share_sessions 1\n",
        "thalweg_share_session_partitions 1\n",
        "thalweg_share_delivered_records_total 6\n",
        "thalweg_share_redelivered_records_total 2\n",
        "thalweg_share_lock_timeouts_total 1\n",
        "thalweg_share_acknowledged_records_total{type=\"accept\"} 2\n",
        "thalweg_share_acknowledged_records_total{type=\"release\"} 2\n",
        "thalweg_share_acknowledged_records_total{type=\"reject\"} 1\n",
        "thalweg_share_acknowledged_records_total{type=\"renew\"} 0\n",
    ] {
        assert!(page.contains(line), "no {line} in {page}");
    }
    drop((a, client));
    harness.finish().await;
}

#[tokio::test]
async fn share_groups_are_served_from_level_1_of_their_feature_on() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    let topic = ("t", create_topic(&client, "t", 1).await);
    let mut a = Member::join(&harness, "a", topic).await;
    a.fetch(&[]).await;
    let told = async || {
        let request = ApiVersionsRequest {
            client_software_name: "test".into(),
            client_software_version: "1".into(),
            ..Default::default()
        };
        let answer = client.call(request, 4).await;
        let supported = answer.supported_features.iter().find(|feature| feature.name == "share.version");
        let finalized = answer.finalized_features.iter().find(|feature| feature.name == "share.version");
        let supported = supported.map(|feature| (feature.min_version, feature.max_version));
        (supported, finalized.map(|feature| feature.max_version_level))
    };
    let update = async |level: i16, upgrade_type: i8| {
        let key = FeatureUpdateKey {
            feature: "share.version".into(),
            max_version_level: level,
            upgrade_type,
            ..Default::default()
        };
        let request = UpdateFeaturesRequest { feature_updates: vec![key], ..Default::default() };
        code(client.call(request, 2).await.error_code)
    };
    assert_eq!(told().await, (Some((0, 2)), Some(2)));
    assert_eq!(update(0, 2).await, ErrorCode::None);
    assert_eq!(told().await, (Some((0, 2)), None));
    let refused = client.call(a.request(&[]), NEWEST).await;
    assert_eq!(code(refused.error_code), ErrorCode::UnsupportedVersion);
    let refused = client.call(acknowledge_request("a", 1, topic.1, &[]), NEWEST).await;
    assert_eq!(code(refused.error_code), ErrorCode::UnsupportedVersion);
    let refused = client.call(beat("g", "a", 1, None), HEARTBEAT).await;
    assert_eq!(code(refused.error_code), ErrorCode::UnsupportedVersion);
    assert_eq!((update(3, 1).await, update(1, 1).await), (ErrorCode::InvalidUpdateVersion, ErrorCode::None));
    assert_eq!(told().await, (Some((0, 2)), Some(1)));
    produce(&client, "t", batch(["1"])).await;
    assert_eq!(a.fetch(&[]).await.0, [(0, 0, 1)]);
    drop((a, client));
    harness.finish().await;
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&to).expect("it is not there");
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("it can be copied");
        }
    }
}
