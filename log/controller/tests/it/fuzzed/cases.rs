//! Inputs on which readers have panicked: numbers that nobody has written, under good checksums.

use super::metadata_files::{check, with_number};

#[test]
fn a_snapshot_stands_at_the_last_offset_there_is() {
    for number in [i64::MAX, i64::MIN] {
        check(&with_number("offset", number));
    }
}

#[test]
fn a_snapshot_has_partitions_whose_epochs_have_come_to_their_end() {
    for number in [i32::MAX, i32::MAX - 1, i32::MIN] {
        check(&with_number("leader_epoch", number.into()));
        check(&with_number("partition_epoch", number.into()));
    }
}

#[test]
fn a_snapshot_has_given_away_all_producer_ids() {
    for number in [i64::MAX, i64::MIN] {
        check(&with_number("next_producer_id", number));
    }
}
