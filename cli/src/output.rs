//! How results are printed, and where progress is shown.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::exit::{Exit, failure, told};

/// For people or for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text and tables
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// Such as `1 topic` or `3 topics`.
pub fn counted(count: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('h') {
        _ if count == 1 => noun.to_owned(),
        Some(_) => format!("{noun}es"),
        None => format!("{noun}s"),
    };
    format!("{count} {plural}")
}

/// Prints a line on standard error. If that cannot be written, there is nobody to tell.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a line on standard output.
///
/// # Errors
/// As [`written`].
pub fn line(text: impl Display) -> anyhow::Result<()> {
    written(writeln!(io::stdout().lock(), "{text}"))
}

/// What became of a write to standard output. When nobody reads it any more the command has done what it could.
///
/// # Errors
/// When it was not written; [`Exit::Done`] when nobody reads.
pub fn written(result: io::Result<()>) -> anyhow::Result<()> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => failure(Exit::Done, "nobody reads the output"),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    })
}

/// What became of several things, each of which may fail by itself: the first failure ends the command in the end, the others
/// are told when they happen.
#[derive(Default)]
pub struct Results {
    first: Option<anyhow::Error>,
}

impl Results {
    /// One has failed.
    pub fn fail(&mut self, error: anyhow::Error) {
        match self.first {
            None => self.first = Some(error),
            Some(_) => tell(format_args!("error: {}", told(&error))),
        }
    }

    /// The first failure.
    ///
    /// # Errors
    /// When there was one.
    pub fn finish(self) -> anyhow::Result<()> {
        self.first.map_or(Ok(()), Err)
    }
}

/// A bar on standard error that counts records; nothing where that is not a terminal. `total` is not always known.
pub fn progress(total: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{bar:30} {percent} % · {human_pos} records · {per_sec} · {eta} left")
        }
        None => (ProgressBar::new_spinner(), "{spinner} {human_pos} records · {per_sec}"),
    };
    bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A sign on standard error that something runs, and for how long; nothing where that is not a terminal.
pub fn waiting() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed}").expect("the template is well-formed"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Whoever asked for something to be deleted has said no in the end.
///
/// # Errors
/// Always: what was asked for has not happened.
pub fn nothing_deleted() -> anyhow::Result<()> {
    Err(failure(Exit::Failed, "nothing was deleted"))
}

/// Asks on the terminal before something is destroyed.
///
/// # Errors
/// Where nobody can be asked.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(failure(Exit::Usage, "deleting cannot be undone: say --yes where nobody can be asked"));
    }
    // Results go to standard output.
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush())?;
    drop(stderr);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
