//! Subscriptions by pattern: the whole name of a topic has to match (KIP-848).

use std::collections::BTreeSet;

use bytestring::ByteString;

use super::{Change, Changes, ConsumerGroup};
use crate::coordinator::Now;
use crate::group::topic_image::TopicImage;
use crate::pattern::Pattern;

/// The topics that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedRegex {
    pub(crate) topics: BTreeSet<ByteString>,
    /// The place in the metadata log at which they did.
    pub(crate) metadata_offset: i64,
    /// When that was looked at, in wall-clock ms.
    pub(crate) resolved_ms: i64,
}

impl ConsumerGroup {
    /// Looks the topics of every pattern up, and forgets the patterns that nobody uses any more. One that cannot be used,
    /// since another kind of broker has taken it, keeps the topics that it had.
    pub(super) fn resolve_regexes(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        let used: BTreeSet<ByteString> =
            self.image.members().values().filter_map(|member| member.regex.clone()).collect();
        for pattern in &used {
            let Ok(regex) = Pattern::compile(pattern) else { continue };
            let matching = topics.choosable_names().filter(|name| regex.matches(name));
            let resolved = ResolvedRegex {
                topics: matching.cloned().collect(),
                metadata_offset: topics.metadata_offset(),
                resolved_ms: now.wall_ms,
            };
            let known = self.image.regexes().get(pattern);
            if known.is_none_or(|known| known.topics != resolved.topics) {
                self.put(changes, Change::Regex(pattern.clone(), Some(resolved)));
            }
        }
        self.forget_regexes(&used, changes);
    }

    /// Forgets the patterns that are not among `used`.
    fn forget_regexes(&mut self, used: &BTreeSet<ByteString>, changes: &mut Changes) {
        let unused: Vec<_> =
            self.image.regexes().keys().filter(|pattern| !used.contains(*pattern)).cloned().collect();
        for pattern in unused {
            self.put(changes, Change::Regex(pattern, None));
        }
    }

    /// Forgets the patterns that no member uses.
    pub(super) fn forget_unused_regexes(&mut self, changes: &mut Changes) {
        let used = self.image.members().values().filter_map(|member| member.regex.clone()).collect();
        self.forget_regexes(&used, changes);
    }
}
