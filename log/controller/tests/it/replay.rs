//! The log and the snapshots come to the same state, whichever way.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use thalweg_controller::{
    ClusterState, Command, Entry, LocalConfig, LocalDriver, Response, StateMachine, apply,
};
use thalweg_protocol::Offset;

use crate::simulated_disk::{SimulatedDisk, Survival};
use crate::steps::{CLUSTER, Raw, Step, check_step, same_content, steps};

/// Carries out the steps one after the other; gives the commands, the responses and the state.
fn run(steps: &[Step]) -> (Vec<Command>, Vec<Response>, ClusterState) {
    let mut state = ClusterState::new(CLUSTER);
    let (mut commands, mut responses) = (Vec::new(), Vec::new());
    for step in steps {
        let command = step.command(&state);
        let before = state.clone();
        let response = apply(&mut state, Offset(before.offset().0 + 1), &command);
        check_step(&before, &state);
        if command.is_validate_only() {
            assert!(same_content(&before, &state), "{command:?} changed something");
        }
        commands.push(command);
        responses.push(response);
    }
    (commands, responses, state)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_log_read_back_and_a_snapshot_with_the_rest_come_to_the_same_state(
        steps in steps(),
        cut: prop::sample::Index,
    ) {
        let (commands, responses, expected) = run(&steps);

        let mut replayed = ClusterState::new(CLUSTER);
        for (offset, command) in commands.iter().enumerate() {
            let command = Command::decode(&command.encode()).expect("it was written by this version");
            prop_assert_eq!(&command, &commands[offset]);
            prop_assert_eq!(&apply(&mut replayed, Offset(offset as i64), &command), &responses[offset]);
        }
        prop_assert_eq!(&replayed, &expected);
        prop_assert_eq!(replayed.to_snapshot(), expected.to_snapshot());

        let cut = cut.index(commands.len() + 1);
        let entry = |(offset, command): (usize, &Command)| Entry {
            offset: Some(Offset(offset as i64)),
            command: command.clone(),
        };
        let entries: Vec<Entry> = commands.iter().enumerate().map(entry).collect();
        let first = StateMachine::new(ClusterState::new(CLUSTER));
        first.apply(&entries[..cut]);
        let bytes = first.state().to_snapshot();
        let snapshot = ClusterState::from_snapshot(&bytes).expect("it was written by this version");
        prop_assert_eq!(&snapshot, &*first.state());
        let second = StateMachine::new(ClusterState::new(CLUSTER));
        second.install(snapshot);
        second.apply(&entries[cut..]);
        prop_assert_eq!(second.state().to_snapshot(), expected.to_snapshot());
    }

    #[test]
    fn the_local_driver_gives_the_same_answers_and_the_same_state_over_restarts(
        steps in steps(),
        restarts in proptest::collection::vec(0_u8..8, 120),
    ) {
        let dir = Path::new("data/metadata");
        let config = LocalConfig { snapshot_after_bytes: 1_500, ..LocalConfig::default() };
        let mut disk = SimulatedDisk::default();
        let created = LocalDriver::create(Arc::new(disk.clone()), dir, CLUSTER, config.clone());
        let mut controller = created.expect("the disk is well");
        let mut model = ClusterState::new(CLUSTER);
        for (step, restart) in steps.iter().zip(restarts) {
            let command = step.command(&model);
            let response = controller.propose(Raw(command.clone())).expect("the disk is well");
            let next = Offset(model.offset().0 + 1);
            let in_log = !command.is_validate_only();
            let mut scratch = model.clone();
            prop_assert_eq!(response, apply(if in_log { &mut model } else { &mut scratch }, next, &command));
            if restart == 0 {
                controller.close();
            }
            if restart <= 1 {
                // The process has ended, orderly or killed; what an orderly one has left is all synced.
                disk = disk.after_crash(if restart == 0 { Survival::Nothing } else { Survival::All });
                let opened = LocalDriver::open(Arc::new(disk.clone()), dir, CLUSTER, config.clone());
                controller = opened.expect("it is whole");
            }
            prop_assert_eq!(controller.state().to_snapshot(), model.to_snapshot());
        }
    }
}
