//! Damage at any place of any file of a data directory: a flipped bit, a zeroed region, a file cut short, a file gone.
//!
//! Whatever it is, a reader gets what was written, or is told: the directory is refused, a log is offline, or a read fails,
//! and the message names a file. The other logs go on.

mod directory;
mod seen;

use std::path::Path;

use thalweg_storage::LogManager;

use self::directory::{Files, Stop, World};
use self::seen::{Seen, look};

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
    const STEP: usize = if cfg!(debug_assertions) { 67 } else { 7 };
    let Ok(asked) = std::env::var("THALWEG_DAMAGE_STEP") else { return STEP };
    asked.parse().expect("THALWEG_DAMAGE_STEP is a number")
}

/// The files of which more than this is zeros at the end are looked at only up to there.
const LARGE: usize = 16 << 10;

/// Every damage of a file that is tried. The bits of the bytes take turns.
fn damages(path: &Path, bytes: &[u8], step: usize) -> Vec<Damage> {
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let end = if bytes.len() > LARGE { used } else { bytes.len() };
    // No multiple of what fields are aligned to, and another begin in each file.
    let first = path.as_os_str().len() % step;
    let flips = (first..end).step_by(step).map(|at| Damage::Flip { at, bit: (at / step) % 8 });
    let zeros = [1, 12, 34, 100, 512]
        .into_iter()
        .flat_map(|len| (first..end).step_by(len.max(4 * step)).map(move |at| Damage::Zero { at, len }));
    let cuts = (first..end).step_by(2 * step + 1).map(|at| Damage::Cut { at });
    // Where entries of an index end a cut leaves whole ones.
    let entry = match path.extension().and_then(|kind| kind.to_str()) {
        Some("index") => 8,
        Some("timeindex") => 12,
        Some("txnindex") => 34,
        _ => end.max(1),
    };
    let whole = (0..end).step_by(entry).map(|at| Damage::Cut { at });
    flips.chain(zeros).chain(cuts).chain(whole).chain([Damage::Remove]).collect()
}

/// What cannot be told from something else that is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leeway {
    None,
    /// So many of the last records may be missing: the torn tail of a crash looks like that.
    Tail(i64),
    /// Records that were deleted may be there again, for only this file says that they were.
    Start,
}

impl Leeway {
    fn of(stop: Stop, path: &Path, is_gone: bool, files: &Files) -> Self {
        let is_last_log = || {
            let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
            let of_same = files.keys().filter(|other| is_log(other) && other.parent() == path.parent());
            is_log(path) && of_same.max().is_some_and(|last| last == path)
        };
        match path.starts_with("journal") {
            _ if path == Path::new("synced-to") => Self::Start,
            _ if stop == Stop::Closed => Self::None,
            // Each round has a record of each log: the last one, or all of them.
            true if is_gone => Self::Tail(3),
            true => Self::Tail(1),
            false if is_last_log() => Self::Tail(1),
            false => Self::None,
        }
    }

    fn compare(self, found: &Seen, expected: &Seen) -> Result<(), String> {
        match self {
            Self::None => found.compare(expected),
            Self::Tail(most) => found
                .compare(expected)
                .or_else(|wrong| if found.is_all_but_the_last(most, expected) { Ok(()) } else { Err(wrong) }),
            Self::Start => found
                .compare(expected)
                .or_else(|wrong| if found.is_more_at_the_start_than(expected) { Ok(()) } else { Err(wrong) }),
        }
    }
}

/// Whether this may change leader epochs, and nothing else, without being told: neither those in the batches nor the file that
/// names them have a checksum. See `docs/reliability.md`.
fn may_change_epochs(path: &Path, damage: Damage) -> bool {
    let has_epochs = path.extension().is_some_and(|kind| kind == "log")
        || path.file_name().is_some_and(|name| name == "leader-epoch-checkpoint");
    has_epochs && matches!(damage, Damage::Flip { .. })
}

/// What became of the damaged directories.
#[derive(Debug, Default)]
struct Outcomes {
    whole: usize,
    told: usize,
    refused: usize,
}

