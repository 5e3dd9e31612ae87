//! Removes large files bit by bit.
//!
//! A disk that is given back a gigabyte at once is busy with that for a while: unlinking one of a file system that tells the disk
//! what is free (`discard`) keeps the syncs of producers waiting for 44 ms, and 2 GiB for 80. Cut off in small pieces it takes a
//! second or two more, which nobody waits for.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::OpenMode;

/// So much is cut off at once, in bytes.
const STEP: u64 = 16 << 20;

/// How long nothing is removed then. Together this is at most 0.8 GB a second.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes a file of `len` bytes that nobody needs any more; one that is not there counts as removed. When the disk is full or
/// the directory is about to be closed it goes at once.
pub(crate) fn remove(path: &Path, len: u64, environment: &Environment) -> Result<(), Error> {
    let may_pause = || !environment.health.is_short_of_space() && !environment.health.is_closing();
    if len > STEP && may_pause() {
        let file = match environment.open(path, OpenMode::Write) {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        for left in (1..len.div_ceil(STEP)).rev() {
            environment.set_len(&file, path, left * STEP)?;
            sleep(PAUSE);
            if !may_pause() {
                break;
            }
        }
    }
    environment.remove(path)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::clock::SystemClock;
    use crate::filesystem::DiskFilesystem;
    use crate::manager::remove_tree_gradually;

    fn environment(directory: &Path) -> Environment {
        Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory)
    }

    /// How long it takes to remove a file of so many steps, none of which takes room on the disk.
    fn removal(steps: u64, environment: &Environment) -> Duration {
        let path = environment.health.path().join("x");
        let len = steps * STEP;
        File::create(&path).and_then(|file| file.set_len(len)).expect("a sparse file");
        let begun = Instant::now();
        remove(&path, len, environment).expect("it is removed");
        assert!(!path.exists());
        remove(&path, len, environment).expect("there is nothing to do");
        begun.elapsed()
    }

    #[test]
    fn large_files_go_in_steps_unless_that_takes_too_long() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment = environment(directory.path());
        assert!(removal(6, &environment) >= 5 * PAUSE);
        let hurried = environment.clone();
        let closing = std::thread::spawn(move || {
            sleep(2 * PAUSE);
            hurried.health.set_closing();
        });
        assert!(removal(500, &environment) < 250 * PAUSE, "it is cut short");
        closing.join().expect("it ends");
        assert!(removal(500, &environment) < 250 * PAUSE, "it does not begin");
    }

    #[test]
    fn a_directory_goes_with_its_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment = environment(directory.path());
        let path = directory.path().join("deleted");
        environment.create_directory(&path).expect("it is made");
        for (name, len) in [("a", 0), ("b", STEP + 1), ("c", 1)] {
            File::create(path.join(name)).and_then(|file| file.set_len(len)).expect("a file");
        }
        remove_tree_gradually(&path, &environment).expect("they are removed");
        assert_eq!(environment.list(directory.path()).expect("it is there"), []);
        remove_tree_gradually(&path, &environment).expect("there is nothing to do");
    }
}
