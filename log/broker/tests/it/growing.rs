//! Many partitions, and more files than a process is to have open.

use std::path::Path;

use thalweg_broker::{Broker, BrokerConfig};

use crate::calls::{PRODUCE, batch, create_topic, produce_request, read_all};
use crate::harness::{Harness, Way};

const PARTITIONS: i32 = 1_000;
const MOST: usize = 100;

/// How many descriptors of this process are of files below `directory`.
fn open_below(directory: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("there is /proc");
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(directory)).count()
}

/// A thousand partitions are made, written, read, stopped and started again, with a hundred files open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_partitions_with_few_descriptors() {
    let harness = Harness::start(Way::InProcess).await;
    let client = harness.connect().await;
    create_topic(&client, "many", PARTITIONS).await;
    let value = |round: i32, partition: i32| format!("{round} of {partition}");
    for round in 0..2 {
        let records =
            (0..PARTITIONS).map(|partition| (partition, batch([value(round, partition)]))).collect();
        let response = client.call(produce_request("many", -1, records), PRODUCE).await;
        for data in &response.responses[0].partition_responses {
            assert_eq!((data.error_code, data.base_offset), (0, i64::from(round)), "{}", data.index);
        }
    }
    // What the journal has is not synced in its own file, which stays open for that.
    let dir = harness.stop().await;
    let config = BrokerConfig { max_open_files: MOST, ..Harness::config(Way::InProcess, dir.path()) };
    let broker = Broker::start(config).await.expect("the broker starts again");
    let harness = Harness::of(Way::InProcess, broker, dir);
    let client = harness.connect().await;
    for partition in 0..PARTITIONS {
        let expected = [(0, value(0, partition)), (1, value(1, partition))];
        assert_eq!(read_all(&client, "many", partition).await, expected);
    }
    // The metadata, the journal, the checkpoint and the broker's own topics have some that are not counted.
    let open = open_below(harness.dir());
    assert!((MOST / 2..MOST + 50).contains(&open), "{open} files are open");
    harness.finish().await;
}
