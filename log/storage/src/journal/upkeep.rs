//! What is done beside the rounds: making files, and syncing the segments of full ones.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::files::JournalFile;
use super::{Journal, Owing, State};
use crate::error::Error;

/// The checkpoint is told this often what is in the journal, and after so long without a round the segments are synced.
const TICK: Duration = Duration::from_secs(1);
/// After a failure that passes (a full disk, no descriptors) nothing is tried again for this long.
const PAUSE: Duration = Duration::from_secs(5);
/// So many files are made at once: one is filled while the segments of the other are synced. More come when that takes
/// longer than filling one.
const FIRST_FILES: usize = 2;

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Sync the segments of the oldest full file.
    Drain,
    /// Make a file.
    Make,
    /// Tell the checkpoint how far the logs have come.
    Tell,
    /// Sync the segments of the file that is being filled: nothing is written to it for now.
    Settle,
    /// Wait for a signal, and at most for so long.
    Wait(Option<Duration>),
    Stop,
}

/// What decides about it.
#[derive(Clone, Copy, Debug, Default)]
struct Situation {
    is_stopping: bool,
    full: usize,
    files: usize,
    most_files: usize,
    pays: bool,
    was_refused: bool,
    is_retired: bool,
    /// Whether the current file has entries that segments lack, and whether a record was written in this tick.
    is_owing: bool,
    is_busy: bool,
    /// How long the failure before last keeps everything waiting.
    pause: Duration,
    /// What remains of the tick.
    tick: Duration,
}

fn decide(situation: Situation) -> Task {
    let Situation { full, files, most_files, pause, tick, .. } = situation;
    let wants_file = match files {
        0 => situation.pays,
        1..FIRST_FILES => true,
        _ => situation.was_refused,
    };
    if situation.is_stopping {
        Task::Stop
    } else if !pause.is_zero() {
        Task::Wait(Some(pause))
    } else if full > 0 {
        Task::Drain
    } else if wants_file && files < most_files && !situation.is_retired {
        Task::Make
    } else if !situation.is_owing {
        Task::Wait(None)
    } else if !tick.is_zero() {
        Task::Wait(Some(tick))
    } else if situation.is_busy {
        Task::Tell
    } else {
        Task::Settle
    }
}

impl Journal {
    /// Does what there is to do, until [`stop`](Self::stop).
    pub(crate) fn run(&self) {
        loop {
            let mut state = self.state.lock();
            let task = decide(self.situation(&state, Instant::now()));
            match task {
                Task::Stop => return,
                Task::Wait(None) => self.wake.wait(&mut state),
                Task::Wait(Some(time)) => {
                    self.wake.wait_for(&mut state, time);
                }
                Task::Drain | Task::Make | Task::Tell | Task::Settle => {
                    drop(state);
                    if let Err(error) = self.carry_out(task) {
                        tracing::warn!(%error, ?task, "the upkeep of the journal is put off");
                        if self.environment.health.failure().is_some() {
                            return;
                        }
                        self.state.lock().paused_until = Some(Instant::now() + PAUSE);
                    }
                }
            }
        }
    }

    /// One pass by hand: full files are drained, files are made as if they paid, and the checkpoint is told.
    pub(crate) fn run_once(&self) -> Result<(), Error> {
        loop {
            let situation = self.situation(&self.state.lock(), Instant::now());
            match decide(Situation { pays: true, is_owing: false, pause: Duration::ZERO, ..situation }) {
                task @ (Task::Drain | Task::Make) => self.carry_out(task)?,
                _ => return self.carry_out(Task::Tell),
            }
        }
    }

    fn situation(&self, state: &State, now: Instant) -> Situation {
        let left = |until: Instant| until.saturating_duration_since(now);
        Situation {
            is_stopping: state.is_stopping,
            full: state.full.len(),
            files: state.files,
            most_files: state.most_files,
            pays: state.pays,
            was_refused: state.was_refused,
            is_retired: state.is_retired,
            is_owing: state.is_owing,
            is_busy: state.records > state.records_told,
            pause: state.paused_until.map(left).unwrap_or_default(),
            tick: left(state.last_tick + TICK),
        }
    }

    fn carry_out(&self, task: Task) -> Result<(), Error> {
        match task {
            Task::Drain => self.drain(),
            Task::Make => self.make(),
            Task::Tell => {
                self.begin_tick();
                let owing = self.filling.lock().current.as_ref().map(|used| used.owing.clone());
                self.tell(&owing.unwrap_or_default())
            }
            Task::Settle => {
                self.begin_tick();
                self.settle()
            }
            Task::Wait(_) | Task::Stop => Ok(()),
        }
    }

    fn begin_tick(&self) {
        let mut state = self.state.lock();
        state.last_tick = Instant::now();
        state.records_told = state.records;
    }

