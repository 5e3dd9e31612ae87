//! `thalweg completions` and `thalweg man`: what shells and `man` know of the program, made from the program itself.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::output::{line, written};

/// For which shell.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell: `source <(thalweg completions bash)` in ~/.bashrc, and so on
    #[arg(value_enum)]
    shell: Shell,
}

/// Where to.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The directory for the pages, made if it is not there; `man -M` wants them in its man1
    directory: PathBuf,
}

/// Prints a script that completes commands and options.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Arguments::command(), "thalweg", &mut script);
    written(std::io::Write::write_all(&mut std::io::stdout().lock(), &script))
}

/// Writes a page for each command.
pub fn man(args: &ManArgs) -> anyhow::Result<()> {
    let directory: &Path = &args.directory;
    let cannot = || format!("cannot write into {}", directory.display());
    std::fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(crate::Arguments::command(), directory).with_context(cannot)?;
    line(format_args!("the pages are in {0}; man -l {0}/thalweg.1 shows the first", directory.display()))
}
