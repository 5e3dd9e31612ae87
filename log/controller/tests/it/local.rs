//! The local driver under load, and on a disk that refuses.

use std::path::Path;
use std::sync::{Arc, mpsc};

use thalweg_controller::{
    AllocateProducerIds, Controller, CreateTopics, Disk, LocalConfig, LocalDriver, NodeEpoch, OsDisk,
    ProposeError,
};
use thalweg_protocol::{NodeId, ProducerId};

use crate::simulated_disk::{Faults, SimulatedDisk, Survival};
use crate::steps::{CLUSTER, create, new_topic, register};

const DIR: &str = "data/metadata";

fn start(disk: &SimulatedDisk, config: LocalConfig) -> Controller {
    let disk = Arc::new(disk.clone());
    let controller = LocalDriver::create(disk, Path::new(DIR), CLUSTER, config).expect("a new one");
    controller.propose(register(1)).expect("the disk is well").expect("the node is new");
    controller
}

fn restart(disk: &SimulatedDisk) -> Controller {
    let disk = disk.after_crash(Survival::Nothing);
    LocalDriver::open(Arc::new(disk), Path::new(DIR), CLUSTER, LocalConfig::default()).expect("it is whole")
}

#[test]
fn proposals_that_come_together_share_a_sync() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig::default());
    let before = disk.file_syncs();
    disk.close_gate();
    let (sender, receiver) = mpsc::channel();
    for id in 2..52 {
        let sender = sender.clone();
        let proposal = create(new_topic(&format!("topic-{id}"), id));
        controller.propose_then(proposal, move |result| {
            sender.send((id, result.unwrap().remove(0).is_ok())).unwrap();
        });
        if id == 2 {
            disk.await_sync();
        }
    }
    assert!(receiver.try_recv().is_err(), "nothing is answered before it is synced");
    assert_eq!(controller.state().topic_count(), 0, "nothing is applied before it is synced");
    disk.open_gate();
    drop(sender);
    assert!(receiver.iter().eq((2..52).map(|id| (id, true))), "they are answered in their order");
    assert_eq!(disk.file_syncs() - before, 2, "one for the first, one for the others");
    assert_eq!(*restart(&disk).state(), *controller.state());
}

#[test]
fn what_only_asks_is_answered_in_its_turn_and_not_written() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig::default());
    let (offset, syncs) = (controller.state().offset(), disk.file_syncs());
    let ask = |name: &str| CreateTopics { topics: vec![new_topic(name, 2)], validate_only: true };
    assert!(controller.propose(ask("flights")).unwrap()[0].is_ok());
    assert!(controller.propose(ask("no flights")).unwrap()[0].is_err());
    assert_eq!(controller.state().topic_count(), 0);
    assert_eq!((controller.state().offset(), disk.file_syncs()), (offset, syncs));
    controller.close();
    assert_eq!(restart(&disk).state().offset(), offset);
}

#[test]
fn the_queue_is_bounded() {
    let disk = SimulatedDisk::default();
    let config = LocalConfig { max_waiting_proposals: 3, max_command_bytes: 1_000, ..LocalConfig::default() };
    let controller = start(&disk, config);
    let mut large = new_topic("large", 2);
    large.configs.insert("retention.ms".into(), "1".repeat(2_000));
    for validate_only in [false, true] {
        let proposal = CreateTopics { topics: vec![large.clone()], validate_only };
        let error = controller.propose(proposal).unwrap_err();
        assert!(matches!(error, ProposeError::TooLarge { bytes: 2_000.., limit: 1_000 }), "{error}");
    }

    disk.close_gate();
    let (sender, receiver) = mpsc::channel();
    for id in 2..8 {
        let sender = sender.clone();
        controller.propose_then(create(new_topic(&format!("topic-{id}"), id)), move |result| {
            sender.send((id, result.map(|results| results[0].is_ok()))).unwrap();
        });
        if id == 2 {
            disk.await_sync();
        }
    }
    let refused: Vec<_> = receiver.try_iter().collect();
    let overloaded = Err(ProposeError::Overloaded { waiting: 3 });
    assert_eq!(refused, [(6, overloaded.clone()), (7, overloaded)]);
    disk.open_gate();
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [2, 3, 4, 5].map(|id| (id, Ok(true))));
    assert_eq!(controller.state().topic_count(), 4);
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig { snapshot_after_bytes: 600, ..LocalConfig::default() });
    disk.set_faults(Faults { capacity: Some(1_500), ..Faults::default() });
    let mut refused = 0;
    for id in 2..60 {
        let before = controller.state();
        match controller.propose(create(new_topic(&format!("topic-{id}"), id))) {
            Ok(results) => assert!(results[0].is_ok()),
            Err(error) => {
                assert_eq!(error, ProposeError::StorageFull { dir: DIR.into() });
                assert_eq!(*controller.state(), *before);
                refused += 1;
            }
        }
        assert_eq!(*restart(&disk).state(), *controller.state(), "after topic {id}");
    }
    assert!(refused > 10, "the disk was never full");
    disk.set_faults(Faults::default());
    let count = controller.state().topic_count();
    for id in 60..80 {
        assert!(
            controller.propose(create(new_topic(&format!("topic-{id}"), id))).expect("there is space")[0]
                .is_ok()
        );
    }
    assert_eq!(controller.state().topic_count(), count + 20);
    assert_eq!(*restart(&disk).state(), *controller.state());
    assert!(disk.files().keys().any(|path| path.to_string_lossy().ends_with(".snapshot")));
}

