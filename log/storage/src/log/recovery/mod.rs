//! Opening a log that is there: what is trusted, what is checked, and what is done about what is found.
//!
//! First a swap that the cleaner has begun is finished. Then everything is looked at and nothing changed; only when the
//! log can be opened are the consequences drawn: a torn tail cut off, leftovers removed, indexes written anew.

mod epochs;
mod examine;
mod inventory;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use thalweg_protocol::Offset;

use self::examine::{Examined, Examiner};
use self::inventory::{Inventory, SegmentFiles};
use super::aborted_sums::AbortedSums;
use super::replay::{Ended, recall, replay};
use super::swap::finish_swaps;
use super::sync::{EPOCHS_FILE, Unsynced};
use super::{CleanedTo, Standing};
use crate::config::LogConfig;
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::OpenMode;
use crate::leader_epochs::LeaderEpochs;
use crate::producers::{ProducerStates, decode_snapshot};
use crate::segment::{FileKind, Segment, SegmentState, Unchecked, encode_index, file_name, parse_file_name};

/// A log as it was found and put in order.
pub(super) struct Recovered {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) producers: ProducerStates,
    /// The transactions that were found to have ended.
    pub(super) ended: Vec<Ended>,
    pub(super) epochs: LeaderEpochs,
    pub(super) cleaned: CleanedTo,
    pub(super) aborted_sums: AbortedSums,
    pub(super) log_start: Offset,
    pub(super) log_end: Offset,
    pub(super) unsynced: Unsynced,
}

impl Recovered {
    pub(super) fn needs_sync(&self) -> bool {
        let Unsynced { closed, active, directory, epochs, cleaned, aborted_sums, .. } = &self.unsynced;
        !closed.is_empty() || active.is_some() || *directory || *epochs || *cleaned || *aborted_sums
    }
}

/// What is to become of the segments that were found.
struct Plan {
    keep: Vec<Examined>,
    remove: Vec<Offset>,
    log_start: Offset,
    log_end: Offset,
}

/// Opens the log in `directory`, which exists.
pub(super) fn recover(
    directory: &Path,
    config: &LogConfig,
    standing: Standing,
    environment: &Environment,
) -> Result<Recovered, Error> {
    finish_swaps(directory, environment)?;
    let cleaned = CleanedTo::read(directory, environment)?;
    let aborted_sums = AbortedSums::read(directory, environment)?;
    let inventory = Inventory::read(directory, environment)?;
    let examiner = Examiner {
        directory,
        environment,
        index_interval_bytes: config.index_interval_bytes,
        gaps_below: cleaned.gaps_below,
        aborted_sums: &aborted_sums,
    };
    let plan = decide(&inventory, &examiner, standing)?;
    let epochs = find_epochs(&plan, &examiner)?;
    let (log_start, log_end) = (plan.log_start, plan.log_end);
    let mut recovered = carry_out(plan, epochs, inventory, &examiner)?;
    recovered.cleaned = CleanedTo { to: cleaned.to.max(log_start).min(log_end), ..cleaned };
    Ok(recovered)
}

