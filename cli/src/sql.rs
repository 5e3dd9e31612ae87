//! `thalweg sql`: statements from the command line, a file or standard input.

use std::io::{IsTerminal, Read, stdout};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use thalweg_sql::output::{Format, print};
use thalweg_sql::{Error, Session};

use crate::exit::{Exit, failure};
use crate::output::{tell, written};
use crate::target::{Target, TargetArgs};

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
    let result = tokio::select! {
        result = statements(&target, &text, args.format) => result,
        // Dropping a statement takes back the files it was writing.
        _ = crate::signals::ended() => Err(failure(Exit::Failed, "interrupted")),
    };
    result.and(target.close().await)
}

async fn statements(target: &Target, text: &str, format: Format) -> anyhow::Result<()> {
    let session = Session::new(target.client().clone());
    for statement in session.parse(text)? {
        let began = Instant::now();
        let outcome = session.run(statement).await?;
        let summary = match print(outcome, format, &mut stdout(), began).await {
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