#[test]
fn a_snapshot_that_cannot_be_written_or_tidied_up_after_is_no_reason_to_stop() {
    let config = LocalConfig { snapshot_after_bytes: 600, ..LocalConfig::default() };
    let goes_on = |disk: &SimulatedDisk, controller: &Controller, ids: std::ops::Range<u8>| {
        for id in ids {
            let results = controller.propose(create(new_topic(&format!("topic-{id}"), id)));
            assert!(results.expect("it goes on")[0].is_ok());
            assert_eq!(*restart(disk).state(), *controller.state(), "after topic {id}");
        }
    };
    let snapshots = |disk: &SimulatedDisk| {
        disk.files().keys().filter(|path| path.to_string_lossy().ends_with(".snapshot")).count()
    };
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOSPC] {
        let disk = SimulatedDisk::default();
        let controller = start(&disk, config.clone());
        disk.set_faults(Faults { fails_creations: Some(errno), ..Faults::default() });
        goes_on(&disk, &controller, 2..30);
        assert_eq!(snapshots(&disk), 0, "error {errno}");
        disk.set_faults(Faults::default());
        goes_on(&disk, &controller, 30..50);
        controller.close();
        assert_eq!(snapshots(&disk), 1, "error {errno}");
    }
    // Nor is a directory that cannot be opened to be synced, at any of the snapshots.
    for errno in [libc::EMFILE, libc::ENFILE] {
        let disk = SimulatedDisk::default();
        let controller = start(&disk, config.clone());
        disk.set_faults(Faults { fails_opening_dirs: Some(errno), ..Faults::default() });
        goes_on(&disk, &controller, 2..30);
        let leftovers = disk.files().into_keys().filter(|path| !path.to_string_lossy().ends_with(".log"));
        assert_eq!(leftovers.count(), 0, "error {errno}");
        disk.set_faults(Faults::default());
        goes_on(&disk, &controller, 30..50);
        controller.close();
        assert_eq!(snapshots(&disk), 1, "error {errno}");
    }
    let disk = SimulatedDisk::default();
    let controller = start(&disk, config);
    disk.set_faults(Faults { fails_removals: true, ..Faults::default() });
    goes_on(&disk, &controller, 2..60);
    controller.close();
    assert!(snapshots(&disk) > 1, "the older ones stay");
    assert_eq!(*restart(&disk).state(), *controller.state());
}

#[test]
fn a_failed_sync_or_write_is_not_tried_again() {
    for faults in [
        Faults { fails_file_syncs: true, ..Faults::default() },
        Faults { fails_writes: true, ..Faults::default() },
    ] {
        let disk = SimulatedDisk::default();
        let controller = start(&disk, LocalConfig::default());
        let before = controller.state();
        disk.set_faults(faults);
        let error = controller.propose(create(new_topic("flights", 2))).unwrap_err();
        // Or the thread has met the fault before, when it noted how far the log is synced.
        assert!(matches!(error, ProposeError::UnknownOutcome | ProposeError::Offline { .. }), "{error}");
        disk.set_faults(Faults::default());
        for _ in 0..2 {
            // The first may still wait when the thread ends; it is refused all the same.
            let error = controller.propose(create(new_topic("flights", 2))).unwrap_err();
            assert!(matches!(error, ProposeError::Offline { .. }), "{error}");
        }
        assert_eq!(*controller.state(), *before);
        controller.close();
        assert_eq!(*restart(&disk).state(), *before);
    }
}

