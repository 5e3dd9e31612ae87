//! Files that are not as they were written: a torn tail is cut off, anything else is refused, by name, and
//! left alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_controller::{ClusterState, Command, Controller, Error, LocalConfig, LocalDriver, apply};
use thalweg_protocol::{Offset, Uuid};

use crate::simulated_disk::{SimulatedDisk, Survival};
use crate::steps::{CLUSTER, Raw, create, new_topic, register};

type Files = BTreeMap<PathBuf, Vec<u8>>;

const DIR: &str = "metadata";
const HEADER: usize = 40;
const FRAME: usize = 25;

fn commands() -> Vec<Command> {
    let topics = (2..8).map(|id| create(new_topic(&format!("topic-{id}"), id)).into());
    std::iter::once(register(1).into()).chain(topics).collect()
}

/// The files of a node that was stopped in order, or killed, after some commands.
fn files(snapshot_after_bytes: u64, killed: bool) -> Files {
    let disk = SimulatedDisk::default();
    let config = LocalConfig { snapshot_after_bytes, ..LocalConfig::default() };
    let controller =
        LocalDriver::create(Arc::new(disk.clone()), Path::new(DIR), CLUSTER, config).expect("a new one");
    for command in commands() {
        controller.propose(Raw(command)).expect("the disk is well");
    }
    if !killed {
        controller.close();
        return disk.files();
    }
    disk.after_crash(Survival::Nothing).files()
}

fn open(files: &Files) -> (SimulatedDisk, Result<Controller, Error>) {
    let disk = SimulatedDisk::with_files(Path::new(DIR), files);
    let opened = LocalDriver::open(Arc::new(disk.clone()), Path::new(DIR), CLUSTER, LocalConfig::default());
    if opened.is_err() {
        assert_eq!(disk.files(), *files, "what cannot be opened is left as it is");
    }
    (disk, opened)
}