/// Looks at the segments and decides, without changing anything.
fn decide(inventory: &Inventory, examiner: &Examiner<'_>, standing: Standing) -> Result<Plan, Error> {
    let mut found: Vec<(Offset, SegmentFiles)> = inventory.segments.iter().map(|(&b, &f)| (b, f)).collect();
    // Retention may not have got round to these.
    let kept = found.partition_point(|&(base, _)| base <= standing.log_start).saturating_sub(1);
    let mut remove: Vec<Offset> = found.drain(..kept).map(|(base, _)| base).collect();
    let synced_to = standing.synced_to.or(found.last().map(|&(base, _)| base)).unwrap_or_default();
    let mut log_start = standing.log_start;
    let corrupt = |base: Offset, position: u64, corruption: Corruption| {
        let path = examiner.directory.join(file_name(base, FileKind::Log));
        Error::Corrupt { path, position, corruption }
    };
    if let Some(&(first, _)) = found.first() {
        if first > log_start && standing.synced_to.is_some() && synced_to > log_start {
            return Err(corrupt(first, 0, Corruption::Gap { expected: log_start, found: first }));
        }
        log_start = log_start.max(first);
    }
    let mut found = VecDeque::from(found);
    let mut keep: Vec<Examined> = Vec::new();
    while let Some((base, files)) = found.pop_front() {
        let examined = examine(examiner, base, files, found.is_empty(), synced_to, standing.is_clean)?;
        let end = examined.next_offset;
        // A roll that failed may leave an empty segment within another one.
        while let Some((base, _)) = found.pop_front_if(|&mut (base, files)| files.log == 0 && base < end) {
            remove.push(base);
        }
        let next_base = found.front().map(|&(next, _)| next);
        let problem = match (&examined.damage, next_base) {
            (Some((position, corruption)), _) => Some((*position, corruption.clone())),
            (None, Some(next)) if !examiner.may_follow(base, end, next) => {
                Some((examined.size, Corruption::Gap { expected: end, found: next }))
            }
            _ => None,
        };
        let Some((position, corruption)) = problem else {
            keep.push(examined);
            continue;
        };
        if end < synced_to {
            return Err(corrupt(base, position, corruption));
        }
        tracing::warn!(
            directory = %examiner.directory.display(), log_end = %end, position, %corruption,
            "the torn tail of a crash is cut off"
        );
        keep.push(examined);
        remove.extend(found.drain(..).map(|(base, _)| base));
    }
    let mut log_end = keep.last().map_or(log_start, |last| last.next_offset);
    if log_end < synced_to {
        let (base, position) = keep.last().map_or((log_start, 0), |last| (last.base_offset, last.size));
        return Err(corrupt(base, position, Corruption::EndsEarly { end: log_end, synced_to }));
    }
    if log_end < log_start {
        // Everything that is left has been deleted, and what comes next does not follow it.
        remove.extend(keep.drain(..).map(|examined| examined.base_offset));
        log_end = log_start;
    }
    Ok(Plan { keep, remove, log_start, log_end })
}

/// A segment that was synced as a whole, with its indexes, is only glanced at, unless these are bad. It was if anything behind
/// it was: its indexes are synced when it has been rolled, before what comes then.
fn examine(
    examiner: &Examiner<'_>,
    base: Offset,
    files: SegmentFiles,
    is_last: bool,
    synced_to: Offset,
    is_clean: bool,
) -> Result<Examined, Error> {
    if is_clean || !is_last {
        match examiner.glance(base, files)? {
            // After an orderly stop a log ends where it is synced to. Another end is that of a damaged header, or of a log to
            // which somebody has added something.
            Some(examined)
                if examined.next_offset < synced_to
                    || is_clean && (!is_last || examined.next_offset == synced_to) =>
            {
                return Ok(examined);
            }
            Some(_) => {}
            None => {
                let name = file_name(base, FileKind::Log);
                tracing::warn!(directory = %examiner.directory.display(), segment = %name, "the indexes are rebuilt");
            }
        }
    }
    examiner.go_through(base, files)
}

/// The leader epochs, from their file and from the batches that were gone through. Also returns whether the file
/// needs to be written.
fn find_epochs(plan: &Plan, examiner: &Examiner<'_>) -> Result<(LeaderEpochs, bool), Error> {
    let path = examiner.directory.join(EPOCHS_FILE);
    let stored = examiner.environment.read_whole(&path)?;
    let decoded = stored.as_deref().and_then(LeaderEpochs::decode);
    let mut epochs = decoded.clone().unwrap_or_default();
    // One that began right at the end is still the newest there was: an older leader must not append after it.
    epochs.truncate_to(plan.log_end.plus(1));
    for examined in &plan.keep {
        let found = match &examined.rebuilt {
            Some(rebuilt) => rebuilt.epochs.clone(),
            None if decoded.is_none() => examiner.epochs_in(examined)?,
            None => continue,
        };
        for (epoch, start) in found {
            epochs.assign(epoch, start);
        }
    }
    epochs.begin_at(plan.log_start);
    let is_changed = decoded.unwrap_or_default() != epochs;
    Ok((epochs, is_changed))
}

/// The leader epochs of the batches, and the one that began behind them.
fn epochs_of_batches(
    keep: &[Examined],
    stored: &LeaderEpochs,
    (log_start, log_end): (Offset, Offset),
    examiner: &Examiner<'_>,
) -> Result<LeaderEpochs, Error> {
    tracing::warn!(directory = %examiner.directory.display(), "the leader epochs and those of the batches disagree");
    let mut epochs = LeaderEpochs::default();
    for examined in keep {
        let found = match &examined.rebuilt {
            Some(rebuilt) => rebuilt.epochs.clone(),
            None => examiner.epochs_in(examined)?,
        };
        for (epoch, start) in found {
            epochs.assign(epoch, start);
        }
    }
    if let Some((epoch, start)) = stored.newest_first().next().filter(|&(_, start)| start == log_end) {
        epochs.assign(epoch, start);
    }
    epochs.begin_at(log_start);
    Ok(epochs)
}

