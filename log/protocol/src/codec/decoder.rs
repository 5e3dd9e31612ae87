use bytes::Bytes;
use bytestring::ByteString;

use super::DecodeError;
use super::wire::Wire;
use crate::bounds::{DecodeBudget, STRING_BYTES};
use crate::{Records, Uuid};

/// Reads the fields of one message from a frame.
///
/// Strings, bytes and records share the frame's memory. Every count is checked against the bytes that remain
/// before anything is allocated, and all arrays of a frame draw on one budget.
pub(crate) struct Decoder {
    frame: Bytes,
    at: usize,
    /// Where reading must stop: the end of the frame or of the tagged field being read.
    end: usize,
    /// Bytes that arrays may still allocate.
    budget: usize,
    version: i16,
    flexible: bool,
}

impl Decoder {
    /// Starts at the first byte of `frame`, with a version that is not flexible until
    /// [`Decoder::set_version`] says otherwise.
    pub(crate) fn new(frame: Bytes, budget: DecodeBudget) -> Self {
        let end = frame.len();
        Self { budget: budget.bytes(end), frame, at: 0, end, version: 0, flexible: false }
    }

    /// What follows is in `version` of a message that is flexible from `flexible_from`.
    pub(crate) fn set_version(&mut self, version: i16, flexible_from: i16) {
        self.version = version;
        self.flexible = version >= flexible_from;
    }

