//! Sends stretches of segment files to a socket without copying them through this process.

use std::io;
use std::os::fd::AsRawFd;

use thalweg_protocol::LogSlice;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::metrics::SegmentBytes;

/// Sends `slice` to `socket`, waiting whenever its buffer is full, and counts what the kernel took.
///
/// # Errors
/// Those of the socket, of reading the file, and `UnexpectedEof` when the file ends before the slice does.
pub(crate) async fn send(socket: &TcpStream, slice: &LogSlice, counted: &SegmentBytes) -> io::Result<()> {
    let mut sent = 0;
    while sent < slice.len as usize {
        let from = slice.position + sent as u64;
        let count = slice.len as usize - sent;
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
