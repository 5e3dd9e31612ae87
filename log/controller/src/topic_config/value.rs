//! The types that a config's value can have, and how they are written.

use std::fmt::Display;
use std::str::FromStr;

/// The type of a config's values, in Kafka's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigKind {
    /// `true` or `false`.
    Boolean,
    /// One of some words.
    String(&'static [&'static str]),
    /// A 32-bit integer.
    Int,
    /// A 64-bit integer.
    Long,
    /// A floating-point number.
    Double,
    /// Some of these words, with commas between them.
    List(&'static [&'static str]),
}

/// What happens to old segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// They are removed by time and size.
    pub delete: bool,
    /// The latest record of each key is kept.
    pub compact: bool,
}

impl CleanupPolicy {
    /// Remove by time and size.
    pub const DELETE: Self = Self { delete: true, compact: false };
    /// Keep the latest record of each key.
    pub const COMPACT: Self = Self { delete: false, compact: true };
}

/// A type of config values.
pub(crate) trait ConfigValue: Sized {
    const KIND: ConfigKind;
    fn read(text: &str) -> Result<Self, String>;
    fn show(&self) -> String;
}

macro_rules! numbers {
    ($($type:ty: $kind:ident, $what:literal;)*) => {
        $(impl ConfigValue for $type {
            const KIND: ConfigKind = ConfigKind::$kind;

            fn read(text: &str) -> Result<Self, String> {
                <$type>::from_str(text).map_err(|_| format!(concat!("'{}' is not ", $what), shortened(text)))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

numbers! {
    i32: Int, "a 32-bit integer";
    i64: Long, "a 64-bit integer";
    f64: Double, "a number";
}

impl ConfigValue for bool {
    const KIND: ConfigKind = ConfigKind::Boolean;

    fn read(text: &str) -> Result<Self, String> {
        match () {
            () if text.eq_ignore_ascii_case("true") => Ok(true),
            () if text.eq_ignore_ascii_case("false") => Ok(false),
            () => Err(format!("'{}' is neither true nor false", shortened(text))),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl ConfigValue for $name {
            const KIND: ConfigKind = ConfigKind::String(&[$($word),*]);

            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("'{}' is none of {}", shortened(text), [$($word),*].join(", "))),
                }
            }

            fn show(&self) -> String {
                match self {
                    $(Self::$variant => $word.to_owned(),)*
                }
            }
        }
    };
}

words! {
    /// How batches are stored.
    TopicCompression {
        /// As the producer sent them.
        Producer = "producer",
        /// Not compressed.
        Uncompressed = "uncompressed",
        /// With gzip.
        Gzip = "gzip",
        /// With Snappy.
        Snappy = "snappy",
        /// With LZ4.
        Lz4 = "lz4",
        /// With Zstandard.
        Zstd = "zstd",
    }
}

words! {
    /// Whose timestamps the records carry.
    TimestampType {
        /// The producer's.
        CreateTime = "CreateTime",
        /// The log's.
        LogAppendTime = "LogAppendTime",
    }
}

words! {
    /// What an acknowledgement with `acks=all`, and visibility, wait for.
    Durability {
        /// For the disk.
        Durable = "durable",
        /// For the replicas, not for the disk.
        Relaxed = "relaxed",
    }
}

words! {
    /// Which records are read.
    IsolationLevel {
        /// All.
        ReadUncommitted = "read_uncommitted",
        /// Those of transactions that have been committed, and those without one.
        ReadCommitted = "read_committed",
    }
}

impl ConfigValue for CleanupPolicy {
    const KIND: ConfigKind = ConfigKind::List(&["delete", "compact"]);

    fn read(text: &str) -> Result<Self, String> {
        let mut policy = Self { delete: false, compact: false };
        for element in elements(text) {
            match element {
                "delete" => policy.delete = true,
                "compact" => policy.compact = true,
                _ => return Err(format!("'{}' is neither delete nor compact", shortened(element))),
            }
        }
        Ok(policy)
    }

    fn show(&self) -> String {
        match (self.delete, self.compact) {
            (true, true) => "delete,compact",
            (true, false) => "delete",
            (false, true) => "compact",
            (false, false) => "",
        }
        .to_owned()
    }
}

/// Replicas of a topic: `partition:node` each, or `*` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaList(Vec<String>);

impl ConfigValue for ReplicaList {
    const KIND: ConfigKind = ConfigKind::List(&[]);

    fn read(text: &str) -> Result<Self, String> {
        let replicas: Vec<String> = elements(text).map(str::to_owned).collect();
        let is_number = |part: &str| part.parse::<u32>().is_ok();
        let is_replica = |replica: &str| {
            replica.split_once(':').is_some_and(|(partition, node)| is_number(partition) && is_number(node))
        };
        match replicas.iter().find(|replica| !is_replica(replica)) {
            None => Ok(Self(replicas)),
            Some(all) if all == "*" && replicas.len() == 1 => Ok(Self(replicas)),
            Some(other) => Err(format!("'{}' is neither partition:node nor *", shortened(other))),
        }
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

/// The elements of a list, without the space around them and without empty ones.
pub(crate) fn elements(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|element| !element.is_empty())
}

pub(crate) fn any<V>(_: &V) -> Result<(), String> {
    Ok(())
}

pub(super) fn only_false(value: &bool) -> Result<(), String> {
    if *value { Err("it can only be false here".to_owned()) } else { Ok(()) }
}

pub(super) fn gzip_level(value: &i32) -> Result<(), String> {
    match value {
        -1 | 1..=9 => Ok(()),
        _ => Err(format!("{value} is neither -1 nor between 1 and 9")),
    }
}

pub(crate) fn at_least<V: PartialOrd + Display>(least: V) -> impl Fn(&V) -> Result<(), String> {
    move |value| if *value >= least { Ok(()) } else { Err(format!("{value} is less than {least}")) }
}

pub(crate) fn between<V: PartialOrd + Display>(least: V, most: V) -> impl Fn(&V) -> Result<(), String> {
    move |value| {
        if *value >= least && *value <= most {
            Ok(())
        } else {
            Err(format!("{value} is not between {least} and {most}"))
        }
    }
}

/// The beginning of a text that someone sent, for a message.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
