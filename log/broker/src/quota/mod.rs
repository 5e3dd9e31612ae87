//! What clients may use (KIP-13, KIP-124, KIP-219, KIP-599): how much is counted here, by the quotas in the metadata.
//!
//! `bucket` counts and `resolve` says which quota is whose, both pure; `clients` keeps the counts of all. `server/metering`
//! says what a request costs, and how long its connection is not read after it.

mod bucket;
mod clients;
mod resolve;

pub(crate) use clients::{ClientQuotas, Usage};
