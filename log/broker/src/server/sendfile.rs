//! Sends stretches of segment files to a socket without copying them through this process.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use thalweg_protocol::LogSlice;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::metrics::SegmentBytes;

/// The most bytes handed to one `sendfile` call, so that one connection does not keep a worker busy.
const CHUNK: usize = 1 << 20;

/// Sends `slice` to `socket`, waiting whenever its buffer is full, and counts what the kernel took.
///
/// # Errors
/// Those of the socket, of reading the file, and `UnexpectedEof` when the file ends before the slice does.
pub(crate) async fn send(socket: &TcpStream, slice: &LogSlice, counted: &SegmentBytes) -> io::Result<()> {
    let mut sent = 0;
    while sent < slice.len as usize {
        let from = slice.position + sent as u64;
        let count = (slice.len as usize - sent).min(CHUNK);
        let step = socket.async_io(Interest::WRITABLE, || sendfile(socket, slice, from, count)).await?;
        if step == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the segment ends before the slice"));
        }
        counted.sent(step);
        sent += step;
    }
    Ok(())
}

fn sendfile(socket: &TcpStream, slice: &LogSlice, from: u64, count: usize) -> io::Result<usize> {
    let mut offset = from as libc::off_t;
    loop {
        // SAFETY: both descriptors are open for as long as the references to their owners live, and `offset`
        // outlives the call.
        let sent = unsafe { libc::sendfile(socket.as_raw_fd(), slice.file.as_raw_fd(), &mut offset, count) };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Whether the slice's last byte can be read without waiting for the disk. Systems that cannot tell say yes.
pub(crate) fn is_warm(slice: &LogSlice) -> bool {
    if slice.len == 0 {
        return true;
    }
    // The pages of a sequential read come in from the front, so the last one is the telling one.
    let last = slice.position + u64::from(slice.len) - 1;
    let mut byte = 0u8;
    let target = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the iovec points at one byte that outlives the call; the descriptor is open while `slice` is.
    let read = unsafe {
        libc::preadv2(slice.file.as_raw_fd(), &raw const target, 1, last as libc::off_t, libc::RWF_NOWAIT)
    };
    read >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

/// Reads the slice and throws the bytes away, which leaves them in the page cache.
pub(crate) fn read_through(slice: &LogSlice) -> io::Result<()> {
    const STEP: usize = 256 * 1024;
    let mut buffer = vec![0; STEP.min(slice.len as usize)];
    let mut read = 0;
    while read < slice.len as usize {
        let step = STEP.min(slice.len as usize - read);
        slice.file.read_exact_at(&mut buffer[..step], slice.position + read as u64)?;
        read += step;
    }
    Ok(())
}