    #[inline]
    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Checks that the message has used up the frame.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            remaining => Err(DecodeError::TrailingBytes { at: self.at, remaining }),
        }
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some(bytes) = self.frame[self.at..self.end].first_chunk::<N>() else {
            return Err(self.truncated(N));
        };
        self.at += N;
        Ok(*bytes)
    }

    #[inline]
    fn slice(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        if length > self.remaining() {
            return Err(self.truncated(length));
        }
        let slice = self.frame.slice(self.at..self.at + length);
        self.at += length;
        Ok(slice)
    }

    #[cold]
    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::Truncated { at: self.at, needed, remaining: self.remaining() }
    }

    #[inline]
    pub(crate) fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.take::<1>()? != [0])
    }

    #[inline]
    pub(crate) fn i8(&mut self) -> Result<i8, DecodeError> {
        self.take().map(i8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i16(&mut self) -> Result<i16, DecodeError> {
        self.take().map(i16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i32(&mut self) -> Result<i32, DecodeError> {
        self.take().map(i32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i64(&mut self) -> Result<i64, DecodeError> {
        self.take().map(i64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn f64(&mut self) -> Result<f64, DecodeError> {
        self.take().map(f64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        self.take().map(Uuid)
    }

    /// An unsigned varint of at most 32 bits in its shortest form.
    fn varint(&mut self) -> Result<u32, DecodeError> {
        let start = self.at;
        let mut value = 0u32;
        for shift in (0..32).step_by(7) {
            let [byte] = self.take()?;
            let bits = u32::from(byte & 0x7f);
            if (shift == 28 && bits > 0x0f) || (shift > 0 && byte == 0) {
                return Err(DecodeError::Varint { at: start });
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint { at: start })
    }

    /// The length of a compact string, of compact bytes or a compact array.
    fn compact_length(&mut self) -> Result<Option<usize>, DecodeError> {
        Ok(self.varint()?.checked_sub(1).map(|length| length as usize))
    }

    /// A length of four bytes.
    fn long_length(&mut self) -> Result<Option<usize>, DecodeError> {
        let at = self.at;
        match self.i32()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Err(DecodeError::NegativeLength { at, length }),
            },
        }
    }

    fn string_length(&mut self) -> Result<Option<usize>, DecodeError> {
        if self.flexible {
            return self.compact_length();
        }
        self.short_length()
    }

    /// A length of two bytes.
    fn short_length(&mut self) -> Result<Option<usize>, DecodeError> {
        let at = self.at;
        match self.i16()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Err(DecodeError::NegativeLength { at, length: length.into() }),
            },
        }
    }

    fn bytes_length(&mut self) -> Result<Option<usize>, DecodeError> {
        if self.flexible { self.compact_length() } else { self.long_length() }
    }

    pub(crate) fn string(&mut self) -> Result<ByteString, DecodeError> {
        let at = self.at;
        self.option_string(false)?.ok_or(DecodeError::Null { at })
    }

    pub(crate) fn option_string(&mut self, nullable: bool) -> Result<Option<ByteString>, DecodeError> {
        let at = self.at;
        let length = self.string_length()?;
        self.string_of(at, length, nullable)
    }

    /// A nullable string whose length takes two bytes even where the version is flexible: the client id.
    pub(crate) fn short_string(&mut self) -> Result<Option<ByteString>, DecodeError> {
        let at = self.at;
        let length = self.short_length()?;
        self.string_of(at, length, true)
    }

    fn string_of(
        &mut self,
        at: usize,
        length: Option<usize>,
        nullable: bool,
    ) -> Result<Option<ByteString>, DecodeError> {
        let Some(length) = length else {
            return if nullable { Ok(None) } else { Err(DecodeError::Null { at }) };
        };
        if length > STRING_BYTES {
            return Err(DecodeError::StringTooLong { at: self.at, length });
        }
        let start = self.at;
        let bytes = self.slice(length)?;
        ByteString::try_from(bytes).map(Some).map_err(|_| DecodeError::NotUtf8 { at: start })
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, DecodeError> {
        let at = self.at;
        self.option_bytes(false)?.ok_or(DecodeError::Null { at })
    }

    pub(crate) fn option_bytes(&mut self, nullable: bool) -> Result<Option<Bytes>, DecodeError> {
        let at = self.at;
        match self.bytes_length()? {
            Some(length) => self.slice(length).map(Some),
            None if nullable => Ok(None),
            None => Err(DecodeError::Null { at }),
        }
    }

    pub(crate) fn records(&mut self, nullable: bool) -> Result<Option<Records>, DecodeError> {
        Ok(self.option_bytes(nullable)?.map(Records::Bytes))
    }

    pub(crate) fn array<T: Wire>(&mut self) -> Result<Vec<T>, DecodeError> {
        let at = self.at;
        self.option_array(false)?.ok_or(DecodeError::Null { at })
    }

    pub(crate) fn option_array<T: Wire>(&mut self, nullable: bool) -> Result<Option<Vec<T>>, DecodeError> {
        let minimum = T::min_size(self.version, self.flexible);
        let Some(count) = self.count(nullable, minimum, size_of::<T>())? else {
            return Ok(None);
        };
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(T::decode(self)?);
        }
        Ok(Some(elements))
    }

    /// The count of an array whose elements take at least `minimum` bytes on the wire and `size` in memory.
    fn count(&mut self, nullable: bool, minimum: usize, size: usize) -> Result<Option<usize>, DecodeError> {
        let at = self.at;
        let Some(count) = self.bytes_length()? else {
            return if nullable { Ok(None) } else { Err(DecodeError::Null { at }) };
        };
        let remaining = self.remaining();
        if count > remaining / minimum.max(1) {
            return Err(DecodeError::CountTooLarge { at: self.at, count, remaining });
        }
        let needed = count.saturating_mul(size);
        match self.budget.checked_sub(needed) {
            Some(budget) => self.budget = budget,
            None => return Err(DecodeError::OverBudget { at: self.at, needed, budget: self.budget }),
        }
        Ok(Some(count))
    }

    /// A nullable structure: a byte below zero, or the structure after a byte that is not.
    pub(crate) fn option_struct<T: Wire>(&mut self) -> Result<Option<T>, DecodeError> {
        if self.i8()? < 0 { Ok(None) } else { T::decode(self).map(Some) }
    }

    /// The tagged fields that end a structure, if the version is flexible. `field` reads the one of a tag it
    /// knows and says whether it did; the others are skipped.
    pub(crate) fn tags(
        &mut self,
        field: &mut dyn FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        let count = self.varint()?;
        let mut previous = None;
        for _ in 0..count {
            let at = self.at;
            let tag = self.varint()?;
            if let Some(previous) = previous
                && tag <= previous
            {
                return Err(DecodeError::TagOrder { at, tag, previous });
            }
            previous = Some(tag);
            let length = self.varint()? as usize;
            if length > self.remaining() {
                return Err(self.truncated(length));
            }
            let outer_end = std::mem::replace(&mut self.end, self.at + length);
            if !field(self, tag)? {
                self.at = self.end;
            }
            if self.at != self.end {
                return Err(DecodeError::TagLength { at: self.at, tag, remaining: self.remaining() });
            }
            self.end = outer_end;
        }
        Ok(())
    }

    /// The tagged fields of a structure that knows none.
    pub(crate) fn skip_tags(&mut self) -> Result<(), DecodeError> {
        self.tags(&mut |_, _| Ok(false))
    }
}
