//! The real disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::{DirectoryEntry, Filesystem, OpenMode, Reservation, StoredFile};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFilesystem;

impl Filesystem for DiskFilesystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<StoredFile> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true).truncate(true);
            }
            OpenMode::Through => {
                options.write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC);
            }
        }
        let file = options.open(path)?;
        read_no_further(&file);
        Ok(StoredFile { file: Arc::new(file), id: 0 })
    }

    fn read_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<()> {
        file.file.read_exact_at(out, position)
    }

    fn read_cached_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<bool> {
        let at = libc::off_t::try_from(position).map_err(|_| io::ErrorKind::InvalidInput)?;
        let target = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        // SAFETY: the iovec is `out`, which outlives the call; the descriptor is open while `file` is.
        let read =
            unsafe { libc::preadv2(file.file.as_raw_fd(), &raw const target, 1, at, libc::RWF_NOWAIT) };
        match usize::try_from(read) {
            Ok(read) if read == out.len() => return Ok(true),
            // A part of it is there, or all of the file is.
            Ok(_) => return Ok(false),
            Err(_) => {}
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            // The file system does not know the flag, or something is wrong with the disk: a plain read tells.
            _ => self.read_at(file, out, position).map(|()| true),
        }
    }

    fn write_at(&self, file: &StoredFile, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()> {
        let mut parts = parts;
        let mut position = position;
        // Empty parts, which would look like a disk that takes nothing.
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let written = write_vectored_at(&file.file, parts, position)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            position += written as u64;
            IoSlice::advance_slices(&mut parts, written);
        }
        Ok(())
    }

    fn reserve(&self, file: &StoredFile, from: u64, to: u64) -> io::Result<Reservation> {
        let offset = |n: u64| libc::off_t::try_from(n).map_err(|_| io::ErrorKind::InvalidInput);
        let (from, len) = (offset(from)?, offset(to.saturating_sub(from))?);
        // SAFETY: the descriptor is open while `file` is, and the call touches no memory.
        if unsafe { libc::fallocate(file.file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, from, len) } == 0 {
            return Ok(Reservation::Made);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EIO) => Err(error),
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(Reservation::Unsupported),
            _ => Ok(Reservation::NoSpace),
        }
    }

    fn set_len(&self, file: &StoredFile, len: u64) -> io::Result<()> {
        file.file.set_len(len)
    }

    fn sync(&self, file: &StoredFile) -> io::Result<()> {
        file.file.sync_data()
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = entry.metadata()?;
            entries.push(DirectoryEntry { name, is_directory: metadata.is_dir(), len: metadata.len() });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

/// Has the kernel read what is asked for and nothing ahead of it. What it reads ahead, megabytes for each file, has the syncs of
/// producers wait behind it in the disk's queue: a replay of six cold partitions made them take 12 ms in place of 0.2. All that
/// reads much here reads it in large pieces.
fn read_no_further(file: &File) {
    // SAFETY: the descriptor is open, and the call touches no memory. Where it is not known, nothing changes.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
}

/// One `pwritev`, repeated when a signal interrupts it. (The standard library's is not stable yet.)
fn write_vectored_at(file: &File, parts: &[IoSlice<'_>], position: u64) -> io::Result<usize> {
    let position = libc::off_t::try_from(position).map_err(|_| io::ErrorKind::InvalidInput)?;
    let count = parts.len().min(libc::UIO_MAXIOV as usize) as libc::c_int;
    loop {
        // SAFETY: `IoSlice` is guaranteed to have the layout of `iovec`, and the buffers outlive the call.
        let written =
            unsafe { libc::pwritev(file.as_raw_fd(), parts.as_ptr().cast::<libc::iovec>(), count, position) };
        if written >= 0 {
            return Ok(written as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
