//! Topics that are subscribed to by a pattern of their names.

use std::collections::BTreeSet;

use bytestring::ByteString;
use regex::Regex;

use crate::error::{Error, Result};
use crate::metadata::Metadata;

/// A regular expression that whole names of topics match.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self> {
        let regex = Regex::new(&format!("^(?:{pattern})$"));
        let wrong = |error: regex::Error| Error::Config { setting: "pattern", reason: error.to_string() };
        Ok(Self { regex: regex.map_err(wrong)? })
    }

    /// The topics that match; those that the cluster keeps for itself never do.
    pub(super) fn topics(&self, metadata: &Metadata) -> BTreeSet<ByteString> {
        let topics = metadata.topics().into_iter().filter(|topic| !topic.is_internal);
        topics.map(|topic| topic.name.clone()).filter(|name| self.regex.is_match(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::messages::metadata::{
        MetadataResponse, MetadataResponsePartition, MetadataResponseTopic,
    };

    use super::*;

    #[test]
    fn only_whole_names_match_and_no_internal_topics() {
        let topic = |name: &'static str| MetadataResponseTopic {
            name: Some(ByteString::from_static(name)),
            is_internal: name.starts_with("__"),
            partitions: vec![MetadataResponsePartition::default()],
            ..MetadataResponseTopic::default()
        };
        let topics = ["a-1", "a-2", "b-1", "xa-1", "__offsets"].map(topic).into();
        let metadata =
            Metadata::default().with(MetadataResponse { topics, ..MetadataResponse::default() }, true);
        for (pattern, expected) in
            [("a-.", vec!["a-1", "a-2"]), (".*1|a-2", vec!["a-1", "a-2", "b-1", "xa-1"]), ("a", vec![])]
        {
            let found = Pattern::new(pattern).expect("it is right").topics(&metadata);
            assert_eq!(found.iter().map(|name| &**name).collect::<Vec<_>>(), expected, "{pattern}");
        }
        assert!(matches!(Pattern::new("a("), Err(Error::Config { setting: "pattern", .. })));
    }
}
