/// Why bytes are not the message they should be. `at` is the position in the frame, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The frame, or the tagged field, ends within a value.
    #[error("{needed} bytes needed at byte {at}, {remaining} remain")]
    Truncated {
        /// Where the value begins.
        at: usize,
        /// The bytes it needs.
        needed: usize,
        /// The bytes that are there.
        remaining: usize,
    },
    /// A length or count below zero that does not stand for null.
    #[error("length {length} at byte {at}")]
    NegativeLength {
        /// Where the length stands.
        at: usize,
        /// The length.
        length: i32,
    },
    /// A string over [`STRING_BYTES`](crate::bounds::STRING_BYTES).
    #[error("a string of {length} bytes at byte {at}, the limit is {limit}", limit = crate::bounds::STRING_BYTES)]
    StringTooLong {
        /// Where the string begins.
        at: usize,
        /// Its length in bytes.
        length: usize,
    },
    /// More elements than the bytes that remain could hold.
    #[error("{count} elements at byte {at} cannot fit into the {remaining} bytes that remain")]
    CountTooLarge {
        /// Where the first element would begin.
        at: usize,
        /// The announced count.
        count: usize,
        /// The bytes that are there.
        remaining: usize,
    },
    /// Decoding would allocate more than the frame's [`DecodeBudget`](crate::bounds::DecodeBudget) allows.
    #[error("decoding would allocate {needed} bytes at byte {at}, {budget} are left of the frame's budget")]
    OverBudget {
        /// Where the array begins.
        at: usize,
        /// The bytes it would take.
        needed: usize,
        /// The bytes left.
        budget: usize,
    },
    /// A variable-length integer of more than 32 bits, or longer than it has to be.
    #[error("malformed variable-length integer at byte {at}")]
    Varint {
        /// Where it begins.
        at: usize,
    },
    /// A string that is not UTF-8.
    #[error("the string at byte {at} is not UTF-8")]
    NotUtf8 {
        /// Where the string begins.
        at: usize,
    },
    /// Null where the version has no null.
    #[error("null at byte {at}, where it is not allowed")]
    Null {
        /// Where the value stands.
        at: usize,
    },
    /// A tag that does not come after the one before it.
    #[error("tag {tag} at byte {at} follows tag {previous}")]
    TagOrder {
        /// Where the tag stands.
        at: usize,
        /// The tag.
        tag: u32,
        /// The tag before it.
        previous: u32,
    },
    /// A known tagged field that is longer than its value.
    #[error("the field of tag {tag} ends with {remaining} bytes left over at byte {at}")]
    TagLength {
        /// Where the value ended.
        at: usize,
        /// The tag.
        tag: u32,
        /// The bytes left over.
        remaining: usize,
    },
    /// The message ended before the frame did.
    #[error("{remaining} bytes follow the message that ended at byte {at}")]
    TrailingBytes {
        /// Where the message ended.
        at: usize,
        /// The bytes left over.
        remaining: usize,
    },
    /// An internal record of a version, or a kind of key, that is not known.
    #[error("version {version} of the record, known are {first} to {last}")]
    RecordVersion {
        /// The version, or kind of key, the record begins with.
        version: i16,
        /// The first known.
        first: i16,
        /// The last known.
        last: i16,
    },
}

/// Why a message cannot be written in the version asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The version is not one this codec knows.
    #[error("{message} has versions {first} to {last}, not {version}")]
    UnknownVersion {
        /// The API or record.
        message: &'static str,
        /// The version asked for.
        version: i16,
        /// The first known version.
        first: i16,
        /// The last known version.
        last: i16,
    },
    /// The field has a value, but the version has no such field, and it must not be left out.
    #[error("{field} is set, but does not exist in version {version}")]
    FieldAbsent {
        /// `Structure::field`.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The field is null, but the version has no null there.
    #[error("{field} is null, which version {version} does not allow")]
    Null {
        /// `Structure::field`.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A string over [`STRING_BYTES`](crate::bounds::STRING_BYTES).
    #[error("a string of {length} bytes, the limit is {limit}", limit = crate::bounds::STRING_BYTES)]
    StringTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Bytes, records or a whole frame whose length does not fit into 31 bits.
    #[error("{length} bytes do not fit into one frame")]
    TooLong {
        /// The length in bytes.
        length: usize,
    },
}
