//! Faults that are put into a sound history, to show that each is found.

use super::{Fate, FaultKind, History, Value};

/// The producer of what nobody has sent.
const NOBODY: u32 = u32::MAX;

/// The same history with a fault of this kind in it, or `None` where it has not what that takes.
pub fn plant(history: &History, kind: FaultKind) -> Option<History> {
    let mut planted = history.clone();
    match kind {
        FaultKind::InconsistentOffset => {
            let reading = planted.readings.iter_mut().find(|reading| reading.records.len() > 1)?;
            let other = reading.records[1].1;
            reading.records[0].1 = other;
        }
        FaultKind::Duplicate => {
            let (&partition, records) = planted.log.iter().find(|(_, records)| records.len() > 2)?;
            let (value, end) = (records[0].1, records.last()?.0 + 1);
            planted.log.get_mut(&partition)?.push((end, value));
        }
        FaultKind::LostWrite => {
            let done = planted.sent.iter().find(|group| group.fate == Fate::Done)?.records[0].value;
            forget(&mut planted, done);
        }
        FaultKind::AbortedRead => {
            let reading = planted.readings.iter_mut().find(|reading| !reading.records.is_empty())?;
            let next = reading.records.last()?.0 + 1;
            let aborted = planted.sent.iter().find(|group| group.fate == Fate::NotDone);
            let unknown = Value { producer: NOBODY, number: 0 };
            reading.records.push((next, aborted.map_or(unknown, |group| group.records[0].value)));
        }
        FaultKind::TornTransaction => {
            let whole =
                planted.sent.iter_mut().find(|group| group.fate == Fate::Done && group.records.len() > 1)?;
            whole.fate = Fate::Unknown;
            let first = whole.records[0].value;
            forget(&mut planted, first);
        }
        FaultKind::Reordered => {
            let records = planted.log.values_mut().find_map(|records| {
                let at = records.windows(2).position(|pair| pair[0].1.producer == pair[1].1.producer)?;
                Some((records, at))
            });
            let (records, at) = records?;
            let value = records[at].1;
            records[at].1 = records[at + 1].1;
            records[at + 1].1 = value;
        }
        FaultKind::PollSkip => {
            let reading = planted.readings.iter_mut().find(|reading| reading.records.len() > 2)?;
            reading.records.remove(1);
        }
        FaultKind::NonmonotonicPoll => {
            let reading = planted.readings.iter_mut().find(|reading| reading.records.len() > 1)?;
            let again = reading.records[0];
            reading.records.push(again);
        }
        FaultKind::Unseen => {
            let alone = planted
                .readings
                .iter_mut()
                .find(|reading| reading.group.is_none() && reading.records.len() > 1)?;
            alone.records.pop();
        }
    }
    Some(planted)
}

/// Takes a value out of everything that was read.
fn forget(history: &mut History, value: Value) {
    for records in history.log.values_mut() {
        records.retain(|record| record.1 != value);
    }
    for reading in &mut history.readings {
        reading.records.retain(|record| record.1 != value);
    }
}
