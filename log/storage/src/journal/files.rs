//! The files of the journal: finding, making and beginning to use them.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use super::buffer::AlignedBuffer;
use super::header::{FileHeader, HeaderBlock};
use super::record::BLOCK;
use super::round::JournalRound;
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::{OpenMode, StoredFile};

/// The directory they are in.
pub(crate) const DIRECTORY: &str = "journal";
/// Where the first record stands: behind the two copies of the header.
pub(crate) const FIRST_RECORD: u64 = 2 * BLOCK as u64;
/// How many zeros are written at once when a file is made.
const ZEROS: usize = 1 << 20;
const TEMPORARY_SUFFIX: &str = ".tmp";

/// A file that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    /// `None` when it was never used.
    pub(crate) header: Option<FileHeader>,
}

impl Found {
    /// A round that no record in it is after: each has at least one block.
    pub(crate) fn newest_round(&self) -> Option<JournalRound> {
        Some(JournalRound(self.header?.first_round.0 + self.len / BLOCK as u64))
    }
}

/// A file that is written through to the disk.
#[derive(Clone, Debug)]
pub(crate) struct JournalFile {
    pub(crate) path: PathBuf,
    file: StoredFile,
}

/// The files in the journal's directory, if there is one, by name. Where nothing in them counts any more (`is_clean`) one
/// with a damaged header is as good as unused.
///
/// # Errors
/// [`Error::Corrupt`] and [`Error::NewerFormat`] for a header; I/O errors.
pub(crate) fn find(directory: &Path, is_clean: bool, environment: &Environment) -> Result<Vec<Found>, Error> {
    let entries = match environment.list(directory) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries.into_iter().filter(|entry| !entry.is_directory && is_file_name(&entry.name)) {
        let path = directory.join(&entry.name);
        let header = match read_header(&path, entry.len, environment) {
            Err(Error::Corrupt { .. }) if is_clean => None,
            other => other?,
        };
        found.push(Found { path, len: entry.len, header });
    }
    Ok(found)
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}

fn read_header(path: &Path, len: u64, environment: &Environment) -> Result<Option<FileHeader>, Error> {
    let corrupt = |what| Error::Corrupt {
        path: path.to_owned(),
        position: 0,
        corruption: Corruption::Malformed { what },
    };
    if len < FIRST_RECORD {
        return Err(corrupt("a file of the journal has been cut"));
    }
    let file = environment.open(path, OpenMode::Read)?;
    let read = |position| {
        let mut block = [0; BLOCK];
        environment.read_at(&file, path, &mut block, position)?;
        match HeaderBlock::parse(&block) {
            HeaderBlock::Newer(found) => {
                Err(Error::NewerFormat { path: path.to_owned(), found, supported: FileHeader::VERSION })
            }
            other => Ok(other),
        }
    };
    let copies = [read(0)?, read(BLOCK as u64)?];
    let good = copies.iter().filter_map(|copy| match copy {
        HeaderBlock::Good(header) => Some(*header),
        _ => None,
    });
    match (good.max_by_key(|header| header.first_round), copies[1]) {
        (Some(header), _) if header.file_bytes != len => Err(corrupt("a file of the journal has been cut")),
        (Some(header), _) => Ok(Some(header)),
        // The second one is written when the first has reached the disk.
        (None, HeaderBlock::Zeros) => Ok(None),
        (None, _) => Err(corrupt("both headers are damaged")),
    }
}

impl JournalFile {
    /// Opens a file that exists; `None` where the file system cannot write it through.
    pub(crate) fn open(path: &Path, environment: &Environment) -> Result<Option<Self>, Error> {
        let file = environment.open_through(path)?;
        Ok(file.map(|file| Self { path: path.to_owned(), file }))
    }

    /// Makes a file of `len` bytes and this number; it lasts when this returns. What a failure leaves is removed. `None` as
    /// for [`open`](Self::open).
    pub(crate) fn make(
        directory: &Path,
        number: usize,
        len: u64,
        environment: &Environment,
    ) -> Result<Option<Self>, Error> {
        make_directory(directory, environment)?;
        let path = directory.join(number.to_string());
        let temporary = directory.join(format!("{number}{TEMPORARY_SUFFIX}"));
        let made = (|| {
            let file = environment.open(&temporary, OpenMode::Create)?;
            // Whether it can be written through is known before the zeros are written.
            if environment.open_through(&temporary)?.is_none() {
                return Ok(None);
            }
            let zeros = vec![0; ZEROS.min(len as usize)];
            let mut at = 0;
            while at < len {
                let step = (len - at).min(zeros.len() as u64);
                let part = IoSlice::new(&zeros[..step as usize]);
                environment.write_at(&file, &temporary, &mut [part], at)?;
                at += step;
            }
            environment.sync(&file, &temporary)?;
            environment.rename(&temporary, &path)?;
            environment.sync_directory(directory)?;
            Self::open(&path, environment)
        })();
        match &made {
            Ok(Some(_)) => {}
            Err(error) if !error.is_retriable() => {}
            Ok(None) | Err(_) => environment.remove(&temporary)?,
        }
        made
    }

    /// Begins to use the file anew.
    pub(crate) fn begin(
        &self,
        header: &FileHeader,
        buffer: &mut AlignedBuffer,
        environment: &Environment,
    ) -> Result<(), Error> {
        let block = buffer.get(BLOCK);
        header.encode(block.try_into().expect("it has the size of a block"));
        // One after the other, so that one of them is whole at any time.
        for position in [0, BLOCK as u64] {
            self.write(block, position, environment)?;
        }
        Ok(())
    }

    /// Writes blocks, which have reached the disk when this returns.
    pub(crate) fn write(&self, bytes: &[u8], position: u64, environment: &Environment) -> Result<(), Error> {
        environment.write_at(&self.file, &self.path, &mut [IoSlice::new(bytes)], position)
    }
}

fn make_directory(directory: &Path, environment: &Environment) -> Result<(), Error> {
    match environment.list(directory) {
        Err(error) if error.is_not_found() => environment.create_directory(directory)?,
        other => return other.map(|_| ()),
    }
    directory.parent().map_or(Ok(()), |parent| environment.sync_directory(parent))
}

/// Removes what is left of files that were being made.
pub(crate) fn remove_unfinished(directory: &Path, environment: &Environment) -> Result<(), Error> {
    let entries = match environment.list(directory) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries.iter().filter(|entry| entry.name.ends_with(TEMPORARY_SUFFIX)) {
        environment.remove(&directory.join(&entry.name))?;
    }
    Ok(())
}
