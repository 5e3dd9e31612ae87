//! Putting a cleaned segment in the place of those it was made from; see `docs/formats/compaction.md`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use parking_lot::MutexGuard;
use thalweg_protocol::Offset;

use super::{Changing, Log};
use crate::environment::Environment;
use crate::error::Error;
use crate::segment::{
    FileKind, IndexLengths, Newest, Segment, SegmentState, cleaned_name, file_name, parse_file_name,
    parse_swap_name, swap_name,
};

/// A cleaned segment whose files are written and synced, under their `.cleaned` names.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// The segments that it replaces, oldest first; it gets the base of the first one.
    pub(crate) sources: Vec<Arc<Segment>>,
    /// Where the last of them ends.
    pub(crate) end: Offset,
    pub(crate) size: u64,
    pub(crate) newest: Newest,
    pub(crate) first_timestamp: Option<i64>,
    pub(crate) index_lengths: IndexLengths,
}

impl Replacement {
    fn base_offset(&self) -> Offset {
        self.sources[0].base_offset()
    }
}

impl Log {
    /// Puts a cleaned segment in the place of others, lastingly. Returns false, and has done nothing, when the log no
    /// longer has these. Readers and appends do not wait for it. Blocks on the disk.
    ///
    /// # Errors
    /// I/O errors. After a [retriable](Error::is_retriable) one the swap is finished by whoever changes the
    /// segments next, or by recovery; until then the log goes on with the old ones.
    pub(crate) fn swap(&self, replacement: Replacement) -> Result<bool, Error> {
        let mut changing = self.lock_changing()?;
        if self.place_in(&self.segments(), &replacement).is_none() {
            return Ok(false);
        }
        self.make_entries_void()?;
        let from = self.directory.join(cleaned_name(replacement.base_offset(), FileKind::Log));
        let to = self.directory.join(swap_name(replacement.base_offset(), replacement.end));
        let sources = &replacement.sources;
        let begun = sources
            .iter()
            .try_for_each(|source| source.pin(&self.environment))
            .and_then(|()| self.environment.rename(&from, &to));
        if let Err(error) = begun {
            sources.iter().for_each(|source| source.unpin());
            return Err(error);
        }
        changing.unfinished = Some(replacement);
        self.settle(&mut changing)?;
        Ok(true)
    }

    /// Locks `changing`, with no swap half done.
    pub(super) fn lock_changing(&self) -> Result<MutexGuard<'_, Changing>, Error> {
        let mut changing = self.changing.lock();
        self.check_usable()?;
        self.settle(&mut changing)?;
        Ok(changing)
    }

    /// Finishes a swap that has been begun.
    fn settle(&self, changing: &mut Changing) -> Result<(), Error> {
        let Some(replacement) = &changing.unfinished else { return Ok(()) };
        let (directory, environment) = (&self.directory, &self.environment);
        let base_offset = replacement.base_offset();
        environment.sync_directory(directory)?;
        let replaced = replacement.sources[1..].iter().map(|source| source.base_offset());
        finish_swap(directory, base_offset, replacement.end, replaced, environment)?;
        let Replacement { size, newest, first_timestamp, index_lengths, .. } = *replacement;
        let mut state = SegmentState::new(directory, base_offset, index_lengths);
        state.restore(size, newest, first_timestamp, environment)?;
        let segment = Arc::new(Segment::existing(directory, base_offset, state));
        let aborted = segment.aborted_content(environment)?;
        let mut writer = self.writer.lock();
        for source in &replacement.sources[1..] {
            writer.aborted_sums.enter(source.base_offset(), &[]);
        }
        writer.aborted_sums.enter(base_offset, &aborted);
        writer.unsynced.aborted_sums = true;
        let segments = self.segments();
        let at =
            self.place_in(&segments, replacement).expect("whoever removes segments settles a swap first");
        let rest = &segments[at + replacement.sources.len()..];
        let all = segments[..at].iter().chain([&segment]).chain(rest).cloned().collect();
        *self.segments.write() = Arc::new(all);
        changing.unfinished = None;
        Ok(())
    }

    /// Where in the list the segments are that are to be replaced.
    fn place_in(&self, segments: &[Arc<Segment>], replacement: &Replacement) -> Option<usize> {
        let sources = &replacement.sources;
        let at = segments.iter().position(|segment| Arc::ptr_eq(segment, &sources[0]))?;
        let found = segments.get(at..at + sources.len())?;
        found.iter().zip(sources).all(|(segment, source)| Arc::ptr_eq(segment, source)).then_some(at)
    }

    /// Removes what a cleaning that is given up has written, unless a swap still needs it or the directory may be another
    /// log's by now.
    pub(crate) fn remove_cleaned(&self, base_offset: Offset) -> Result<(), Error> {
        let changing = self.changing.lock();
        if changing.unfinished.is_some() || self.is_closed() {
            return Ok(());
        }
        for kind in FileKind::OF_A_SEGMENT {
            self.environment.remove(&self.directory.join(cleaned_name(base_offset, kind)))?;
        }
        Ok(())
    }
}

/// Finishes the swaps that a crash has interrupted.
///
/// # Errors
/// I/O errors.
pub(super) fn finish_swaps(directory: &Path, environment: &Environment) -> Result<(), Error> {
    let entries = environment.list(directory)?;
    for (base_offset, end) in entries.iter().filter_map(|entry| parse_swap_name(&entry.name)) {
        tracing::info!(directory = %directory.display(), %base_offset, %end, "finishing a swap of segments");
        let offsets =
            entries.iter().filter_map(|entry| parse_file_name(&entry.name)).map(|(offset, _)| offset);
        let replaced: BTreeSet<Offset> =
            offsets.filter(|&offset| base_offset < offset && offset < end).collect();
        finish_swap(directory, base_offset, end, replaced.into_iter(), environment)?;
    }
    Ok(())
}

/// From the commit to the end; `replaced` are the bases of the segments within, oldest first, but for the first. Each step
/// may be repeated, so this may be, too.
fn finish_swap(
    directory: &Path,
    base_offset: Offset,
    end: Offset,
    replaced: impl DoubleEndedIterator<Item = Offset>,
    environment: &Environment,
) -> Result<(), Error> {
    let path_of = |offset, kind| directory.join(file_name(offset, kind));
    let rename =
        |from: &str, kind| match environment.rename(&directory.join(from), &path_of(base_offset, kind)) {
            // It was done before.
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        };
    // Newest first, and of each the batches last: what is left is a log with leftovers behind it.
    for offset in replaced.rev() {
        for kind in FileKind::OF_A_SEGMENT.into_iter().rev().chain([FileKind::Snapshot]) {
            environment.remove(&path_of(offset, kind))?;
        }
    }
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
        rename(&cleaned_name(base_offset, kind), kind)?;
    }
    environment.sync_directory(directory)?;
    rename(&swap_name(base_offset, end), FileKind::Log)?;
    environment.sync_directory(directory)
}
