//! The file of a segment's batches, and what of it is not written yet.
//!
//! Whoever waits until a batch is synced does not need it in the file before: the round that makes it last takes it from memory
//! into the journal. So small batches are gathered and written together, which costs the page cache half of what writing each
//! costs. Everybody else finds the file whole: whoever gets it has what was gathered written first.

use std::io::IoSlice;
use std::path::Path;

use parking_lot::Mutex;

use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::{OnDemandFile, StoredFile};
use crate::unwritten::GATHERED_BYTES;

/// Space is reserved for so much of the file's size at a time, within these bounds, in bytes: what is gathered must not meet
/// a full disk when it is acknowledged already.
const RESERVED_PART: u64 = 8;
const LEAST_RESERVED: u64 = GATHERED_BYTES as u64;
const MOST_RESERVED: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: OnDemandFile,
    /// Guards what is gathered; held while it is written, by which appends and readers wait for each other.
    gathered: Mutex<Gathered>,
}

/// Batches that are to be written at the file's end.
#[derive(Debug, Default)]
struct Gathered {
    /// Where in the file they will stand.
    position: u64,
    /// Without memory of its own while there are none.
    bytes: Vec<u8>,
    /// Up to here the file system has space for the file.
    reserved_to: u64,
}

impl LogFile {
    pub(crate) fn new(file: OnDemandFile) -> Self {
        Self { file, gathered: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file, with all of the batches in it.
    pub(crate) fn get(&self, environment: &Environment) -> Result<StoredFile, Error> {
        let file = self.file.get(environment)?;
        self.write_out(environment)?;
        Ok(file)
    }

    /// The file, which may lack what is gathered.
    pub(crate) fn get_as_it_is(&self, environment: &Environment) -> Result<StoredFile, Error> {
        self.file.get(environment)
    }

    /// Appends the parts at `position`, which is where what was appended before ends. With `may_gather` they may be written
    /// later. Appends are made one at a time.
    pub(crate) fn append(
        &self,
        parts: &mut [IoSlice<'_>],
        position: u64,
        may_gather: bool,
        environment: &Environment,
    ) -> Result<(), Error> {
        let mut gathered = self.gathered.lock();
        if may_gather {
            let len = parts.iter().map(|part| part.len()).sum();
            if self.has_room(&mut gathered, position, len, environment)? {
                if gathered.bytes.is_empty() {
                    gathered.position = position;
                }
                parts.iter().for_each(|part| gathered.bytes.extend_from_slice(part));
                return Ok(());
            }
        }
        self.write(&mut gathered, environment)?;
        let result = self.file.write_at(parts, position, environment);
        result.inspect_err(|error| self.take_back(error, &mut gathered, position, environment))
    }

    /// After an error that passes the file ends again where the write began.
    fn take_back(&self, error: &Error, gathered: &mut Gathered, position: u64, environment: &Environment) {
        if error.is_retriable() {
            gathered.reserved_to = 0;
            // If this fails too the directory is offline, and recovery cuts the file.
            let _ = self.file.set_len(position, environment);
        }
    }

    /// Whether so many bytes can be gathered, for which those that are may be written.
    fn has_room(
        &self,
        gathered: &mut Gathered,
        position: u64,
        len: usize,
        environment: &Environment,
    ) -> Result<bool, Error> {
        if len > GATHERED_BYTES || !self.reserve(gathered, position + len as u64, environment)? {
            return Ok(false);
        }
        if gathered.bytes.len() + len > GATHERED_BYTES {
            self.write(gathered, environment)?;
        }
        if gathered.bytes.capacity() == 0 {
            match environment.unwritten.take() {
                Some(bytes) => gathered.bytes = bytes,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Sees to it that the file can grow to `end`. False where the file system does not promise that, or has no space: the
    /// write will tell.
    fn reserve(&self, gathered: &mut Gathered, end: u64, environment: &Environment) -> Result<bool, Error> {
        if end <= gathered.reserved_to {
            return Ok(true);
        }
        let to = end + (end / RESERVED_PART).clamp(LEAST_RESERVED, MOST_RESERVED);
        let from = gathered.reserved_to;
        let is_reserved = self.file.reserve(from, to, environment)?;
        if is_reserved {
            gathered.reserved_to = to;
        }
        Ok(is_reserved)
    }

    /// Writes what is gathered.
    pub(crate) fn write_out(&self, environment: &Environment) -> Result<(), Error> {
        self.write(&mut self.gathered.lock(), environment)
    }

    /// After an error that passes it is still gathered.
    fn write(&self, gathered: &mut Gathered, environment: &Environment) -> Result<(), Error> {
        if gathered.bytes.is_empty() {
            return Ok(());
        }
        let position = gathered.position;
        let result = self.file.write_at(&mut [IoSlice::new(&gathered.bytes)], position, environment);
        result.inspect_err(|error| self.take_back(error, gathered, position, environment))?;
        environment.unwritten.give_back(std::mem::take(&mut gathered.bytes));
        Ok(())
    }

    /// Fills `out` from `position`, without writing what is gathered.
    pub(crate) fn read_as_it_is(
        &self,
        out: &mut [u8],
        position: u64,
        environment: &Environment,
    ) -> Result<(), Error> {
        let gathered = self.gathered.lock();
        let written = match gathered.bytes.is_empty() {
            true => out.len(),
            false => out.len().min(gathered.position.saturating_sub(position) as usize),
        };
        let (in_file, in_memory) = out.split_at_mut(written);
        if !in_memory.is_empty() {
            let from = (position + written as u64 - gathered.position) as usize;
            in_memory.copy_from_slice(&gathered.bytes[from..from + in_memory.len()]);
        }
        drop(gathered);
        if in_file.is_empty() {
            return Ok(());
        }
        environment.read_at(&self.file.get(environment)?, self.path(), in_file, position)
    }

    /// Writes what is gathered and syncs the file.
    pub(crate) fn sync(&self, environment: &Environment) -> Result<(), Error> {
        self.write_out(environment)?;
        self.file.sync(environment)
    }

    /// The same by a descriptor that was taken earlier: the file's name may be gone.
    pub(crate) fn sync_by(&self, file: &StoredFile, environment: &Environment) -> Result<(), Error> {
        let mut gathered = self.gathered.lock();
        if !gathered.bytes.is_empty() {
            let parts = &mut [IoSlice::new(&gathered.bytes)];
            environment.write_at(file, self.path(), parts, gathered.position)?;
            environment.unwritten.give_back(std::mem::take(&mut gathered.bytes));
        }
        drop(gathered);
        environment.sync(file, self.path())
    }

    /// Cuts the file to `len` bytes, of which all must be written. Nothing is reserved after it.
    pub(crate) fn set_len(&self, len: u64, environment: &Environment) -> Result<(), Error> {
        self.gathered.lock().reserved_to = 0;
        self.file.set_len(len, environment)
    }

    /// Writes what is gathered and gives back what is reserved: nothing will be appended for now.
    pub(crate) fn end_at(&self, len: u64, environment: &Environment) -> Result<(), Error> {
        self.write_out(environment)?;
        if self.gathered.lock().reserved_to > len { self.set_len(len, environment) } else { Ok(()) }
    }

    /// See [`OnDemandFile::pin`].
    pub(crate) fn pin(&self, environment: &Environment) -> Result<(), Error> {
        self.file.pin(environment)?;
        self.write_out(environment)
    }

    /// See [`OnDemandFile::unpin`].
    pub(crate) fn unpin(&self) {
        self.file.unpin();
    }

    /// See [`OnDemandFile::close`].
    pub(crate) fn close(&self) {
        self.file.close();
    }

    /// See [`OnDemandFile::close_if_idle`].
    pub(crate) fn close_if_idle(&self) {
        self.file.close_if_idle();
    }
}
