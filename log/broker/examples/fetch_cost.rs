//! What a fetch costs a broker by how many partitions it is about, records being in one of them: with a fetch session
//! (KIP-227), and without. Prints CPU time per fetch.

use std::mem::MaybeUninit;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_broker::{Broker, BrokerConfig};
use thalweg_protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use thalweg_protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use thalweg_protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use thalweg_protocol::messages::{Api, Response};
use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, Compressor, Connection, Records};

const TOPIC: &str = "topic";
const NAMED_TOPICS: i16 = 12;

async fn call<A: Api>(connection: &Arc<dyn Connection>, request: A, version: i16) -> A::Response {
    let response: Response =
        connection.send(request.into_request(), version).await.expect("the broker answers");
    A::Response::try_from(response).unwrap_or_else(|_| panic!("the answer to another request"))
}

/// The CPU time of this process so far, in µs.
fn cpu_us() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, which is all zeros before.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let of = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn asked(partitions: i32) -> Vec<FetchTopic> {
    let partition =
        |partition| FetchPartition { partition, partition_max_bytes: 1 << 20, ..Default::default() };
    let partitions = (0..partitions).map(partition).collect();
    vec![FetchTopic { topic: ByteString::from_static(TOPIC), partitions, ..Default::default() }]
}

fn check(response: &FetchResponse) {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let with_records =
        partitions.filter(|data| data.records.as_ref().is_some_and(|records| !records.is_empty()));
    assert_eq!((response.error_code, with_records.count()), (0, 1));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("partitions   without a session   with one   (µs of CPU per fetch)");
    for count in [1, 100, 1_000, 10_000] {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let config = BrokerConfig { data_dir: directory.path().to_owned(), ..BrokerConfig::default() };
        let broker = Broker::start(config).await.expect("the broker starts");
        let connection = broker.connect().open().expect("it runs");
        let topic = CreatableTopic {
            name: ByteString::from_static(TOPIC),
            num_partitions: count,
            replication_factor: -1,
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 60_000, ..Default::default() };
        assert_eq!(call(&connection, request, 7).await.topics[0].error_code, 0);
        let mut builder = BatchBuilder::new(Compression::None, None, 0);
        builder.append(0, None, Some(b"value"), []).expect("it fits");
        let batch = builder.finish(&mut Compressor::new(), None);
        let data = PartitionProduceData { index: 0, records: Some(Records::Bytes(batch.bytes().clone())) };
        let topic = TopicProduceData {
            name: ByteString::from_static(TOPIC),
            partition_data: vec![data],
            ..Default::default()
        };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 60_000, topic_data: vec![topic], ..Default::default() };
        assert_eq!(call(&connection, request, 12).await.responses[0].partition_responses[0].error_code, 0);

        let rounds = (200_000 / count).clamp(200, 20_000);
        let template = FetchRequest { min_bytes: 1, max_bytes: 1 << 20, ..Default::default() };
        let full = FetchRequest { topics: asked(count), ..template.clone() };
        let before = cpu_us();
        for _ in 0..rounds {
            check(&call(&connection, full.clone(), NAMED_TOPICS).await);
        }
        let without = (cpu_us() - before) as f64 / f64::from(rounds);

        let opened = call(&connection, FetchRequest { session_epoch: 0, ..full }, NAMED_TOPICS).await;
        let within =
            |session_epoch| FetchRequest { session_id: opened.session_id, session_epoch, ..template.clone() };
        // The first one within a session looks at all partitions.
        check(&call(&connection, within(1), NAMED_TOPICS).await);
        let before = cpu_us();
        for round in 0..rounds {
            check(&call(&connection, within(round + 2), NAMED_TOPICS).await);
        }
        let with = (cpu_us() - before) as f64 / f64::from(rounds);
        println!("{count:>10}   {without:>17.1}   {with:>8.1}");
        broker.shutdown().await.expect("everything can be synced");
    }
}
