//! What a node costs as it grows: partitions, segments, connections, members of a group. Prints a table of time and memory.
//!
//! `growth` stops where it takes a minute in all; `growth --whole` goes on to 10,000 partitions, 100,000 segments, 10,000
//! connections and 200 members. The node is a process of its own on a directory of its own below `TMPDIR`, which wants a
//! file system with sparse files.

mod node;
mod sparse;

use std::error::Error;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use thalweg_client::{
    Client, ClientConfig, ConsumerConfig, GroupProtocol, NewTopic, Offset, OffsetReset, ProducerConfig,
    ProducerRecord, TcpConnector, TopicPartition,
};
use thalweg_protocol::Connect;
use thalweg_protocol::messages::Api;
use thalweg_protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};

use self::node::{Node, Used};
use self::sparse::Segments;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How long an idle node is watched.
const IDLE: Duration = Duration::from_secs(5);
const TOPIC: &str = "growing";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_whole = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["node", directory] => return node::run(Path::new(directory)),
        [] => false,
        ["--whole"] => true,
        _ => {
            eprintln!("growth [--whole]");
            std::process::exit(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let up_to =
            |counts: &[usize], most| counts.iter().copied().filter(|&n| is_whole || n <= most).collect();
        partitions(up_to(&[1, 10, 100, 1_000, 10_000], 1_000)).await?;
        segments(up_to(&[10, 100, 1_000, 10_000, 100_000], 1_000)).await?;
        many_logs(if is_whole { 1_000 } else { 100 }, 10).await?;
        connections(up_to(&[1, 10, 100, 1_000, 10_000], 1_000)).await?;
        for protocol in [GroupProtocol::Classic, GroupProtocol::Consumer] {
            members(up_to(&[1, 10, 50, 200], 50), protocol).await?;
        }
        Ok(())
    })
}

async fn client(node: &Node) -> Result<Client> {
    Ok(Client::connect(ClientConfig::with_bootstrap(node.address())).await?)
}

