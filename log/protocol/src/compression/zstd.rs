//! Zstandard frames.

use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective, compress_bound, get_frame_content_size,
    max_c_level, min_c_level, zstd_sys,
};

use super::output::{Fault, Output};

const DEFAULT_LEVEL: i32 = 3;

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
        let context = self.0.get_or_insert_with(DCtx::create);
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
}
