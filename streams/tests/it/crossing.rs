//! From history into what arrives: each record is processed once, and live is said once and never early.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use thalweg_broker::BrokerConfig;
use thalweg_client::{Isolation, Producer, ProducerConfig, ProducerRecord};
use thalweg_protocol::Compression;
use thalweg_streams::{
    BigEndian, Emit, Event, Grouped, Guarantee, Materialized, RawBytes, StartAt, Streams, StreamsBuilder,
    StreamsConfig, Text, Topology,
};

use crate::cluster::{Cluster, wait_for, wait_until};

/// How long live must not be said where it would be early: longer than what "now" may be behind.
const NOT_YET: Duration = Duration::from_millis(2_500);

/// Holds records up where a test wants it.
#[derive(Default)]
struct Gate {
    /// Guards the beginning of the values that are held up.
    held: Mutex<Option<String>>,
    opened: Condvar,
    has_held: AtomicBool,
}

impl Gate {
    fn open() -> Arc<Self> {
        Arc::default()
    }

    /// Holds up values that begin with `prefix`.
    fn closed(prefix: &str) -> Arc<Self> {
        Arc::new(Self { held: Mutex::new(Some(prefix.to_owned())), ..Self::default() })
    }

    fn pass(&self, value: &str) {
        let mut held = self.held.lock();
        while held.as_ref().is_some_and(|prefix| value.starts_with(prefix)) {
            self.has_held.store(true, Ordering::SeqCst);
            self.opened.wait(&mut held);
        }
    }

    fn let_through(&self) {
        *self.held.lock() = None;
        self.opened.notify_all();
    }

    fn wait_until_it_holds(&self) {
        wait_until("a record comes to the gate", || self.has_held.load(Ordering::SeqCst));
    }
}

/// Opens the gate at the end of a test, also of one that fails: an application that is held up does not end.
struct OpenAtTheEnd<'g>(&'g Gate);

impl Drop for OpenAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.let_through();
    }
}

/// Copies what comes, and counts it by value: through one gate, a repartition topic, and another gate.
fn counting(first: &Arc<Gate>, second: &Arc<Gate>) -> Topology {
    let (first, second) = (Arc::clone(first), Arc::clone(second));
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<Vec<u8>, String>("in", RawBytes, Text);
    let stream = stream.peek(move |record| first.pass(&record.value));
    stream.to("copy", RawBytes, Text);
    stream
        .group_by(Grouped::new("by-value", Text, Text), |record| record.value.clone())
        .count(Materialized::new("counts").emit(Emit::PerRecord))
        .to_stream()
        .peek(move |record| second.pass(record.key.as_deref().unwrap_or_default()))
        .to("out", Text, BigEndian);
    builder.build().expect("valid")
}

fn open_counting() -> Topology {
    counting(&Gate::open(), &Gate::open())
}

fn cluster(partitions: i32) -> Cluster {
    Cluster::start(&[("in", partitions), ("copy", 1), ("out", 1)])
}

fn config(cluster: &Cluster, instance: &str) -> StreamsConfig {
    let mut config = StreamsConfig::new("app", cluster.directory.path().join(instance));
    config.session_timeout_ms = 6_000;
    config.threads = 2;
    config
}

fn start(cluster: &Cluster, topology: Topology, config: StreamsConfig) -> Streams {
    Streams::start(topology, config, cluster.client_config()).expect("started")
}

/// Waits until live is said; returns how many records were processed by then.
fn wait_for_live(streams: &Streams) -> u64 {
    wait_for(streams, "live", |event| matches!(event, Event::Live));
    streams.committed().records_in
}

/// Passes when live is not said for a while.
fn assert_not_live(streams: &Streams, why: &str) {
    let deadline = Instant::now() + NOT_YET;
    while let Ok(event) = streams.events().recv_deadline(deadline) {
        match event {
            Event::Live => panic!("live although {why}"),
            Event::Failed { reason } => panic!("{reason}"),
            _ => {}
        }
    }
    assert!(!streams.is_live(), "live although {why}");
}

