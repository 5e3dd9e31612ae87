//! How keys, values and aggregates become bytes and are read back.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::{TimeWindow, WINDOW_SUFFIX, Windowed, split_windowed_key, windowed_key};

/// Why bytes could not be read, or a value could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SerdeError {
    /// A null where a value is needed.
    #[error("it is null")]
    Null,
    /// Not as many bytes as the type has.
    #[error("{found} bytes where {expected} are needed")]
    Length {
        /// How many bytes the type has.
        expected: usize,
        /// How many were found.
        found: usize,
    },
    /// Not UTF-8.
    #[error("not UTF-8 from byte {valid} on")]
    NotUtf8 {
        /// How many bytes at the start are.
        valid: usize,
    },
    /// Not JSON, or not the JSON that is expected.
    #[error("not the JSON that is expected: {reason}")]
    Json {
        /// What the parser said.
        reason: String,
    },
    /// A serde of one's own refused.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
}

/// Turns a `T` into bytes and back. Cheap to clone; most are of size zero, and calls are direct.
pub trait Serde<T>: Clone + Send + Sync + 'static {
    /// Appends `value` to `out`.
    ///
    /// # Errors
    /// When the value has no encoding.
    fn encode(&self, value: &T, out: &mut Vec<u8>) -> Result<(), SerdeError>;

    /// Reads a value from `bytes`.
    ///
    /// # Errors
    /// When the bytes are no such value.
    fn decode(&self, bytes: &[u8]) -> Result<T, SerdeError>;

    /// What a null stands for.
    ///
    /// # Errors
    /// [`SerdeError::Null`] where null is not a value, which is the rule.
    fn decode_null(&self) -> Result<T, SerdeError> {
        Err(SerdeError::Null)
    }

    /// Whether `value` is written as null.
    fn is_null(&self, _value: &T) -> bool {
        false
    }
}

/// JSON by serde: any type that derives `Serialize` and `Deserialize`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Serde<T> for Json {
    fn encode(&self, value: &T, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        serde_json::to_writer(out, value).map_err(|error| SerdeError::Json { reason: error.to_string() })
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, SerdeError> {
        serde_json::from_slice(bytes).map_err(|error| SerdeError::Json { reason: error.to_string() })
    }
}

/// UTF-8 text, as Kafka's `StringSerializer`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Serde<String> for Text {
    fn encode(&self, value: &String, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, SerdeError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(SerdeError::NotUtf8 { valid: error.valid_up_to() }),
        }
    }
}

/// The bytes as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawBytes;

impl Serde<Vec<u8>> for RawBytes {
    fn encode(&self, value: &Vec<u8>, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        out.extend_from_slice(value);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>, SerdeError> {
        Ok(bytes.to_vec())
    }
}

impl Serde<Bytes> for RawBytes {
    fn encode(&self, value: &Bytes, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        out.extend_from_slice(value);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Bytes, SerdeError> {
        Ok(Bytes::copy_from_slice(bytes))
    }
}

/// Numbers in big-endian order, as Kafka's `LongSerializer`, `IntegerSerializer` and `DoubleSerializer`.
#[derive(Clone, Copy, Debug, Default)]
pub struct BigEndian;

macro_rules! big_endian {
    ($($number:ty),*) => {$(
        impl Serde<$number> for BigEndian {
            fn encode(&self, value: &$number, out: &mut Vec<u8>) -> Result<(), SerdeError> {
                out.extend_from_slice(&value.to_be_bytes());
                Ok(())
            }

            fn decode(&self, bytes: &[u8]) -> Result<$number, SerdeError> {
                match bytes.try_into() {
                    Ok(bytes) => Ok(<$number>::from_be_bytes(bytes)),
                    Err(_) => Err(SerdeError::Length { expected: size_of::<$number>(), found: bytes.len() }),
                }
            }
        }
    )*};
}

big_endian!(i16, i32, i64, u16, u32, u64, f32, f64);

/// Nothing: what is there is not looked at, and null is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit;

impl Serde<()> for Unit {
    fn encode(&self, _value: &(), _out: &mut Vec<u8>) -> Result<(), SerdeError> {
        Ok(())
    }

    fn decode(&self, _bytes: &[u8]) -> Result<(), SerdeError> {
        Ok(())
    }

    fn decode_null(&self) -> Result<(), SerdeError> {
        Ok(())
    }

