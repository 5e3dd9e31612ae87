//! Zigzag variable-length integers, as records use them (Protocol Buffers' `sint32` and `sint64`).

/// The most bytes that an `i32` takes.
pub(crate) const MAX_I32: usize = 5;
/// The most bytes that an `i64` takes.
pub(crate) const MAX_I64: usize = 10;

/// Takes an `i32` from the front of `bytes`; `None` when it does not end or has more than 32 bits.
#[inline(always)]
pub(crate) fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    let raw = match **bytes {
        [a, ..] if a < 0x80 => {
            *bytes = &bytes[1..];
            u32::from(a)
        }
        [a, b, ..] if b < 0x80 => {
            *bytes = &bytes[2..];
            u32::from(a & 0x7f) | u32::from(b) << 7
        }
        _ => u32::try_from(take_long(bytes, MAX_I32)?).ok()?,
    };
    Some((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Takes an `i64` from the front of `bytes`; `None` when it does not end or has more than 64 bits.
#[inline(always)]
pub(crate) fn take_i64(bytes: &mut &[u8]) -> Option<i64> {
    let raw = match **bytes {
        [a, ..] if a < 0x80 => {
            *bytes = &bytes[1..];
            u64::from(a)
        }
        [a, b, ..] if b < 0x80 => {
            *bytes = &bytes[2..];
            u64::from(a & 0x7f) | u64::from(b) << 7
        }
        _ => take_long(bytes, MAX_I64)?,
    };
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

#[inline(never)]
fn take_long(bytes: &mut &[u8], most: usize) -> Option<u64> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().take(most).enumerate() {
        if at == MAX_I64 - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

/// How many bytes [`put_i32`] writes.
#[inline(always)]
pub(crate) fn size_i32(value: i32) -> usize {
    size_u64(u64::from(zigzag_i32(value)))
}

/// How many bytes [`put_i64`] writes.
#[inline(always)]
pub(crate) fn size_i64(value: i64) -> usize {
    size_u64(zigzag_i64(value))
}

#[inline(always)]
fn size_u64(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[inline(always)]
fn zigzag_i32(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

#[inline(always)]
fn zigzag_i64(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Writes `value` at `at` of `out` and returns where it ends.
#[inline(always)]
pub(crate) fn put_i32(out: &mut [u8], at: usize, value: i32) -> usize {
    put_u64(out, at, u64::from(zigzag_i32(value)))
}

/// Writes `value` at `at` of `out` and returns where it ends.
#[inline(always)]
pub(crate) fn put_i64(out: &mut [u8], at: usize, value: i64) -> usize {
    put_u64(out, at, zigzag_i64(value))
}

#[inline(always)]
fn put_u64(out: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_i32(value: i32) -> Vec<u8> {
        let mut out = [0; MAX_I32];
        let end = put_i32(&mut out, 0, value);
        assert_eq!(end, size_i32(value), "size of {value}");
        out[..end].to_vec()
    }

    fn written_i64(value: i64) -> Vec<u8> {
        let mut out = [0; MAX_I64];
        let end = put_i64(&mut out, 0, value);
        assert_eq!(end, size_i64(value), "size of {value}");
        out[..end].to_vec()
    }

    #[test]
    fn integers_are_read_as_they_are_written() {
        let mut values = vec![0, 1, -1, i64::MAX, i64::MIN, i64::from(i32::MAX), i64::from(i32::MIN)];
        for bit in 0..63 {
            let power = 1_i64 << bit;
            values.extend([power, power - 1, power + 1, -power, 1 - power, -1 - power]);
        }
        for value in values {
            let bytes = written_i64(value);
            let mut rest = &bytes[..];
            assert_eq!((take_i64(&mut rest), rest.len()), (Some(value), 0));
            let Ok(narrow) = i32::try_from(value) else {
                continue;
            };
            assert_eq!(written_i32(narrow), bytes);
            let mut rest = &bytes[..];
            assert_eq!((take_i32(&mut rest), rest.len()), (Some(narrow), 0));
            for cut in 0..bytes.len() {
                assert_eq!(take_i32(&mut &bytes[..cut]), None, "{value} cut at {cut}");
                assert_eq!(take_i64(&mut &bytes[..cut]), None, "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn integers_have_the_bytes_that_protocol_buffers_gives_them() {
        assert_eq!(written_i32(-1), [1]);
        assert_eq!(written_i32(63), [126]);
        assert_eq!(written_i32(64), [0x80, 1]);
        assert_eq!(written_i32(i32::MIN), [0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(written_i64(i64::MIN), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }

    #[test]
    fn too_many_bits_are_refused() {
        assert_eq!(take_i32(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None, "33 bits");
        assert_eq!(take_i32(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0][..]), None, "6 bytes");
        assert_eq!(
            take_i64(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]),
            None,
            "65 bits"
        );
        assert_eq!(take_i64(&mut &[0x80; 12][..]), None, "no end");
        assert_eq!(
            take_i32(&mut &[0x81, 0x00][..]),
            Some(-1),
            "longer than needed is read, as Java reads it"
        );
    }
}
