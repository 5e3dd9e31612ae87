//! What breaks parsers, put into bytes that were in order.

use bytes::BytesMut;

/// Extreme counts, sizes and varints, and what is no UTF-8.
const BREAKERS: [&[u8]; 8] = [
    &[0x7f, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff],
    &[0x80, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
    &[0x7f, 0xff],
    &[0xc3, 0x28],
];

/// Changes a few bytes, cuts off, or puts in what breaks parsers. The first `spared` bytes are left alone most of the time.
pub fn mutate(random: &mut fastrand::Rng, sound: &[u8], spared: usize) -> BytesMut {
    let mut bytes = BytesMut::from(sound);
    for _ in 0..random.usize(1..4) {
        let first = if random.u8(..) < 230 { spared.min(bytes.len()) } else { 0 };
        let at = random.usize(first..=bytes.len());
        match random.u8(0..5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.u8(0..8),
            1 if at < bytes.len() => bytes[at] = random.u8(..),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let tail = bytes.split_off(at);
                bytes.extend_from_slice(BREAKERS[random.usize(..BREAKERS.len())]);
                let skipped = random.usize(0..=4).min(tail.len());
                bytes.extend_from_slice(&tail[skipped..]);
            }
            _ => bytes.extend((0..random.usize(1..64)).map(|_| random.u8(..))),
        }
    }
    bytes
}
