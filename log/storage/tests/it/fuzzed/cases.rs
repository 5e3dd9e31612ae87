//! Inputs that readers have got wrong.

use thalweg_protocol::record::BatchHeader;

use super::{directory_files, log_files};

/// The offset of a batch lies outside of its checksum. Reads noticed that it does not follow the one before; a search by time did
/// not, and answered with it.
#[test]
fn a_search_by_time_believes_no_offset_that_is_damaged() {
    let mut batches = Vec::new();
    log_files::with_segment(|bytes| {
        let mut at = 0;
        while let Ok(header) = BatchHeader::parse(&bytes[at..]) {
            batches.push(at);
            at += header.size_in_bytes();
        }
    });
    assert!(batches.len() > 4, "{batches:?}");
    for at in batches {
        for bit in [1, 58] {
            let input = log_files::with_segment(|bytes| bytes[at + 7 - bit / 8] ^= 1 << (bit % 8));
            log_files::check(&input);
        }
    }
}

// What comes now are numbers and names that nobody has written, under good checksums.

/// Of the first entry of a snapshot of the producers: where a field begins.
const LAST_OFFSET: usize = 10 + 14;
const OFFSET_DELTA: usize = 10 + 22;
const TRANSACTION_START: usize = 10 + 38;

fn check_snapshot(at: usize, number: &[u8]) {
    log_files::check(&log_files::with_change(".snapshot", |bytes| {
        bytes[at..at + number.len()].copy_from_slice(number);
    }));
}

#[test]
fn a_snapshot_has_a_producer_whose_last_batch_lies_beyond_all_offsets() {
    check_snapshot(LAST_OFFSET, &i64::MIN.to_be_bytes());
    check_snapshot(LAST_OFFSET, &i64::MAX.to_be_bytes());
}

#[test]
fn a_snapshot_has_a_producer_whose_last_batch_ends_before_it_begins() {
    check_snapshot(OFFSET_DELTA, &i32::MAX.to_be_bytes());
    check_snapshot(OFFSET_DELTA, &i32::MIN.to_be_bytes());
    let last_offset_and_delta = [&i64::MAX.to_be_bytes()[..], &(-1_i32).to_be_bytes()].concat();
    check_snapshot(LAST_OFFSET, &last_offset_and_delta);
}

#[test]
fn a_snapshot_has_a_transaction_that_begins_beyond_the_log() {
    check_snapshot(TRANSACTION_START, &i64::MAX.to_be_bytes());
    check_snapshot(TRANSACTION_START, &1_000_i64.to_be_bytes());
}

/// The line of a log says something else in the field of this number.
fn check_checkpoint(field: usize, number: &str) {
    directory_files::check(&directory_files::with_change("synced-to", |bytes| {
        let text = String::from_utf8(bytes.clone()).expect("text");
        let mut changed = String::new();
        for line in text.lines() {
            let mut fields: Vec<&str> = line.split(' ').collect();
            if fields.len() > field && fields[1] != "thalweg" {
                fields[field] = number;
            }
            changed.push_str(&(fields.join(" ") + "\n"));
        }
        *bytes = changed.into_bytes();
    }));
}

#[test]
fn the_checkpoint_names_offsets_that_no_log_has() {
    for field in 3..=5 {
        for number in [i64::MAX, i64::MAX - 1, i64::MIN, -1] {
            check_checkpoint(field, &number.to_string());
        }
    }
}

#[test]
fn the_checkpoint_names_what_is_no_partition() {
    for (field, name) in [(1, "pl\u{2}ain"), (1, ".."), (1, ""), (2, "-1")] {
        check_checkpoint(field, name);
    }
}

#[test]
fn the_checkpoint_names_a_round_that_no_journal_has() {
    check_checkpoint(7, &u64::MAX.to_string());
    check_checkpoint(7, &(u64::MAX - 1).to_string());
}

/// Both headers and the first record of a file of the journal say something else.
#[test]
fn the_journal_has_rounds_that_no_journal_has() {
    for round in [u64::MAX, u64::MAX - 2] {
        directory_files::check(&directory_files::with_change("journal/0", |changes| {
            let number = round.to_be_bytes();
            // First round and run of both headers, and the round of the first record.
            for at in [24_u16, 32, 4096 + 24, 4096 + 32, 8192 + 16] {
                changes.extend(at.to_be_bytes());
                changes.push(8);
                changes.extend(number);
            }
        }));
    }
}
