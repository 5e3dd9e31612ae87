//! Everything that clients can ask a node for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thalweg_protocol::messages::consumer_group_describe::ConsumerGroupDescribeRequest;
use thalweg_protocol::messages::describe_client_quotas::DescribeClientQuotasRequest;
use thalweg_protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use thalweg_protocol::messages::describe_groups::DescribeGroupsRequest;
use thalweg_protocol::messages::describe_producers::{DescribeProducersRequest, TopicRequest};
use thalweg_protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponsePartition as SharePartition,
};
use thalweg_protocol::messages::describe_transactions::DescribeTransactionsRequest;
use thalweg_protocol::messages::list_groups::ListGroupsRequest;
use thalweg_protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use thalweg_protocol::record::{Batches, ControlRecord};
use thalweg_protocol::{ErrorCode, Scratch};

use super::world::{GROUPS, THEN_MS, TRANSACTIONAL_IDS};
use crate::calls::{FETCH, all_topics, fetch_request, list_offset};
use crate::harness::Client;

/// One thing that can be asked for, and the topics that tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thing {
    what: &'static str,
    of: &'static str,
    by: Option<&'static str>,
}

impl Thing {
    /// Whether damage to this topic may show here.
    pub fn depends_on(&self, topic: &str) -> bool {
        let by_others = match self.what {
            // Members of share groups are told by the topic of groups.
            "share state" => ["__consumer_offsets"].as_slice(),
            // And how far they are behind also by where the topic ends.
            "share lag" => &["__consumer_offsets", "shared"],
            _ => &[],
        };
        self.by == Some(topic) || by_others.contains(&topic)
    }

    /// Whether it is this of that.
    pub fn is(&self, what: &str, of: &str) -> bool {
        (self.what, self.of) == (what, of)
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.what, self.of)
    }
}

/// Each thing, or how it was told that it cannot be known.
pub type Seen = BTreeMap<Thing, Result<Vec<String>, String>>;

/// The topics whose records are looked at.
const TOPICS: [&str; 5] = ["plain", "kept", "cut", "t", "shared"];

/// What the sweep is about is there.
pub fn check_whole(seen: &Seen) {
    for (thing, found) in seen {
        assert!(found.is_ok(), "{thing}: {found:?}");
    }
    let lines = |what: &str, of: &str| -> Vec<String> {
        let thing = seen.keys().find(|thing| thing.is(what, of)).expect("it was looked at");
        seen[thing].clone().expect("nothing is damaged")
    };
    let count =
        |what: &str, of: &str, text: &str| lines(what, of).iter().filter(|line| line.contains(text)).count();
    assert_eq!(lines("records", "plain").len(), 24);
    assert_eq!(lines("records", "cut").len(), 19);
    assert!(count("records", "kept", "same") < 8, "it was compacted: {:?}", lines("records", "kept"));
    assert_eq!(count("records", "t", "aborted"), 3);
    assert_eq!(count("committed records", "t", "aborted"), 0);
    assert_eq!(count("committed records", "t", "committed"), 3);
    assert_eq!(lines("offsets", "offsets").len(), 2);
    assert_eq!(count("transaction", "open", "Ongoing"), 1);
    assert_eq!(count("transaction", "aborted", "CompleteAbort"), 1);
    assert_eq!(lines("share state", "share"), ["shared 26"]);
    assert_eq!(lines("share lag", "share"), ["shared 3"]);
    assert_eq!(count("quotas", "the node", "1000000000"), 1);
}

/// Asks for everything, as careful clients do.
pub async fn look(client: &Client) -> Seen {
    let mut seen = Seen::new();
    let mut note = |what, of, by, found| {
        seen.insert(Thing { what, of, by }, found);
    };
    note("topics", "the node", None, topics(client).await);
    note("configs", "the node", None, configs(client).await);
    note("quotas", "the node", None, quotas(client).await);
    for topic in TOPICS {
        note("bounds", topic, Some(topic), bounds(client, topic).await);
        note("records", topic, Some(topic), records(client, topic, 0).await);
        note("committed records", topic, Some(topic), records(client, topic, 1).await);
        note("offsets by time", topic, Some(topic), by_time(client, topic).await);
        note("producers", topic, Some(topic), producers(client, topic).await);
    }
    let by = Some("__consumer_offsets");
    note("list", "groups", by, list(client).await);
    for group in GROUPS.into_iter().chain(["g"]) {
        note("offsets", group, by, offsets(client, group).await);
    }
    note("group", "classic", by, classic_group(client).await);
    note("group", "consumer", by, consumer_group(client).await);
    for id in TRANSACTIONAL_IDS {
        note("transaction", id, Some("__transaction_state"), transaction(client, id).await);
    }
    let by = Some("__share_group_state");
    note("share state", "share", by, share_state(client, |one| Ok(one.start_offset)).await);
    // Who cannot know where the topic ends says so by this.
    let lag = |one: &SharePartition| if one.lag < 0 { Err("not known".to_owned()) } else { Ok(one.lag) };
    note("share lag", "share", by, share_state(client, lag).await);
    seen
}