/// What an idle node uses: CPU in ms per second, and memory in MB.
fn idle(node: &Node) -> Result<(f64, f64)> {
    let before = node.used()?;
    std::thread::sleep(IDLE);
    let Used { cpu_s, memory_mb } = node.used()?;
    Ok(((cpu_s - before.cpu_s) * 1e3 / IDLE.as_secs_f64(), memory_mb))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A topic of so many partitions: making it, a record in each, keeping it, and starting with it.
async fn partitions(counts: Vec<usize>) -> Result<()> {
    println!(
        "{:>10} {:>10} {:>12} {:>10} {:>10} {:>9} {:>10} {:>10} {:>10} {:>10}",
        "partitions",
        "create ms",
        "1 each, ms",
        "memory MB",
        "idle ms/s",
        "stop ms",
        "start ms",
        "memory MB",
        "killed ms",
        "delete ms"
    );
    for count in counts {
        let directory = tempfile::tempdir()?;
        let node = Node::start(directory.path())?;
        let cluster = client(&node).await?;
        let begin = Instant::now();
        cluster.admin().create_topic(NewTopic::new(TOPIC, count as i32)).await?;
        let created = begin.elapsed();
        let begin = Instant::now();
        one_in_each(&cluster, count).await?;
        let produced = begin.elapsed();
        drop(cluster);
        let (idle_cpu, memory) = idle(&node)?;
        let stopped = node.stop()?;
        let node = Node::start(directory.path())?;
        let (started, memory_started) = (node.start_time(), node.used()?.memory_mb);
        one_in_each(&client(&node).await?, count).await?;
        node.kill()?;
        let node = Node::start(directory.path())?;
        let killed = node.start_time();
        let cluster = client(&node).await?;
        let begin = Instant::now();
        cluster.admin().delete_topic(TOPIC).await?;
        let deleted = begin.elapsed();
        node.stop()?;
        println!(
            "{count:>10} {:>10.1} {:>12.1} {memory:>10.1} {idle_cpu:>10.1} {:>9.1} {:>10.1} {memory_started:>10.1} {:>10.1} {:>10.1}",
            ms(created),
            ms(produced),
            ms(stopped),
            ms(started),
            ms(killed),
            ms(deleted)
        );
    }
    println!();
    Ok(())
}

/// A record into each partition, acknowledged.
async fn one_in_each(cluster: &Client, count: usize) -> Result<()> {
    let producer = cluster.producer(ProducerConfig::default())?;
    for partition in 0..count as i32 {
        producer.send(ProducerRecord::new(TOPIC, "a record").partition(partition)).await?;
    }
    producer.flush().await?;
    assert_eq!((producer.acknowledged(), producer.failed()), (count as u64, 0), "each is acknowledged");
    producer.close().await?;
    Ok(())
}

/// One log of so many full segments of 1 GiB, which are sparse: starting with it, and reading from it.
async fn segments(counts: Vec<usize>) -> Result<()> {
    println!(
        "{:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12} {:>12} {:>10}",
        "segments",
        "TB",
        "start ms",
        "memory MB",
        "idle ms/s",
        "read each us",
        "by time us",
        "killed ms",
        "files open"
    );
    for count in counts {
        let directory = tempfile::tempdir()?;
        let node = grown(directory.path(), 1, count).await?;
        let (started, (idle_cpu, memory)) = (node.start_time(), idle(&node)?);
        let (read, by_time) = reads(&node, count).await?;
        let open = node.open_files()?;
        node.kill()?;
        let node = Node::start(directory.path())?;
        let killed = node.start_time();
        assert_eq!(Segments::end(count), end(&client(&node).await?, 0).await?, "nothing is lost");
        node.stop()?;
        println!(
            "{count:>10} {:>10.3} {:>10.1} {memory:>10.1} {idle_cpu:>10.1} {read:>12.1} {by_time:>12.1} {:>12.1} {open:>10}",
            count as f64 * Segments::BYTES as f64 / 1e12,
            ms(started),
            ms(killed)
        );
    }
    println!();
    Ok(())
}

/// So many logs of so many segments each.
async fn many_logs(partitions: usize, segments: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = grown(directory.path(), partitions, segments).await?;
    let (started, (_, memory)) = (node.start_time(), idle(&node)?);
    let cluster = client(&node).await?;
    one_in_each(&cluster, partitions).await?;
    let stopped = node.stop()?;
    let node = Node::start(directory.path())?;
    let clean = node.start_time();
    one_in_each(&client(&node).await?, partitions).await?;
    node.kill()?;
    let node = Node::start(directory.path())?;
    let killed = node.start_time();
    let last = end(&client(&node).await?, partitions as i32 - 1).await?;
    assert_eq!(Segments::end(segments) + 2, last, "nothing is lost");
    node.stop()?;
    println!(
        "{partitions} partitions of {segments} segments: start {:.1} ms after a clean stop of {:.1} ms (first {:.1} ms), {:.1} ms after a kill, {memory:.1} MB\n",
        ms(clean),
        ms(stopped),
        ms(started),
        ms(killed)
    );
    Ok(())
}

/// A node with a topic of so many partitions with so many sparse segments each.
async fn grown(directory: &Path, partitions: usize, segments: usize) -> Result<Node> {
    let node = Node::start(directory)?;
    let topic = NewTopic::new(TOPIC, partitions as i32).config("retention.ms", "-1");
    client(&node).await?.admin().create_topic(topic).await?;
    node.stop()?;
    for partition in 0..partitions {
        Segments::fill(&directory.join(format!("{TOPIC}-{partition}")), segments)?;
    }
    // The first start finds more than it knew of.
    let node = Node::start(directory)?;
    assert_eq!(end(&client(&node).await?, 0).await?, Segments::end(segments), "every segment is there");
    node.stop()?;
    Node::start(directory)
}

async fn end(cluster: &Client, partition: i32) -> Result<i64> {
    let consumer = cluster.consumer(ConsumerConfig::default())?;
    let partition = TopicPartition::new(TOPIC, partition);
    let ends = consumer.end_offsets(std::slice::from_ref(&partition)).await?;
    Ok(ends.values().map(|offset| offset.0).next().ok_or("no end")?)
}

/// The time in µs to read a record of a segment, by offset and by time, with segments taken from all over the log.
async fn reads(node: &Node, segments: usize) -> Result<(f64, f64)> {
    let partition = TopicPartition::new(TOPIC, 0);
    let looked_at = segments.min(500);
    let places = |from| (1..=looked_at).map(move |n| (from + n * 7_919) % segments);
    // A client would read on, into the hole.
    let (host, port) = (node.address().rsplit_once(':').ok_or("no port")?.0, node.port().parse()?);
    let connection = TcpConnector::new("growth", Duration::from_secs(10)).connect(host, port).await?;
    let begin = Instant::now();
    for at in places(0) {
        let partition = FetchPartition { fetch_offset: Segments::base(at), ..FetchPartition::default() };
        let topic = FetchTopic { topic: TOPIC.into(), partitions: vec![partition], ..FetchTopic::default() };
        let request = FetchRequest { topics: vec![topic], max_wait_ms: 500, ..FetchRequest::default() };
        let response = connection.send(request.into_request(), 12).await?;
        let response = FetchResponse::try_from(response).map_err(|_| "the answer to another request")?;
        let data = &response.responses[0].partitions[0];
        let records = data.records.as_ref().ok_or("no records")?.clone().into_bytes()?;
        assert_eq!(records[..8], Segments::base(at).to_be_bytes(), "the record that was asked for");
    }
    let by_offset = begin.elapsed();
    let consumer = client(node).await?.consumer(ConsumerConfig::default())?;
    let begin = Instant::now();
    for at in places(1) {
        let found = consumer.offsets_for_times(&[(partition.clone(), Segments::time(at))]).await?;
        assert_eq!(found[&partition].offset, Some(Offset(Segments::base(at))), "by time");
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / looked_at as f64;
    Ok((each(by_offset), each(begin.elapsed())))
}

/// So many connections that do nothing.
async fn connections(counts: Vec<usize>) -> Result<()> {
    println!(
        "{:>11} {:>10} {:>10} {:>10} {:>12}",
        "connections", "open ms", "memory MB", "idle ms/s", "answer us"
    );
    for count in counts {
        let directory = tempfile::tempdir()?;
        let node = Node::start(directory.path())?;
        let begin = Instant::now();
        let mut open: Vec<TcpStream> = Vec::with_capacity(count);
        for n in 0..count {
            // No address may have all of them.
            let host = if n % 2 == 0 { "127.0.0.1" } else { "[::1]" };
            open.push(node::greet(&format!("{host}:{}", node.port()))?);
        }
        let opened = begin.elapsed();
        let (idle_cpu, memory) = idle(&node)?;
        let cluster = client(&node).await?;
        let begin = Instant::now();
        for _ in 0..100 {
            cluster.admin().list_topics().await?;
        }
        let answer = begin.elapsed().as_secs_f64() * 1e4;
        drop(open);
        node.stop()?;
        println!("{count:>11} {:>10.1} {memory:>10.1} {idle_cpu:>10.1} {answer:>12.1}", ms(opened));
    }
    println!();
    Ok(())
}

/// A group of so many members on as many partitions: until each has one, until the group has got over a member that leaves, and
/// what it costs to be idle.
async fn members(counts: Vec<usize>, protocol: GroupProtocol) -> Result<()> {
    println!("{protocol:?} protocol");
    println!("{:>8} {:>10} {:>10} {:>10} {:>10}", "members", "join ms", "leave ms", "memory MB", "idle ms/s");
    for count in counts {
        let directory = tempfile::tempdir()?;
        let node = Node::start(directory.path())?;
        let cluster = client(&node).await?;
        cluster.admin().create_topic(NewTopic::new(TOPIC, count as i32)).await?;
        let config = ConsumerConfig {
            group_protocol: protocol,
            offset_reset: OffsetReset::Earliest,
            ..ConsumerConfig::group("growing")
        };
        let begin = Instant::now();
        let joining = (0..count).map(|_| node::Member::join(node.address(), config.clone(), TOPIC));
        let mut members = try_join_all(joining).await?;
        node::settle(&members, count).await?;
        let joined = begin.elapsed();
        let (idle_cpu, memory) = idle(&node)?;
        let left = match members.pop() {
            Some(last) if count > 1 => {
                let begin = Instant::now();
                last.leave().await?;
                node::settle(&members, count).await?;
                ms(begin.elapsed())
            }
            _ => f64::NAN,
        };
        for member in members {
            member.leave().await?;
        }
        node.stop()?;
        println!("{count:>8} {:>10.1} {left:>10.1} {memory:>10.1} {idle_cpu:>10.1}", ms(joined));
    }
    println!();
    Ok(())
}
