//! The log under clients that write down everything, while its broker is killed again and again.
//!
//! `make test` kills it 20 times, `make soak` 100 times; `THALWEG_HISTORY_KILLS` says how often, `THALWEG_SEED` when.

use std::time::Duration;

use anyhow::{Context, ensure};
use thalweg_tests::history::{Fate, FaultKind, Group, History, Reading, Sent, Value, Workload, check, plant};
use thalweg_tests::node::Node;
use thalweg_tests::process::run;
use thalweg_tests::setting;

const TOPIC: &str = "history";
const PARTITIONS: i32 = 3;

fn planted_are_found(history: &History) -> anyhow::Result<()> {
    for kind in FaultKind::ALL {
        let planted = plant(history, kind).with_context(|| format!("{kind:?} cannot be planted"))?;
        let found = check(&planted);
        ensure!(found.iter().any(|fault| fault.kind == kind), "{kind:?} is not found: {found:?}");
    }
    Ok(())
}

#[test]
fn clients_see_one_history_whenever_the_broker_is_killed() -> anyhow::Result<()> {
    let (kills, seed) = (setting("THALWEG_HISTORY_KILLS", 20)?, setting("THALWEG_SEED", 1)?);
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let mut node = Node::start(&data, "127.0.0.1:0")?;
    // Small segments, so that kills also meet rolls.
    run(node.command("topic")?.args(["create", TOPIC, "-p", "3", "-c", "segment.bytes=1048576"]))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let address = node.address().to_owned();
    let workload = runtime.block_on(async { Workload::start(&address, TOPIC, PARTITIONS, seed) });
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(random.u64(200..1_500)));
        node.kill_and_restart()?;
    }
    std::thread::sleep(Duration::from_secs(1));
    let history = runtime.block_on(workload.finish())?;
    let count = |fate| history.sent.iter().filter(|group| group.fate == fate).count();
    let read: usize = history.readings.iter().map(|reading| reading.records.len()).sum();
    println!(
        "{kills} kills: {} groups done, {} not, {} perhaps; {read} records in {} readings",
        count(Fate::Done),
        count(Fate::NotDone),
        count(Fate::Unknown),
        history.readings.len(),
    );
    let faults = check(&history);
    ensure!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
    ensure!(count(Fate::Done) > 100 && count(Fate::NotDone) > 0 && read > 1_000, "too little has happened");
    planted_are_found(&history)?;
    ensure!(node.stop()? == 0, "it stops in order");
    Ok(())
}

#[test]
fn each_kind_of_fault_is_found_in_a_small_history() -> anyhow::Result<()> {
    let value = |producer, number| Value { producer, number };
    let sent = |value, partition, offset| Sent { value, partition, offset };
    let history = History {
        sent: vec![
            Group { fate: Fate::Done, records: vec![sent(value(0, 0), 0, Some(0))] },
            Group { fate: Fate::Done, records: vec![sent(value(0, 1), 0, Some(1))] },
            Group { fate: Fate::Done, records: vec![sent(value(1, 0), 0, None), sent(value(1, 1), 1, None)] },
            Group { fate: Fate::NotDone, records: vec![sent(value(1, 2), 0, None)] },
            Group {
                fate: Fate::Unknown,
                records: vec![sent(value(1, 3), 1, None), sent(value(1, 4), 1, None)],
            },
        ],
        // Offset 3 of partition 0 is a marker.
        log: [(0, vec![(0, value(0, 0)), (1, value(0, 1)), (2, value(1, 0))]), (1, vec![(0, value(1, 1))])]
            .into(),
        readings: vec![
            Reading {
                partition: 0,
                from: Some(0),
                group: None,
                records: vec![(0, value(0, 0)), (1, value(0, 1)), (2, value(1, 0))],
            },
            Reading { partition: 0, from: None, group: Some("g".into()), records: vec![(0, value(0, 0))] },
            Reading {
                partition: 0,
                from: None,
                group: Some("g".into()),
                records: vec![(0, value(0, 0)), (1, value(0, 1)), (2, value(1, 0))],
            },
            Reading { partition: 1, from: None, group: Some("g".into()), records: vec![(0, value(1, 1))] },
        ],
    };
    ensure!(check(&history).is_empty(), "{:?}", check(&history));
    planted_are_found(&history)?;
    // A group that never sees a record, although no member goes over one.
    let mut unseen = history.clone();
    unseen.readings.pop();
    ensure!(check(&unseen).iter().all(|fault| fault.kind == FaultKind::Unseen) && !check(&unseen).is_empty());
    // An acknowledged offset that holds something else.
    let mut other = history;
    other.sent[0].records[0].offset = Some(1);
    ensure!(check(&other)[0].kind == FaultKind::InconsistentOffset);
    Ok(())
}
