//! Fetch: what is returned, and when.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use thalweg_protocol::ErrorCode;

use crate::calls::{
    FETCH, batch, batch_at, batches, create_topic, create_topic_with, fetch, fetch_request, list_offset,
    produce, values,
};
use crate::harness::{Harness, Way, three_ways};

three_ways!(
    a_fetch_in_the_middle_of_a_batch_returns_the_batch,
    the_first_batch_is_returned_whole_whatever_its_size,
    limits_hold_over_partitions_and_everyone_gets_a_turn,
    a_fetch_without_records_waits_its_time,
    a_parked_fetch_is_woken_by_a_commit,
    a_parked_fetch_waits_for_enough_bytes,
    a_fetch_waits_for_no_more_than_it_may_get,
    offsets_outside_of_the_log,
    leader_epochs_are_checked,
    unknown_topics,
    every_version_of_fetch,
);

async fn a_fetch_in_the_middle_of_a_batch_returns_the_batch(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["0", "1", "2"])).await;
    produce(&client, "t", batch(["3", "4"])).await;
    let got = batches(&fetch(&client, "t", 1).await);
    assert_eq!(got[0].header().base_offset.0, 0);
    let got = batches(&fetch(&client, "t", 4).await);
    assert_eq!((got.len(), got[0].header().base_offset.0), (1, 3));
    assert!(batches(&fetch(&client, "t", 5).await).is_empty());
}

async fn the_first_batch_is_returned_whole_whatever_its_size(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let large = batch(["x".repeat(100_000)]);
    produce(&client, "t", large.clone()).await;
    produce(&client, "t", large.clone()).await;
    let mut request = fetch_request("t", &[(0, 0)]);
    request.max_bytes = 1000;
    request.topics[0].partitions[0].partition_max_bytes = 1000;
    let response = client.call(request, FETCH).await;
    let records = response.responses[0].partitions[0].records.as_ref().expect("records");
    assert_eq!(records.len(), large.len());
}

async fn limits_hold_over_partitions_and_everyone_gets_a_turn(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 4).await;
    let filled = batch(["x".repeat(10_000)]);
    for partition in 0..4 {
        let request = crate::calls::produce_request("t", -1, vec![(partition, filled.clone())]);
        client.call(request, crate::calls::PRODUCE).await;
    }
    let mut served = [0; 4];
    for _ in 0..8 {
        let mut request = fetch_request("t", &[(0, 0), (1, 0), (2, 0), (3, 0)]);
        request.max_bytes = 15_000;
        let response = client.call(request, FETCH).await;
        let mut bytes = 0;
        for data in &response.responses[0].partitions {
            let len = data.records.as_ref().map_or(0, |records| records.len());
            bytes += len;
            served[data.partition_index as usize] += usize::from(len >= filled.len());
        }
        assert!(bytes <= 15_000 + filled.len(), "{bytes} bytes");
    }
    assert!(served.iter().all(|&times| times >= 2), "{served:?}");
}

async fn a_fetch_without_records_waits_its_time(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let mut request = fetch_request("t", &[(0, 0)]);
    request.max_wait_ms = 200;
    let start = Instant::now();
    let response = client.call(request, FETCH).await;
    assert!(start.elapsed() >= Duration::from_millis(200));
    let data = &response.responses[0].partitions[0];
    assert_eq!((data.error_code, data.high_watermark, data.log_start_offset), (0, 0, 0));
    assert!(data.records.as_ref().is_some_and(|records| records.is_empty()));
}

/// Long enough that a test which waits for it has failed.
const LONG_MS: i32 = 60_000;

async fn a_parked_fetch_is_woken_by_a_commit(harness: &Harness) {
    let (consumer, producer) = (harness.connect().await, harness.connect().await);
    create_topic(&producer, "t", 2).await;
    for round in 0..20 {
        let mut request = fetch_request("t", &[(1, 0), (0, round)]);
        request.max_wait_ms = LONG_MS;
        let parked = tokio::spawn(consumer.send(request, FETCH));
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        produce(&producer, "t", batch([round.to_string()])).await;
        let response = parked.await.expect("it is answered");
        let data = &response.responses[0].partitions[1];
        assert_eq!(values(data), [(round, round.to_string())]);
        assert_eq!(data.high_watermark, round + 1);
    }
}

async fn a_parked_fetch_waits_for_enough_bytes(harness: &Harness) {
    let (consumer, producer) = (harness.connect().await, harness.connect().await);
    create_topic(&producer, "t", 1).await;
    let one = batch(["x".repeat(1000)]);
    let mut request = fetch_request("t", &[(0, 0)]);
    request.max_wait_ms = LONG_MS;
    request.min_bytes = 3 * one.len() as i32;
    let parked = tokio::spawn(consumer.send(request, FETCH));
    produce(&producer, "t", one.clone()).await;
    produce(&producer, "t", one.clone()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!parked.is_finished(), "two batches are not enough");
    produce(&producer, "t", one).await;
    let response = parked.await.expect("it is answered");
    assert_eq!(batches(&response.responses[0].partitions[0]).len(), 3);
}

async fn a_fetch_waits_for_no_more_than_it_may_get(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let one = batch(["x".repeat(1000)]);
    for _ in 0..3 {
        produce(&client, "t", one.clone()).await;
    }
    let mut request = fetch_request("t", &[(0, 0)]);
    request.max_wait_ms = LONG_MS;
    request.max_bytes = 2 * one.len() as i32;
    request.min_bytes = 3 * one.len() as i32;
    let response = client.call(request, FETCH).await;
    assert_eq!(batches(&response.responses[0].partitions[0]).len(), 2);
}

