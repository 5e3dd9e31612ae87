//! Which names a topic may have. Directories are named after topics, so nothing else may reach the disk.

use bytestring::ByteString;

use crate::limits;
use crate::rejection::{Rejection, TopicNameFault};

/// `[a-zA-Z0-9._-]{1,249}`, not `.` or `..`.
pub fn check(name: &ByteString) -> Result<(), Rejection> {
    let reason = match &name.as_bytes()[..] {
        b"" => TopicNameFault::Empty,
        b"." | b".." => TopicNameFault::Dots,
        long if long.len() > limits::MAX_TOPIC_NAME => TopicNameFault::TooLong { length: long.len() },
        bytes if bytes.iter().all(|&byte| is_allowed(byte)) => return Ok(()),
        _ => TopicNameFault::Character,
    };
    Err(Rejection::InvalidTopicName { name: name.clone(), reason })
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_safe_as_directories_are_accepted() {
        for name in ["a", "flights", "__consumer_offsets", "a.b-C_9", "...", "-", &"x".repeat(249)] {
            assert_eq!(check(&name.into()), Ok(()), "{name}");
        }
    }

    #[test]
    fn others_are_refused() {
        let refuse = |name: &str, reason| {
            let name = ByteString::from(name);
            assert_eq!(check(&name), Err(Rejection::InvalidTopicName { name: name.clone(), reason }));
        };
        refuse("", TopicNameFault::Empty);
        refuse(".", TopicNameFault::Dots);
        refuse("..", TopicNameFault::Dots);
        refuse(&"x".repeat(250), TopicNameFault::TooLong { length: 250 });
        for name in ["a b", "a/b", "../x", "ä", "a\0", "a\n", "a:b"] {
            refuse(name, TopicNameFault::Character);
        }
    }
}
