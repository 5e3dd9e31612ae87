//! Appending and reading back.

use thalweg_protocol::Offset;
use thalweg_storage::ReadBound;

use crate::harness::{Make, World, append, commit, records, small, values};

#[test]
fn what_is_appended_is_read() {
    let world = World::new();
    let log = world.create(&small());
    let mut expected = Vec::new();
    for n in 0..100 {
        let (a, b) = (format!("value {n}"), format!("another {n}"));
        let info = append(&log, Make::values(&[&a, &b]));
        assert_eq!((info.first_offset, info.last_offset), (Offset(2 * n), Offset(2 * n + 1)));
        expected.extend([a, b]);
    }
    assert!(log.segment_count() > 5);
    assert_eq!(values(&log), expected);
    assert!(records(&log, Offset(0), ReadBound::HighWatermark).is_empty());
    commit(&log);
    for from in [0, 1, 77, 198, 199] {
        let found = records(&log, Offset(from), ReadBound::HighWatermark);
        let offsets: Vec<i64> = found.iter().map(|record| record.offset.0).collect();
        assert_eq!(offsets, (from..200).collect::<Vec<_>>());
    }
}
