//! Few bytes that would decompress to a gibibyte: they stop at the limit, and memory stays within it.

use std::io::Write;

use thalweg_protocol::record::{RecordError, validate};
use thalweg_protocol::{Compression, Compressor, Scratch};

use super::{batch_of, rules};
use crate::allocations::peak_of;

const GIB: usize = 1 << 30;
const LIMIT: usize = 1 << 20;

fn compressed(compression: Compression, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::new().compress(compression, None, input, &mut out);
    out
}

/// An LZ4 frame with `blocks` of 4 MiB of zeros.
fn lz4_bomb(blocks: usize) -> Vec<u8> {
    let block = lz4_flex::block::compress(&vec![0; 4 << 20]);
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73];
    for _ in 0..blocks {
        frame.extend_from_slice(&(block.len() as u32).to_le_bytes());
        frame.extend_from_slice(&block);
    }
    frame.extend_from_slice(&[0; 4]);
    frame
}

/// A Zstandard frame that does not say how much it holds.
fn zstd_bomb() -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).expect("an encoder");
    for _ in 0..64 {
        encoder.write_all(&[0; 1 << 20]).expect("into memory");
    }
    encoder.finish().expect("into memory").repeat(GIB / (64 << 20))
}

fn check(label: &str, compression: Compression, bomb: &[u8], expected: &RecordError) {
    let batch = batch_of(bomb, |header| header.attributes = compression as i16);
    let mut scratch = Scratch::new(LIMIT);
    let mut attempts = || {
        [
            validate(&batch, &rules(), &mut scratch).map(|_| ()),
            batch.records(&mut scratch).map(|_| ()),
            batch.decode(&mut scratch).map(|_| ()),
        ]
    };
    let (results, peak) = peak_of(&mut attempts);
    for result in results {
        assert_eq!(result.as_ref(), Err(expected), "{label}");
    }
    // The buffer may be there twice while it grows, and the codec has a context.
    assert!(peak < 3 * LIMIT + (256 << 10), "{label}: {peak} bytes");
}

#[test]
fn bombs_stop_at_the_limit() {
    let too_large = RecordError::DecompressedTooLarge { limit: LIMIT };
    let zeros = vec![0; 16 << 20];
    let gzip = compressed(Compression::Gzip, &zeros);
    check("gzip, members", Compression::Gzip, &gzip.repeat(GIB / zeros.len()), &too_large);
    check("gzip, a kibibyte", Compression::Gzip, &gzip, &too_large);
    check("snappy, blocks", Compression::Snappy, &compressed(Compression::Snappy, &zeros), &too_large);
    check("lz4, blocks", Compression::Lz4, &lz4_bomb(GIB / (4 << 20)), &too_large);
    check("zstd, frames", Compression::Zstd, &zstd_bomb(), &too_large);
    check("zstd, content size", Compression::Zstd, &compressed(Compression::Zstd, &zeros), &too_large);
}

#[test]
fn claims_allocate_nothing() {
    // A raw Snappy block of 1 KiB that claims a gibibyte.
    let mut snappy = vec![0x80, 0x80, 0x80, 0x80, 0x04];
    snappy.resize(1 << 10, 0);
    let corrupt = RecordError::Decompression { compression: Compression::Snappy };
    check("snappy, raw", Compression::Snappy, &snappy, &corrupt);
    let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    framed.extend_from_slice(&(snappy.len() as u32).to_be_bytes());
    framed.extend_from_slice(&snappy);
    check("snappy, framed", Compression::Snappy, &framed, &corrupt);
    let length = RecordError::Decompression { compression: Compression::Snappy };
    check(
        "snappy, block length",
        Compression::Snappy,
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\x7f\xff\xff\xff",
        &length,
    );

    // A Zstandard frame with a window of 2 GiB, more than its library takes.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x03, 0x00, 0x10, 0x00];
    check("zstd", Compression::Zstd, &window, &RecordError::Decompression { compression: Compression::Zstd });
}
