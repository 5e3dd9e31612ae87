//! What is fetched over a plaintext socket goes from the segment to the socket without passing through the broker.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use bytes::Bytes;
use thalweg_broker::{AllowAll, BrokerConfig};
use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, Records};
use tokio::time::sleep;

use crate::calls::{FETCH, create_topic, fetch_request, produce};
use crate::harness::{Client, Harness, Way};
use crate::metrics::{counted, listening};

fn change(config: &mut BrokerConfig) {
    listening(config);
    config.max_request_bytes = 8 << 20;
}

/// Records of random text, which compresses to about three quarters.
fn batch(compression: Compression, records: usize, random: &mut fastrand::Rng) -> Bytes {
    let mut builder = BatchBuilder::new(compression, None, 1 << 20);
    for _ in 0..records {
        let value: Vec<u8> = (0..1000).map(|_| random.alphanumeric() as u8).collect();
        builder.append(1_357_000_000_000, None, Some(&value), []).expect("there is room");
    }
    builder.finish(&mut Default::default(), None).into_bytes()
}

/// Fetches from partition 0 of `topic` to its end; how many bytes of records came with each answer.
async fn fetch_all(client: &Client, topic: &str, end: i64, at_once: i32) -> Vec<u64> {
    let (mut next, mut sizes) = (0, Vec::new());
    while next < end {
        let mut request = fetch_request(topic, &[(0, next)]);
        request.topics[0].partitions[0].partition_max_bytes = at_once;
        let answer = client.call(request, FETCH).await;
        let data = &answer.responses[0].partitions[0];
        sizes.push(data.records.as_ref().map_or(0, Records::len) as u64);
        let last = crate::calls::batches(data).pop().expect("it is not empty");
        next = last.header().last_offset().0 + 1;
    }
    sizes
}

/// How many bytes of segments the broker has sent from files so far, and how many it read before.
async fn sent(harness: &Harness) -> (u64, u64) {
    let address = harness.broker.metrics_address().expect("it listens");
    (
        counted(address, "thalweg_sendfile_bytes_total").await,
        counted(address, "thalweg_read_through_bytes_total").await,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_of_records_is_sent_from_its_file() {
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    let mut random = fastrand::Rng::with_seed(3);
    for compression in Compression::ALL {
        let topic = format!("topic-{compression}");
        create_topic(&client, &topic, 1).await;
        // A small one, and then more than 8 MiB.
        produce(&client, &topic, batch(compression, 1, &mut random)).await;
        for _ in 0..16 {
            produce(&client, &topic, batch(compression, 800, &mut random)).await;
        }
        for (at_once, most_answers) in [(1, 17), (1 << 20, 17), (50 << 20, 1)] {
            let (before, _) = sent(&harness).await;
            let sizes = fetch_all(&client, &topic, 16 * 800 + 1, at_once).await;
            assert!(sizes.len() <= most_answers, "{compression}: {sizes:?}");
            let (after, _) = sent(&harness).await;
            assert_eq!(after - before, sizes.iter().sum::<u64>(), "{compression}, {at_once} bytes at once");
            assert!(after - before > 8 << 20, "{compression}: {sizes:?}");
        }
    }
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_fetched_in_process_goes_over_no_socket() {
    for way in [Way::InProcess, Way::ThroughBytes] {
        let harness = Harness::start_with(way, change, AllowAll).await;
        let client = harness.connect().await;
        create_topic(&client, "t", 1).await;
        produce(&client, "t", batch(Compression::None, 100, &mut fastrand::Rng::with_seed(3))).await;
        assert!(fetch_all(&client, "t", 100, 1 << 20).await[0] > 100_000);
        assert_eq!(sent(&harness).await, (0, 0), "{way:?}");
        harness.finish().await;
    }
}

/// Drops a file from the page cache. Whether that worked: where files are kept in memory it does not.
async fn drop_from_cache(path: &Path) -> bool {
    let file = File::open(path).expect("it is there");
    // A page that is being written, or has just been looked at, stays for a moment.
    for _ in 0..50 {
        file.sync_data().expect("the disk works");
        // SAFETY: the descriptor is open.
        let dropped = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(dropped, 0);
        if !pages_in_cache(&file).contains(&true) {
            return true;
        }
        sleep(Duration::from_millis(20)).await;
    }
    false
}

fn page_size() -> usize {
    // SAFETY: it only returns a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Which pages of a file are in the page cache. To ask brings none in.
fn pages_in_cache(file: &File) -> Vec<bool> {
    let len = file.metadata().expect("it is there").len() as usize;
    let mut pages = vec![0u8; len.div_ceil(page_size())];
    // SAFETY: the mapping is of the file's own length and never read, and there is a byte for each of its pages.
    unsafe {
        let map = libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::mincore(map, len, pages.as_mut_ptr()), 0);
        assert_eq!(libc::munmap(map, len), 0);
    }
    pages.into_iter().map(|page| page & 1 == 1).collect()
}

fn is_cached(file: &File, position: u64) -> bool {
    pages_in_cache(file)[position as usize / page_size()]
}

fn segment(harness: &Harness) -> PathBuf {
    harness.dir().join("t-0/00000000000000000000.log")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_in_the_page_cache_is_read_first_and_sent_from_its_file_all_the_same() {
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(Compression::None, 900, &mut fastrand::Rng::with_seed(3))).await;
    let is_cold = drop_from_cache(&segment(&harness)).await;
    let sizes = fetch_all(&client, "t", 900, 1 << 20).await;
    let read_first = if is_cold { sizes[0] } else { 0 };
    assert_eq!(sent(&harness).await, (sizes[0], read_first), "cold: {is_cold}");
    // Now it is there.
    fetch_all(&client, "t", 900, 1 << 20).await;
    assert_eq!(sent(&harness).await, (2 * sizes[0], read_first));
    harness.finish().await;
}

/// The pages at the ends of a slice are read to find them; that says nothing about those between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slice_whose_ends_are_in_the_page_cache_is_read_first_all_the_same() {
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(Compression::None, 900, &mut fastrand::Rng::with_seed(3))).await;
    let is_cold = drop_from_cache(&segment(&harness)).await;
    let file = File::open(segment(&harness)).expect("it is there");
    // SAFETY: the descriptor is open.
    let advised = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    assert_eq!(advised, 0);
    let len = file.metadata().expect("it is there").len();
    for position in [0, len / 2, len - 1] {
        file.read_exact_at(&mut [0], position).expect("the byte is there");
    }
    let sizes = fetch_all(&client, "t", 900, 1 << 20).await;
    let read_first = if is_cold { sizes[0] } else { 0 };
    assert_eq!(sent(&harness).await, (sizes[0], read_first), "cold: {is_cold}");
    harness.finish().await;
}

/// What the kernel would read ahead keeps producers waiting for the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_read_from_the_disk_than_is_sent() {
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    for seed in 0..8 {
        produce(&client, "t", batch(Compression::None, 900, &mut fastrand::Rng::with_seed(seed))).await;
    }
    let is_cold = drop_from_cache(&segment(&harness)).await;
    let size = fetch_all(&client, "t", 900, 1 << 20).await[0];
    let file = File::open(segment(&harness)).expect("it is there");
    assert!(size > 700_000 && is_cached(&file, size - 1));
    assert_eq!(is_cached(&file, 2 * size + (256 << 10)), !is_cold);
    harness.finish().await;
}