/// Removes what is not to be kept. Returns whether there was anything.
fn clear_away(plan: &Plan, inventory: &Inventory, examiner: &Examiner<'_>) -> Result<bool, Error> {
    let (directory, environment) = (examiner.directory, examiner.environment);
    let Plan { keep, log_end, .. } = plan;
    let mut is_changed = !plan.remove.is_empty() || !inventory.leftovers.is_empty();
    // Snapshots of a tail that is cut off would later speak of other batches; of the others those where a
    // segment begins are of use, and the newest.
    let newest = inventory.snapshots.iter().rfind(|&&offset| offset <= *log_end);
    let is_of_use = |offset: &Offset| {
        Some(offset) == newest
            || offset <= log_end && keep.binary_search_by_key(offset, |kept| kept.base_offset).is_ok()
    };
    for &offset in inventory.snapshots.iter().filter(|offset| !is_of_use(offset)) {
        environment.remove(&directory.join(file_name(offset, FileKind::Snapshot)))?;
        is_changed = true;
    }
    // Newest first, so that another crash leaves no gap.
    let mut remove = plan.remove.clone();
    remove.sort();
    let of_segment = |&base: &Offset| FileKind::OF_A_SEGMENT.map(|kind| file_name(base, kind));
    for name in remove.iter().rev().flat_map(of_segment).chain(inventory.leftovers.iter().cloned()) {
        environment.remove(&directory.join(name))?;
    }
    Ok(is_changed)
}

fn carry_out(
    plan: Plan,
    (epochs, epochs_changed): (LeaderEpochs, bool),
    inventory: Inventory,
    examiner: &Examiner<'_>,
) -> Result<Recovered, Error> {
    let Examiner { directory, environment, gaps_below, .. } = *examiner;
    let is_cleared = clear_away(&plan, &inventory, examiner)?;
    let mut unsynced = Unsynced { directory: is_cleared, ..Unsynced::default() };
    let Plan { keep, log_start, log_end, .. } = plan;
    let mut segments = Vec::with_capacity(keep.len());
    let mut rebuilt_from = None;
    for examined in &keep {
        let on_disk = inventory.segments[&examined.base_offset];
        let is_last = examined.base_offset == keep[keep.len() - 1].base_offset;
        let segment = put_in_order(examined, on_disk, is_last, directory, environment)?;
        segments.push(Arc::new(match &examined.rebuilt {
            Some(_) => segment,
            None => segment.glanced_at(Unchecked::new(examined.size, gaps_below)),
        }));
        if examined.rebuilt.is_some() && rebuilt_from.is_none() {
            rebuilt_from = Some(examined.base_offset);
        }
    }
    if segments.is_empty() {
        segments.push(Arc::new(Segment::create(directory, log_start, environment)?));
        unsynced.directory = true;
    }
    let bounds = (log_start, log_end);
    let (epochs, epochs_changed) = match epochs::are_true(&epochs, &segments, bounds, gaps_below, environment)
    {
        // Damage to batches is told to those who read them.
        Ok(true) | Err(Error::Corrupt { .. }) => (epochs, epochs_changed),
        Ok(false) => {
            let found = epochs_of_batches(&keep, &epochs, bounds, examiner)?;
            // One more, or one less, is that of a batch whose epoch is damaged: its checksum does not cover it.
            match found.len() == epochs.len() {
                true => (found, true),
                false => (epochs, epochs_changed),
            }
        }
        Err(error) => return Err(error),
    };
    unsynced.epochs = epochs_changed;
    let snapshot_limit = rebuilt_from.unwrap_or(log_end);
    let (producers, ended) = replay_from_snapshot(directory, &segments, snapshot_limit, environment)?;
    let mut aborted_sums = examiner.aborted_sums.clone();
    aborted_sums.keep(segments[0].base_offset(), Offset(i64::MAX));
    for (segment, examined) in segments.iter().zip(&keep).filter(|(_, e)| e.rebuilt.is_some()) {
        for ended in ended.iter().filter(|ended| ended.is_aborted) {
            let marker = ended.transaction.last_offset;
            if (examined.base_offset..examined.next_offset).contains(&marker) {
                segment.note_aborted(ended.transaction.into(), environment)?;
            }
        }
        segment.complete(environment)?;
        let aborted = segment.aborted_content(environment)?;
        unsynced.aborted_sums |= aborted_sums.enter(segment.base_offset(), &aborted);
        unsynced.directory = true;
        unsynced.closed.push(Arc::clone(segment));
    }
    // The last one may be appended to; it is synced as what it is, and its indexes need not be.
    if unsynced
        .closed
        .pop_if(|last| last.base_offset() == segments[segments.len() - 1].base_offset())
        .is_some()
    {
        unsynced.wrote(0);
    }
    let cleaned = CleanedTo::default();
    Ok(Recovered { segments, producers, ended, epochs, cleaned, aborted_sums, log_start, log_end, unsynced })
}

