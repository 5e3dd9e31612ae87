//! The controller as its users see it: through `Controller`, `apply` and the files it leaves.

mod crash;
mod damage;
mod fuzzed;
mod golden;
mod handle;
mod local;
#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
mod rejections;
mod replay;
mod scale;
mod simulated_disk;
mod steps;
