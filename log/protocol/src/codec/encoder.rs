use bytes::Bytes;

use super::EncodeError;
use super::wire::Wire;
use crate::bounds::{INLINE_RECORDS_BYTES, SIZE_PREFIX_BYTES, STRING_BYTES};
use crate::frame::{Frame, FramePart};
use crate::{Records, Uuid};

/// Writes the fields of one message.
///
/// Long records and stretches of segment files are not copied: they are remembered with the position at which
/// they belong, and become parts of the [`Frame`].
pub(crate) struct Encoder {
    out: Vec<u8>,
    /// Records with the length of `out` at which they belong, ascending.
    apart: Vec<(usize, Records)>,
    /// The bytes of all records in `apart`.
    apart_bytes: usize,
    version: i16,
    flexible: bool,
}

/// The tagged fields being written at the end of a structure.
#[derive(Clone, Copy)]
pub(crate) struct Tags {
    /// Where the byte stands that counts them.
    count_at: usize,
}

impl Encoder {
    /// Starts with nothing written, in a version that is not flexible until [`Encoder::set_version`] says
    /// otherwise.
    pub(crate) fn new() -> Self {
        Self { out: Vec::with_capacity(256), apart: Vec::new(), apart_bytes: 0, version: 0, flexible: false }
    }

    /// Starts with room for the size prefix of a frame.
    pub(crate) fn frame() -> Self {
        let mut encoder = Self::new();
        encoder.out.extend_from_slice(&[0; SIZE_PREFIX_BYTES]);
        encoder
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

    /// What was written, records included; for messages without slices of files.
    pub(crate) fn into_bytes(self) -> Bytes {
        debug_assert!(self.apart.is_empty(), "internal records hold no record batches");
        Bytes::from(self.out)
    }

    /// The frame begun by [`Encoder::frame`], its size filled in.
    pub(crate) fn into_frame(mut self) -> Result<Frame, EncodeError> {
        let len = self.out.len() + self.apart_bytes;
        let size =
            i32::try_from(len - SIZE_PREFIX_BYTES).map_err(|_| EncodeError::TooLong { length: len })?;
        self.out[..SIZE_PREFIX_BYTES].copy_from_slice(&size.to_be_bytes());
        let out = Bytes::from(self.out);
        let mut parts = Vec::with_capacity(2 * self.apart.len() + 1);
        let mut from = 0;
        for (at, records) in self.apart {
            parts.push(FramePart::Bytes(out.slice(from..at)));
            parts.push(match records {
                Records::Bytes(bytes) => FramePart::Bytes(bytes),
                Records::Slice(slice) => FramePart::Slice(slice),
            });
            from = at;
        }
        if from < out.len() {
            parts.push(FramePart::Bytes(out.slice(from..)));
        }
        Ok(Frame { parts, len })
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: bool) {
        self.out.push(value.into());
    }

    #[inline]
    pub(crate) fn i8(&mut self, value: i8) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn i16(&mut self, value: i16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn i32(&mut self, value: i32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn i64(&mut self, value: i64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn f64(&mut self, value: f64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn uuid(&mut self, value: Uuid) {
        self.out.extend_from_slice(&value.0);
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// The length of bytes or an array, or null.
    fn long_length(&mut self, length: Option<usize>) -> Result<(), EncodeError> {
        let length = match length {
            Some(length) => i32::try_from(length).map_err(|_| EncodeError::TooLong { length })?,
            None => -1,
        };
        if self.flexible {
            self.varint((length + 1) as u32);
        } else {
            self.i32(length);
        }
        Ok(())
    }

    pub(crate) fn string(&mut self, value: &str) -> Result<(), EncodeError> {
        if self.flexible {
            if value.len() > STRING_BYTES {
                return Err(EncodeError::StringTooLong { length: value.len() });
            }
            self.varint(value.len() as u32 + 1);
            self.out.extend_from_slice(value.as_bytes());
            return Ok(());
        }
        self.short_string(Some(value))
    }

    pub(crate) fn option_string(
        &mut self,
        value: Option<&str>,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.string(value),
            None if nullable && self.flexible => {
                self.varint(0);
                Ok(())
            }
            None if nullable => self.short_string(None),
            None => Err(self.null(field)),
        }
    }

    /// A nullable string whose length takes two bytes even where the version is flexible: the client id.
    pub(crate) fn short_string(&mut self, value: Option<&str>) -> Result<(), EncodeError> {
        let Some(value) = value else {
            self.i16(-1);
            return Ok(());
        };
        let length =
            i16::try_from(value.len()).map_err(|_| EncodeError::StringTooLong { length: value.len() })?;
        self.i16(length);
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        self.long_length(Some(value.len()))?;
        self.out.extend_from_slice(value);
        Ok(())
    }

    pub(crate) fn option_bytes(
        &mut self,
        value: Option<&[u8]>,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.bytes(value),
            None if nullable => self.long_length(None),
            None => Err(self.null(field)),
        }
    }

    pub(crate) fn records(
        &mut self,
        value: Option<&Records>,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(Records::Bytes(bytes)) if bytes.len() <= INLINE_RECORDS_BYTES => self.bytes(bytes),
            Some(records) => {
                let length = records.len();
                self.long_length(Some(length))?;
                if length > 0 {
                    self.apart.push((self.out.len(), records.clone()));
                    self.apart_bytes += length;
                }
                Ok(())
            }
            None if nullable => self.long_length(None),
            None => Err(self.null(field)),
        }
    }

    pub(crate) fn array<T: Wire>(&mut self, elements: &[T]) -> Result<(), EncodeError> {
        self.long_length(Some(elements.len()))?;
        for element in elements {
            element.encode(self)?;
        }
        Ok(())
    }

    pub(crate) fn option_array<T: Wire>(
        &mut self,
        elements: Option<&[T]>,
        nullable: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        match elements {
            Some(elements) => self.array(elements),
            None if nullable => self.long_length(None),
            None => Err(self.null(field)),
        }
    }

    pub(crate) fn option_struct<T: Wire>(&mut self, value: Option<&T>) -> Result<(), EncodeError> {
        match value {
            Some(value) => {
                self.i8(1);
                value.encode(self)
            }
            None => {
                self.i8(-1);
                Ok(())
            }
        }
    }

    /// The end of a structure without tagged fields.
    #[inline]
    pub(crate) fn no_tags(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }

    /// Begins the tagged fields at the end of a structure; each follows by [`Encoder::tag`], in the order of
    /// tags.
    pub(crate) fn tags(&mut self) -> Tags {
        let tags = Tags { count_at: self.out.len() };
        self.no_tags();
        tags
    }

    /// Writes the field of one tag. Tags are below 128, so that the count of them stays in its byte.
    pub(crate) fn tag(
        &mut self,
        tags: Tags,
        tag: u32,
        field: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        debug_assert!(self.flexible && tag < 128, "tag {tag} in version {}", self.version);
        let apart = self.apart.len();
        self.out[tags.count_at] += 1;
        self.varint(tag);
        let start = self.out.len();
        field(self)?;
        debug_assert_eq!(apart, self.apart.len(), "a tagged field holds no record batches");
        let end = self.out.len();
        let length = u32::try_from(end - start).map_err(|_| EncodeError::TooLong { length: end - start })?;
        // The length comes before the value but is known only now: append it, then bring it to its place.
        self.varint(length);
        let prefix = self.out.len() - end;
        self.out[start..].rotate_right(prefix);
        Ok(())
    }

    /// Refuses a value that would be lost: `set` says that a field which the version lacks has one.
    #[inline]
    pub(crate) fn absent(&self, set: bool, field: &'static str) -> Result<(), EncodeError> {
        if set {
            return Err(EncodeError::FieldAbsent { field, version: self.version });
        }
        Ok(())
    }

    #[cold]
    fn null(&self, field: &'static str) -> EncodeError {
        EncodeError::Null { field, version: self.version }
    }
}
