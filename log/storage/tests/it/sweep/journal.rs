//! Faults planted into the journal of sync rounds: the sweep notices each of them.

use thalweg_storage::testing::{Crash, OperationKind, Performed};

use super::{all_operations, work_until};
use crate::harness::World;

/// Whether a crash at one of these operations tells that `skipped` was skipped.
fn is_noticed(skipped: usize, crashes: impl IntoIterator<Item = usize>) -> bool {
    crashes.into_iter().any(|n| {
        let mut world = World::journaled();
        world.disk.ignore_sync(skipped);
        let (mut promises, _) = work_until(&world, Some(n));
        world.crash(Crash::Dropped);
        promises.check(&world).is_err()
    })
}

fn is_record(operations: &[Performed], n: usize) -> bool {
    // Before the first one stand two headers.
    operations.get(n).is_some_and(|o| o.kind == OperationKind::WriteThrough && o.position >= 2 * 4096)
}

#[test]
fn a_record_that_does_not_reach_the_disk_is_noticed() {
    let operations = all_operations(World::journaled);
    let records: Vec<usize> = (0..operations.len()).filter(|&n| is_record(&operations, n)).collect();
    assert!(records.len() >= 15, "only {} records", records.len());
    for n in records {
        let around: Vec<String> =
            (n - 3..operations.len().min(n + 9)).map(|n| format!("{n}: {}", operations[n])).collect();
        assert!(is_noticed(n, n + 1..operations.len().min(n + 60)), "{n} of {around:#?}");
    }
}

#[test]
fn entries_that_are_not_void_before_records_go_are_noticed() {
    let operations = all_operations(World::journaled);
    let mut caught = 0;
    for (n, operation) in operations.iter().enumerate() {
        // Of the truncation: the checkpoint is synced, the snapshots are removed, newer segments are.
        let is_checkpoint = operation.kind == OperationKind::Sync && operation.path.ends_with("synced-to");
        let follows = operations.iter().skip(n + 1).take(4);
        let goes = |o: &Performed| {
            o.kind == OperationKind::Remove && o.path.starts_with("b-0")
                || o.kind == OperationKind::SetLen && o.was_needed
        };
        if is_checkpoint && follows.into_iter().any(goes) {
            assert!(is_noticed(n, n + 1..operations.len().min(n + 60)), "{n}: {operation}");
            caught += 1;
        }
    }
    assert!(caught >= 1, "no truncation was found");
}

#[test]
fn a_file_that_is_used_again_before_its_segments_are_synced_is_noticed() {
    let operations = all_operations(World::journaled);
    let mut caught = 0;
    for (n, operation) in operations.iter().enumerate() {
        let is_segment = operation.path.extension() == Some("log".as_ref()) && operation.was_needed;
        if operation.kind != OperationKind::Sync || !is_segment {
            continue;
        }
        // The file is used again when others are full.
        let later = n + 1..operations.len().min(n + 200);
        let crashes = later.filter(|&n| is_record(&operations, n.saturating_sub(1)));
        caught += usize::from(is_noticed(n, crashes));
    }
    assert!(caught >= 10, "only {caught} were noticed");
}

#[test]
fn a_checksum_that_is_not_checked_is_noticed() {
    let operations = all_operations(World::journaled);
    let mut forged = 0;
    let mut caught = 0;
    for n in (0..operations.len()).filter(|&n| is_record(&operations, n)) {
        for seed in 0..8 {
            let mut world = World::journaled();
            let (mut promises, _) = work_until(&world, Some(n));
            world.crash(Crash::Torn(seed));
            // As if nobody looked at the checksum, a torn record gets the right one.
            if forge(&world.path(&operations[n].path.to_string_lossy())) {
                forged += 1;
                caught += usize::from(promises.check(&world).is_err());
            }
        }
    }
    assert!(forged >= 10 && caught >= 3, "{caught} of {forged} torn records were noticed");
}

/// Gives the first torn record of a file the checksum of what is there. Returns false when there is none.
fn forge(path: &std::path::Path) -> bool {
    const BLOCK: usize = 4096;
    let mut bytes = std::fs::read(path).expect("there");
    let number =
        |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut at = 2 * BLOCK;
    while at < bytes.len() && bytes[at..].starts_with(b"TWJR") {
        let len = number(&bytes, at + 8) as usize;
        let crc = crc32c::crc32c(&bytes[at + 8..at + len]);
        if crc != number(&bytes, at + 4) {
            bytes[at + 4..at + 8].copy_from_slice(&crc.to_be_bytes());
            std::fs::write(path, bytes).expect("written");
            return true;
        }
        at += len.next_multiple_of(BLOCK);
    }
    false
}
