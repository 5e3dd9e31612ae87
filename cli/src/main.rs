//! The `thalweg` program: one file per subcommand; it owns files, the environment and exit codes.

mod advice;
mod bench;
mod cluster;
mod consume;
mod exit;
mod extents;
mod generate;
mod group;
mod habits;
mod help;
mod offset_range;
mod output;
mod produce;
mod serve;
mod settings;
mod signals;
mod sql;
mod target;
mod template;
mod top;
mod topic;

use std::io::{ErrorKind, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::exit::Exit;
use crate::output::Format;
use crate::target::TargetArgs;

/// A log that speaks the Kafka protocol, streams and SQL over it, and files and Parquet in and out
#[derive(Debug, Parser)]
#[command(
    name = "thalweg",
    version,
    about,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = help::AFTER
)]
struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run a node in the foreground
    Serve(serve::ServeArgs),
    /// Create, list, describe, change and delete topics
    Topic {
        #[command(subcommand)]
        command: topic::TopicCommand,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
        format: Format,
    },
    /// Write records from a file or standard input into a topic
    Produce(produce::ProduceArgs),
    /// Print the records of a topic
    Consume(consume::ConsumeArgs),
    /// List, describe, move and delete consumer groups and share groups
    Group {
        #[command(subcommand)]
        command: group::GroupCommand,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
        format: Format,
    },
    /// Show the cluster's nodes, and whether all is well
    Cluster {
        #[command(subcommand)]
        command: cluster::ClusterCommand,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
        format: Format,
    },
    /// Query topics and files with SQL
    Sql(sql::SqlArgs),
    /// Show what topics, partitions and groups do, and how fast, over and over
    Top(top::TopArgs),
    /// Measure
    Bench {
        #[command(subcommand)]
        command: bench::BenchCommand,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
        format: Format,
    },
    /// Print a script that completes commands and options
    Completions(generate::CompletionsArgs),
    /// Write manual pages
    Man(generate::ManArgs),
    /// Explain a command, or offsets, templates, formats, settings and node
    Help {
        /// The command, or the page
        words: Vec<String>,
    },
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and the version come this way, too.
        Err(said) => {
            let words: Vec<String> =
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let said = habits::advised(said, &words);
            return match said.print() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
                _ => ExitCode::from(said.exit_code() as u8),
            };
        }
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // It would tell of a standard error that cannot be written on standard error, and panic.
        .log_internal_errors(false)
        .with_env_filter(
            EnvFilter::try_from_env("THALWEG_LOG")
                .unwrap_or_else(|_| EnvFilter::new(log_level(&arguments.command))),
        )
        .init();
    let Err(error) = on_a_deep_stack(move || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()?;
        let result = runtime.block_on(run(arguments));
        runtime.shutdown_timeout(PATIENCE);
        result
    }) else {
        return ExitCode::SUCCESS;
    };
    let exit = exit::of(&error);
    if exit != Exit::Done {
        output::tell(format_args!("error: {}", exit::told(&error)));
    }
    ExitCode::from(exit as u8)
}

/// Long expressions of SQL are planned and computed recursively. Only what is used of a stack takes memory.
const STACK_BYTES: usize = 256 << 20;

fn on_a_deep_stack(work: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
    let thread = std::thread::Builder::new().name("main".into()).stack_size(STACK_BYTES).spawn(work)?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// How long threads that were told to end are waited for: one may still wait for its input.
const PATIENCE: Duration = Duration::from_secs(1);

/// A node tells what it does; the other commands speak through their output and errors.
fn log_level(command: &Command) -> &'static str {
    if matches!(command, Command::Serve(_)) { "info" } else { "error" }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    // What needs no log does not look for one.
    match &arguments.command {
        Command::Completions(args) => return generate::completions(args),
        Command::Man(args) => return generate::man(args),
        Command::Help { words } => return help::run(words),
        _ => {}
    }
    let target = &arguments.target.or_environment()?;
    match arguments.command {
        Command::Serve(args) => serve::run(args, target).await,
        Command::Topic { command, format } => topic::run(command, target, format).await,
        Command::Produce(args) => produce::run(args, target).await,
        Command::Consume(args) => consume::run(args, target).await,
        Command::Group { command, format } => group::run(command, target, format).await,
        Command::Cluster { command, format } => cluster::run(command, target, format).await,
        Command::Sql(args) => sql::run(args, target).await,
        Command::Top(args) => top::run(args, target).await,
        Command::Bench { command, format } => bench::run(command, target, format).await,
        Command::Completions(_) | Command::Man(_) | Command::Help { .. } => Ok(()),
    }
}
