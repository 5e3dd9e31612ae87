//! The codecs on their own: every form of their formats that clients send.

use std::io::Write;

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use thalweg_protocol::record::RecordError;
use thalweg_protocol::{Compression, Compressor, Scratch};

/// Text like JSON records, and some bytes that no codec makes smaller.
fn sample(len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(len as u64);
    let mut bytes = Vec::with_capacity(len + 200);
    while bytes.len() < len {
        write!(bytes, "{{\"flight\":{},\"origin\":\"EWR\",", random.u16(..)).expect("into memory");
        if random.u8(..) < 20 {
            bytes.extend(std::iter::repeat_with(|| random.u8(..)).take(100));
        }
    }
    bytes.truncate(len);
    bytes
}

const SIZES: [usize; 9] = [0, 1, 12, 100, 32 << 10, (32 << 10) + 1, 64 << 10, (64 << 10) + 1, 700_001];

fn decompressed(compression: Compression, input: &[u8]) -> Result<Vec<u8>, RecordError> {
    Scratch::new(8 << 20).decompress(compression, input).map(<[u8]>::to_vec)
}

#[test]
fn what_is_compressed_decompresses() {
    let mut compressor = Compressor::new();
    let mut scratch = Scratch::new(1 << 20);
    for compression in Compression::ALL {
        for len in SIZES {
            for level in [None, Some(-1), Some(1), Some(9), Some(1000), None] {
                let input = sample(len);
                let mut out = b"before".to_vec();
                compressor.compress(compression, level, &input, &mut out);
                let (before, compressed) = out.split_at(6);
                assert_eq!(before, b"before");
                let label = format!("{compression}, level {level:?}, {len} bytes");
                assert!(scratch.decompress(compression, compressed) == Ok(&input), "{label}");
                let owned = scratch.decompress_owned(compression, compressed);
                assert!(owned.as_deref() == Ok(&input), "{label}, owned");
                if len > 10_000 && compression != Compression::None {
                    assert!(compressed.len() < len * 3 / 4, "{label} to {}", compressed.len());
                }
            }
        }
    }
}

#[test]
fn the_limit_is_exact() {
    let mut compressor = Compressor::new();
    for compression in Compression::ALL {
        for len in SIZES.into_iter().filter(|&len| len > 0) {
            let input = sample(len);
            let mut compressed = Vec::new();
            compressor.compress(compression, None, &input, &mut compressed);
            let exact = Scratch::new(len).decompress(compression, &compressed).map(<[u8]>::len);
            assert_eq!(exact, Ok(len), "{compression}");
            let over = Scratch::new(len - 1).decompress(compression, &compressed).map(<[u8]>::len);
            assert_eq!(
                over,
                Err(RecordError::DecompressedTooLarge { limit: len - 1 }),
                "{compression}, {len}"
            );
        }
    }
}

#[test]
fn cut_off_or_longer_input_is_refused() {
    let mut compressor = Compressor::new();
    let input = sample(5000);
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut compressed = Vec::new();
        compressor.compress(compression, None, &input, &mut compressed);
        for cut in 0..compressed.len() {
            let result = decompressed(compression, &compressed[..cut]);
            if compression == Compression::Snappy && cut == 16 {
                assert_eq!(result, Ok(Vec::new()), "a Xerial header without blocks");
            } else {
                assert_eq!(result, Err(RecordError::Decompression { compression }), "{compression} at {cut}");
            }
        }
        compressed.push(0);
        assert_eq!(decompressed(compression, &compressed), Err(RecordError::Decompression { compression }));
    }
}

