//! What of a segment file can be read without waiting for the disk.

use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use thalweg_protocol::LogSlice;

use super::output::READ;

/// `cachestat(2)`, of Linux 6.5, has this number on every architecture that tokio runs on.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`, in bytes.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    in_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether all of `slice` is in the page cache. Systems that cannot tell say yes.
///
/// No single page tells: finding where a slice begins and ends reads the pages of the headers there, and each page between
/// them that nobody has read keeps whoever sends it waiting for a read of its own.
pub(super) fn holds(slice: &LogSlice) -> bool {
    if slice.len == 0 {
        return true;
    }
    match cached_pages(slice) {
        Some(cached) => cached >= pages(slice).end - pages(slice).start && !is_being_read(slice),
        None => holds_each(slice),
    }
}

/// The pages that the slice lies in, counted from the start of the file.
fn pages(slice: &LogSlice) -> Range<u64> {
    let page = page_size();
    slice.position / page..(slice.position + u64::from(slice.len)).div_ceil(page)
}

/// The same, asked page by page: for systems before `cachestat`.
fn holds_each(slice: &LogSlice) -> bool {
    pages(slice).all(|index| holds_byte(slice, (index * page_size()).max(slice.position)))
}

/// Reads the slice and throws the bytes away, which leaves them in the page cache.
pub(super) fn read_in(slice: &LogSlice) -> io::Result<()> {
    slice.file.read_exact_at(&mut vec![0; slice.len as usize], slice.position)
}

/// Whether somebody else has begun to read some of the slice, whose pages count as cached before they hold anything. What is
/// read for answers comes in pieces of [`READ`] bytes, at least one of these bytes in each.
fn is_being_read(slice: &LogSlice) -> bool {
    let last = slice.len - 1;
    let mut tested = (0..last).step_by(READ as usize).chain([last]);
    tested.any(|at| !holds_byte(slice, slice.position + u64::from(at)))
}

/// How many pages of the slice are in the page cache; `None` where the system has no such call.
fn cached_pages(slice: &LogSlice) -> Option<u64> {
    let range = CachestatRange { offset: slice.position, len: u64::from(slice.len) };
    let mut found = Cachestat::default();
    // SAFETY: the call reads the one structure and writes the other, which have the layout it expects and outlive it; the
    // descriptor is open while `slice` is.
    let outcome = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            slice.file.as_raw_fd(),
            &raw const range,
            &raw mut found,
            0 as libc::c_uint,
        )
    };
    (outcome == 0).then_some(found.cached)
}

/// Whether the byte at `position` can be read without waiting.
fn holds_byte(slice: &LogSlice, position: u64) -> bool {
    let mut byte = 0u8;
    let target = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let (file, position) = (slice.file.as_raw_fd(), position as libc::off_t);
    // SAFETY: the iovec points at one byte that outlives the call; the descriptor is open while `slice` is.
    let read = unsafe { libc::preadv2(file, &raw const target, 1, position, libc::RWF_NOWAIT) };
    read >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

fn page_size() -> u64 {
    // SAFETY: the call looks up a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_slice_is_held_when_all_of_its_pages_are() {
        let page = page_size();
        let file = tempfile::tempfile().expect("a file");
        file.set_len(40 * page).expect("it grows");
        for index in 0..40 {
            file.write_all_at(&[1], index * page + 7).expect("it is written");
        }
        file.sync_all().expect("it is on disk");
        let advise = |advice| {
            // SAFETY: the descriptor is open.
            let advised = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
            assert_eq!(advised, 0);
        };
        advise(libc::POSIX_FADV_RANDOM);
        advise(libc::POSIX_FADV_DONTNEED);
        let file = Arc::new(file);
        let slice = |position, len| LogSlice { file: Arc::clone(&file), position, len };
        let whole = slice(0, 40 * page as u32);
        // Where files are kept in memory alone, they are always held.
        let is_kept = cached_pages(&whole) == Some(40);
        for index in [0, 20, 39] {
            file.read_exact_at(&mut [0], index * page).expect("it is there");
        }
        let read = [slice(5, 10), slice(20 * page, page as u32), slice(40 * page - 1, 1), slice(3, 0)];
        let mixed =
            [whole.clone(), slice(page - 1, 2), slice(0, page as u32 + 1), slice(38 * page, 2 * page as u32)];
        assert_eq!(read.each_ref().map(holds), [true; 4]);
        assert_eq!(mixed.each_ref().map(holds), [is_kept; 4]);
        assert_eq!(read.each_ref().map(holds_each), [true; 4]);
        // Who asks for a page so has the kernel begin to read it.
        assert_eq!(holds_each(&whole), is_kept);
        read_in(&whole).expect("it is there");
        assert!(holds(&whole) && holds_each(&whole));
    }
}