fn check(code: i16) -> Result<(), String> {
    match ErrorCode::from(code) {
        ErrorCode::None => Ok(()),
        other => Err(other.name().to_owned()),
    }
}

async fn topics(client: &Client) -> Result<Vec<String>, String> {
    let answer = client.call(all_topics(), 12).await;
    let show = |topic: &thalweg_protocol::messages::metadata::MetadataResponseTopic| {
        format!("{:?} {} {}", topic.name, topic.topic_id, topic.partitions.len())
    };
    Ok(answer.topics.iter().map(show).collect())
}

async fn configs(client: &Client) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for topic in TOPICS {
        let resource = DescribeConfigsResource {
            resource_type: 2,
            resource_name: topic.into(),
            configuration_keys: None,
        };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let result = client.call(request, 4).await.results.remove(0);
        check(result.error_code)?;
        all.extend(result.configs.iter().map(|config| format!("{topic} {} {:?}", config.name, config.value)));
    }
    Ok(all)
}

async fn quotas(client: &Client) -> Result<Vec<String>, String> {
    let answer = client.call(DescribeClientQuotasRequest::default(), 1).await;
    check(answer.error_code)?;
    Ok(answer.entries.unwrap_or_default().iter().map(|entry| format!("{:?}", entry.values)).collect())
}

async fn bounds(client: &Client, topic: &str) -> Result<Vec<String>, String> {
    let end = list_offset(client, topic, -1).await;
    check(end.error_code)?;
    Ok(vec![format!("until {}", end.offset)])
}

async fn by_time(client: &Client, topic: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for at in [0, 1, 2_500, 5_001, 7_000, 100_000].map(|ms| THEN_MS + ms).into_iter().chain([-3]) {
        let found = list_offset(client, topic, at).await;
        check(found.error_code)?;
        all.push(format!("{at}: {} {}", found.offset, found.timestamp));
    }
    Ok(all)
}

async fn producers(client: &Client, topic: &str) -> Result<Vec<String>, String> {
    let topic = TopicRequest { name: topic.into(), partition_indexes: vec![0] };
    let request = DescribeProducersRequest { topics: vec![topic] };
    let mut answer = client.call(request, 0).await;
    let partition = answer.topics.remove(0).partitions.remove(0);
    check(partition.error_code)?;
    let show = |producer: &thalweg_protocol::messages::describe_producers::ProducerState| {
        let (id, epoch) = (producer.producer_id, producer.producer_epoch);
        format!("{id} {epoch} {} {}", producer.last_sequence, producer.current_txn_start_offset)
    };
    let mut all: Vec<_> = partition.active_producers.iter().map(show).collect();
    all.sort();
    Ok(all)
}

