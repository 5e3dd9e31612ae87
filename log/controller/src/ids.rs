//! Numbers that only the cluster metadata counts with.

use std::fmt;

macro_rules! epoch {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

epoch! {
    /// Counts the changes of one partition's metadata (leader or ISR), so that an update can be made
    /// conditional on the version it was based on (KIP-497, KIP-841). The first one is 0.
    PartitionEpoch(i32)
}
epoch! {
    /// Tells the registrations of one node apart: the metadata offset of the registration. What an older
    /// incarnation of the node still asks for is refused.
    NodeEpoch(i64)
}

impl PartitionEpoch {
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
