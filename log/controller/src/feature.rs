//! The features whose level the whole cluster agrees on (KIP-584, KIP-1022).

/// What is known of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureDefinition {
    /// Its name, as clients write it.
    pub name: &'static str,
    /// The lowest level that can be set; 0 is without the feature.
    pub min_level: i16,
    /// The highest level that this version knows.
    pub max_level: i16,
    /// The level of a cluster in which nobody has set another.
    pub default_level: i16,
}

/// The feature of share groups: they are not served at level 0.
const SHARE_VERSION: &str = "share.version";

/// All features.
pub static FEATURES: &[FeatureDefinition] = &[
    // By which consumers know that the broker assigns to groups (KIP-848), which it does whatever is set.
    FeatureDefinition { name: "group.version", min_level: 1, max_level: 1, default_level: 1 },
    // By which clients know that there are share groups (KIP-932), and what is told of them: 1 is without their lag (KIP-1226).
    FeatureDefinition { name: SHARE_VERSION, min_level: 0, max_level: 2, default_level: 2 },
    // By which producers know that each transaction gets an epoch of its own (KIP-890).
    FeatureDefinition { name: "transaction.version", min_level: 0, max_level: 2, default_level: 2 },
];

impl FeatureDefinition {
    /// That of share groups (KIP-932).
    pub(crate) fn of_share_groups() -> &'static Self {
        Self::find(SHARE_VERSION).expect("it is one of all features")
    }

    /// The feature of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FEATURES.iter().find(|feature| feature.name == name)
    }
}
