//! What all brokers together know.

use std::collections::BTreeMap;

use thalweg_protocol::NodeId;

use crate::error::{Error, Result};

/// What was found on the brokers, each of which knows a part, and which of them could not say.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    /// What was found, in order.
    pub found: Vec<T>,
    /// Why a broker's part is missing.
    pub failed: BTreeMap<NodeId, Error>,
}

impl<T: Ord> Listing<T> {
    pub(super) fn new(answers: BTreeMap<NodeId, Result<Vec<T>>>) -> Self {
        let mut listing = Self { found: Vec::new(), failed: BTreeMap::new() };
        for (broker, answer) in answers {
            match answer {
                Ok(found) => listing.found.extend(found),
                Err(error) => {
                    listing.failed.insert(broker, error);
                }
            }
        }
        listing.found.sort();
        // What has just moved from one broker to another may be known to both.
        listing.found.dedup();
        listing
    }

    /// Everything that was found, if every broker has said its part.
    ///
    /// # Errors
    /// The first failure of a broker.
    pub fn complete(self) -> Result<Vec<T>> {
        match self.failed.into_values().next() {
            Some(error) => Err(error),
            None => Ok(self.found),
        }
    }
}