/// Reads from the beginning to the end, in small steps, and checks checksums.
async fn records(client: &Client, topic: &str, isolation_level: i8) -> Result<Vec<String>, String> {
    let start = list_offset(client, topic, -2).await;
    check(start.error_code)?;
    let (mut all, mut next, mut scratch) = (Vec::new(), start.offset, Scratch::new(1 << 20));
    let mut aborting = BTreeSet::new();
    let wrong = |error: &dyn fmt::Display| error.to_string();
    loop {
        let mut request = fetch_request(topic, &[(0, next)]);
        request.isolation_level = isolation_level;
        request.topics[0].partitions[0].partition_max_bytes = 700;
        let answer = client.call(request, FETCH).await;
        check(answer.error_code)?;
        let data = answer.responses.into_iter().next().ok_or("no topic")?.partitions.remove(0);
        check(data.error_code)?;
        let bytes = data.records.ok_or("null")?.into_bytes().map_err(|error| wrong(&error))?;
        if bytes.is_empty() {
            let until = if isolation_level == 0 { data.high_watermark } else { data.last_stable_offset };
            return if next >= until { Ok(all) } else { Err("nothing comes".to_owned()) };
        }
        let mut aborted = data.aborted_transactions.unwrap_or_default().into_iter().peekable();
        let before = next;
        for batch in Batches::new(bytes) {
            let batch = batch.map_err(|error| wrong(&error))?;
            batch.verify().map_err(|error| wrong(&error))?;
            let header = *batch.header();
            while let Some(one) = aborted.next_if(|one| one.first_offset <= header.last_offset().0) {
                aborting.insert(one.producer_id);
            }
            let is_skipped = header.is_transactional() && aborting.contains(&header.producer_id.0);
            for record in batch.records(&mut scratch).map_err(|error| wrong(&error))? {
                let record = record.map_err(|error| wrong(&error))?;
                if header.is_control() {
                    if let Ok(ControlRecord::EndTransaction(marker)) = ControlRecord::parse(&record)
                        && !marker.commit
                    {
                        aborting.remove(&header.producer_id.0);
                    }
                } else if record.offset.0 >= next && !is_skipped {
                    let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8_lossy(b).into_owned());
                    let (key, value) = (text(record.key), text(record.value));
                    all.push(format!("{}@{}: {key:?} {value:?}", record.offset, record.timestamp));
                }
            }
            next = next.max(header.next_offset().0);
        }
        if next <= before {
            return Err("a read makes no progress".to_owned());
        }
    }
}

async fn list(client: &Client) -> Result<Vec<String>, String> {
    let answer = client.call(ListGroupsRequest::default(), 5).await;
    check(answer.error_code)?;
    let mut all: Vec<_> =
        answer.groups.iter().map(|group| format!("{} {}", group.group_id, group.group_type)).collect();
    all.sort();
    Ok(all)
}

async fn offsets(client: &Client, group: &'static str) -> Result<Vec<String>, String> {
    let group = OffsetFetchRequestGroup { group_id: group.into(), topics: None, ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    let group = client.call(request, 9).await.groups.remove(0);
    check(group.error_code)?;
    let mut all = Vec::new();
    for topic in &group.topics {
        for partition in &topic.partitions {
            check(partition.error_code)?;
            all.push(format!("{} {} {:?}", topic.name, partition.committed_offset, partition.metadata));
        }
    }
    all.sort();
    Ok(all)
}

async fn classic_group(client: &Client) -> Result<Vec<String>, String> {
    let request = DescribeGroupsRequest { groups: vec!["classic".into()], ..Default::default() };
    let group = client.call(request, 5).await.groups.remove(0);
    check(group.error_code)?;
    let members = group.members.iter().map(|one| format!("{} {:?}", one.member_id, one.member_assignment));
    Ok([group.group_state.to_string()].into_iter().chain(members).collect())
}

async fn consumer_group(client: &Client) -> Result<Vec<String>, String> {
    let request = ConsumerGroupDescribeRequest {
        group_ids: vec!["consumer".into()],
        include_authorized_operations: false,
    };
    let group = client.call(request, 1).await.groups.remove(0);
    check(group.error_code)?;
    let members = group.members.iter().map(|one| format!("{} {:?}", one.member_id, one.assignment));
    Ok([format!("{} {}", group.group_state, group.group_epoch)].into_iter().chain(members).collect())
}

async fn transaction(client: &Client, id: &'static str) -> Result<Vec<String>, String> {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.into()] };
    let state = client.call(request, 0).await.transaction_states.remove(0);
    check(state.error_code)?;
    let (name, producer) = (&state.transaction_state, state.producer_id);
    Ok(vec![format!("{name} {producer} {} {:?}", state.producer_epoch, state.topics)])
}

async fn share_state(
    client: &Client,
    show: impl Fn(&SharePartition) -> Result<i64, String>,
) -> Result<Vec<String>, String> {
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: "share".into(), topics: None };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    let group = client.call(request, 1).await.groups.remove(0);
    check(group.error_code)?;
    let mut all = Vec::new();
    for topic in &group.topics {
        for partition in &topic.partitions {
            check(partition.error_code)?;
            all.push(format!("{} {}", topic.topic_name, show(partition)?));
        }
    }
    Ok(all)
}
