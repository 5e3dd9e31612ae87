//! `thalweg sql`: statements from the command line or a file.

use crate::target::TargetArgs;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct SqlArgs {
    /// Statements, separated by semicolons
    #[arg(long, short = 'c', value_name = "SQL")]
    command: Option<String>,
}

/// Runs the statements.
pub async fn run(_args: SqlArgs, _target: &TargetArgs) -> anyhow::Result<()> {
    Ok(())
}
