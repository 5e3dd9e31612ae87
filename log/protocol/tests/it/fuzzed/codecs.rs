//! Decompression: the input is a byte for the codec, and what it is to decompress.

use thalweg_protocol::record::RecordError;
use thalweg_protocol::{Compression, Compressor, Scratch};

use crate::allocations::peak_of;

const LIMIT: usize = 64 << 10;

/// What the contexts of the codecs take, in bytes.
const CONTEXTS: usize = 256 << 10;

pub fn check(input: &[u8]) {
    let Some((&codec, compressed)) = input.split_first() else { return };
    let compression = Compression::ALL[usize::from(codec) % Compression::ALL.len()];
    let mut scratch = Scratch::new(LIMIT);
    let decompress = || scratch.decompress(compression, compressed).map(<[u8]>::to_vec);
    let (result, peak) = peak_of(decompress);
    // The buffer may be there twice while it grows, and what it held is copied here.
    assert!(peak <= 3 * LIMIT + CONTEXTS, "{peak} bytes for {} compressed ones", compressed.len());
    let owned = scratch.decompress_owned(compression, compressed);
    assert_eq!(owned.map(|owned| owned.to_vec()), result, "a buffer of its own has the same");
    let again = scratch.decompress(compression, compressed).map(<[u8]>::to_vec);
    assert_eq!(again, result, "a scratch that was used before does the same");

    let mut compressor = Compressor::new();
    let mut good = Vec::new();
    compressor.compress(compression, None, b"after whatever came", &mut good);
    assert_eq!(scratch.decompress(compression, &good), Ok(&b"after whatever came"[..]));

    let Ok(content) = result else { return };
    assert!(content.len() <= LIMIT);
    let exactly = Scratch::new(content.len()).decompress(compression, compressed).map(<[u8]>::to_vec);
    assert_eq!(exactly.as_ref(), Ok(&content), "a limit that it just keeps to");
    if let Some(limit) = content.len().checked_sub(1) {
        let less = Scratch::new(limit).decompress(compression, compressed).map(<[u8]>::to_vec);
        assert_eq!(less, Err(RecordError::DecompressedTooLarge { limit }));
    }
    let mut ours = Vec::new();
    compressor.compress(compression, None, &content, &mut ours);
    assert_eq!(scratch.decompress(compression, &ours), Ok(&content[..]), "what is written can be read");
}

/// Of each codec: text, what repeats itself, what does not, and two in a row.
pub fn seeds() -> Vec<Vec<u8>> {
    let noise: Vec<u8> = (0..300_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let contents = [b"flights that left New York".to_vec(), b"same ".repeat(80), noise, Vec::new()];
    let mut seeds = Vec::new();
    for compression in Compression::ALL {
        for content in &contents {
            let mut seed = vec![compression as u8];
            Compressor::new().compress(compression, None, content, &mut seed);
            if content.len() < 100 {
                let twice = [&seed[..], &seed[1..]].concat();
                seeds.push(twice);
            }
            seeds.push(seed);
        }
    }
    // Snappy without a framing, and an LZ4 frame with every checksum, a size and a skippable frame before it.
    seeds.push([&[Compression::Snappy as u8][..], b"\x05\x10hello"].concat());
    let lz4 = [
        &[Compression::Lz4 as u8][..],
        b"\x52\x2a\x4d\x18\x01\0\0\0!",
        b"\x04\x22\x4d\x18\x60\x40\x82\x05\0\0\x80hello\0\0\0\0",
    ];
    seeds.push(lz4.concat());
    seeds
}
