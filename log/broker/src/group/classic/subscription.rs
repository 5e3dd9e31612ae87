//! Which topics the members of a group read, as far as they say so in the consumers' own format.

use std::collections::BTreeSet;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::records::ConsumerProtocolSubscription;

use super::ClassicGroup;

/// The protocol type of groups of consumers.
pub(crate) const CONSUMER: &str = "consumer";

/// Which topics the members of a group read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subscription {
    /// These.
    Topics(BTreeSet<ByteString>),
    /// It cannot be told: no protocol has been chosen yet, or what a member says cannot be read.
    Unknown,
}

impl Subscription {
    /// Whether somebody reads `topic`, or may do so.
    pub(crate) fn contains(&self, topic: &str) -> bool {
        match self {
            Self::Topics(topics) => topics.contains(topic),
            Self::Unknown => true,
        }
    }
}

impl ClassicGroup {
    /// Which topics the members read, so that offsets of others can be deleted.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP for members that are not consumers: what they use their offsets for is theirs alone to know.
    pub(crate) fn subscription(&self) -> Result<Subscription, ErrorCode> {
        if self.members.is_empty() {
            return Ok(Subscription::Topics(BTreeSet::new()));
        }
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return Err(ErrorCode::NonEmptyGroup);
        }
        let Some(protocol) = &self.protocol else { return Ok(Subscription::Unknown) };
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            match ConsumerProtocolSubscription::from_bytes(member.metadata(protocol)) {
                Ok(subscription) => topics.extend(subscription.topics),
                Err(_) => return Ok(Subscription::Unknown),
            }
        }
        Ok(Subscription::Topics(topics))
    }
}
