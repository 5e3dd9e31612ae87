//! The names of log directories: made of topic names, which come from clients.

use thalweg_protocol::TopicPartition;

use crate::error::Error;

/// The longest topic name, in bytes.
const LONGEST_TOPIC: usize = 249;
/// The longest name of a file that file systems take, in bytes.
const LONGEST_NAME: usize = 255;
/// What the directory of a deleted log ends with.
pub(crate) const DELETED_DIRECTORY: &str = "-delete";
/// What the directory of a log ends with that was in the way of another of its name. Nothing reads it or removes it.
pub(crate) const STRAY_DIRECTORY: &str = "-stray";

/// `<topic>-<partition>`.
///
/// # Errors
/// [`Error::InvalidTopicName`]: nothing else may become a part of a path.
pub(crate) fn directory_name(partition: &TopicPartition) -> Result<String, Error> {
    if !is_topic_name(&partition.topic) || partition.partition < 0 {
        return Err(Error::InvalidTopicName { name: partition.topic.to_string() });
    }
    Ok(partition.to_string())
}

/// The partition whose log a directory of this name holds.
pub(crate) fn parse_directory_name(name: &str) -> Option<TopicPartition> {
    let (topic, number) = name.rsplit_once('-')?;
    let partition: i32 = number.parse().ok()?;
    let is_ours = is_topic_name(topic) && partition >= 0 && partition.to_string() == number;
    is_ours.then(|| TopicPartition::new(topic.to_owned(), partition))
}

/// The name for the directory of a log that is none any more, which ends in `kind`; `id` makes it a new one.
pub(crate) fn former_directory_name(partition: &TopicPartition, id: u128, kind: &str) -> String {
    let end = format!("-{}.{id:032x}{kind}", partition.partition);
    let most = LONGEST_NAME - end.len();
    let topic: &str = &partition.topic;
    format!("{}{end}", topic.get(..most).unwrap_or(topic))
}

fn is_topic_name(name: &str) -> bool {
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !name.is_empty()
        && name.len() <= LONGEST_TOPIC
        && name != "."
        && name != ".."
        && name.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_topic_names_become_directories() {
        let longest = "x".repeat(249);
        for good in ["a", "flights", "a-b.c_d-1", "__consumer_offsets", "...", &longest] {
            let partition = TopicPartition::new(good.to_owned(), 12);
            let name = directory_name(&partition).expect(good);
            assert_eq!(parse_directory_name(&name), Some(partition));
        }
        let too_long = "x".repeat(250);
        for bad in ["", ".", "..", "../x", "a/b", "a b", "a\0", "ä", &too_long] {
            let partition = TopicPartition::new(bad.to_owned(), 0);
            assert!(matches!(directory_name(&partition), Err(Error::InvalidTopicName { .. })), "{bad:?}");
            assert_eq!(parse_directory_name(&format!("{bad}-0")), None, "{bad:?}");
        }
        assert!(directory_name(&TopicPartition::new("a", -1)).is_err());
        for other in
            ["metadata", "a-", "a-01", "a-+1", "-1", "a-99999999999", "a-1.0f-delete", "a-1.0f-stray"]
        {
            assert_eq!(parse_directory_name(other), None, "{other:?}");
        }
    }

    #[test]
    fn names_of_former_logs_fit_and_are_not_logs() {
        for topic in ["a".to_owned(), "x".repeat(249)] {
            let partition = TopicPartition::new(topic, i32::MAX);
            for kind in [DELETED_DIRECTORY, STRAY_DIRECTORY] {
                let name = former_directory_name(&partition, u128::MAX, kind);
                assert!(name.len() <= 255 && name.ends_with(kind), "{name}");
                assert_eq!(parse_directory_name(&name), None);
            }
        }
    }
}
