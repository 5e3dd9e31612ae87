//! What the group and the transaction coordinator share.
#![allow(dead_code, unused_imports)]

mod key_hash;
mod now;

pub(crate) use key_hash::partition_for;
pub(crate) use now::Now;
