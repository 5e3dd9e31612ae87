//! One index file.

use std::io::IoSlice;
use std::marker::PhantomData;
use std::path::PathBuf;

use super::Entry;
use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::OnDemandFile;

/// An index: entries in a file, of which the newest are in memory too. The file is written in steps of many
/// entries, so that an append of a batch costs no second write; what was not written yet is rebuilt after
/// a crash.
#[derive(Debug)]
pub(crate) struct IndexFile<E> {
    file: OnDemandFile,
    /// How many entries the file holds.
    written: usize,
    /// The newest entries; those from `written` on are not in the file.
    tail: Vec<E>,
    /// The index of the tail's first entry; never above `written`.
    tail_start: usize,
    entry: PhantomData<E>,
}

/// The entries of an index that are in its file only: a view that needs no lock, since entries are only ever appended
/// behind it.
#[derive(Debug)]
pub(crate) struct FilePart<E> {
    file: OnDemandFile,
    len: usize,
    entry: PhantomData<E>,
}

/// What a look-up in memory gives.
#[derive(Debug)]
pub(crate) enum LookUp<E> {
    /// The answer.
    Known(Option<E>),
    /// The file has to be searched. If it holds no entry that is not low, the first one in memory is that.
    InFile(FilePart<E>, Option<E>),
}

/// How many entries are collected before they are written.
const WRITE_STEP: usize = 512;
/// How many written entries stay in memory: look-ups are mostly for the newest offsets.
const KEPT: usize = 512;
/// The bytes read at once when entries are searched in the file.
const BLOCK: usize = 4096;

