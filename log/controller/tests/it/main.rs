//! The controller as its users see it: through `Controller`, `apply` and the files it leaves.

mod crash;
mod damage;
mod golden;
mod handle;
mod local;
mod rejections;
mod replay;
mod scale;
mod simulated_disk;
mod steps;
