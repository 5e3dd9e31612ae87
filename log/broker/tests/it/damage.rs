//! Damage to a whole node: topics of every kind, committed offsets, groups, transactions, the state of a share group and the
//! metadata. Each file in turn has a flipped bit, a zeroed region, is cut short, or is gone.
//!
//! After it the node does not start, and names the file; or whatever a client can ask for is as it was, or an error. Of what
//! the file does not belong to, nothing changes.

mod seen;
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thalweg_broker::Broker;
use tokio::time::timeout;

use self::seen::{Seen, Thing, look};
use self::world::{Files, Stop, World};
use crate::harness::Client;
use crate::node_process;

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// This bit of this byte is another.
    Flip { at: usize, bit: usize },
    /// From here on so many bytes are zero.
    Zero { at: usize, len: usize },
    /// It ends here.
    Cut { at: usize },
    /// It is not there.
    Remove,
}

impl Damage {
    /// The file as it is then; `None` when the damage changes nothing.
    fn applied_to(self, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        let mut damaged = bytes.to_vec();
        match self {
            Self::Flip { at, bit } => damaged[at] ^= 1 << bit,
            Self::Zero { at, len } => damaged[at..(at + len).min(bytes.len())].fill(0),
            Self::Cut { at } => damaged.truncate(at),
            Self::Remove => return Some(None),
        }
        (damaged != bytes).then_some(Some(damaged))
    }
}

/// Every so many bytes one is damaged. `THALWEG_DAMAGE_STEP` says otherwise; with 1 it is each.
fn step() -> usize {
    const STEP: usize = if cfg!(debug_assertions) { 1_999 } else { 211 };
    let Ok(asked) = std::env::var("THALWEG_DAMAGE_STEP") else { return STEP };
    asked.parse().expect("THALWEG_DAMAGE_STEP is a number")
}

/// How many nodes are tried at once: each waits for its threads most of the time.
const AT_ONCE: usize = 4;

/// No start takes longer, nor any answer after it.
const LONG: Duration = Duration::from_secs(60);

/// Every damage of a file that is tried. Each file has some, however short it is; zeros at its end are left alone.
fn damages(path: &Path, bytes: &[u8], step: usize) -> Vec<Damage> {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    // Another begin in each file, and other bits.
    let seed = path.as_os_str().len();
    let step = step.min(len / 3).max(1);
    let places = move |step: usize| (seed % step..len).step_by(step);
    let flips = places(step).enumerate().map(|(turn, at)| Damage::Flip { at, bit: (turn + seed) % 8 });
    let zeros = places(2 * step).map(|at| Damage::Zero { at, len: 34 });
    let cuts = places(2 * step + 1).map(|at| Damage::Cut { at });
    flips.chain(zeros).chain(cuts).chain([Damage::Remove]).collect()
}

/// What became of the damaged directories.
#[derive(Debug, Default)]
struct Outcomes {
    /// As before, all of it.
    whole: usize,
    /// Something was an error.
    told: usize,
    /// The node did not start.
    refused: usize,
}

enum Outcome {
    Whole,
    Told,
    Refused,
}