#[test]
fn snappy_is_read_raw_framed_and_concatenated() {
    let input = sample(100_000);
    let raw = snap::raw::Encoder::new().compress_vec(&input).expect("compresses");
    assert!(decompressed(Compression::Snappy, &raw) == Ok(input.clone()));

    let mut framed = Vec::new();
    Compressor::new().compress(Compression::Snappy, None, &input, &mut framed);
    assert_eq!(framed[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
    let twice = [&framed[..], &framed[..]].concat();
    assert!(decompressed(Compression::Snappy, &twice) == Ok(input.repeat(2)));
}

#[test]
fn gzip_is_read_with_every_header_field_and_in_members() {
    let input = sample(50_000);
    let mut with_fields = flate2::GzBuilder::new()
        .filename("flights.csv")
        .comment("a comment")
        .extra(vec![1, 2, 3])
        .mtime(1)
        .write(Vec::new(), flate2::Compression::best());
    with_fields.write_all(&input).expect("into memory");
    let with_fields = with_fields.finish().expect("into memory");
    assert!(decompressed(Compression::Gzip, &with_fields) == Ok(input.clone()));

    let mut plain = Vec::new();
    Compressor::new().compress(Compression::Gzip, None, &input, &mut plain);
    let mut by_others = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&plain[..]), &mut by_others).expect("gzip");
    assert!(by_others == input);
    let members = [&plain[..], &with_fields, &plain].concat();
    assert!(decompressed(Compression::Gzip, &members) == Ok(input.repeat(3)));

    for at in [plain.len() - 1, plain.len() - 5] {
        let mut wrong = plain.clone();
        wrong[at] ^= 1;
        let refused = Err(RecordError::Decompression { compression: Compression::Gzip });
        assert_eq!(decompressed(Compression::Gzip, &wrong), refused, "length or checksum is wrong");
    }
}

#[test]
fn lz4_is_read_with_every_option() {
    let input = sample(900_000);
    let blocks = [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB];
    for block_size in blocks {
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            for checksums in [false, true] {
                let info = FrameInfo::new()
                    .block_size(block_size)
                    .block_mode(mode)
                    .block_checksums(checksums)
                    .content_checksum(checksums)
                    .content_size(checksums.then_some(input.len() as u64));
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(&input).expect("into memory");
                let frame = encoder.finish().expect("into memory");
                let label = format!("{block_size:?}, {mode:?}, checksums: {checksums}");
                assert!(decompressed(Compression::Lz4, &frame) == Ok(input.clone()), "{label}");
                if checksums {
                    for at in [5, 7, 14, 40, frame.len() - 1] {
                        let mut wrong = frame.clone();
                        wrong[at] ^= 1;
                        assert!(decompressed(Compression::Lz4, &wrong).is_err(), "{label}, byte {at}");
                    }
                }
                let skippable = [&[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9][..], &frame, &frame].concat();
                assert!(decompressed(Compression::Lz4, &skippable) == Ok(input.repeat(2)), "{label}");
            }
        }
    }
    let mut ours = Vec::new();
    Compressor::new().compress(Compression::Lz4, None, &input, &mut ours);
    let mut by_others = Vec::new();
    std::io::Read::read_to_end(&mut lz4_flex::frame::FrameDecoder::new(&ours[..]), &mut by_others)
        .expect("lz4");
    assert!(by_others == input);
}

#[test]
fn zstd_is_read_without_a_content_size_and_in_frames() {
    let input = sample(900_000);
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).expect("an encoder");
    encoder.include_checksum(true).expect("before writing");
    encoder.write_all(&input).expect("into memory");
    let streamed = encoder.finish().expect("into memory");
    assert!(decompressed(Compression::Zstd, &streamed) == Ok(input.clone()));
    let whole = zstd::bulk::compress(&input, 19).expect("compresses");
    let frames = [&streamed[..], &whole, &streamed].concat();
    assert!(decompressed(Compression::Zstd, &frames) == Ok(input.repeat(3)));
    assert!(zstd::stream::decode_all(&whole[..]).expect("zstd") == input);
}

#[test]
fn a_scratch_is_in_order_after_an_error() {
    let input = sample(10_000);
    let mut compressor = Compressor::new();
    let mut scratch = Scratch::new(10_000);
    for compression in Compression::ALL {
        let mut good = Vec::new();
        compressor.compress(compression, None, &input, &mut good);
        let mut large = Vec::new();
        compressor.compress(compression, None, &sample(20_000), &mut large);
        for bad in [&good[..good.len() / 2], &large, &b"\x1f\x8b\x08nonsense"[..], &[]] {
            if compression != Compression::None {
                scratch.decompress(compression, bad).expect_err("it is bad");
            }
            assert!(scratch.decompress(compression, &good) == Ok(&input), "{compression}");
        }
    }
}