    /// Makes the oldest full file free.
    fn drain(&self) -> Result<(), Error> {
        let Some(used) = self.state.lock().full.pop_front() else { return Ok(()) };
        let result = self.pay(&used.owing);
        let mut state = self.state.lock();
        match result {
            Ok(()) => state.free.push_back(used.file),
            Err(_) => state.full.push_front(used),
        }
        result
    }

    /// Syncs the segments that lack what the current file has.
    fn settle(&self) -> Result<(), Error> {
        let mut filling = self.filling.lock();
        let Some(used) = &mut filling.current else { return Ok(()) };
        let owing = std::mem::take(&mut used.owing);
        let path = used.file.path.clone();
        self.state.lock().is_owing = false;
        drop(filling);
        let result = self.pay(&owing);
        if result.is_err() {
            self.take_back(owing, &path);
        }
        result
    }

    /// Puts back what could not be synced into the file that it came from, which may be full by now.
    fn take_back(&self, owing: HashMap<usize, Owing>, path: &Path) {
        let mut filling = self.filling.lock();
        let mut state = self.state.lock();
        state.is_owing = true;
        let mut used = state.full.iter_mut().chain(filling.current.as_mut());
        let used = used.find(|used| used.file.path == path).expect("only the upkeep takes files away");
        for (address, earlier) in owing {
            used.owing.entry(address).or_insert(earlier);
        }
    }

    /// Syncs these segments, and tells the checkpoint: then nothing depends on their entries.
    fn pay(&self, owing: &HashMap<usize, Owing>) -> Result<(), Error> {
        for Owing { log, segment, file, round } in owing.values() {
            match log.sync_entries(*round) {
                // A crash may bring it back as long as its deletion is not lasting.
                Err(Error::LogClosed { .. }) => segment.log_file().sync_by(file, &self.environment)?,
                other => other?,
            }
        }
        self.tell(owing)
    }

    fn tell(&self, owing: &HashMap<usize, Owing>) -> Result<(), Error> {
        for Owing { log, .. } in owing.values() {
            self.checkpoint.record(log.partition(), || log.recorded_while_open())?;
        }
        self.checkpoint.sync()
    }

    fn make(&self) -> Result<(), Error> {
        let number = self.state.lock().files;
        let made = self.make_file(number);
        let mut state = self.state.lock();
        state.was_refused = false;
        let directory = self.directory.display();
        match made {
            Ok(Some(file)) => {
                state.files += 1;
                state.free.push_back(file);
            }
            Ok(None) => {
                tracing::info!(%directory, "the file system cannot write through: there is no journal");
                state.most_files = state.files;
            }
            // Others need the space more.
            Err(error @ Error::StorageFull { .. }) => {
                tracing::info!(%directory, %error, "the journal gets no more files");
                state.most_files = state.files;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a file of the first number from `number` on that is not taken.
    fn make_file(&self, number: usize) -> Result<Option<JournalFile>, Error> {
        let number = match self.environment.list(&self.directory) {
            Ok(entries) => (0..)
                .find(|n: &usize| entries.iter().all(|entry| entry.name != n.to_string()))
                .unwrap_or(number),
            Err(error) if error.is_not_found() => number,
            Err(error) => return Err(error),
        };
        JournalFile::make(&self.directory, number, self.settings.file_bytes, &self.environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_urgent_comes_first() {
        let nothing = Situation { most_files: 4, tick: TICK, ..Situation::default() };
        let owing = Situation { files: 2, is_owing: true, ..nothing };
        let idle = Situation { tick: Duration::ZERO, ..owing };
        let cases = [
            (nothing, Task::Wait(None)),
            (Situation { pays: true, ..nothing }, Task::Make),
            (Situation { pays: true, most_files: 0, ..nothing }, Task::Wait(None)),
            (Situation { files: 1, ..nothing }, Task::Make),
            (Situation { files: 2, pays: true, ..nothing }, Task::Wait(None)),
            (Situation { files: 2, was_refused: true, ..nothing }, Task::Make),
            (Situation { files: 4, was_refused: true, ..nothing }, Task::Wait(None)),
            (Situation { files: 2, was_refused: true, is_retired: true, ..nothing }, Task::Wait(None)),
            (Situation { files: 2, full: 1, was_refused: true, ..nothing }, Task::Drain),
            (Situation { full: 1, pause: TICK, ..owing }, Task::Wait(Some(TICK))),
            (owing, Task::Wait(Some(TICK))),
            (idle, Task::Settle),
            (Situation { is_busy: true, ..idle }, Task::Tell),
            (Situation { is_stopping: true, full: 2, ..idle }, Task::Stop),
        ];
        for (situation, expected) in cases {
            assert_eq!(decide(situation), expected, "{situation:?}");
        }
    }
}