/// Damages every file of a directory whose node stopped so, and starts a node on it.
async fn sweep(stop: Stop, test: &str) {
    let world = World::new(stop, &format!("damage::{test}")).await;
    let files = world.files();
    let expected = open(&world, files).await.expect("nothing is damaged");
    seen::check_whole(&expected);
    let step = step();
    let mut tries = Vec::new();
    for (path, bytes) in files {
        for damage in damages(path, bytes, step) {
            if let Some(damaged) = damage.applied_to(bytes) {
                tries.push((path.clone(), damage, damaged));
            }
        }
    }
    let (mut outcomes, mut failures) = (Outcomes::default(), Vec::new());
    for some in tries.chunks(AT_ONCE) {
        let tried = some
            .iter()
            .map(|(path, damage, damaged)| try_damage(&world, path, *damage, damaged.clone(), &expected));
        let tried = futures::future::join_all(tried).await;
        for ((path, damage, _), outcome) in some.iter().zip(tried) {
            match outcome {
                Ok(Outcome::Whole) => outcomes.whole += 1,
                Ok(Outcome::Told) => outcomes.told += 1,
                Ok(Outcome::Refused) => outcomes.refused += 1,
                Err(wrong) => {
                    let len = files[path].len();
                    failures.push(format!("{} of {len} bytes, {damage:?}: {wrong}", path.display()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {outcomes:?} {stop:?}:\n{}", failures.len(), failures.join("\n"));
    println!("{stop:?}: {outcomes:?}");
    let Outcomes { whole, told, refused } = outcomes;
    assert!(whole > 30 && told > 20 && refused > 10, "{outcomes:?}");
}

async fn open(world: &World, files: &Files) -> Result<Seen, String> {
    let place = world.place(files);
    let config = world.config(place.path());
    let broker = Broker::start(config).await.map_err(|error| error.to_string())?;
    let client = Client(broker.connect().open().expect("it runs"));
    let seen = timeout(LONG, look(&client)).await.map_err(|_| "it does not answer".to_owned())?;
    // Whether it can stop in order is another matter.
    let _ = broker.shutdown().await;
    Ok(seen)
}

async fn try_damage(
    world: &World,
    path: &Path,
    damage: Damage,
    damaged: Option<Vec<u8>>,
    expected: &Seen,
) -> Result<Outcome, String> {
    let mut files: BTreeMap<PathBuf, Vec<u8>> = world.files().clone();
    match damaged {
        Some(damaged) => files.insert(path.to_owned(), damaged),
        None => files.remove(path),
    };
    let owner = world::topic_of(path);
    let may_be_torn =
        world.stop() == Stop::Killed && is_at_the_end_of_metadata(path, damage, &world.files()[path]);
    let found = match open(world, &files).await {
        Ok(found) => found,
        // One damaged log does not keep the others from being served.
        Err(error) if owner.is_some() => return Err(format!("the node does not start: {error}")),
        Err(error) => return names(&error, path).map(|()| Outcome::Refused),
    };
    let mut is_told = false;
    for (thing, found) in &found {
        let expected = expected[thing].as_ref().expect("nothing was damaged");
        match found {
            Ok(found) if found == expected => {}
            Ok(found) if path == Path::new("synced-to") && is_before_the_cut(thing, found, expected) => {}
            Ok(found) if may_be_torn && is_less(thing, found, expected) => is_told = true,
            Ok(found) => {
                return Err(format!("other {thing}:\n    {found:?}\n  instead of\n    {expected:?}"));
            }
            Err(_) if owner.is_none_or(|owner| thing.depends_on(owner)) => is_told = true,
            Err(error) => return Err(format!("{thing} has nothing to do with it: {error}")),
        }
    }
    Ok(if is_told { Outcome::Told } else { Outcome::Whole })
}

/// Records that were deleted may be there again, for only `synced-to` says that they were. See `docs/reliability.md`.
fn is_before_the_cut(thing: &Thing, found: &[String], expected: &[String]) -> bool {
    let offset = |line: &String| -> Option<i64> { line.split(' ').nth(1)?.parse().ok() };
    let is_not_later = |(found, expected)| offset(found) <= offset(expected);
    if thing.is("offsets by time", "cut") {
        return found.len() == expected.len() && found.iter().zip(expected).all(is_not_later);
    }
    let is_records = ["records", "committed records"].iter().any(|what| thing.is(what, "cut"));
    is_records && found.len() > expected.len() && found.ends_with(expected)
}

/// Whether the damage leaves a metadata log that a crash may have left as well: nothing after it says that more was synced. See
/// `docs/reliability.md`.
fn is_at_the_end_of_metadata(path: &Path, damage: Damage, bytes: &[u8]) -> bool {
    /// Bytes of the mark that the log ends with; see `docs/formats/metadata-log.md`.
    const MARK: usize = 25;
    let is_log = path.starts_with("metadata") && path.extension().is_some_and(|kind| kind == "log");
    is_log
        && match damage {
            Damage::Flip { at, .. } => at + MARK >= bytes.len(),
            Damage::Zero { at, len } => at + len + MARK >= bytes.len(),
            Damage::Cut { .. } => true,
            Damage::Remove => false,
        }
}

/// Whether the node tells less of what the metadata says, and nothing else. Whatever belongs to a topic is an error then, but that
/// without the topic of groups, or of what share groups have read, there is nothing of it.
fn is_less(thing: &Thing, found: &[String], expected: &[String]) -> bool {
    let told_by_metadata = [
        ("topics", "the node"),
        ("quotas", "the node"),
        ("list", "groups"),
        ("share state", "share"),
        ("share lag", "share"),
    ];
    told_by_metadata.iter().any(|(what, of)| thing.is(what, of))
        && found.len() < expected.len()
        && found.iter().all(|line| expected.contains(line))
}

/// Whether the message leads to the damage: it names the file, or one beside it.
fn names(error: &str, path: &Path) -> Result<(), String> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match error.contains(directory.unwrap_or(path).to_str().expect("UTF-8")) {
        true => Ok(()),
        false => Err(format!("the message does not name the file: {error}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_to_a_node_that_stopped_in_order_is_healed_or_told() {
    if node_process::is_node() {
        return node_process::serve(world::settings).await;
    }
    sweep(Stop::Closed, "damage_to_a_node_that_stopped_in_order_is_healed_or_told").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_to_a_node_that_was_killed_is_healed_or_told() {
    if node_process::is_node() {
        return node_process::serve(world::settings).await;
    }
    sweep(Stop::Killed, "damage_to_a_node_that_was_killed_is_healed_or_told").await;
}
