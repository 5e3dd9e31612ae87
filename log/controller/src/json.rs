//! How the protocol's ids are written in JSON: numbers as numbers, UUIDs in Kafka's base64.
//!
//! The modules are for `#[serde(with = "…")]`: the protocol crate knows nothing of serde.

use thalweg_protocol::{LeaderEpoch, NodeId, Offset, ProducerId};

use crate::ids::{NodeEpoch, PartitionEpoch};

/// A newtype around a number.
pub(crate) trait Number {
    type Inner;
    fn inner(&self) -> Self::Inner;
    fn wrap(inner: Self::Inner) -> Self;
}

macro_rules! number {
    ($($name:ident($inner:ty)),*) => {
        $(impl Number for $name {
            type Inner = $inner;
            fn inner(&self) -> $inner {
                self.0
            }
            fn wrap(inner: $inner) -> Self {
                Self(inner)
            }
        })*
    };
}

number!(LeaderEpoch(i32), NodeId(i32), Offset(i64), ProducerId(i64), NodeEpoch(i64), PartitionEpoch(i32));

pub(crate) mod number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Number;

    pub(crate) fn serialize<N, S>(number: &N, serializer: S) -> Result<S::Ok, S::Error>
    where
        N: Number<Inner: Serialize>,
        S: Serializer,
    {
        number.inner().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, N, D>(deserializer: D) -> Result<N, D::Error>
    where
        N: Number<Inner: Deserialize<'de>>,
        D: Deserializer<'de>,
    {
        N::Inner::deserialize(deserializer).map(N::wrap)
    }
}

pub(crate) mod numbers {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Number;

    pub(crate) fn serialize<N, S>(numbers: &[N], serializer: S) -> Result<S::Ok, S::Error>
    where
        N: Number<Inner: Serialize>,
        S: Serializer,
    {
        serializer.collect_seq(numbers.iter().map(Number::inner))
    }

    pub(crate) fn deserialize<'de, N, D>(deserializer: D) -> Result<Vec<N>, D::Error>
    where
        N: Number<Inner: Deserialize<'de>>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<N::Inner>::deserialize(deserializer)?.into_iter().map(N::wrap).collect())
    }
}

pub(crate) mod number_lists {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Number;

    pub(crate) fn serialize<N, S>(lists: &[Vec<N>], serializer: S) -> Result<S::Ok, S::Error>
    where
        N: Number<Inner: Serialize>,
        S: Serializer,
    {
        serializer.collect_seq(lists.iter().map(|list| list.iter().map(Number::inner).collect::<Vec<_>>()))
    }

    pub(crate) fn deserialize<'de, N, D>(deserializer: D) -> Result<Vec<Vec<N>>, D::Error>
    where
        N: Number<Inner: Deserialize<'de>>,
        D: Deserializer<'de>,
    {
        let lists = Vec::<Vec<N::Inner>>::deserialize(deserializer)?;
        Ok(lists.into_iter().map(|list| list.into_iter().map(N::wrap).collect()).collect())
    }
}

pub(crate) mod uuid {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use thalweg_protocol::Uuid;

    pub(crate) fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(uuid)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::parse(&text).ok_or_else(|| D::Error::custom(format_args!("'{text}' is not a UUID in base64")))
    }
}