/// Cuts a segment to what is good of it, and writes its indexes anew if they were rebuilt.
fn put_in_order(
    examined: &Examined,
    on_disk: SegmentFiles,
    is_last: bool,
    directory: &Path,
    environment: &Environment,
) -> Result<Segment, Error> {
    let base_offset = examined.base_offset;
    let path_of = |kind| directory.join(file_name(base_offset, kind));
    // An orderly stop leaves nothing reserved.
    let may_have_beyond = is_last && examined.rebuilt.is_some();
    if examined.size < on_disk.log || may_have_beyond {
        let path = path_of(FileKind::Log);
        let file = environment.open(&path, OpenMode::Write)?;
        if examined.size < on_disk.log || environment.has_space_beyond(&file, &path)? {
            environment.set_len(&file, &path, examined.size)?;
        }
    }
    let lengths = match &examined.rebuilt {
        None => on_disk.indexes.expect("only a segment with all of its indexes passes at a glance"),
        Some(rebuilt) => {
            let offsets = encode_index(&rebuilt.indexes.offsets);
            let times = encode_index(&rebuilt.indexes.times);
            for (kind, content) in [
                (FileKind::OffsetIndex, &offsets[..]),
                (FileKind::TimeIndex, &times),
                (FileKind::TransactionIndex, &[]),
            ] {
                match is_last {
                    // After another crash nobody trusts these, as if they had grown with their segment.
                    true => environment.overwrite(&path_of(kind), content)?,
                    false => environment.replace(&path_of(kind), content).map(drop)?,
                }
            }
            [offsets.len() as u64, times.len() as u64, 0]
        }
    };
    let mut state = SegmentState::new(directory, base_offset, lengths);
    state.restore(examined.size, examined.newest, examined.first_timestamp, environment)?;
    Ok(Segment::existing(directory, base_offset, state))
}

/// The producers' state at `log_end`, which is where these segments end.
pub(super) fn rebuild_producers(
    directory: &Path,
    segments: &[Arc<Segment>],
    log_end: Offset,
    environment: &Environment,
) -> Result<ProducerStates, Error> {
    replay_from_snapshot(directory, segments, log_end, environment).map(|(producers, _)| producers)
}

/// The producers' state at the end of these segments, from the newest snapshot at or before `limit` that is good
/// and the batches after it; and the transactions that those batches ended.
fn replay_from_snapshot(
    directory: &Path,
    segments: &[Arc<Segment>],
    limit: Offset,
    environment: &Environment,
) -> Result<(ProducerStates, Vec<Ended>), Error> {
    let (mut producers, from) = newest_snapshot(directory, limit, environment)?;
    if !producers.is_empty() {
        recall(segments, from, &mut producers, environment)?;
    }
    let mut all_ended = Vec::new();
    let first = segments.partition_point(|s| s.base_offset() <= from).saturating_sub(1);
    for segment in &segments[first..] {
        let from = from.max(segment.base_offset());
        all_ended.extend(replay(segment, from, &mut producers, environment)?);
    }
    Ok((producers, all_ended))
}

fn newest_snapshot(
    directory: &Path,
    limit: Offset,
    environment: &Environment,
) -> Result<(ProducerStates, Offset), Error> {
    let names = environment.list(directory)?;
    let offsets = names.iter().filter_map(|entry| parse_file_name(&entry.name));
    let mut offsets: Vec<Offset> =
        offsets.filter(|(_, kind)| *kind == FileKind::Snapshot).map(|(offset, _)| offset).collect();
    offsets.retain(|&offset| offset <= limit);
    offsets.sort();
    for &offset in offsets.iter().rev() {
        let path = directory.join(file_name(offset, FileKind::Snapshot));
        let Some(bytes) = environment.read_whole(&path)? else { continue };
        if let Some(producers) = decode_snapshot(&bytes, offset) {
            return Ok((producers, offset));
        }
        tracing::warn!(file = %path.display(), "a damaged snapshot is passed over");
    }
    Ok((ProducerStates::default(), Offset(0)))
}