async fn offsets_outside_of_the_log(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["0"])).await;
    for (offset, expected) in [
        (-1, ErrorCode::OffsetOutOfRange),
        (0, ErrorCode::None),
        (1, ErrorCode::None),
        (2, ErrorCode::OffsetOutOfRange),
        (i64::MAX, ErrorCode::OffsetOutOfRange),
    ] {
        let data = fetch(&client, "t", offset).await;
        assert_eq!(ErrorCode::from(data.error_code), expected, "offset {offset}");
    }
}

async fn leader_epochs_are_checked(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["0"])).await;
    let epoch = crate::calls::list_offset(&client, "t", -1).await.leader_epoch;
    for (asked, expected) in
        [(-1, ErrorCode::None), (epoch, ErrorCode::None), (epoch + 1, ErrorCode::UnknownLeaderEpoch)]
    {
        let mut request = fetch_request("t", &[(0, 0)]);
        request.topics[0].partitions[0].current_leader_epoch = asked;
        let response = client.call(request, FETCH).await;
        assert_eq!(ErrorCode::from(response.responses[0].partitions[0].error_code), expected, "{asked}");
    }
}

async fn unknown_topics(harness: &Harness) {
    let client = harness.connect().await;
    let mut request = fetch_request("nowhere", &[(0, 0)]);
    request.max_wait_ms = LONG_MS;
    let response = client.call(request, FETCH).await;
    let code = response.responses[0].partitions[0].error_code;
    assert_eq!(ErrorCode::from(code), ErrorCode::UnknownTopicOrPartition, "an error is answered at once");

    let mut request = fetch_request("", &[(0, 0)]);
    request.topics[0].topic_id = thalweg_protocol::Uuid([9; 16]);
    let response = client.call(request, 17).await;
    assert_eq!(ErrorCode::from(response.responses[0].partitions[0].error_code), ErrorCode::UnknownTopicId);
}

async fn every_version_of_fetch(harness: &Harness) {
    let client = harness.connect().await;
    let topic_id = create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["v"])).await;
    for version in 4..=18 {
        let mut request = fetch_request("t", &[(0, 0)]);
        request.topics[0].topic_id = topic_id;
        request.topics[0].partitions[0].high_watermark = i64::MAX;
        if version < 12 {
            request.topics[0].partitions[0].last_fetched_epoch = -1;
        }
        let response = client.call(request, version).await;
        assert_eq!(values(&response.responses[0].partitions[0]), [(0, "v".to_owned())], "version {version}");
    }
}

/// Takes what is synced of the segments of partition 0 out of the page cache.
fn forget_cached(harness: &Harness, topic: &str) {
    for entry in std::fs::read_dir(harness.dir().join(format!("{topic}-0"))).expect("the log is there") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let file = std::fs::File::open(path).expect("it can be read");
            // SAFETY: the descriptor is open; the call only gives advice.
            let advised = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            assert_eq!(advised, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_in_the_page_cache_comes_from_the_disk() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    create_topic(&client, "cold", 1).await;
    let sent: Vec<_> = (0..20).map(|at| at.to_string().repeat(100_000)).collect();
    for value in &sent {
        produce(&client, "cold", batch([value])).await;
    }
    forget_cached(&harness, "cold");
    // Larger than a socket's buffers, so that it leaves in several steps.
    let mut request = fetch_request("cold", &[(0, 0)]);
    request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    let response = client.call(request, FETCH).await;
    let got: Vec<_> =
        values(&response.responses[0].partitions[0]).into_iter().map(|(_, value)| value).collect();
    assert!(got == sent, "{} values came back", got.len());
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_are_looked_for_where_nobody_waits_and_then_on_the_disk() {
    for way in [Way::Tcp, Way::InProcess] {
        let harness = Harness::start(way).await;
        let client = harness.connect().await;
        let configs = [("index.interval.bytes", "0"), ("segment.bytes", "100000")];
        assert_eq!(create_topic_with(&client, "cold", 1, &configs).await.error_code, 0);
        for at in 0..400_i64 {
            let batch = batch_at(1_357_000_000_000 + at, [format!("{at} {}", "x".repeat(1000))]);
            produce(&client, "cold", batch).await;
        }
        for offset in [0, 57, 250, 399] {
            forget_cached(&harness, "cold");
            let got = values(&fetch(&client, "cold", offset).await);
            assert_eq!(got[0].0, offset, "{way:?}");
            forget_cached(&harness, "cold");
            let found = list_offset(&client, "cold", 1_357_000_000_000 + offset).await;
            assert_eq!((found.error_code, found.offset), (0, offset), "{way:?}");
        }
        // One that comes upon the end is parked, and woken.
        forget_cached(&harness, "cold");
        let mut request = fetch_request("cold", &[(0, 390)]);
        (request.max_wait_ms, request.min_bytes) = (LONG_MS, 20_000);
        let parked = tokio::spawn(client.send(request, FETCH));
        let producer = harness.connect().await;
        for _ in 0..30 {
            produce(&producer, "cold", batch(["x".repeat(1000)])).await;
        }
        let response = parked.await.expect("it is answered");
        assert!(batches(&response.responses[0].partitions[0]).len() >= 19);
        assert_eq!(list_offset(&client, "cold", -3).await.offset, 399, "the record with the latest time");
        harness.finish().await;
    }
}
