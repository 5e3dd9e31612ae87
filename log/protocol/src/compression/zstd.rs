//! Zstandard frames.

use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, compress_bound,
    get_frame_content_size, max_c_level, min_c_level, zstd_sys,
};

use super::output::{Fault, Output};

const DEFAULT_LEVEL: i32 = 3;

/// The largest window that a frame may ask for, as a power of two: what the highest level (22) asks for when the size
/// of its input is not known beforehand, as Java's client compresses, and what the library allows by default.
const MOST_WINDOW_LOG: u32 = 27;

/// A context that holds more than this, in bytes, is given back. The windows of levels up to 19 take 8 MiB at most.
const KEPT_CONTEXT: usize = 9 << 20;

#[derive(Default)]
pub(super) struct Compressor(Option<CCtx<'static>>);

impl Compressor {
    pub(super) fn compress(&mut self, level: Option<i32>, input: &[u8], out: &mut Vec<u8>) {
        let level = level.unwrap_or(DEFAULT_LEVEL).clamp(min_c_level(), max_c_level());
        let context = self.0.get_or_insert_with(CCtx::create);
        context.reset(ResetDirective::SessionOnly).expect("a session can always be reset");
        context.set_parameter(CParameter::CompressionLevel(level)).expect("the level is in range");
        let start = out.len();
        out.resize(start + compress_bound(input.len()), 0);
        // Everything in one call, so that the frame says how much it holds.
        let mut target = OutBuffer::around(&mut out[start..]);
        let left = context
            .compress_stream2(
                &mut target,
                &mut InBuffer::around(input),
                zstd_sys::ZSTD_EndDirective::ZSTD_e_end,
            )
            .expect("the output has the size that anything fits in");
        assert_eq!(left, 0, "the output has the size that anything fits in");
        let size = target.pos();
        out.truncate(start + size);
    }
}

#[derive(Default)]
pub(super) struct Decompressor(Option<DCtx<'static>>);

impl Decompressor {
    pub(super) fn decompress(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
        let result = decompress(self.0.get_or_insert_with(create), input, out);
        // A few bytes can ask for a large window. Its pages are only backed as they are written, which takes as
        // many bytes as come out, but nobody else should find it here.
        if self.0.as_ref().is_some_and(|context| context.sizeof() > KEPT_CONTEXT) {
            self.0 = None;
        }
        result
    }
}

fn create() -> DCtx<'static> {
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(MOST_WINDOW_LOG)).expect("the library knows such windows");
    context
}

fn decompress(context: &mut DCtx<'_>, input: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
    context.reset(ResetDirective::SessionOnly).map_err(|_| Fault::Corrupt)?;
    // With room for what the frame says it holds, it is decompressed without a window in between. It may
    // say anything, so that it gets no more at first than usual records make of so many bytes.
    let claimed = match get_frame_content_size(input) {
        Ok(Some(size)) => size,
        Ok(None) => 0,
        Err(_) => return Err(Fault::Corrupt),
    };
    out.fits(claimed)?;
    let mut wanted = (claimed as usize).min(input.len().saturating_mul(16));
    let mut source = InBuffer::around(input);
    loop {
        let (_, room) = out.room(wanted);
        let mut target = OutBuffer::around(room);
        let before = source.pos();
        let hint = context.decompress_stream(&mut target, &mut source).map_err(|_| Fault::Corrupt)?;
        let written = target.pos();
        let stuck = written == 0 && source.pos() == before;
        out.advance(written)?;
        let ended = source.pos() == input.len();
        if hint == 0 && ended {
            return Ok(());
        }
        if stuck {
            return Err(Fault::Corrupt);
        }
        wanted = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one byte that asks for a window of this size, as a power of two.
    fn frame(window_log: u8) -> Vec<u8> {
        let magic = 0xfd2f_b528_u32.to_le_bytes();
        let window = (window_log - 10) << 3;
        // No size, no checksum; one block, the last, of one byte as it is.
        [&magic[..], &[0, window], &[1 | 1 << 3, 0, 0], b"x"].concat()
    }

    #[test]
    fn a_large_window_is_not_kept_and_one_beyond_any_level_is_refused() {
        let mut decompressor = Decompressor::default();
        let mut decompress = |window_log| {
            let mut buffer = Vec::new();
            let mut out = Output::new(&mut buffer, 0, 100);
            let result = decompressor.decompress(&frame(window_log), &mut out).map(|()| out.len());
            (result, decompressor.0.as_ref().map_or(0, |context| context.sizeof()))
        };
        let (result, small) = decompress(21);
        assert_eq!(result, Ok(1));
        assert!((1 << 21..KEPT_CONTEXT).contains(&small), "{small} bytes are kept");
        for large in [24, 27] {
            assert_eq!(decompress(large), (Ok(1), 0));
        }
        assert_eq!(decompress(28).0, Err(Fault::Corrupt));
        assert_eq!(decompress(21), (Ok(1), small));
    }
}
