//! The features whose level the whole cluster agrees on (KIP-584, KIP-1022).

/// What is known of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureDefinition {
    /// Its name, as clients write it.
    pub name: &'static str,
    /// The highest level that this version knows; the lowest is 0, without the feature.
    pub max_level: i16,
    /// The level of a cluster in which nobody has set another.
    pub default_level: i16,
}

/// All features.
pub static FEATURES: &[FeatureDefinition] = &[
    // By which producers know that each transaction gets an epoch of its own (KIP-890).
    FeatureDefinition { name: "transaction.version", max_level: 2, default_level: 2 },
];

impl FeatureDefinition {
    /// The feature of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FEATURES.iter().find(|feature| feature.name == name)
    }
}
