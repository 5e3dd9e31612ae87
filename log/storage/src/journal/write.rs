//! Writing a round.

use std::sync::Arc;
use std::time::Instant;

use thalweg_protocol::Offset;

use super::files::FIRST_RECORD;
use super::header::FileHeader;
use super::record::{Entry, encode, fitting, padded_len};
use super::round::JournalRound;
use super::{Filling, Journal, Owing, PAYING_SYNCS, PAYING_TIME, Used};
use crate::error::Error;
use crate::log::{Candidate, Captured, Log};

/// The logs of a round, by the way they go.
#[derive(Debug, Default)]
pub(crate) struct Gathered<'a> {
    /// Into the journal.
    pub(crate) captured: Vec<Captured<'a>>,
    /// To be synced one by one.
    pub(crate) direct: Vec<&'a Arc<Log>>,
}

impl Journal {
    /// Decides which way each log of a round goes.
    pub(crate) fn gather<'a>(&self, logs: &'a [Arc<Log>]) -> Gathered<'a> {
        let candidates: Vec<Option<Candidate<'_>>> = logs
            .iter()
            .map(|log| log.candidate().and_then(|(candidate, need)| need.is_small().then_some(candidate)))
            .collect();
        let mut gathered = Gathered::default();
        if !self.note_replaced(candidates.iter().flatten().count() as u64) {
            gathered.direct.extend(logs);
            return gathered;
        }
        for (log, candidate) in logs.iter().zip(candidates) {
            match candidate.map(Candidate::capture) {
                Some(Ok(Some(captured))) => gathered.captured.push(captured),
                // What is wrong with it the sync will say.
                Some(Ok(None) | Err(_)) | None => gathered.direct.push(log),
            }
        }
        gathered
    }

    /// Notes that a record would replace so many syncs. Returns whether it can be written.
    fn note_replaced(&self, syncs: u64) -> bool {
        if syncs == 0 {
            return false;
        }
        let mut state = self.state.lock();
        if !state.pays {
            state.pays = pays(&mut state.replaced, syncs, Instant::now());
            if state.pays && state.files == 0 {
                self.wake.notify_all();
            }
        }
        if state.files == 0 || state.is_retired {
            return false;
        }
        let has_room = state.has_current || !state.free.is_empty();
        state.was_refused |= !has_room;
        has_room
    }

    /// Writes what was captured, and tells of each log up to where it is synced then, or what error took the directory
    /// offline. Returns the logs for which there is no room. Blocks on the disk.
    pub(crate) fn write<'a>(
        &self,
        captured: Vec<Captured<'a>>,
        mut listener: impl FnMut(&Arc<Log>, Result<Offset, &Error>),
    ) -> Vec<&'a Arc<Log>> {
        let mut refused = Vec::new();
        let with_entry = |captured: Captured<'a>| {
            let entry = captured.entry();
            (captured, entry)
        };
        let mut rest: Vec<(Captured<'a>, Entry)> = captured.into_iter().map(with_entry).collect();
        while !rest.is_empty() {
            let count = fitting(rest.iter().map(|(_, entry)| entry.size()));
            let after = rest.split_off(count);
            let (captured, entries): (Vec<Captured<'a>>, Vec<Entry>) =
                std::mem::replace(&mut rest, after).into_iter().unzip();
            // Whoever listens may drop the last handle on all of this, so the lock is not held then.
            let written = self.write_record(&mut self.filling.lock(), &captured, &entries);
            match written {
                Ok(true) => captured.into_iter().for_each(|captured| {
                    let log = captured.log();
                    listener(log, Ok(captured.synced()));
                }),
                Ok(false) => refused.extend(captured.into_iter().map(Captured::give_back)),
                Err(error) => {
                    // Whatever the reason: what was captured counts as written.
                    self.environment.health.fail(&error);
                    let logs: Vec<&Arc<Log>> = captured.iter().map(Captured::log).collect();
                    drop(captured);
                    logs.into_iter().for_each(|log| listener(log, Err(&error)));
                }
            }
        }
        refused
    }

    /// Writes one record. Returns false when there is no room for it.
    fn write_record(
        &self,
        filling: &mut Filling,
        captured: &[Captured<'_>],
        entries: &[Entry],
    ) -> Result<bool, Error> {
        let len = padded_len(entries.iter().map(Entry::size));
        let written = match self.make_room(filling, len as u64) {
            Ok(true) => self.write_entries(filling, captured, entries, len).map(|()| true),
            other => other,
        };
        match written {
            // On a file system that does not overwrite in place a full disk may be in the way of it.
            Err(error) if error.is_retriable() => {
                tracing::warn!(%error, "the journal is not written to any more");
                self.state.lock().is_retired = true;
                Ok(false)
            }
            other => other,
        }
    }

    fn write_entries(
        &self,
        filling: &mut Filling,
        captured: &[Captured<'_>],
        entries: &[Entry],
        len: usize,
    ) -> Result<(), Error> {
        let Filling { current, buffer } = filling;
        let used = current.as_mut().expect("there is room in it");
        let mut round = JournalRound::default();
        let bytes = buffer.get(len);
        let read = |index: usize, out: &mut [u8]| captured[index].read(out);
        encode(bytes, self.settings.salt, entries, read, || {
            round = self.checkpoint.begin_journal_round();
            round
        })?;
        for captured in captured {
            captured.enter(round);
            let segment = captured.segment();
            let owing = used.owing.entry(Arc::as_ptr(segment) as usize).or_insert_with(|| Owing {
                log: Arc::clone(captured.log()),
                segment: Arc::clone(segment),
                file: captured.file().clone(),
                round,
            });
            owing.round = round;
        }
        used.file.write(bytes, used.position, &self.environment)?;
        used.position += len as u64;
        let mut state = self.state.lock();
        state.records += 1;
        if !std::mem::replace(&mut state.is_owing, true) {
            self.wake.notify_all();
        }
        Ok(())
    }

    /// Sees to it that the current file has room for so many bytes. Returns false when that cannot be.
    fn make_room(&self, filling: &mut Filling, len: u64) -> Result<bool, Error> {
        let file_bytes = self.settings.file_bytes;
        // The directory may be another process's by now.
        if self.state.lock().is_stopping {
            return Ok(false);
        }
        if filling.current.as_ref().is_some_and(|used| used.position + len <= file_bytes) {
            return Ok(true);
        }
        if FIRST_RECORD + len > file_bytes {
            return Ok(false);
        }
        let file = {
            let mut state = self.state.lock();
            state.full.extend(filling.current.take());
            state.has_current = false;
            self.wake.notify_all();
            if state.is_retired {
                return Ok(false);
            }
            let Some(file) = state.free.pop_front() else {
                state.was_refused = true;
                return Ok(false);
            };
            state.has_current = true;
            file
        };
        let first_round = self.checkpoint.journal_round().next();
        let header = FileHeader { file_bytes, first_round, run: self.run, salt: self.settings.salt };
        file.begin(&header, &mut filling.buffer, &self.environment)?;
        filling.current = Some(Used { file, position: FIRST_RECORD, owing: Default::default() });
        Ok(true)
    }
}

/// Whether enough syncs would be replaced within a short time, with these.
fn pays((replaced, since): &mut (u64, Instant), syncs: u64, now: Instant) -> bool {
    if now.saturating_duration_since(*since) > PAYING_TIME {
        (*replaced, *since) = (0, now);
    }
    *replaced += syncs;
    *replaced >= PAYING_SYNCS
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn files_are_made_when_many_syncs_would_be_replaced_within_a_second() {
        // The syncs that are replaced at a time, and whether a file pays then.
        let cases: [(&[(u64, u64)], bool); 5] = [
            (&[(99, 0)], false),
            (&[(99, 0), (1, 1000)], true),
            (&[(99, 0), (1, 1001)], false),
            (&[(5, 0), (5, 1500), (90, 1600), (5, 2400)], true),
            (&[(50, 0), (50, 1500), (49, 2000)], false),
        ];
        for (times, expected) in cases {
            let begun = Instant::now();
            let mut replaced = (0, begun);
            let mut last = false;
            for &(syncs, ms) in times {
                last = pays(&mut replaced, syncs, begun + Duration::from_millis(ms));
            }
            assert_eq!(last, expected, "{times:?}");
        }
    }
}