#[test]
fn a_closed_controller_refuses_and_its_state_stays_readable() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig::default());
    controller.close();
    controller.close();
    assert_eq!(controller.propose(register(1)).unwrap_err(), ProposeError::Closed);
    assert_eq!(controller.state().nodes().count(), 1);
}

#[test]
fn whoever_closes_finds_the_log_at_rest() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig::default());
    disk.close_gate();
    let (sender, receiver) = mpsc::channel();
    controller.propose_then(create(new_topic("flights", 2)), move |result| {
        sender.send(result.is_ok()).unwrap();
    });
    disk.await_sync();
    let closers: Vec<_> = (0..3)
        .map(|_| {
            let controller = controller.clone();
            std::thread::spawn(move || {
                controller.close();
                controller.state().topic_count()
            })
        })
        .collect();
    // Time for one that would not wait.
    std::thread::sleep(std::time::Duration::from_millis(20));
    disk.open_gate();
    for closer in closers {
        assert_eq!(closer.join().expect("it is closed"), 1, "a command was under way");
    }
    assert_eq!(receiver.recv(), Ok(true));
}

#[test]
fn the_last_handle_may_go_inside_of_an_answer() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig::default());
    disk.close_gate();
    let (sender, receiver) = mpsc::channel();
    let last = controller.clone();
    controller.propose_then(create(new_topic("flights", 2)), move |result| {
        drop(last);
        sender.send(result.is_ok()).unwrap();
    });
    drop(controller);
    disk.open_gate();
    assert_eq!(receiver.recv(), Ok(true));
}

#[test]
fn an_observer_that_panics_leaves_nobody_waiting() {
    let disk = SimulatedDisk::default();
    let controller = start(&disk, LocalConfig::default());
    let _subscription = controller.subscribe(|_, _| panic!("on purpose"));
    let error = controller.propose(create(new_topic("flights", 2))).unwrap_err();
    assert_eq!(error, ProposeError::UnknownOutcome);
    let error = controller.propose(create(new_topic("flights", 2))).unwrap_err();
    assert!(matches!(error, ProposeError::Offline { .. } | ProposeError::UnknownOutcome), "{error}");
    assert_eq!(restart(&disk).state().topic_count(), 1);
}

#[test]
fn a_real_directory_is_created_opened_and_guarded() {
    let home = tempfile::tempdir().expect("a directory for the test");
    let dir = home.path().join("data").join("metadata");
    std::fs::create_dir(home.path().join("data")).expect("it is new");
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let config = LocalConfig { snapshot_after_bytes: 2_000, ..LocalConfig::default() };
    let controller =
        LocalDriver::create(Arc::clone(&disk), &dir, CLUSTER, config.clone()).expect("a new one");
    let node = controller.propose(register(1)).unwrap().unwrap();
    assert_eq!(node.epoch, NodeEpoch(0));
    for id in 2..40 {
        controller.propose(create(new_topic(&format!("topic-{id}"), id))).unwrap().remove(0).unwrap();
    }
    let ids = AllocateProducerIds { node: NodeId(1), epoch: node.epoch };
    assert_eq!(controller.propose(ids.clone()).unwrap().unwrap().first, ProducerId(0));
    let expected = controller.state();
    drop(controller);
    let files = std::fs::read_dir(&dir).expect("it is there").count();
    assert_eq!(files, 3, "a snapshot, a log and where it ended");

    let controller =
        LocalDriver::open(Arc::clone(&disk), &dir, CLUSTER, config.clone()).expect("it is whole");
    assert_eq!(*controller.state(), *expected);
    assert_eq!(controller.propose(ids).unwrap().unwrap().first, ProducerId(1_000));
    assert!(LocalDriver::create(disk, &dir, CLUSTER, config).is_err());
}
