//! What holds of every log that opens, whatever its files hold: readers get on, see offsets that grow and lie within the log,
//! or an error that names the file; and what is appended is there.

use thalweg_protocol::record::{BatchHeader, Batches};
use thalweg_protocol::{LeaderEpoch, Offset, Scratch};
use thalweg_storage::{AppendOrigin, Log, MarkerAppend, ReadBound, Standing, TimeQuery, TransactionResult};

use super::place::Place;
use crate::harness::{EPOCH, Make, NOW_MS};

/// What a batch of which a reader reads may have decompressed.
const MOST_DECOMPRESSED: usize = 1 << 20;

/// The largest offset at which a batch of any size can be appended.
const LARGEST: i64 = i64::MAX - i32::MAX as i64 - 1;

/// Reads the log in each way there is. Returns whether nothing was told to be wrong.
///
/// Where the input was given checksums that are right (`is_forged`), a batch that is only glanced at when the log is opened may
/// say that it holds more offsets than the log has: its checksum is what vouches for that.
pub fn read(place: &Place, log: &Log, is_forged: bool) -> bool {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    assert!(Offset(0) <= start && start <= end, "{start} to {end}");
    let Some(synced) = place.told(log.sync()) else { return false };
    log.set_high_watermark(synced);
    let (high_watermark, last_stable) = (log.high_watermark(), log.last_stable_offset());
    assert!(last_stable <= high_watermark && high_watermark <= end);
    let records = read_to(place, log, ReadBound::LogEnd, is_forged);
    let mut is_whole = records.is_some();
    for bound in [ReadBound::HighWatermark, ReadBound::LastStableOffset] {
        is_whole &= read_to(place, log, bound, is_forged).is_some();
    }
    let times = [i64::MIN, -1, 0, NOW_MS, NOW_MS + 15, NOW_MS + 1000, i64::MAX].map(TimeQuery::At);
    for query in times.into_iter().chain([TimeQuery::MaxTimestamp, TimeQuery::Earliest, TimeQuery::Latest]) {
        let Some(found) = place.told(log.offset_for_time(query)) else {
            is_whole = false;
            continue;
        };
        let Some(found) = found else { continue };
        assert!(start <= found.offset && found.offset <= end, "{query:?}: {found:?}");
        if let TimeQuery::At(asked) = query {
            assert!(found.timestamp >= asked && found.offset < end, "{query:?}: {found:?}");
            let is_record = |records: &Vec<_>| records.contains(&(found.offset, found.timestamp));
            assert!(is_forged || records.as_ref().is_none_or(is_record), "no record is {found:?}");
        }
    }
    for epoch in [-1, 0, 3, 4, 5, i32::MAX] {
        let found = log.end_offset_for_epoch(LeaderEpoch(epoch)).end_offset;
        assert!(Offset(-1) <= found && found <= end, "epoch {epoch} ends at {found}, the log at {end}");
    }
    is_whole & place.told(log.aborted_transactions(start, end)).is_some()
}

/// Reads in small steps, as a client does that checks checksums. Returns offset and timestamp of each record, unless something was
/// told to be wrong.
fn read_to(place: &Place, log: &Log, bound: ReadBound, is_forged: bool) -> Option<Vec<(Offset, i64)>> {
    let mut seen = Vec::new();
    let mut scratch = Scratch::new(MOST_DECOMPRESSED);
    let end = log.log_end_offset();
    let mut next = log.log_start_offset();
    loop {
        let info = place.told(log.read(next, 300, bound, true))?;
        let Some(slice) = info.records else { return Some(seen) };
        for aborted in info.aborted_transactions {
            assert!(aborted.first_offset < end, "{aborted:?} in a log that ends at {end}");
        }
        let before = next;
        for batch in Batches::new(slice.read().expect("the slice lies within the file")) {
            let batch = batch.ok()?;
            let BatchHeader { base_offset, .. } = *batch.header();
            assert!(base_offset >= next || next == before, "{base_offset} where {next} was expected");
            if batch.verify().is_err() || is_forged && batch.header().next_offset() > end {
                return None;
            }
            assert!(batch.header().next_offset() <= end, "{:?} in a log to {end}", batch.header());
            let records = batch.records(&mut scratch).ok()?;
            let mut last = base_offset.plus(-1);
            for record in records {
                let record = record.ok()?;
                assert!(last < record.offset && record.offset < end);
                last = record.offset;
                if record.offset >= next {
                    seen.push((record.offset, record.timestamp));
                }
            }
            next = next.max(batch.header().next_offset());
        }
        assert!(next > before, "a read from {before} makes no progress");
    }
}

/// Appends a record and reads it. Returns the log's end before it, if there was room for it.
pub fn append(place: &Place, log: &Log) -> Option<Offset> {
    append_by_producers(log);
    let end = log.log_end_offset();
    let epoch = log.latest_epoch().unwrap_or(EPOCH);
    let batch = Make::values(&["appended"]).batch();
    let appended =
        log.append_as_leader(&batch, epoch, AppendOrigin::Client { guard: None, awaits_sync: true });
    let appended = match appended {
        Err(_) if end.0 >= LARGEST => return None,
        appended => place.told(appended)?,
    };
    assert_eq!((appended.first_offset, log.log_end_offset()), (end, end.plus(1)));
    assert_appended(place, log, end);
    Some(end)
}

/// What the log takes from producers it knows is its affair, as long as it comes to an end.
fn append_by_producers(log: &Log) {
    let mut known = log.active_producers();
    known.sort_by_key(|producer| producer.producer_id);
    for producer in known.into_iter().take(3) {
        let (id, epoch) = (producer.producer_id, producer.producer_epoch);
        let sequence = producer.last_sequence.map_or(0, |last| last.wrapping_add(1) & i32::MAX);
        let batch = Make::values(&["more"]).by(id.0, epoch.0, sequence).batch();
        let leader_epoch = log.latest_epoch().unwrap_or(EPOCH);
        let _ = log.append_as_leader(
            &batch,
            leader_epoch,
            AppendOrigin::Client { guard: None, awaits_sync: true },
        );
        let _ = log.append_marker(MarkerAppend {
            producer_id: id,
            producer_epoch: epoch,
            result: TransactionResult::Abort,
            coordinator_epoch: producer.coordinator_epoch.unwrap_or(0),
            epoch_is_bumped: false,
            leader_epoch,
        });
    }
}

/// The record that was appended at this offset is there.
pub fn assert_appended(place: &Place, log: &Log, offset: Offset) {
    let Some(info) = place.told(log.read(offset, 300, ReadBound::LogEnd, true)) else { return };
    let slice = info.records.expect("what was appended can be read");
    let batch = Batches::new(slice.read().expect("it lies within the file")).next().expect("a batch");
    let batch = batch.expect("a whole one");
    assert_eq!(batch.header().base_offset, offset);
    let mut scratch = Scratch::new(MOST_DECOMPRESSED);
    let record = batch.records(&mut scratch).expect("it is good").next().expect("one record").expect("good");
    assert_eq!(record.value, Some(&b"appended"[..]));
}

/// What the directory's checkpoint would say of the log.
pub fn standing(log: &Log, is_clean: bool) -> Standing {
    Standing {
        synced_to: Some(log.synced_offset()),
        log_start: log.log_start_offset(),
        high_watermark: log.high_watermark(),
        is_clean,
    }
}
