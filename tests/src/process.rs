//! Child processes that never outlive a test.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The `name` program that was built together with this one; an example's is `examples/NAME`.
///
/// # Errors
/// When it is not there: `make test` builds it first.
pub fn binary(name: &str) -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("the path of the test binary")?;
    for directory in here.ancestors().skip(1).take(3) {
        let path = directory.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    bail!("{name} was not built: run `cargo build --release --workspace --bins --examples` first")
}

/// A child that is killed when it goes out of scope.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts `command`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends `signal` (such as `libc::SIGTERM`).
    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).expect("a process id fits in 31 bits");
        // SAFETY: the child has not been waited for, so the id is still its own.
        unsafe { libc::kill(id, signal) };
    }

    /// Kills it as a power cut would, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end; returns the exit code, −1 for a signal.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn wait(&mut self, timeout: Duration) -> anyhow::Result<i32> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            if Instant::now() >= deadline {
                self.kill();
                bail!("the process did not end within {timeout:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends on the lines that come out of a child's pipe, until it is closed; never lets the pipe fill.
pub fn forward_lines(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Whoever listened may have heard enough.
            let _gone = lines.send(line);
        }
    });
}

/// Runs `command` to its end and returns what it printed.
///
/// # Errors
/// When it cannot be started or exits with anything but 0; the error holds its standard error.
pub fn run(command: &mut Command) -> anyhow::Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output)
}