/// Ends the application, which must not say live again.
fn close(streams: Streams) {
    let events = streams.events();
    assert!(streams.is_live());
    streams.close().expect("an orderly end");
    assert!(!events.try_iter().any(|event| matches!(event, Event::Live)), "live is said once");
}

/// A producer that closes a batch only when it is flushed.
fn unhurried(compression: Compression, transactional_id: Option<&str>) -> ProducerConfig {
    let transactional_id = transactional_id.map(str::to_owned);
    ProducerConfig { compression, transactional_id, linger_ms: 60_000, ..ProducerConfig::default() }
}

/// Writes the values as one batch, and waits for it.
fn write(cluster: &Cluster, producer: &Producer, partition: i32, values: impl IntoIterator<Item = String>) {
    cluster.block_on(async {
        for value in values {
            let record = ProducerRecord::new("in", value).partition(partition);
            producer.send(record).await.expect("there is room");
        }
        producer.flush().await.expect("all are written");
    });
}

fn commit(cluster: &Cluster, producer: &Producer) {
    cluster.block_on(producer.commit_transaction()).expect("it is committed");
    wait_for_markers(cluster);
}

fn abort(cluster: &Cluster, producer: &Producer) {
    cluster.block_on(producer.abort_transaction()).expect("it is aborted");
    wait_for_markers(cluster);
}

/// The markers follow the end of a transaction a moment later, and each takes an offset. Until nothing is
/// written between two looks they may still be on their way.
fn wait_for_markers(cluster: &Cluster) {
    let ends = || {
        let pause = Duration::from_millis(10);
        let before = cluster.ends("in", Isolation::ReadUncommitted);
        std::thread::sleep(pause);
        (before, cluster.ends("in", Isolation::ReadUncommitted))
    };
    wait_until("markers are written", || {
        let (before, after) = ends();
        before == after
    });
}

/// The values that were copied, by the partition that they begin with, in order.
fn copied(cluster: &Cluster) -> BTreeMap<i32, Vec<String>> {
    let mut values: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for read in cluster.read("copy") {
        let value = String::from_utf8(read.value.expect("a value").to_vec()).expect("text");
        let (partition, _) = value.split_once('/').expect("a partition and a number");
        values.entry(partition.parse().expect("a number")).or_default().push(value);
    }
    values
}

/// Each of these values was copied once, in the order of its partition, and counted once.
fn assert_processed_once(cluster: &Cluster, expected: &BTreeMap<i32, Vec<String>>) {
    let expected: BTreeMap<i32, Vec<String>> =
        expected.iter().filter(|(_, values)| !values.is_empty()).map(|(at, v)| (*at, v.clone())).collect();
    assert_eq!(copied(cluster), expected);
    let once = expected.values().flatten().map(|value| (value.clone(), vec![1])).collect();
    assert_eq!(cluster.numbers("out"), once);
}

fn counted(streams: &Streams) -> usize {
    let mut sum = 0;
    let visited = streams.store("counts").for_each(|_, _, _| sum += 1);
    visited.expect("readable");
    sum
}

/// What a script writes into every partition alike, each step in one batch.
#[derive(Clone, Copy)]
enum Step {
    Plain(usize),
    Packed(usize),
    In(usize, usize),
    Commit(usize),
    Abort(usize),
}
use Step::{Abort, Commit, In, Packed, Plain};

/// Where [`HISTORY`] ends, and where the transaction begins that is open then.
const END: i64 = 20;
const STABLE: i64 = 17;

/// Offsets 0–2; 3–6; 7–9, committed at 10; 11–12 and 15, with others between, aborted at 16; 17–19 stay open.
const HISTORY: [Step; 9] =
    [Plain(3), Packed(4), In(1, 3), Commit(1), In(0, 2), Plain(2), In(0, 1), Abort(0), In(1, 3)];

