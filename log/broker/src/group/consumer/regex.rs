//! Subscriptions by pattern: the whole name of a topic has to match (KIP-848).

use std::collections::BTreeSet;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{Change, Changes, ConsumerGroup};
use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::topic_image::TopicImage;

/// The most bytes that a compiled pattern may have: a short one can ask for a huge machine.
const COMPILED_LIMIT: usize = 1 << 20;

/// The topics that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedRegex {
    pub(crate) topics: BTreeSet<ByteString>,
    /// The place in the metadata log at which they did.
    pub(crate) metadata_offset: i64,
    /// When that was looked at, in wall-clock ms.
    pub(crate) resolved_ms: i64,
}

/// A pattern that takes time linear in the length of what it is matched with.
#[derive(Debug)]
pub(crate) struct Regex(regex::Regex);

impl Regex {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// INVALID_REGULAR_EXPRESSION, with what is wrong about it.
    pub(crate) fn compile(pattern: &str) -> Result<Self, Refusal> {
        let compile = |pattern: &str| regex::RegexBuilder::new(pattern).size_limit(COMPILED_LIMIT).build();
        // By itself first: its brackets are to match each other, not those around it.
        let compiled = compile(pattern).and_then(|_| compile(&format!("^(?:{pattern})$")));
        compiled.map(Self).map_err(|error| {
            let message = format!("the pattern {pattern:?} cannot be used: {error}");
            Refusal::new(ErrorCode::InvalidRegularExpression, message)
        })
    }

    /// Whether all of `name` matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl ConsumerGroup {
    /// Looks the topics of every pattern up, and forgets the patterns that nobody uses any more. One that cannot be used,
    /// since another kind of broker has taken it, keeps the topics that it had.
    pub(super) fn resolve_regexes(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        let used: BTreeSet<ByteString> =
            self.image.members().values().filter_map(|member| member.regex.clone()).collect();
        for pattern in &used {
            let Ok(regex) = Regex::compile(pattern) else { continue };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_has_to_match() {
        for (pattern, name, expected) in [
            ("orders", "orders", true),
            ("orders", "orders-2", false),
            ("orders|sales", "sales", true),
            ("orders|sales", "sales2", false),
            ("orders.*", "orders.eu", true),
            ("", "orders", false),
            ("", "", true),
        ] {
            let regex = Regex::compile(pattern).expect("it can be used");
            assert_eq!(regex.matches(name), expected, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for pattern in ["(", "a)(b", "[", "(?=a)", r"(a)\1", "a{1000}{1000}{1000}"] {
            let refusal = Regex::compile(pattern).expect_err(pattern);
            assert_eq!(refusal.code, ErrorCode::InvalidRegularExpression, "{pattern}");
        }
    }
}
