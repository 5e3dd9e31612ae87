//! The node dies at every write, sync, rename and removal: what was acknowledged is there afterwards.

use std::path::Path;
use std::sync::Arc;

use thalweg_controller::{
    AlterTopicConfigs, ClusterState, Command, ConfigChange, ConfigOp, Controller, DeleteTopics, Error,
    LocalConfig, LocalDriver, TopicConfigChange, TopicRef, apply,
};
use thalweg_protocol::Offset;

use crate::simulated_disk::{Faults, SimulatedDisk, Survival};
use crate::steps::{CLUSTER, Raw, create, new_topic, register};

const DIR: &str = "data/metadata";

/// Short logs, so that snapshots are taken on the way.
fn config() -> LocalConfig {
    LocalConfig { snapshot_after_bytes: 400, ..LocalConfig::default() }
}

fn first_start(disk: &SimulatedDisk) -> Result<Controller, Error> {
    LocalDriver::create(Arc::new(disk.clone()), Path::new(DIR), CLUSTER, config())
}

fn start(disk: &SimulatedDisk) -> Result<Controller, Error> {
    LocalDriver::open(Arc::new(disk.clone()), Path::new(DIR), CLUSTER, config())
}

fn commands() -> Vec<Command> {
    let mut commands = vec![Command::from(register(1))];
    for id in 2..10 {
        let name = format!("topic-{id}");
        commands.push(create(new_topic(&name, id)).into());
        let ops = vec![ConfigOp { key: "retention.ms".into(), change: ConfigChange::Set("1000".into()) }];
        let change = TopicConfigChange { name: name.clone().into(), replace: false, ops };
        commands.push(AlterTopicConfigs { topics: vec![change], validate_only: false }.into());
        if id % 3 == 0 {
            commands.push(DeleteTopics { topics: vec![TopicRef::Name(name.into())] }.into());
        }
    }
    commands
}

/// The snapshot after each number of commands.
fn expected() -> Vec<Vec<u8>> {
    let mut state = ClusterState::new(CLUSTER);
    let mut snapshots = vec![state.to_snapshot()];
    for (offset, command) in commands().iter().enumerate() {
        apply(&mut state, Offset(offset as i64), command);
        snapshots.push(state.to_snapshot());
    }
    snapshots
}

/// Runs until the first refusal; gives how many commands were acknowledged, `None` if it did not even start.
fn run(disk: &SimulatedDisk) -> Option<usize> {
    let controller = first_start(disk).ok()?;
    let accepted = |command: &Command| controller.propose(Raw(command.clone())).is_ok();
    let acknowledged = commands().iter().take_while(|command| accepted(command)).count();
    controller.close();
    Some(acknowledged)
}

/// What is wrong with what a crash would leave now.
fn crash(
    disk: &SimulatedDisk,
    acknowledged: Option<usize>,
    expected: &[Vec<u8>],
) -> impl Iterator<Item = String> {
    let survivals = [Survival::All, Survival::Nothing, Survival::Zeros].into_iter();
    survivals.filter_map(move |survival| {
        let what = check(&disk.after_crash(survival), acknowledged, expected).err()?;
        Some(format!("{survival:?}: {what}"))
    })
}

/// Dies at every operation in turn; gives what went wrong.
fn sweep(faults: Faults) -> Vec<String> {
    let expected = expected();
    let mut wrong = Vec::new();
    for operation in 1.. {
        let disk = SimulatedDisk::default();
        disk.set_faults(faults);
        disk.die_at(operation);
        let acknowledged = run(&disk);
        wrong.extend(
            crash(&disk, acknowledged, &expected).map(|what| format!("operation {operation}, {what}")),
        );
        if !disk.is_dead() {
            assert_eq!(acknowledged, Some(commands().len()));
            assert!(operation > 80, "the sweep is too short: {operation} operations");
            break;
        }
    }
    wrong
}

fn check(disk: &SimulatedDisk, acknowledged: Option<usize>, expected: &[Vec<u8>]) -> Result<(), String> {
    let before = disk.files();
    // A node that has not got through its first start makes it once more.
    let started = if acknowledged.is_some() { start(disk) } else { first_start(disk) };
    let controller = started.map_err(|error| {
        assert_eq!(disk.files(), before, "what cannot be opened is left as it is");
        error.to_string()
    })?;
    let acknowledged = acknowledged.unwrap_or(0);
    let found = (controller.state().offset().0 + 1) as usize;
    // The one after those acknowledged can be there: its outcome was unknown.
    if found < acknowledged || found > acknowledged + 1 {
        return Err(format!("{acknowledged} commands were acknowledged, and {found} are there"));
    }
    if controller.state().to_snapshot() != expected[found] {
        return Err(format!("the state is not that after {found} commands"));
    }
    // It goes on from there, over another crash.
    for command in &commands()[found..] {
        controller.propose(Raw(command.clone())).map_err(|error| error.to_string())?;
    }
    let again = start(&disk.after_crash(Survival::Nothing)).map_err(|error| error.to_string())?;
    if again.state().to_snapshot() != expected[commands().len()] {
        return Err("the state is wrong after going on".to_owned());
    }
    Ok(())
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_node_dies() {
    assert_eq!(sweep(Faults::default()), Vec::<String>::new());
}

#[test]
fn nothing_acknowledged_is_lost_after_an_operation_that_failed() {
    let expected = expected();
    for errno in [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::EIO] {
        let mut wrong = Vec::new();
        let mut unharmed = 0;
        for operation in 1.. {
            let disk = SimulatedDisk::default();
            disk.set_faults(Faults { fails_once: Some((operation, errno)), ..Faults::default() });
            let acknowledged = run(&disk);
            let found = crash(&disk, acknowledged, &expected);
            wrong.extend(found.map(|what| format!("operation {operation}, {what}")));
            if disk.operations() < operation {
                assert!(operation > 80, "the sweep is too short: {operation} operations");
                break;
            }
            unharmed += usize::from(acknowledged == Some(commands().len()));
        }
        assert_eq!(wrong, Vec::<String>::new(), "error {errno}");
        assert!(unharmed > 3, "error {errno} was lived through {unharmed} times");
    }
}

#[test]
fn the_sweep_notices_syncs_that_are_left_out() {
    for suffix in [".log", ".log.tmp", ".snapshot.tmp"] {
        let files = sweep(Faults { skips_file_syncs: Some(suffix), ..Faults::default() });
        assert!(!files.is_empty(), "nobody missed the syncs of {suffix}");
    }
    let dirs = sweep(Faults { skips_dir_syncs: true, ..Faults::default() });
    assert!(!dirs.is_empty(), "nobody missed the syncs of the directory");
}
