//! A disk that crashes and a clock that stands still, for tests of this crate and of those above it.

mod clock;
mod disk;
mod filesystem;

pub use clock::ManualClock;
pub use filesystem::{Crash, OperationKind, Performed, SimulatedFilesystem};