    fn is_null(&self, _value: &()) -> bool {
        true
    }
}

/// Null as `None`, and everything else as the serde within has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Optional<S>(pub S);

impl<T, S: Serde<T>> Serde<Option<T>> for Optional<S> {
    fn encode(&self, value: &Option<T>, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        match value {
            Some(value) => self.0.encode(value, out),
            None => Ok(()),
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<T>, SerdeError> {
        self.0.decode(bytes).map(Some)
    }

    fn decode_null(&self) -> Result<Option<T>, SerdeError> {
        Ok(None)
    }

    fn is_null(&self, value: &Option<T>) -> bool {
        value.is_none()
    }
}

/// A windowed key as Kafka Streams' `TimeWindowedSerializer` writes it: the key's bytes, then the window's
/// start as 8 big-endian bytes. The window's size is not written, so reading needs it.
#[derive(Clone, Copy, Debug)]
pub struct WindowedKey<S> {
    /// How the key within is written.
    pub key: S,
    /// The size of the windows in ms.
    pub size_ms: i64,
}

impl<K, S: Serde<K>> Serde<Windowed<K>> for WindowedKey<S> {
    fn encode(&self, value: &Windowed<K>, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        self.key.encode(&value.key, out)?;
        out.extend_from_slice(&value.window.start_ms.to_be_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Windowed<K>, SerdeError> {
        let Some((key, start)) = bytes.split_last_chunk::<8>() else {
            return Err(SerdeError::Length { expected: 8, found: bytes.len() });
        };
        let start_ms = i64::from_be_bytes(*start);
        let window = TimeWindow { start_ms, end_ms: start_ms.saturating_add(self.size_ms) };
        Ok(Windowed { key: self.key.decode(key)?, window })
    }
}

/// A windowed key as stores and changelogs have it ([`windowed_key`](crate::windowed_key)): the key's bytes,
/// the window's start as 8 big-endian bytes, a sequence number of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub struct WindowStoreKey<S> {
    /// How the key within is written.
    pub key: S,
    /// The size of the windows in ms.
    pub size_ms: i64,
}

impl<K, S: Serde<K>> Serde<Windowed<K>> for WindowStoreKey<S> {
    fn encode(&self, value: &Windowed<K>, out: &mut Vec<u8>) -> Result<(), SerdeError> {
        self.key.encode(&value.key, out)?;
        windowed_key(&[], value.window.start_ms, out);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Windowed<K>, SerdeError> {
        let Some((key, start_ms)) = split_windowed_key(bytes) else {
            return Err(SerdeError::Length { expected: WINDOW_SUFFIX, found: bytes.len() });
        };
        let window = TimeWindow { start_ms, end_ms: start_ms.saturating_add(self.size_ms) };
        Ok(Windowed { key: self.key.decode(key)?, window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: PartialEq + std::fmt::Debug>(serde: impl Serde<T>, value: T, bytes: &[u8]) {
        let mut out = Vec::new();
        serde.encode(&value, &mut out).expect("encodable");
        assert_eq!(out, bytes);
        assert_eq!(serde.decode(bytes), Ok(value));
    }

    #[test]
    fn bytes_are_kafkas() {
        check(Text, "UA".to_owned(), b"UA");
        check(BigEndian, 258_i64, &[0, 0, 0, 0, 0, 0, 1, 2]);
        check(BigEndian, -1_i32, &[255; 4]);
        check(BigEndian, 1.0_f64, &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
        check(RawBytes, vec![1, 2], &[1, 2]);
        check(Json, (1, "a".to_owned()), br#"[1,"a"]"#);
        check(Optional(Text), Some(String::new()), b"");
        let windowed = Windowed { key: "k".to_owned(), window: TimeWindow { start_ms: 5, end_ms: 15 } };
        check(WindowedKey { key: Text, size_ms: 10 }, windowed.clone(), b"k\0\0\0\0\0\0\0\x05");
        let stored = WindowStoreKey { key: Text, size_ms: 10 };
        check(stored, windowed, b"k\0\0\0\0\0\0\0\x05\0\0\0\0");
    }

    #[test]
    fn what_does_not_decode_says_why() {
        let short: Result<i64, _> = BigEndian.decode(&[1]);
        assert_eq!(short, Err(SerdeError::Length { expected: 8, found: 1 }));
        assert_eq!(Text.decode(b"a\xff"), Err(SerdeError::NotUtf8 { valid: 1 }));
        let null: Result<String, _> = Text.decode_null();
        assert_eq!(null, Err(SerdeError::Null));
        assert_eq!(Optional(Text).decode_null(), Ok(None));
        let json: Result<u8, _> = Json.decode(b"{");
        assert!(matches!(json, Err(SerdeError::Json { .. })));
    }
}