impl<E: Entry> IndexFile<E> {
    /// An index whose file exists and has `len` bytes.
    pub(crate) fn new(path: PathBuf, len: u64) -> Self {
        let written = (len / E::SIZE as u64) as usize;
        Self {
            file: OnDemandFile::new(path),
            written,
            tail: Vec::new(),
            tail_start: written,
            entry: PhantomData,
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.tail_start + self.tail.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their size in bytes.
    pub(crate) fn size_in_bytes(&self) -> usize {
        self.len() * E::SIZE
    }

    /// Appends an entry. A full disk is no reason to refuse it: it stays in memory and is written later.
    pub(crate) fn push(&mut self, entry: E, environment: &Environment) -> Result<(), Error> {
        self.tail.push(entry);
        if self.len() - self.written < WRITE_STEP {
            return Ok(());
        }
        match self.write_pending(environment) {
            Err(error) if error.is_retriable() => Ok(()),
            other => other,
        }
    }

    /// Writes the entries that the file lacks.
    pub(crate) fn write_pending(&mut self, environment: &Environment) -> Result<(), Error> {
        let pending = &self.tail[self.written - self.tail_start..];
        if !pending.is_empty() {
            let mut bytes = Vec::with_capacity(pending.len() * E::SIZE);
            pending.iter().for_each(|entry| entry.write(&mut bytes));
            let position = (self.written * E::SIZE) as u64;
            self.file.write_at(&mut [IoSlice::new(&bytes)], position, environment)?;
            self.written = self.len();
        }
        if self.tail.len() > KEPT {
            let dropped = self.tail.len() - KEPT;
            self.tail.drain(..dropped);
            self.tail_start += dropped;
        }
        Ok(())
    }

    /// Forgets the entries in memory, which have all been written: nothing more will be appended.
    pub(crate) fn release(&mut self) {
        assert_eq!(self.written, self.len(), "only a written index is released");
        self.tail = Vec::new();
        self.tail_start = self.written;
    }

    /// The content of the file, which has every entry.
    pub(crate) fn content(&self, environment: &Environment) -> Result<Vec<u8>, Error> {
        assert_eq!(self.written, self.len(), "nothing waits to be written");
        let mut bytes = vec![0; self.size_in_bytes()];
        if !bytes.is_empty() {
            let file = self.file.get(environment)?;
            environment.read_at(&file, self.file.path(), &mut bytes, 0)?;
        }
        Ok(bytes)
    }

    pub(crate) fn sync(&self, environment: &Environment) -> Result<(), Error> {
        self.file.sync(environment)
    }

    pub(crate) fn pin(&self, environment: &Environment) -> Result<(), Error> {
        self.file.pin(environment)
    }

    pub(crate) fn unpin(&self) {
        self.file.unpin();
    }

    pub(crate) fn close_if_idle(&self) {
        self.file.close_if_idle();
    }

    pub(crate) fn close(&self) {
        self.file.close();
    }

    /// Entry `at`.
    pub(crate) fn get(&self, at: usize, environment: &Environment) -> Result<E, Error> {
        if at >= self.tail_start {
            return Ok(self.tail[at - self.tail_start]);
        }
        self.file_part().get(at, environment)
    }

    pub(crate) fn last(&self, environment: &Environment) -> Result<Option<E>, Error> {
        self.len().checked_sub(1).map(|at| self.get(at, environment)).transpose()
    }

    /// The last entry that is `low`, which holds for all entries up to some place and for none after it; or, with
    /// `next`, the one after that. Reads no file.
    pub(crate) fn look_up(&self, low: impl Fn(&E) -> bool, next: bool) -> LookUp<E> {
        let first = self.tail.first();
        if first.is_some_and(&low) {
            let after = self.tail.partition_point(low);
            return LookUp::Known(
                if next { self.tail.get(after) } else { self.tail.get(after - 1) }.copied(),
            );
        }
        if self.tail_start == 0 {
            return LookUp::Known(if next { first.copied() } else { None });
        }
        LookUp::InFile(self.file_part(), first.copied())
    }

    /// How many entries from the first on are `low`.
    pub(crate) fn partition_point(
        &self,
        low: impl Fn(&E) -> bool,
        environment: &Environment,
    ) -> Result<usize, Error> {
        if self.tail.first().is_some_and(&low) {
            return Ok(self.tail_start + self.tail.partition_point(low));
        }
        Ok(self.file_part().search(low, environment)?.0)
    }

    /// The entries that are not `low`, as they are now, for going through them without a lock: the file's, where
    /// some of them are in it only and have to be looked for, and those in memory.
    pub(crate) fn rest(&self, low: impl Fn(&E) -> bool) -> (Option<FilePart<E>>, Vec<E>) {
        let first = self.tail.partition_point(low);
        let is_all = first > 0 || self.tail_start == 0;
        ((!is_all).then(|| self.file_part()), self.tail[first..].to_vec())
    }

    fn file_part(&self) -> FilePart<E> {
        FilePart { file: self.file.clone(), len: self.tail_start, entry: PhantomData }
    }

    /// Drops every entry from `len` on, in memory and in the file.
    pub(crate) fn truncate(&mut self, len: usize, environment: &Environment) -> Result<(), Error> {
        if len >= self.len() {
            return Ok(());
        }
        if len < self.written {
            self.file.set_len((len * E::SIZE) as u64, environment)?;
            self.written = len;
        }
        self.tail.truncate(len.saturating_sub(self.tail_start));
        self.tail_start = self.tail_start.min(len);
        Ok(())
    }
}

impl<E: Entry> FilePart<E> {
    /// The entries from `first` on, read a block at a time.
    pub(crate) fn entries<'a>(
        &'a self,
        first: usize,
        environment: &'a Environment,
    ) -> impl Iterator<Item = Result<E, Error>> + 'a {
        let blocks = (first..self.len).step_by(BLOCK / E::SIZE);
        blocks.flat_map(move |begin| {
            let mut bytes = [0; BLOCK];
            let bytes = &mut bytes[..(BLOCK / E::SIZE).min(self.len - begin) * E::SIZE];
            match self.read(begin, bytes, environment) {
                Ok(()) => bytes.chunks_exact(E::SIZE).map(|entry| Ok(E::read(entry))).collect(),
                Err(error) => vec![Err(error)],
            }
        })
    }

    /// Entry `at`.
    pub(crate) fn get(&self, at: usize, environment: &Environment) -> Result<E, Error> {
        let mut bytes = [0; BLOCK];
        let bytes = &mut bytes[..E::SIZE];
        self.read(at, bytes, environment)?;
        Ok(E::read(bytes))
    }

    /// How many entries from the first on are `low`, the last that is, and the first that is not.
    pub(crate) fn search(
        &self,
        low: impl Fn(&E) -> bool,
        environment: &Environment,
    ) -> Result<(usize, Option<E>, Option<E>), Error> {
        // The blocks whose first entry is low come before those whose first is not; the place is in the last
        // of the former.
        let per_block = BLOCK / E::SIZE;
        let (mut from, mut to) = (0, self.len.div_ceil(per_block));
        let mut next_block = None;
        while from < to {
            let middle = from + (to - from) / 2;
            let first = self.get(middle * per_block, environment)?;
            if low(&first) {
                from = middle + 1;
            } else {
                to = middle;
                next_block = Some(first);
            }
        }
        let Some(block) = from.checked_sub(1) else { return Ok((0, None, next_block)) };
        let begin = block * per_block;
        let mut bytes = [0; BLOCK];
        let bytes = &mut bytes[..per_block.min(self.len - begin) * E::SIZE];
        self.read(begin, bytes, environment)?;
        let mut last = None;
        for (at, entry) in bytes.chunks_exact(E::SIZE).map(E::read).enumerate() {
            if !low(&entry) {
                return Ok((begin + at, last, Some(entry)));
            }
            last = Some(entry);
        }
        Ok((begin + bytes.len() / E::SIZE, last, next_block))
    }

