//! Where input comes from: a file or standard input, plain, gzip or Zstandard.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::Error;

/// Input that is read through a buffer.
pub struct Source {
    reader: BufReader<Box<dyn Read + Send>>,
    /// Whether somebody may be writing it at this moment.
    is_standard_input: bool,
}

const BUFFER_BYTES: usize = 1 << 16;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What some programs begin UTF-8 with.
pub(super) const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
/// Files made with `zstd --long` need up to this window: 2 GiB of address space, touched only as far as used.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;

/// Opens `path`, or standard input when there is none, and undoes gzip or Zstandard by the first bytes.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn open(path: Option<&Path>) -> Result<Source, Error> {
    let raw: Box<dyn Read + Send> = match path {
        Some(path) => Box::new(File::open(path).map_err(Error::file("open", path))?),
        None => Box::new(io::stdin()),
    };
    Ok(Source { is_standard_input: path.is_none(), ..Source::new(raw)? })
}

impl Source {
    /// What `raw` gives, with gzip or Zstandard undone by the first bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(mut raw: impl Read + Send + 'static) -> Result<Self, Error> {
        // A pipe may give them one by one.
        let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
        while head.len() < ZSTD_MAGIC.len() && is_start_of_magic(&head) {
            if raw.by_ref().take(1).read_to_end(&mut head)? == 0 {
                break;
            }
        }
        let is_gzip = head.starts_with(&GZIP_MAGIC);
        let is_zstd = head.starts_with(&ZSTD_MAGIC);
        let whole = Cursor::new(head).chain(raw);
        let decoded: Box<dyn Read + Send> = if is_gzip {
            Box::new(flate2::read::MultiGzDecoder::new(whole))
        } else if is_zstd {
            let mut decoder = zstd::stream::read::Decoder::new(whole)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        } else {
            Box::new(whole)
        };
        Ok(Self { reader: BufReader::with_capacity(BUFFER_BYTES, decoded), is_standard_input: false })
    }

    /// Whether reading a line may wait for somebody who writes standard input.
    pub(super) fn may_wait(&self) -> bool {
        self.is_standard_input && !self.reader.buffer().contains(&b'\n') && !standard_input_is_ready()
    }
}

/// Whether more bytes must be seen to tell a compressed input, or to have a byte order mark in the buffer as a whole.
fn is_start_of_magic(head: &[u8]) -> bool {
    let magics: [&[u8]; 3] = [&ZSTD_MAGIC, &GZIP_MAGIC, &BYTE_ORDER_MARK];
    magics.iter().any(|magic| magic.starts_with(head) && head.len() < magic.len())
}

fn standard_input_is_ready() -> bool {
    let mut asked = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: `asked` is one valid pollfd, and a timeout of 0 does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) != 0 }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reader.read(out)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Gives one byte at a time, as a slow pipe does.
    struct Drip(Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = out.len().min(1);
            self.0.read(&mut out[..most])
        }
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut source = Source::new(Drip(Cursor::new(bytes))).expect("it opens");
        let mut all = Vec::new();
        source.read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn compression_is_told_from_bytes_that_come_one_by_one() {
        let text = b"one\ntwo\n".to_vec();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&text).expect("written");
        let zstd = zstd::encode_all(&text[..], 1).expect("compressed");
        for bytes in [text.clone(), gzip.finish().expect("finished"), zstd.clone()] {
            assert_eq!(read(bytes).expect("readable"), text);
        }
        // What only begins like it is text.
        for short in [&b""[..], b"\x28", b"\x28\xb5\x2f", b"\x1f", b"\x1fx"] {
            assert_eq!(read(short.to_vec()).expect("readable"), short);
        }
        assert!(read(zstd[..zstd.len() - 3].to_vec()).is_err(), "it breaks off");
    }
}
