//! `thalweg sql`: statements from the command line, a file or standard input.

use std::io::{self, IsTerminal, Read, Stdout, Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use thalweg_client::Client;
use thalweg_sql::output::{Format, print};
use thalweg_sql::{Error, Session};

use crate::exit::{Exit, failure};
use crate::output::{tell, waiting, written};
use crate::target::TargetArgs;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct SqlArgs {
    /// Statements, separated by semicolons
    #[arg(long, short = 'c', value_name = "SQL", conflicts_with = "file", allow_hyphen_values = true)]
    command: Option<String>,
    /// A file of statements; standard input if neither is given
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
    /// How rows are printed: table, csv, tsv or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// Runs the statements, each with its rows on standard output and what there is to tell on standard error.
pub async fn run(args: SqlArgs, target: &TargetArgs) -> anyhow::Result<()> {
    let text = match (&args.command, &args.file) {
        (Some(command), _) => command.clone(),
        (None, Some(file)) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
        }
        (None, None) if std::io::stdin().is_terminal() => {
            return Err(failure(
                Exit::Usage,
                "say what to run: -c 'SELECT …', -f FILE, or statements on standard input",
            ));
        }
        (None, None) => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
    };
    let target = target.open().await?;
    let (client, format) = (target.client().clone(), args.format);
    // On a thread of its own: planning holds one for as long as it takes.
    let mut running = tokio::spawn(async move { statements(client, &text, format).await });
    let result = tokio::select! {
        result = &mut running => result?,
        _ = crate::signals::ended() => {
            // Dropping a statement takes back the files it was writing. What plans has written none.
            running.abort();
            let _ended = tokio::time::timeout(AFTER_STOP, running).await;
            Err(failure(Exit::Failed, "interrupted"))
        }
    };
    result.and(target.close().await)
}

/// Standard output, before which the sign that a statement runs goes away.
struct UntilOutput<'w> {
    waiting: &'w ProgressBar,
    stdout: Stdout,
}

impl Write for UntilOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.waiting.is_finished() {
            self.waiting.finish_and_clear();
        }
        self.stdout.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// How long a statement that is to stop is waited for.
const AFTER_STOP: Duration = Duration::from_millis(500);

async fn statements(client: Client, text: &str, format: Format) -> anyhow::Result<()> {
    let session = Session::new(client);
    for statement in session.parse(text)? {
        let began = Instant::now();
        let waiting = waiting();
        let outcome = session.run(statement).await?;
        let mut out = UntilOutput { waiting: &waiting, stdout: stdout() };
        let printed = print(outcome, format, &mut out, began).await;
        waiting.finish_and_clear();
        let summary = match printed {
            Err(Error::Output(error)) => return written(Err(error)),
            summary => summary?,
        };
        for notice in &summary.notices {
            tell(format_args!("note: {notice}"));
        }
        if summary.undecodable.count > 0 {
            tell(format_args!("warning: {}", summary.undecodable));
        }
        tell(&summary);
    }
    Ok(())
}
