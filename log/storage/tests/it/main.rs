//! The storage engine as its users see it, on a simulated disk where that is the point.

mod append;
mod cleaning;
mod clock_jumps;
mod damage;
mod directory;
mod faults;
mod follower;
mod fuzzed;
mod gathering;
mod harness;
mod journal;
mod kafka_dump;
#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
mod open_files;
mod producers;
mod read;
mod recovery;
mod retention;
mod rounds;
mod sweep;
mod time;
mod transactions;
