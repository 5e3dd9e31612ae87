//! What rounds of syncs cost, without the journal and with it: `sync_rounds DIR [SECONDS]`.
//!
//! For each number of logs and of bytes a round, batches are appended to all logs, one each, and their syncs waited for. Both ways
//! take turns, so that whatever else the machine does falls on both. Prints the processor time and the time of one gigabyte.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use thalweg_protocol::record::{BatchBuilder, RecordBatch};
use thalweg_protocol::{Compression, Compressor, LeaderEpoch, TopicPartition, Uuid};
use thalweg_storage::{
    AppendOrigin, DataDirectory, DiskFilesystem, Environment, Identity, Log, LogConfig, LogManager,
    ManagerConfig, SystemClock,
};

const THREADS: usize = 4;
const TURNS: usize = 3;
const GIGABYTE: f64 = 1e9;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory is named");
    let seconds: f64 = arguments.next().map_or(2.0, |text| text.parse().expect("a number of seconds"));
    println!("logs  KB a round    CPU s/GB off   on  on/off    time s/GB off   on  on/off   rounds");
    for logs in [1, 6, 100, 1000] {
        for bytes in [4 << 10, 43 << 10, 100 << 10] {
            compare(Path::new(&directory), logs, bytes, Duration::from_secs_f64(seconds));
        }
    }
}

/// What a way has cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    bytes: f64,
    cpu: f64,
    time: f64,
    rounds: usize,
}

fn compare(directory: &Path, logs: usize, bytes: usize, time: Duration) {
    let mut costs = [Cost::default(); 2];
    for _ in 0..TURNS {
        for (at, journal_files) in [0, 4].into_iter().enumerate() {
            let inner = directory.join("rounds");
            std::fs::create_dir_all(&inner).expect("it can be made");
            let cost = run(&inner, logs, bytes, journal_files, time);
            std::fs::remove_dir_all(&inner).expect("it can be removed");
            costs[at].bytes += cost.bytes;
            costs[at].cpu += cost.cpu;
            costs[at].time += cost.time;
            costs[at].rounds += cost.rounds;
        }
    }
    let [off, on] = costs.map(|cost| (cost.cpu / cost.bytes * GIGABYTE, cost.time / cost.bytes * GIGABYTE));
    println!(
        "{logs:4}  {:10}    {:12.2} {:5.2}  {:6.2}    {:13.2} {:5.2}  {:6.2}   {} and {} rounds",
        bytes >> 10,
        off.0,
        on.0,
        on.0 / off.0,
        off.1,
        on.1,
        on.1 / off.1,
        costs[0].rounds,
        costs[1].rounds,
    );
}

fn run(directory: &Path, count: usize, bytes: usize, journal_files: usize, time: Duration) -> Cost {
    let environment = Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory);
    let identity = Identity { cluster_id: Uuid([1; 16]), node_uuid: Uuid([2; 16]) };
    let held = DataDirectory::open(directory, identity, None, environment).expect("it opens");
    let config = ManagerConfig { journal_files, ..ManagerConfig::default() };
    let manager = LogManager::open(Arc::new(held), config, &|_, _| LogConfig::default()).expect("it opens");
    let logs: Vec<Arc<Log>> = (0..count)
        .map(|n| {
            let partition = TopicPartition::new("rounds", n as i32);
            manager.create(&partition, Uuid([3; 16]), LogConfig::default()).expect("made")
        })
        .collect();
    let answers = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let listening = Arc::clone(&answers);
    manager.start_sync_rounds(
        THREADS,
        Arc::new(move |_, result| {
            result.expect("the disk works");
            *listening.0.lock() += 1;
            listening.1.notify_one();
        }),
    );
    let batch = batch(bytes);
    // Until the files of the journal are there, and everything that is written at first.
    let warm = Instant::now();
    while warm.elapsed() < Duration::from_millis(700) {
        round(&logs, &batch, &answers);
    }
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let mut rounds = 0;
    while begun.elapsed() < time {
        round(&logs, &batch, &answers);
        rounds += 1;
    }
    // What is left to be synced belongs to the cost.
    manager.sync_all().expect("synced");
    let bytes = (rounds * count * batch.size_in_bytes()) as f64;
    Cost { bytes, cpu: cpu_seconds() - cpu, time: begun.elapsed().as_secs_f64(), rounds }
}

fn batch(bytes: usize) -> RecordBatch {
    let mut builder = BatchBuilder::new(Compression::None, None, bytes + 200);
    builder.append(1_356_998_400_000, None, Some(&vec![b'x'; bytes]), []).expect("it fits");
    builder.finish(&mut Compressor::new(), None)
}

fn round(logs: &[Arc<Log>], batch: &RecordBatch, (answers, came): &(Mutex<usize>, Condvar)) {
    for log in logs {
        log.append_as_leader(batch, LeaderEpoch(0), AppendOrigin::Coordinator).expect("appended");
    }
    let mut answers = answers.lock();
    while logs.iter().any(|log| log.synced_offset() < log.log_end_offset()) {
        came.wait_for(&mut answers, Duration::from_millis(1));
    }
}

/// The processor time of this process, in the kernel too.
fn cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it is a struct of numbers, and the call fills it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
