//! A partition that this node leads: its log, its high watermark, and who waits for it.

mod bell;
mod high_watermark;
mod isr;
mod leader;
mod pending_fetch;
mod pending_produce;

pub(crate) use bell::{Bell, Place};
pub(crate) use leader::{Partition, Role};
pub(crate) use pending_fetch::PendingFetch;