/// Damages every file of a directory that was stopped so, and opens it.
fn sweep(stop: Stop) {
    let world = World::new(stop);
    let files = world.files();
    let expected = all(&world.open(&files).expect("nothing is damaged"), &world);
    let expected: Vec<_> = expected.into_iter().map(|seen| seen.expect("nothing is damaged")).collect();
    seen::check_whole(&expected);
    let step = step();
    let mut outcomes = Outcomes::default();
    let mut failures = Vec::new();
    for (path, bytes) in &files {
        for damage in damages(path, bytes, step) {
            let Some(damaged) = damage.applied_to(bytes) else { continue };
            let leeway = Leeway::of(stop, path, damaged.is_none(), &files);
            let compare = |found: &Seen, expected: &Seen| {
                leeway.compare(found, expected).or_else(|wrong| match may_change_epochs(path, damage) {
                    true => leeway.compare(&found.without_epochs(), &expected.without_epochs()),
                    false => Err(wrong),
                })
            };
            let tried = try_damage(&world, &files, (path, damaged), (&expected, &compare), &mut outcomes);
            if let Err(wrong) = tried {
                failures.push(format!("{} of {} bytes, {damage:?}: {wrong}", path.display(), bytes.len()));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {outcomes:?} {stop:?}:\n{}", failures.len(), failures.join("\n"));
    let Outcomes { whole, told, refused } = outcomes;
    println!("{stop:?}: {outcomes:?}");
    assert!(whole > 100 && told > 50 && refused > 10, "{outcomes:?}");
}

/// Holds what a damaged log shows against what it showed before.
type Comparison<'a> = dyn Fn(&Seen, &Seen) -> Result<(), String> + 'a;

fn try_damage(
    world: &World,
    files: &Files,
    (path, damaged): (&Path, Option<Vec<u8>>),
    (expected, compare): (&[Seen], &Comparison<'_>),
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    let mut files = files.clone();
    match damaged {
        Some(damaged) => files.insert(path.to_owned(), damaged),
        None => files.remove(path),
    };
    let owner = world.owner(path);
    let manager = match world.open(&files) {
        Ok(manager) => manager,
        Err(error) => {
            outcomes.refused += 1;
            // One damaged log does not keep the others from being opened.
            return match owner {
                None => names(&error, path),
                Some(_) => Err(format!("the directory is refused: {error}")),
            };
        }
    };
    for ((name, found), expected) in world.names().zip(all(&manager, world)).zip(expected) {
        let is_hit = owner.is_none_or(|owner| owner == name);
        match found {
            Ok(found) => compare(&found, expected).map_err(|wrong| format!("{name}: {wrong}"))?,
            Err(error) if is_hit => {
                outcomes.told += 1;
                names(&error, path)?;
            }
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    outcomes.whole += 1;
    Ok(())
}

/// Whether the message leads to the damage: it names the file, or one beside it.
fn names(error: &str, path: &Path) -> Result<(), String> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match error.contains(directory.unwrap_or(path).to_str().expect("UTF-8")) {
        true => Ok(()),
        false => Err(format!("the message does not name the file: {error}")),
    }
}

/// What each log shows, or how it tells that it cannot.
fn all(manager: &LogManager, world: &World) -> Vec<Result<Seen, String>> {
    let look_at = |name: &str| {
        let partition = crate::harness::partition(name, 0);
        match (manager.log(&partition), manager.offline_log(&partition)) {
            (Some(log), _) => look(&log),
            (None, Some(offline)) => Err(offline.error.to_string()),
            (None, None) => Err("it is neither there nor offline".to_owned()),
        }
    };
    world.names().map(look_at).collect()
}

#[test]
fn damage_to_a_directory_that_was_closed_in_order_is_healed_or_told() {
    sweep(Stop::Closed);
}

#[test]
fn damage_to_a_directory_of_a_killed_process_is_healed_or_told() {
    sweep(Stop::Killed);
}

#[test]
fn damage_to_a_directory_after_a_power_cut_is_healed_or_told() {
    sweep(Stop::PowerCut);
}