/// Offsets 20–21 are behind the open transaction; 22–23 are part of it, which is committed at 24; 25–26 are
/// aborted at 27, the last one is 28.
const ARRIVING: [Step; 7] = [Plain(2), In(1, 2), Commit(1), In(0, 2), Abort(0), Plain(1), Packed(1)];

/// The offsets of records that are neither aborted nor markers.
fn is_seen(offset: i64) -> bool {
    ![10, 11, 12, 15, 16, 24, 25, 26, 27].contains(&offset)
}

struct Script<'c> {
    cluster: &'c Cluster,
    partitions: i32,
    plain: Producer,
    packed: Producer,
    transactional: [Producer; 2],
    is_open: [bool; 2],
    next: i64,
}

impl<'c> Script<'c> {
    fn new(cluster: &'c Cluster, partitions: i32) -> Self {
        let transactional = [("a", Compression::None), ("b", Compression::Lz4)]
            .map(|(id, compression)| cluster.transactional(unhurried(compression, Some(id))));
        Self {
            cluster,
            partitions,
            plain: cluster.producer(unhurried(Compression::None, None)),
            packed: cluster.producer(unhurried(Compression::Zstd, None)),
            transactional,
            is_open: [false; 2],
            next: 0,
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for &step in steps {
            match step {
                Plain(count) => self.write(&self.plain.clone(), count),
                Packed(count) => self.write(&self.packed.clone(), count),
                In(producer, count) => {
                    if !std::mem::replace(&mut self.is_open[producer], true) {
                        self.transactional[producer].begin_transaction().expect("none is open");
                    }
                    self.write(&self.transactional[producer].clone(), count);
                }
                Commit(producer) => {
                    commit(self.cluster, &self.transactional[producer]);
                    self.ended(producer);
                }
                Abort(producer) => {
                    abort(self.cluster, &self.transactional[producer]);
                    self.ended(producer);
                }
            }
        }
    }

    fn write(&mut self, producer: &Producer, count: usize) {
        for partition in 0..self.partitions {
            let values = (self.next..).take(count).map(|offset| format!("{partition}/{offset}"));
            write(self.cluster, producer, partition, values);
        }
        self.next += count as i64;
    }

    fn ended(&mut self, producer: usize) {
        self.is_open[producer] = false;
        self.next += 1;
        // A transaction's end is acknowledged before its markers are written.
        wait_until("the markers are written", || {
            let ends = self.cluster.ends("in", Isolation::ReadUncommitted);
            ends == vec![self.next; self.partitions as usize]
        });
    }
}

#[test]
fn every_offset_of_a_history_goes_over_into_what_arrives() {
    for guarantee in [Guarantee::ExactlyOnce, Guarantee::AtLeastOnce] {
        // Each partition has the same history, and a start of its own: the end is one of them.
        let starts = 0..=END;
        let partitions = starts.clone().count() as i32;
        let cluster = cluster(partitions);
        let mut script = Script::new(&cluster, partitions);
        script.run(&HISTORY);
        assert_eq!(script.next, END);
        wait_until("the markers are written", || {
            cluster.ends("in", Isolation::ReadCommitted).iter().all(|&end| end == STABLE)
        });
        cluster.set_committed("in", starts.clone());
        let mut settings = config(&cluster, "a");
        settings.guarantee = guarantee;
        let streams = start(&cluster, open_counting(), settings);
        let expected = |end: i64| -> BTreeMap<i32, Vec<String>> {
            let values = |start: i64| {
                let offsets = (start..end).filter(|offset| is_seen(*offset));
                offsets.map(|offset| format!("{start}/{offset}")).collect()
            };
            starts.clone().map(|start| (start as i32, values(start))).collect()
        };
        let records = |end| expected(end).values().map(Vec::len).sum::<usize>();
        // From the input and from the repartition topic: all that is stable, and no more.
        assert_eq!(wait_for_live(&streams), 2 * records(STABLE) as u64);
        assert_eq!(records(STABLE), 84);
        script.run(&ARRIVING);
        assert_eq!(script.next, 30);
        wait_until("what has arrived is counted", || counted(&streams) == records(script.next));
        close(streams);
        assert_processed_once(&cluster, &expected(script.next));
    }
}

/// Expects `0/0`, `0/1`, … for partition 0, and so on: as many as the sizes say.
fn numbered(sizes: &[usize]) -> BTreeMap<i32, Vec<String>> {
    let values = |(at, &size): (usize, &usize)| {
        let values = (0..size).map(|number| format!("{at}/{number}")).collect();
        (at as i32, values)
    };
    sizes.iter().enumerate().map(values).collect()
}

/// Writes the values of a partition from `from` on.
fn write_numbers(cluster: &Cluster, producer: &Producer, partition: i32, numbers: std::ops::Range<usize>) {
    write(cluster, producer, partition, numbers.map(|number| format!("{partition}/{number}")));
}

#[test]
fn an_empty_input_is_live_at_once() {
    let cluster = cluster(3);
    let streams = start(&cluster, open_counting(), config(&cluster, "a"));
    assert_eq!(wait_for_live(&streams), 0);
    let producer = cluster.producer(unhurried(Compression::None, None));
    write_numbers(&cluster, &producer, 1, 0..2);
    wait_until("what has arrived is counted", || counted(&streams) == 2);
    close(streams);
    assert_processed_once(&cluster, &numbered(&[0, 2]));
}

#[test]
fn a_tail_without_a_record_is_passed_and_committed() {
    for guarantee in [Guarantee::ExactlyOnce, Guarantee::AtLeastOnce] {
        let cluster = cluster(4);
        let plain = cluster.producer(unhurried(Compression::None, None));
        let producer = cluster.transactional(unhurried(Compression::None, Some("a")));
        // Records and an aborted tail; an aborted tail alone; nothing; records and a marker.
        write_numbers(&cluster, &plain, 0, 0..3);
        producer.begin_transaction().expect("none is open");
        write(&cluster, &producer, 0, ["0/aborted".to_owned()]);
        write(&cluster, &producer, 1, ["1/aborted".to_owned(), "1/aborted too".to_owned()]);
        abort(&cluster, &producer);
        producer.begin_transaction().expect("none is open");
        write_numbers(&cluster, &producer, 3, 0..2);
        commit(&cluster, &producer);
        // A commit is acknowledged before its markers are written.
        wait_until("the markers are written", || {
            cluster.ends("in", Isolation::ReadCommitted) == [5, 3, 0, 3]
        });

        for processed in [10, 0] {
            let mut settings = config(&cluster, "a");
            settings.guarantee = guarantee;
            let streams = start(&cluster, open_counting(), settings);
            assert_eq!(wait_for_live(&streams), processed, "{guarantee:?}");
            assert_eq!(counted(&streams), 5);
            // Nobody who looks at the group sees it lag behind.
            assert_eq!(cluster.committed("in"), [Some(5), Some(3), Some(0), Some(3)], "{guarantee:?}");
            close(streams);
        }
        assert_processed_once(&cluster, &numbered(&[3, 0, 0, 2]));
    }
}

#[test]
fn an_open_transaction_at_the_end_does_not_hold_live_up() {
    for commits in [true, false] {
        let cluster = cluster(2);
        let plain = cluster.producer(unhurried(Compression::None, None));
        let producer = cluster.transactional(unhurried(Compression::None, Some("a")));
        write_numbers(&cluster, &plain, 0, 0..5);
        write_numbers(&cluster, &plain, 1, 0..5);
        producer.begin_transaction().expect("none is open");
        let inside = |number| if commits { format!("0/{number}") } else { "0/aborted".to_owned() };
        write(&cluster, &producer, 0, (5..8).map(inside));
        let behind = if commits { 8..10 } else { 5..7 };
        write_numbers(&cluster, &plain, 0, behind.clone());
        for processed in [20, 0] {
            let streams = start(&cluster, open_counting(), config(&cluster, "a"));
            assert_eq!(wait_for_live(&streams), processed, "all that is before the open transaction");
            assert_eq!(counted(&streams), 10);
            assert_eq!(cluster.committed("in"), [Some(5), Some(5)]);
            close(streams);
        }
        let streams = start(&cluster, open_counting(), config(&cluster, "a"));
        wait_for_live(&streams);
        if commits {
            commit(&cluster, &producer);
        } else {
            abort(&cluster, &producer);
        }
        wait_until("what was held up is counted", || counted(&streams) == 5 + behind.end);
        close(streams);
        assert_processed_once(&cluster, &numbered(&[behind.end, 5]));
    }
}

#[test]
fn live_waits_for_every_record_on_its_way() {
    for held in ["first", "second"] {
        let cluster = cluster(2);
        let producer = cluster.producer(unhurried(Compression::None, None));
        write_numbers(&cluster, &producer, 0, 0..500);
        write_numbers(&cluster, &producer, 1, 0..500);
        let gate = Gate::closed("1/499");
        let topology = match held {
            "first" => counting(&gate, &Gate::open()),
            _ => counting(&Gate::open(), &gate),
        };
        let streams = start(&cluster, topology, config(&cluster, "a"));
        let _end = OpenAtTheEnd(&gate);
        gate.wait_until_it_holds();
        assert_not_live(&streams, "the last record is held up at a gate");
        gate.let_through();
        assert_eq!(wait_for_live(&streams), 2000);
        assert_eq!(counted(&streams), 1000);
        close(streams);
        assert_processed_once(&cluster, &numbered(&[500, 500]));
    }
}

#[test]
fn live_waits_for_a_topic_that_the_application_writes_and_reads() {
    let cluster = Cluster::start(&[("in", 1), ("middle", 1), ("copy", 1)]);
    let producer = cluster.producer(unhurried(Compression::None, None));
    write_numbers(&cluster, &producer, 0, 0..500);
    let gates = [Gate::closed("0/499"), Gate::closed("0/499")];
    let [first, second] = gates.clone();
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<Vec<u8>, String>("in", RawBytes, Text);
    stream.peek(move |record| first.pass(&record.value)).to("middle", RawBytes, Text);
    let stream = builder.stream::<Vec<u8>, String>("middle", RawBytes, Text);
    stream.peek(move |record| second.pass(&record.value)).to("copy", RawBytes, Text);
    let streams = start(&cluster, builder.build().expect("valid"), config(&cluster, "a"));
    let _end = gates.each_ref().map(|gate| OpenAtTheEnd(gate));
    gates[0].wait_until_it_holds();
    // Time to look at the ends, while nothing has come to the middle.
    std::thread::sleep(Duration::from_millis(300));
    gates[0].let_through();
    gates[1].wait_until_it_holds();
    assert_not_live(&streams, "the last record is held up in the middle");
    gates[1].let_through();
    assert_eq!(wait_for_live(&streams), 1000);
    close(streams);
    assert_eq!(copied(&cluster), numbered(&[500]));
}

#[test]
fn live_waits_for_the_other_instances() {
    // Both are there before the group shares the partitions out.
    let broker = BrokerConfig { group_initial_rebalance_delay_ms: 1_000, ..BrokerConfig::default() };
    let cluster = Cluster::start_with(&[("in", 2), ("copy", 1), ("out", 1)], broker);
    let producer = cluster.producer(unhurried(Compression::None, None));
    write_numbers(&cluster, &producer, 0, 0..100);
    write_numbers(&cluster, &producer, 1, 0..100);
    let gate = Gate::closed("");
    let instance = |name, topology| {
        let mut settings = config(&cluster, name);
        settings.threads = 1;
        start(&cluster, topology, settings)
    };
    let quick = instance("a", open_counting());
    let slow = instance("b", counting(&gate, &Gate::open()));
    let _end = OpenAtTheEnd(&gate);
    gate.wait_until_it_holds();
    assert_not_live(&quick, "another instance has not processed its part of history");
    assert!(!slow.is_live());
    gate.let_through();
    wait_for_live(&quick);
    wait_for_live(&slow);
    let processed = quick.committed().records_in + slow.committed().records_in;
    assert_eq!(processed, 400);
    close(slow);
    close(quick);
    assert_processed_once(&cluster, &numbered(&[100, 100]));
}

#[test]
fn what_comes_after_a_latest_start_is_processed_even_if_none_ran_then() {
    let cluster = cluster(2);
    let producer = cluster.producer(unhurried(Compression::None, None));
    write(&cluster, &producer, 0, ["0/before".to_owned(), "0/before too".to_owned()]);
    let mut settings = config(&cluster, "a");
    settings.start_at = StartAt::Latest;
    let streams = start(&cluster, open_counting(), settings.clone());
    assert_eq!(wait_for_live(&streams), 0);
    close(streams);
    write_numbers(&cluster, &producer, 0, 0..3);
    write_numbers(&cluster, &producer, 1, 0..3);
    let streams = start(&cluster, open_counting(), settings);
    assert_eq!(wait_for_live(&streams), 12, "an application begins at the end only once");
    close(streams);
    assert_processed_once(&cluster, &numbered(&[3, 3]));
}

/// Appends to a partition in batches of random size until `stop`, in transactions of which some are aborted;
/// or plainly. Returns how many records count.
fn append(cluster: &Cluster, producer: &Producer, partition: i32, from: usize, stop: &AtomicBool) -> usize {
    let mut random = fastrand::Rng::with_seed(partition as u64);
    let is_transactional = partition > 0;
    let mut next = from;
    while !stop.load(Ordering::SeqCst) {
        let end = next + random.usize(1..40);
        if is_transactional {
            producer.begin_transaction().expect("none is open");
        }
        let commits = !is_transactional || random.u32(..3) > 0;
        if commits {
            write_numbers(cluster, producer, partition, next..end);
            next = end;
        } else {
            write(cluster, producer, partition, (next..end).map(|_| format!("{partition}/aborted")));
        }
        std::thread::sleep(Duration::from_millis(random.u64(..5)));
        match (is_transactional, commits) {
            (false, _) => {}
            (true, true) => cluster.block_on(producer.commit_transaction()).expect("it is committed"),
            (true, false) => cluster.block_on(producer.abort_transaction()).expect("it is aborted"),
        }
    }
    next
}

#[test]
fn live_is_said_once_while_producers_append_and_instances_come_and_go() {
    const HISTORY: usize = 5_000;
    let cluster = cluster(3);
    let producers = [None, Some("a"), Some("b")].map(|id| {
        let config = unhurried(Compression::None, id);
        if id.is_some() { cluster.transactional(config) } else { cluster.producer(config) }
    });
    let plain = cluster.producer(unhurried(Compression::Lz4, None));
    for partition in 0..3 {
        write_numbers(&cluster, &plain, partition, 0..HISTORY);
    }
    let stop = AtomicBool::new(false);
    let sizes: Vec<usize> = std::thread::scope(|scope| {
        let appending: Vec<_> = (0..)
            .zip(&producers)
            .map(|(partition, producer)| {
                let (cluster, stop) = (&cluster, &stop);
                scope.spawn(move || append(cluster, producer, partition, HISTORY, stop))
            })
            .collect();
        let first = start(&cluster, open_counting(), config(&cluster, "a"));
        assert!(wait_for_live(&first) >= 2 * 3 * HISTORY as u64, "all of history is processed");
        let second = start(&cluster, open_counting(), config(&cluster, "b"));
        wait_for_live(&second);
        wait_until("the second instance has a part", || counted(&second) > 0);
        close(second);
        stop.store(true, Ordering::SeqCst);
        let sizes: Vec<usize> =
            appending.into_iter().map(|appending| appending.join().expect("appended")).collect();
        wait_until("everything is counted", || counted(&first) == sizes.iter().sum::<usize>());
        close(first);
        sizes
    });
    assert_processed_once(&cluster, &numbered(&sizes));
}
