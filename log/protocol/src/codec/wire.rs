use bytestring::ByteString;

use super::{DecodeError, Decoder, EncodeError, Encoder};
use crate::Uuid;

/// A structure, or another element of an array.
pub(crate) trait Wire: Sized {
    /// The fewest bytes the value takes on the wire in this version. Only elements of arrays say.
    fn min_size(_version: i16, _flexible: bool) -> usize {
        1
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError>;

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError>;
}

macro_rules! number {
    ($($number:ident),*) => {$(
        impl Wire for $number {
            fn min_size(_: i16, _: bool) -> usize {
                size_of::<Self>()
            }

            #[inline]
            fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
                d.$number()
            }

            #[inline]
            fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
                e.$number(*self);
                Ok(())
            }
        }
    )*};
}

number!(i8, i16, i32, i64);

impl Wire for Uuid {
    fn min_size(_: i16, _: bool) -> usize {
        16
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        d.uuid()
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.uuid(*self);
        Ok(())
    }
}

impl Wire for ByteString {
    fn min_size(_: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 2 }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        d.string()
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(self)
    }
}
