//! The names of a segment's files.

use thalweg_protocol::Offset;

/// The kinds of file whose name is an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    /// The producers' state, which belongs to an offset rather than to a segment.
    Snapshot,
}

/// A file that is to be removed.
pub(crate) const DELETED_SUFFIX: &str = ".deleted";
/// A file that is being written.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";
/// A file of a cleaned segment that is being written.
pub(crate) const CLEANED_SUFFIX: &str = ".cleaned";
/// A cleaned segment that is to replace others.
const SWAP_SUFFIX: &str = ".swap";

impl FileKind {
    /// A segment's files, the batches first: without them the others are leftovers.
    pub(crate) const OF_A_SEGMENT: [Self; 4] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex];

    const ALL: [Self; 5] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex, Self::Snapshot];

    fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }
}

/// 20 digits and the suffix of the kind.
pub(crate) fn file_name(offset: Offset, kind: FileKind) -> String {
    format!("{:020}{}", offset.0, kind.suffix())
}

/// What [`file_name`] was given, if it was it that made the name.
pub(crate) fn parse_file_name(name: &str) -> Option<(Offset, FileKind)> {
    let (digits, _) = name.split_at_checked(20)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let offset = Offset(digits.parse().ok()?);
    let kind = FileKind::ALL.into_iter().find(|kind| &name[20..] == kind.suffix())?;
    Some((offset, kind))
}

/// The name of a file of a cleaned segment while it is being written.
pub(crate) fn cleaned_name(base_offset: Offset, kind: FileKind) -> String {
    file_name(base_offset, kind) + CLEANED_SUFFIX
}

/// The name of the batches that are to replace those from `base_offset` up to, without, `end`.
pub(crate) fn swap_name(base_offset: Offset, end: Offset) -> String {
    format!("{:020}-{:020}{SWAP_SUFFIX}", base_offset.0, end.0)
}

/// What [`swap_name`] was given, if it was it that made the name.
pub(crate) fn parse_swap_name(name: &str) -> Option<(Offset, Offset)> {
    let (base_offset, end) = name.strip_suffix(SWAP_SUFFIX)?.split_once('-')?;
    let offset = |digits: &str| {
        let is_ours = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
        is_ours.then(|| digits.parse().ok().map(Offset)).flatten()
    };
    Some((offset(base_offset)?, offset(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in FileKind::ALL {
            for offset in [0, 4711, i64::MAX] {
                let name = file_name(Offset(offset), kind);
                assert_eq!(parse_file_name(&name), Some((Offset(offset), kind)));
                assert_eq!(parse_file_name(&format!("{name}.deleted")), None);
                assert_eq!(cleaned_name(Offset(offset), kind), name + ".cleaned");
                let swap = (Offset(offset), Offset(i64::MAX));
                assert_eq!(parse_swap_name(&swap_name(swap.0, swap.1)), Some(swap));
            }
        }
        for other in ["0-1.swap", "00000000000000000000.swap", "00000000000000000000.log.swap"] {
            assert_eq!(parse_swap_name(other), None, "{other}");
        }
        for other in
            ["", "1.log", "0000000000000000000x.log", "99999999999999999999.log", "00000000000000000000"]
        {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }
}