    fn read(&self, at: usize, out: &mut [u8], environment: &Environment) -> Result<(), Error> {
        let file = self.file.get(environment)?;
        environment.read_at(&file, self.file.path(), out, (at * E::SIZE) as u64)
    }
}

impl<E: Entry> LookUp<E> {
    /// The last entry that is low.
    pub(crate) fn last_low(
        self,
        low: impl Fn(&E) -> bool,
        environment: &Environment,
    ) -> Result<Option<E>, Error> {
        match self {
            Self::Known(entry) => Ok(entry),
            Self::InFile(part, _) => Ok(part.search(low, environment)?.1),
        }
    }

    /// The first entry that is not low.
    pub(crate) fn first_high(
        self,
        low: impl Fn(&E) -> bool,
        environment: &Environment,
    ) -> Result<Option<E>, Error> {
        match self {
            Self::Known(entry) => Ok(entry),
            Self::InFile(part, in_memory) => Ok(part.search(low, environment)?.2.or(in_memory)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::filesystem::{DiskFilesystem, Filesystem, OpenMode};
    use crate::index::OffsetEntry;

    fn environment(directory: &Path) -> Environment {
        Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory)
    }

    fn entry(at: usize) -> OffsetEntry {
        OffsetEntry { relative_offset: at as i32 * 2, position: at as i32 * 100 }
    }

    #[test]
    fn entries_are_found_wherever_they_lie() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment = environment(directory.path());
        let path = directory.path().join("x.index");
        DiskFilesystem.open(&path, OpenMode::Create).expect("created");
        let mut index = IndexFile::<OffsetEntry>::new(path.clone(), 0);
        for at in 0..3000 {
            index.push(entry(at), &environment).expect("pushed");
            if at % 97 == 0 || at > 2990 {
                check(&index, at + 1, &environment);
            }
        }
        index.write_pending(&environment).expect("written");
        index.release();
        check(&index, 3000, &environment);
        let len = std::fs::metadata(&path).expect("there").len();
        assert_eq!(len, 3000 * 8);
        let mut reopened = IndexFile::<OffsetEntry>::new(path.clone(), len);
        check(&reopened, 3000, &environment);
        for keep in [2999, 2048, 700, 1, 0] {
            reopened.truncate(keep, &environment).expect("truncated");
            check(&reopened, keep, &environment);
            for at in keep..keep + 600 {
                reopened.push(entry(at), &environment).expect("pushed");
            }
            check(&reopened, keep + 600, &environment);
        }
    }

    fn check(index: &IndexFile<OffsetEntry>, len: usize, environment: &Environment) {
        assert_eq!(index.len(), len);
        for target in [-1, 0, 1, 2, 511, 512, 1023, 1024, 1025, 2 * len as i32 - 3, 2 * len as i32] {
            let found =
                index.partition_point(|e| e.relative_offset <= target, environment).expect("searched");
            let expected = (0..len).filter(|&at| entry(at).relative_offset <= target).count();
            assert_eq!(found, expected, "{target} among {len}");
            if found > 0 {
                assert_eq!(index.get(found - 1, environment).expect("read"), entry(found - 1));
            }
            let low = |e: &OffsetEntry| e.relative_offset <= target;
            let last = index.look_up(low, false).last_low(low, environment).expect("read");
            assert_eq!(last, found.checked_sub(1).map(entry));
            let next = index.look_up(low, true).first_high(low, environment).expect("read");
            assert_eq!(next, (found < len).then(|| entry(found)));
            let (in_file, in_memory) = index.rest(low);
            let first = in_file.as_ref().map_or(0, |part| part.search(low, environment).expect("searched").0);
            let in_file = in_file.iter().flat_map(|part| part.entries(first, environment));
            let rest = in_file.map(|entry| entry.expect("read")).chain(in_memory);
            assert!(rest.eq((found..len).map(entry)), "after {target} among {len}");
        }
    }
}
