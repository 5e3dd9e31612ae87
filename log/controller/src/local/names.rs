//! What the files are called.

use thalweg_protocol::Offset;

pub(super) const LOG: &str = ".log";
pub(super) const SNAPSHOT: &str = ".snapshot";
pub(super) const TEMPORARY: &str = ".tmp";

/// The file that says where the log ended when the node was last stopped in order.
pub(super) const STOPPED: &str = "stopped";

const DIGITS: usize = 20;

/// The name of the file that begins at, or stands before, the command at `offset`.
pub(super) fn of(offset: Offset, suffix: &str) -> String {
    format!("{:020}{suffix}", offset.0)
}

/// The offset in a file's name; `None` if it is not such a file.
pub(super) fn parse(name: &str, suffix: &str) -> Option<Offset> {
    let digits = name.strip_suffix(suffix)?;
    let plain = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok().map(Offset)).flatten()
}

/// Whether a file of this name is a log or a snapshot.
pub(super) fn is_whole(name: &str) -> bool {
    parse(name, LOG).is_some() || parse(name, SNAPSHOT).is_some()
}

/// Whether a file of this name is one that this log has made, finished or not.
pub(super) fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(TEMPORARY).unwrap_or(name);
    is_whole(name) || name == STOPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_are_made() {
        assert_eq!(of(Offset(4711), LOG), "00000000000000004711.log");
        assert_eq!(parse("00000000000000004711.log", LOG), Some(Offset(4711)));
        for other in [
            "4711.log",
            "00000000000000004711.snapshot",
            "0000000000000000471x.log",
            ".log",
            "99999999999999999999.log",
        ] {
            assert_eq!(parse(other, LOG), None, "{other}");
        }
        assert!(is_ours("00000000000000004711.snapshot.tmp"));
        assert!(is_ours(STOPPED) && is_ours("stopped.tmp"));
        assert!(!is_ours("notes.txt") && !is_ours("notes.tmp"));
    }
}
