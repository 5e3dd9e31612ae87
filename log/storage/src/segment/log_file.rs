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
use crate::filesystem::{OnDemandFile, Reservation, StoredFile};
use crate::unwritten::{Buffer, GATHERED_BYTES};

/// Space is reserved for as much as the file has, within these bounds, in bytes: what is gathered must not meet a full disk
/// when it is acknowledged already.
const LEAST_RESERVED: u64 = 8 << 10;
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
    /// None while there are none.
    buffer: Option<Buffer>,
    /// Up to here the file system has space for the file.
    reserved_to: u64,
    /// Whether it may have space beyond the file's end, promised or not.
    has_beyond: bool,
    cannot_reserve: bool,
}

impl Gathered {
    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer.bytes)
    }
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
            if let Some(bytes) = self.room(&mut gathered, position, len, environment)? {
                parts.iter().for_each(|part| bytes.extend_from_slice(part));
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
            gathered.has_beyond = true;
            // If this fails too the directory is offline, and recovery cuts the file.
            let _ = self.file.set_len(position, environment);
        }
    }

    /// Where so many bytes that will stand at `position` can be gathered, for which those that are may be written; `None` where they
    /// cannot.
    fn room<'g>(
        &self,
        gathered: &'g mut Gathered,
        position: u64,
        len: usize,
        environment: &Environment,
    ) -> Result<Option<&'g mut Vec<u8>>, Error> {
        if len > GATHERED_BYTES || gathered.cannot_reserve {
            return Ok(None);
        }
        if gathered.bytes().len() + len > GATHERED_BYTES {
            self.write(gathered, environment)?;
        }
        if gathered.buffer.is_none() {
            let Some(buffer) = environment.unwritten.take() else { return Ok(None) };
            (gathered.buffer, gathered.position) = (Some(buffer), position);
        }
        if !self.reserve(gathered, position, len as u64, environment)? {
            return Ok(None);
        }
        Ok(gathered.buffer.as_mut().map(|buffer| &mut buffer.bytes))
    }

    /// Sees to it that the file has space for so many bytes at `position`, its end. Where there is none everything that was reserved is
    /// given back: others need it more.
    fn reserve(
        &self,
        gathered: &mut Gathered,
        position: u64,
        len: u64,
        environment: &Environment,
    ) -> Result<bool, Error> {
        let end = position + len;
        if end <= gathered.reserved_to {
            return Ok(true);
        }
        let to = end + end.clamp(LEAST_RESERVED, MOST_RESERVED);
        gathered.has_beyond = true;
        match self.file.reserve(gathered.reserved_to, to, environment)? {
            Reservation::Made => gathered.reserved_to = to,
            Reservation::Unsupported => gathered.cannot_reserve = true,
            Reservation::NoSpace => {
                self.write(gathered, environment)?;
                self.cut(gathered, position, environment)?;
            }
        }
        Ok(end <= gathered.reserved_to)
    }

    /// Writes what is gathered.
    pub(crate) fn write_out(&self, environment: &Environment) -> Result<(), Error> {
        self.write(&mut self.gathered.lock(), environment)
    }

    /// After an error that passes it is still gathered.
    fn write(&self, gathered: &mut Gathered, environment: &Environment) -> Result<(), Error> {
        if !gathered.bytes().is_empty() {
            let position = gathered.position;
            let result = self.file.write_at(&mut [IoSlice::new(gathered.bytes())], position, environment);
            result.inspect_err(|error| self.take_back(error, gathered, position, environment))?;
        }
        gathered.buffer = None;
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
        let written = match gathered.bytes() {
            [] => out.len(),
            _ => out.len().min(gathered.position.saturating_sub(position) as usize),
        };
        let (in_file, in_memory) = out.split_at_mut(written);
        if !in_memory.is_empty() {
            let from = (position + written as u64 - gathered.position) as usize;
            in_memory.copy_from_slice(&gathered.bytes()[from..from + in_memory.len()]);
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
        if !gathered.bytes().is_empty() {
            let parts = &mut [IoSlice::new(gathered.bytes())];
            environment.write_at(file, self.path(), parts, gathered.position)?;
        }
        gathered.buffer = None;
        drop(gathered);
        environment.sync(file, self.path())
    }

    /// Cuts the file to `len` bytes, of which all must be written. Nothing is reserved after it.
    pub(crate) fn set_len(&self, len: u64, environment: &Environment) -> Result<(), Error> {
        self.cut(&mut self.gathered.lock(), len, environment)
    }

    fn cut(&self, gathered: &mut Gathered, len: u64, environment: &Environment) -> Result<(), Error> {
        (gathered.reserved_to, gathered.has_beyond) = (0, false);
        self.file.set_len(len, environment)
    }

    /// Writes what is gathered and gives back what is reserved: nothing will be appended for now.
    pub(crate) fn end_at(&self, len: u64, environment: &Environment) -> Result<(), Error> {
        let mut gathered = self.gathered.lock();
        self.write(&mut gathered, environment)?;
        if gathered.has_beyond { self.cut(&mut gathered, len, environment) } else { Ok(()) }
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
