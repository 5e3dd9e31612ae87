//! The directory of the metadata, of which one file holds the input: a log, a snapshot, or what was noted at an orderly stop.
//!
//! The input is a byte that says which directory it is, one for the file, and what is in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use thalweg_controller::{
    AllocateProducerIds, ClusterState, Command, Controller, Error, LocalConfig, LocalDriver, NodeEpoch,
    Proposal, Response, apply,
};
use thalweg_protocol::NodeId;

use super::metadata_commands::{CLUSTER, check_state, commands};
use crate::simulated_disk::{SimulatedDisk, Survival};

type Files = BTreeMap<PathBuf, Vec<u8>>;

const DIR: &str = "metadata";

/// In the first byte of the input: the checksums are made anew.
const MENDED: u8 = 1 << 4;

struct Any(Command);

impl From<Any> for Command {
    fn from(any: Any) -> Self {
        any.0
    }
}

impl Proposal for Any {
    type Response = Response;

    fn response(response: Response) -> Option<Response> {
        Some(response)
    }
}

fn open(disk: &SimulatedDisk) -> Result<Controller, Error> {
    LocalDriver::open(Arc::new(disk.clone()), Path::new(DIR), CLUSTER, LocalConfig::default())
}

/// The directory of a node that was killed, of one that was stopped, and of one that was stopped after a snapshot.
fn bases() -> &'static [Files; 3] {
    static BASES: OnceLock<[Files; 3]> = OnceLock::new();
    BASES.get_or_init(|| [write(u64::MAX, false), write(u64::MAX, true), write(4000, true)])
}

fn write(snapshot_after_bytes: u64, is_stopped: bool) -> Files {
    let disk = SimulatedDisk::default();
    let config = LocalConfig { snapshot_after_bytes, ..LocalConfig::default() };
    let controller =
        LocalDriver::create(Arc::new(disk.clone()), Path::new(DIR), CLUSTER, config).expect("a new one");
    for command in commands() {
        let command = Command::decode(&command).expect("it is known");
        controller.propose(Any(command)).expect("the disk is well");
    }
    if is_stopped {
        controller.close();
        return disk.files();
    }
    disk.after_crash(Survival::Nothing).files()
}

pub fn check(input: &[u8]) {
    let &[how, file, ref content @ ..] = input else { return };
    let base = &bases()[usize::from(how & 3) % 3];
    let path = base.keys().nth(usize::from(file) % base.len()).expect("it is one of them");
    let mut content = content.to_vec();
    if how & MENDED != 0 {
        mend(path, &mut content);
    }
    let mut files = base.clone();
    files.insert(path.clone(), content);
    check_files(&files);
}

fn check_files(files: &Files) {
    let disk = SimulatedDisk::with_files(Path::new(DIR), files);
    let Some(controller) = told(open(&disk)) else {
        assert_eq!(disk.files(), *files, "what cannot be opened is left as it is");
        return;
    };
    let state = controller.state();
    check_state(&state);
    // Whatever may come can be applied to it.
    let mut ahead = ClusterState::clone(&state);
    for command in commands() {
        let command = Command::decode(&command).expect("it is known");
        let offset = ahead.offset().plus(1);
        apply(&mut ahead, offset, &command);
    }
    // What comes now is there after a crash, and so is what was there.
    let command = AllocateProducerIds { node: NodeId(1), epoch: NodeEpoch(0) };
    let proposed = controller.propose(Any(command.into()));
    let after = controller.state();
    if proposed.is_ok() {
        assert_eq!(after.offset(), state.offset().plus(1));
    }
    let crashed = disk.after_crash(Survival::Nothing);
    assert_state(&open(&crashed), &after);
    controller.close();
    assert_state(&open(&disk), &after);
}

fn assert_state(opened: &Result<Controller, Error>, expected: &ClusterState) {
    match opened {
        Ok(controller) => assert_eq!(*controller.state(), *expected),
        Err(error) => panic!("it does not open any more: {error}"),
    }
}

/// What came out, unless it was an error that tells where to look.
fn told(result: Result<Controller, Error>) -> Option<Controller> {
    match result {
        Ok(controller) => Some(controller),
        Err(error) => {
            assert!(error.to_string().contains(DIR), "the message names no file: {error}");
            None
        }
    }
}

fn mend(path: &Path, bytes: &mut [u8]) {
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("log") => mend_log(bytes),
        Some("snapshot") if bytes.len() >= 24 => {
            let length = (bytes.len() - 24) as u64;
            bytes[12..20].copy_from_slice(&length.to_be_bytes());
            let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), &bytes[24..]);
            bytes[20..24].copy_from_slice(&crc.to_be_bytes());
        }
        None if bytes.len() >= 32 => {
            let crc = crc32c::crc32c(&bytes[..28]);
            bytes[28..32].copy_from_slice(&crc.to_be_bytes());
        }
        _ => {}
    }
}

/// The header and every frame that is there as a whole.
fn mend_log(bytes: &mut [u8]) {
    let Some((header, mut rest)) = bytes.split_at_mut_checked(40) else { return };
    let crc = crc32c::crc32c(&header[..36]);
    header[36..].copy_from_slice(&crc.to_be_bytes());
    while let Some(length) = rest.first_chunk().map(|&length| u32::from_be_bytes(length) as usize) {
        let Some((frame, behind)) = rest.split_at_mut_checked(length.saturating_add(8)) else { return };
        let crc = crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[8..]);
        frame[4..8].copy_from_slice(&crc.to_be_bytes());
        rest = behind;
    }
}

/// Each file of each directory, as it is and with its checksums made anew.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (base, how) in bases().iter().zip(0_u8..) {
        for (bytes, at) in base.values().zip(0_u8..) {
            for how in [how, how | MENDED] {
                seeds.push([&[how, at][..], bytes].concat());
            }
        }
    }
    seeds
}

/// The snapshot with another number in every field of this name, in a directory that was closed in order.
pub fn with_number(field: &str, number: i64) -> Vec<u8> {
    let is_snapshot = |path: &Path| path.extension().is_some_and(|kind| kind == "snapshot");
    let base = &bases()[2];
    let at = base.keys().position(|path| is_snapshot(path)).expect("there is one");
    let snapshot = base.values().nth(at).expect("it is there");
    let body = std::str::from_utf8(&snapshot[24..]).expect("JSON");
    let name = format!("\"{field}\":");
    let mut parts = body.split(&name);
    let mut changed = parts.next().expect("there is always one").to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
        changed.push_str(&format!("{name}{number}{rest}"));
    }
    assert_ne!(changed, body, "there is no {field}");
    [&[2 | MENDED, at as u8][..], &snapshot[..24], changed.as_bytes()].concat()
}
