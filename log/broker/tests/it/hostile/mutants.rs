//! Record batches with something wrong in them, and a checksum that is right all the same.

use bytes::{BufMut, BytesMut};
use thalweg_protocol::{Compression, Compressor};

use super::damage;

/// A batch, and what was done to it.
pub struct Mutant {
    pub bytes: BytesMut,
    pub damage: Damage,
}

/// Where a batch was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Damage {
    /// Nowhere.
    None,
    /// One of the numbers of its records is another one, or written otherwise.
    Number,
    /// Its records, before they were compressed.
    Records,
    /// Its records, after that.
    Compressed,
    /// The codec that it names.
    Codec,
    /// A field of its header.
    Field,
    /// How many records it says to have.
    Count,
    /// Its length, or what follows it.
    Length,
    /// The checksum.
    Checksum,
}

const DAMAGES: [Damage; 9] = [
    Damage::None,
    Damage::Number,
    Damage::Records,
    Damage::Compressed,
    Damage::Codec,
    Damage::Field,
    Damage::Count,
    Damage::Length,
    Damage::Checksum,
];

/// 2013-01-01.
const NOW_MS: i64 = 1_356_998_400_000;

/// Where the fields of the header begin, by their sizes in bytes.
const FIELDS: [(usize, usize); 11] =
    [(0, 8), (12, 4), (16, 1), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4)];
const LENGTH: usize = 8;
const CHECKSUM: usize = 17;
const ATTRIBUTES: usize = 21;
const HEADER: usize = 61;

impl Mutant {
    pub fn new(random: &mut fastrand::Rng, compressor: &mut Compressor) -> Self {
        let damage = DAMAGES[random.usize(..DAMAGES.len())];
        let compression = Compression::ALL[random.usize(..Compression::ALL.len())];
        let count = random.i32(1..12);
        let mut numbers = Numbers { until_odd: usize::MAX };
        if damage == Damage::Number {
            numbers.until_odd = random.usize(..7 * count as usize);
        }
        let (mut records, max_timestamp) = records(random, count, &mut numbers);
        if damage == Damage::Records {
            records = damage::mutate(random, &records, 0).to_vec();
        }
        let mut payload = Vec::new();
        compressor.compress(compression, None, &records, &mut payload);
        if damage == Damage::Compressed {
            payload = damage::mutate(random, &payload, 0).to_vec();
        }
        let mut bytes = header(compression, count, max_timestamp);
        bytes.put_slice(&payload);
        match damage {
            Damage::Codec => bytes[ATTRIBUTES + 1] = random.u8(0..8),
            Damage::Field => {
                let (at, size) = FIELDS[random.usize(..FIELDS.len())];
                bytes[at..at + size].copy_from_slice(&odd_field(random)[8 - size..]);
            }
            Damage::Count => {
                let other = odd(random, i64::from(count)) as i32;
                bytes[57..61].copy_from_slice(&other.to_be_bytes());
                if random.bool() {
                    bytes[23..27].copy_from_slice(&other.wrapping_sub(1).to_be_bytes());
                }
            }
            _ => {}
        }
        let mut length = (bytes.len() - LENGTH - 4) as i32;
        if damage == Damage::Length {
            match random.u8(0..3) {
                0 => length = odd(random, i64::from(length)) as i32,
                1 => bytes.put_bytes(0, random.usize(1..100)),
                _ => bytes.extend_from_within(..random.usize(1..=bytes.len())),
            }
        }
        bytes[LENGTH..LENGTH + 4].copy_from_slice(&length.to_be_bytes());
        let mut checksum = crc32c::crc32c(&bytes[ATTRIBUTES..]);
        if damage == Damage::Checksum {
            checksum ^= 1 << random.u32(0..32);
        }
        bytes[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_be_bytes());
        Self { bytes, damage }
    }
}

fn header(compression: Compression, count: i32, max_timestamp: i64) -> BytesMut {
    let mut header = BytesMut::with_capacity(HEADER);
    header.put_i64(0);
    header.put_i32(0);
    header.put_i32(-1);
    header.put_i8(2);
    header.put_u32(0);
    header.put_i16(compression as i16);
    header.put_i32(count - 1);
    header.put_i64(NOW_MS);
    header.put_i64(max_timestamp);
    header.put_i64(-1);
    header.put_i16(-1);
    header.put_i32(-1);
    header.put_i32(count);
    header
}

/// Writes numbers, of which one becomes odd.
struct Numbers {
    until_odd: usize,
}

impl Numbers {
    fn put(&mut self, random: &mut fastrand::Rng, out: &mut Vec<u8>, value: i64) {
        let is_odd = self.until_odd == 0;
        self.until_odd = self.until_odd.wrapping_sub(1);
        let value = if is_odd { odd(random, value) } else { value };
        let mut zigzag = (value << 1 ^ value >> 63) as u64;
        loop {
            let byte = (zigzag & 0x7f) as u8;
            zigzag >>= 7;
            if zigzag == 0 {
                // Some write more bytes than it takes.
                let padding = if is_odd && random.bool() { random.usize(1..6) } else { 0 };
                out.push(if padding == 0 { byte } else { byte | 0x80 });
                for left in (0..padding).rev() {
                    out.push(if left == 0 { 0 } else { 0x80 });
                }
                return;
            }
            out.push(byte | 0x80);
        }
    }
}

/// A number that is not `value`, or only looks as if it were.
fn odd(random: &mut fastrand::Rng, value: i64) -> i64 {
    match random.u8(0..12) {
        0 => 0,
        1 => -1,
        2 => -2,
        3 => i64::from(i32::MAX),
        4 => i64::from(i32::MIN),
        5 => i64::MAX,
        6 => i64::MIN,
        7 => value + (1 << 32),
        8 => value * 2,
        9 => value + 1,
        10 => value - 1,
        _ => random.i64(-70_000..70_000),
    }
}

fn odd_field(random: &mut fastrand::Rng) -> [u8; 8] {
    match random.u8(0..4) {
        0 => odd(random, 1).to_be_bytes(),
        1 => (1_i64 << random.u32(0..63)).to_be_bytes(),
        2 => random.i64(..).to_be_bytes(),
        _ => random.i64(0..16).to_be_bytes(),
    }
}

/// Records, and the largest timestamp of theirs.
fn records(random: &mut fastrand::Rng, count: i32, numbers: &mut Numbers) -> (Vec<u8>, i64) {
    let (mut out, mut newest) = (Vec::new(), i64::MIN);
    for index in 0..count {
        let mut record = vec![0];
        let delta = random.i64(0..1000);
        newest = newest.max(NOW_MS + delta);
        numbers.put(random, &mut record, delta);
        numbers.put(random, &mut record, i64::from(index));
        for field in 0..2 {
            if random.u8(0..4) == 0 {
                numbers.put(random, &mut record, -1);
            } else {
                let text = format!("field {field} of {}", "a record ".repeat(random.usize(0..20)));
                numbers.put(random, &mut record, text.len() as i64);
                record.extend_from_slice(text.as_bytes());
            }
        }
        let headers = random.i64(0..3);
        numbers.put(random, &mut record, headers);
        for _ in 0..headers {
            numbers.put(random, &mut record, 3);
            record.extend_from_slice(b"key");
            numbers.put(random, &mut record, 5);
            record.extend_from_slice(b"value");
        }
        numbers.put(random, &mut out, record.len() as i64);
        out.extend_from_slice(&record);
    }
    (out, newest)
}
