//! Newtypes for the numbers that must not be mixed up: offsets, epochs and ids.

use std::fmt;

use bytestring::ByteString;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number! {
    /// The position of a record in a partition. The first record of a fresh partition has offset 0.
    Offset(i64)
}
number! {
    /// Counts the leaders a partition has had; −1 where it is unknown.
    LeaderEpoch(i32)
}
number! {
    /// Identifies an idempotent or transactional producer (KIP-98); −1 where there is none.
    ProducerId(i64)
}
number! {
    /// Fences older instances of one producer id (KIP-98); −1 where there is none.
    ProducerEpoch(i16)
}
number! {
    /// Identifies a node of the cluster; −1 where there is none.
    NodeId(i32)
}

impl Offset {
    /// The offset `records` further on.
    pub fn plus(self, records: i64) -> Self {
        Self(self.0 + records)
    }
}

impl LeaderEpoch {
    /// The epoch is not known.
    pub const UNKNOWN: Self = Self(-1);
}

impl ProducerId {
    /// The batch was written without a producer id.
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    /// The batch was written without a producer id.
    pub const NONE: Self = Self(-1);
}

impl NodeId {
    /// No node: a partition whose replicas are all down has this leader.
    pub const NONE: Self = Self(-1);
}

/// A partition of a topic, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: ByteString,
    /// The partition's index, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Names partition `partition` of `topic`.
    pub fn new(topic: impl Into<ByteString>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A 128-bit id of a topic, directory or cluster, shown in URL-safe base64 without padding as Kafka does.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The id that stands for "none".
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is [`Uuid::ZERO`].
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Reads the 22 characters that `Display` writes; `None` if they are not such.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 22 {
            return None;
        }
        let mut bits: u128 = 0;
        for &c in &text[..21] {
            bits = (bits << 6) | u128::from(digit(c)?);
        }
        let last = digit(text[21])?;
        if last & 0x0f != 0 {
            return None;
        }
        Some(Self(((bits << 2) | u128::from(last >> 4)).to_be_bytes()))
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn digit(c: u8) -> Option<u8> {
    DIGITS.iter().position(|&d| d == c).map(|at| at as u8)
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for at in 0..21 {
            let six = (bits >> (122 - 6 * at)) & 0x3f;
            write!(f, "{}", DIGITS[six as usize] as char)?;
        }
        write!(f, "{}", DIGITS[((bits & 0x03) << 4) as usize] as char)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_read_as_it_is_shown() {
        for uuid in [Uuid::ZERO, Uuid([0xff; 16]), Uuid(*b"0123456789abcdef")] {
            assert_eq!(Uuid::parse(&uuid.to_string()), Some(uuid));
        }
        assert_eq!(Uuid(*b"0123456789abcdef").to_string(), "MDEyMzQ1Njc4OWFiY2RlZg");
        assert_eq!(Uuid::parse("MDEyMzQ1Njc4OWFiY2RlZh"), None);
        assert_eq!(Uuid::parse("short"), None);
    }
}
