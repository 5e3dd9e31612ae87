//! What the targets check. It lies with the tests of the crates it is about, which run it, too; here it is only gathered.

#[path = "../../log/protocol/tests/it/allocations.rs"]
pub mod allocations;
#[path = "../../log/protocol/tests/it/fuzzed/batches.rs"]
pub mod batches;
#[path = "../../log/protocol/tests/it/fuzzed/codecs.rs"]
pub mod codecs;
#[path = "../../log/storage/tests/it/fuzzed/directory_files.rs"]
pub mod directory_files;
#[path = "../../log/storage/tests/it/harness.rs"]
pub mod harness;
#[path = "../../log/protocol/tests/it/fuzzed/internal_records.rs"]
pub mod internal_records;
#[path = "../../log/storage/tests/it/fuzzed/log_files.rs"]
pub mod log_files;
#[path = "../../log/storage/tests/it/fuzzed/mending.rs"]
pub mod mending;
pub mod messages;
#[path = "../../log/controller/tests/it/fuzzed/metadata_commands.rs"]
pub mod metadata_commands;
#[path = "../../log/controller/tests/it/fuzzed/metadata_files.rs"]
pub mod metadata_files;
#[path = "../../log/storage/tests/it/fuzzed/place.rs"]
pub mod place;
#[path = "../../log/storage/tests/it/fuzzed/readers.rs"]
pub mod readers;
#[path = "../../log/protocol/tests/it/fuzzed/requests.rs"]
pub mod requests;
#[path = "../../log/protocol/tests/it/fuzzed/responses.rs"]
pub mod responses;
#[path = "../../log/protocol/tests/it/fuzzed/round_trip.rs"]
pub mod round_trip;
#[path = "../../log/controller/tests/it/simulated_disk.rs"]
pub mod simulated_disk;

/// Writes the inputs that a target begins with into the directory that `THALWEG_FUZZ_SEEDS` names. A target does so before it
/// reads its corpus.
///
/// # Panics
/// When they cannot be written.
pub fn sow(seeds: fn() -> Vec<Vec<u8>>) {
    let Some(directory) = std::env::var_os("THALWEG_FUZZ_SEEDS").map(std::path::PathBuf::from) else {
        return;
    };
    std::fs::create_dir_all(&directory).expect("the directory of the seeds can be made");
    for (at, seed) in seeds().iter().enumerate() {
        std::fs::write(directory.join(format!("seed-{at}")), seed).expect("a seed can be written");
    }
}