/// Opens what must be refused; gives the error.
fn refused(files: &Files) -> Error {
    match open(files).1 {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

fn log_path(offset: i64) -> PathBuf {
    Path::new(DIR).join(format!("{offset:020}.log"))
}

fn snapshot_path(offset: i64) -> PathBuf {
    Path::new(DIR).join(format!("{offset:020}.snapshot"))
}

/// Where each frame begins, and whether it is a command.
fn frames(log: &[u8]) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    let mut at = HEADER;
    while at < log.len() {
        found.push((at, log[at + 8] == 1));
        at += 8 + u32::from_be_bytes(log[at..at + 4].try_into().unwrap()) as usize;
    }
    found
}

/// The state after so many commands.
fn state_after(count: usize) -> ClusterState {
    let mut state = ClusterState::new(CLUSTER);
    for (offset, command) in commands().iter().enumerate().take(count) {
        apply(&mut state, Offset(offset as i64), command);
    }
    state
}

#[test]
fn a_log_cut_off_anywhere_keeps_its_whole_commands() {
    for killed in [false, true] {
        let files = files(u64::MAX, killed);
        let log = &files[&log_path(0)];
        let frames = frames(log);
        assert_eq!(frames.iter().filter(|(_, command)| *command).count(), commands().len());
        for length in 0..log.len() {
            let cut = Files::from([(log_path(0), log[..length].to_vec())]);
            if length < HEADER {
                assert!(matches!(refused(&cut), Error::Corrupt { path, .. } if path == log_path(0)));
                continue;
            }
            let ends = frames.iter().map(|(at, _)| *at).skip(1).chain([log.len()]);
            let whole =
                frames.iter().zip(ends).filter(|((_, command), end)| *command && *end <= length).count();
            let (disk, opened) = open(&cut);
            let controller = opened.unwrap_or_else(|error| panic!("cut to {length}: {error}"));
            assert_eq!(*controller.state(), state_after(whole), "cut to {length}");

            // What comes then lies behind the whole commands, and is there after the next crash.
            controller.propose(create(new_topic("next", 99))).expect("the disk is well");
            let expected = controller.state();
            let (_, again) = open(&disk.after_crash(Survival::Nothing).files());
            assert_eq!(*again.expect("it is whole").state(), *expected, "cut to {length}");
        }
    }
}

#[test]
fn a_log_cut_off_after_an_orderly_stop_is_noticed() {
    let stopped = Path::new(DIR).join("stopped");
    for snapshot_after_bytes in [u64::MAX, 200] {
        let files = files(snapshot_after_bytes, false);
        let newest = files.keys().filter(|path| path.extension().is_some_and(|kind| kind == "log")).max();
        let newest = newest.expect("there is a log").clone();
        let log = &files[&newest];
        let cut = |length: usize| {
            let mut cut = files.clone();
            cut.insert(newest.clone(), log[..length].to_vec());
            cut
        };
        // Cut at the end of each frame, which by itself looks like a log that never was longer, and within them.
        for length in 0..log.len() {
            let error = refused(&cut(length));
            assert!(matches!(&error, Error::Corrupt { path, .. } if *path == newest), "{length}: {error}");
        }
        for (frame, _) in frames(log) {
            let error = refused(&cut(frame)).to_string();
            let expected = format!("had {} bytes when the node was stopped", log.len());
            assert!(error.contains(&expected), "cut to {frame}: {error}");
        }
        let mut gone = files.clone();
        gone.remove(&newest);
        assert!(matches!(refused(&gone), Error::Corrupt { .. } | Error::Gap { .. }));

        // The log grows on, and is cut by a crash: what came after the stop may be torn, and nothing before it.
        let (disk, opened) = open(&files);
        let controller = opened.expect("it is whole");
        controller.propose(create(new_topic("next", 99))).expect("the disk is well");
        let state = controller.state();
        let grown = disk.after_crash(Survival::Nothing).files();
        assert!(grown[&newest].len() > log.len());
        assert_eq!(*open(&grown).1.expect("it is whole").state(), *state);
        let mut torn = grown.clone();
        torn.insert(newest.clone(), grown[&newest][..log.len() + 3].to_vec());
        assert_eq!(*open(&torn).1.expect("a torn tail").state(), state_after(commands().len()));
        torn.insert(newest.clone(), log[..log.len() - FRAME].to_vec());
        assert!(matches!(refused(&torn), Error::Corrupt { .. }));

        // The file itself: damaged, newer, missing.
        for (position, flip) in [(0, 1), (20, 1), (31, 1)] {
            let mut damaged = files.clone();
            damaged.get_mut(&stopped).expect("it was stopped")[position] ^= flip;
            assert!(matches!(refused(&damaged), Error::Corrupt { path, .. } if path == stopped));
        }
        let mut newer = files.clone();
        newer.get_mut(&stopped).expect("it was stopped")[11] = 9;
        assert!(matches!(refused(&newer), Error::NewerFormat { path, found: 9, .. } if path == stopped));
        let mut without = files.clone();
        without.remove(&stopped);
        assert_eq!(
            *open(&without).1.expect("as an older version left it").state(),
            state_after(commands().len())
        );
    }
}

#[test]
fn every_flipped_byte_of_a_log_is_noticed() {
    let files = files(u64::MAX, false);
    let log = &files[&log_path(0)];
    let (last, is_command) = *frames(log).last().unwrap();
    assert!(!is_command, "a node that stops in order leaves a mark");
    for position in 0..log.len() {
        let mut flipped = log.clone();
        flipped[position] ^= 1 << (position % 8);
        let damaged = Files::from([(log_path(0), flipped)]);
        if position >= last {
            // The mark itself can be torn: no command goes with it.
            assert_eq!(
                *open(&damaged).1.expect("all commands are there").state(),
                state_after(commands().len())
            );
            continue;
        }
        match refused(&damaged) {
            Error::Corrupt { path, position: at, .. } => {
                assert_eq!(path, log_path(0));
                let near = at as usize <= position && position - at as usize <= 300;
                assert!(near || position < HEADER, "{position} is far from {at}");
            }
            Error::NewerFormat { path, .. } => assert!(path == log_path(0) && (8..12).contains(&position)),
            other => panic!("byte {position}: {other}"),
        }
    }
}

#[test]
fn every_flipped_byte_below_the_last_round_is_noticed_after_a_kill() {
    let files = files(u64::MAX, true);
    let log = &files[&log_path(0)];
    let frames = frames(log);
    // The mark of the round before, if there was time for it, was synced with the last round.
    let last_command = frames.iter().rposition(|(_, command)| *command).expect("there are commands");
    let before = frames[..last_command].iter().rposition(|(_, command)| *command).expect("there are several");
    let (last_round, _) = frames[before + 1];
    for position in HEADER..last_round {
        let mut flipped = log.clone();
        flipped[position] ^= 0x10;
        let error = refused(&Files::from([(log_path(0), flipped)]));
        assert!(matches!(error, Error::Corrupt { .. }), "byte {position}: {error}");
    }
}

#[test]
fn zeros_are_neither_commands_nor_the_end() {
    let files = files(u64::MAX, false);
    let log = &files[&log_path(0)];
    let (last, _) = *frames(log).last().unwrap();
    for length in [1, 8, 25, 100, 400] {
        for start in (0..last.saturating_sub(length)).step_by(7) {
            let mut damaged = log.clone();
            damaged[start..start + length].fill(0);
            if damaged == *log {
                continue;
            }
            refused(&Files::from([(log_path(0), damaged)]));
        }
    }
    // Behind the end they are what a crash leaves of a file that had been made longer.
    let mut longer = log.clone();
    longer.resize(log.len() + 4_096, 0);
    let (disk, opened) = open(&Files::from([(log_path(0), longer)]));
    assert_eq!(*opened.expect("all commands are there").state(), state_after(commands().len()));
    assert!(disk.files()[&log_path(0)].len() < log.len() + 100, "they are cut off");
}

#[test]
fn every_damage_of_a_snapshot_is_noticed() {
    let files = files(300, false);
    let path =
        files.keys().find(|path| path.extension().is_some_and(|e| e == "snapshot")).expect("there is one");
    let snapshot = &files[path];
    let damaged = |bytes: Vec<u8>| {
        let mut files = files.clone();
        files.insert(path.clone(), bytes);
        refused(&files)
    };
    for position in 0..snapshot.len() {
        let mut flipped = snapshot.clone();
        flipped[position] ^= 1 << (position % 8);
        match damaged(flipped) {
            Error::Corrupt { path: found, .. } => assert_eq!(found, *path),
            Error::NewerFormat { path: found, .. } => assert!(found == *path && (8..12).contains(&position)),
            other => panic!("byte {position}: {other}"),
        }
        assert!(matches!(damaged(snapshot[..position].to_vec()), Error::Corrupt { .. }), "cut to {position}");
    }
    let mut longer = snapshot.clone();
    longer.push(b' ');
    assert!(matches!(damaged(longer), Error::Corrupt { .. }));
}

#[test]
fn missing_files_are_missed() {
    let mut files = files(300, false);
    assert!(files.remove(&Path::new(DIR).join("stopped")).is_some(), "its word is another test's");
    let [log, snapshot] = [".log", ".snapshot"].map(|suffix| {
        files
            .keys()
            .find(|path| path.to_str().is_some_and(|path| path.ends_with(suffix)))
            .expect("there is one")
    });
    assert_eq!(files.len(), 2, "{:?}", files.keys());
    let without = |path: &PathBuf| {
        let mut rest = files.clone();
        rest.remove(path);
        refused(&rest)
    };
    assert!(matches!(without(log), Error::Missing { dir } if dir == Path::new(DIR)));
    assert!(matches!(without(snapshot), Error::Gap { from: 0, .. }));
    assert!(matches!(refused(&Files::new()), Error::Missing { .. }));
    let nowhere = LocalDriver::open(
        Arc::new(SimulatedDisk::default()),
        Path::new("nowhere"),
        CLUSTER,
        LocalConfig::default(),
    );
    assert!(matches!(nowhere.err(), Some(Error::Missing { .. })));

    // A log that ends before its snapshot has lost its end.
    let mut short = files.clone();
    short.remove(log);
    let header = &files[log][..HEADER];
    let mut first = header.to_vec();
    first[28..36].fill(0);
    let crc = crc32c::crc32c(&first[..36]).to_be_bytes();
    first[36..].copy_from_slice(&crc);
    short.insert(log_path(0), first);
    let error = refused(&short).to_string();
    assert!(error.contains("ends before the command at"), "{error}");
}

#[test]
fn newer_and_foreign_files_are_refused() {
    let files = files(300, false);
    for (path, bytes) in &files {
        let mut newer = files.clone();
        let mut bytes = bytes.clone();
        let supported = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
        let newest = supported + 1;
        bytes[8..12].copy_from_slice(&newest.to_be_bytes());
        newer.insert(path.clone(), bytes);
        let error = refused(&newer);
        assert!(
            matches!(&error, Error::NewerFormat { path: at, found, supported: known }
                if at == path && (*found, *known) == (newest, supported)),
            "{error}"
        );
        assert!(error.to_string().contains("start the newer version again"), "{error}");
    }
    let disk = SimulatedDisk::with_files(Path::new(DIR), &files);
    let other = Uuid(*b"another-cluster-");
    let opened = LocalDriver::open(Arc::new(disk.clone()), Path::new(DIR), other, LocalConfig::default());
    assert!(
        matches!(opened.err(), Some(Error::ForeignCluster { found: CLUSTER, expected, .. }) if expected == other)
    );
    let created = LocalDriver::create(Arc::new(disk.clone()), Path::new(DIR), other, LocalConfig::default());
    assert!(matches!(created.err(), Some(Error::AlreadyFormatted { .. })));
    assert_eq!(disk.files(), files);
}

#[test]
fn a_command_that_is_not_understood_is_not_passed_over() {
    let files = files(u64::MAX, false);
    let log = &files[&log_path(0)];
    let synced = log.len() as u64;
    let with_frame = |offset: i64, command: &[u8]| {
        let mut frame = Vec::new();
        frame.extend(((FRAME - 8 + command.len()) as u32).to_be_bytes());
        let rest = [&[1][..], &offset.to_be_bytes(), &synced.to_be_bytes(), command].concat();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&frame), &rest);
        frame.extend(crc.to_be_bytes());
        frame.extend(rest);
        Files::from([(log_path(0), [&log[..], &frame].concat())])
    };
    let next = commands().len() as i64;
    let known = br#"{"unregister_node":{"node":5}}"#;
    assert!(open(&with_frame(next, known)).1.is_ok());
    let errors = [
        (next, &br#"{"brew_coffee":{"cups":2}}"#[..], "brew_coffee"),
        (next, br#"{"unregister_node":{"node":5,"gently":true}}"#, "gently"),
        (next, b"not even JSON", "not understood"),
        (next + 1, known, "was expected"),
        (next - 1, known, "was expected"),
    ];
    for (offset, command, expected) in errors {
        let error = refused(&with_frame(offset, command));
        assert!(matches!(&error, Error::Corrupt { position, .. } if *position == synced), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn leftovers_go_and_files_of_others_stay() {
    let mut files = files(300, false);
    let kept: Files = files.clone();
    files.insert(log_path(0), b"an older log".to_vec());
    files.insert(snapshot_path(1), b"an older snapshot".to_vec());
    for half in ["00000000000000000009.log.tmp", "stopped.tmp"] {
        files.insert(Path::new(DIR).join(half), b"half".to_vec());
    }
    let foreign = Path::new(DIR).join("notes.txt");
    files.insert(foreign.clone(), b"hands off".to_vec());
    let (disk, opened) = open(&files);
    let controller = opened.expect("nothing that is needed is damaged");
    assert_eq!(*controller.state(), state_after(commands().len()));
    let left: Vec<PathBuf> = disk.files().into_keys().collect();
    let mut expected: Vec<PathBuf> = kept.into_keys().chain([foreign]).collect();
    expected.sort();
    assert_eq!(left, expected);
}
