//! `thalweg top`: what topics, partitions and groups do, and how fast.

mod sample;
mod view;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use crate::exit::{Exit, failure};
use crate::output::{Format, tell, written};
use crate::target::{Target, TargetArgs};

use self::sample::Sample;
use self::view::View;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// Only these topics, and the groups that read them
    topics: Vec<String>,
    /// Each partition by itself
    #[arg(long, short = 'p')]
    partitions: bool,
    /// Also topics that the log keeps for itself
    #[arg(long)]
    internal: bool,
    /// Show it once and end; rates are those of one interval
    #[arg(long)]
    once: bool,
    /// Seconds from one look to the next
    #[arg(long, short = 'i', value_name = "SECONDS", default_value_t = 2.0)]
    interval: f64,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The shortest and the longest time between two looks, in seconds.
const SHORTEST: f64 = 0.1;
const LONGEST: f64 = 3600.0;

/// Shows it until interrupted, or once.
pub async fn run(args: TopArgs, target: &TargetArgs) -> anyhow::Result<()> {
    if !(SHORTEST..=LONGEST).contains(&args.interval) {
        return Err(failure(
            Exit::Usage,
            format!("--interval {}: it is from {SHORTEST} to {LONGEST} seconds", args.interval),
        ));
    }
    let target = target.open().await?;
    let result = tokio::select! {
        result = watch(&args, &target) => result,
        _ = crate::signals::ended() => Ok(()),
    };
    result.and(target.close().await)
}

async fn watch(args: &TopArgs, target: &Target) -> anyhow::Result<()> {
    for name in &args.topics {
        target.topic(name).await?;
    }
    let is_live = !args.once && args.format == Format::Text && std::io::stdout().is_terminal();
    let mut before: Option<Sample> = None;
    loop {
        let sample = match Sample::take(target, &args.topics, args.internal).await {
            Ok(sample) => sample,
            // Whoever watches a cluster wants to see it come back.
            Err(error) if !args.once && before.is_some() => {
                tell(format_args!("warning: {}", crate::exit::told(&error)));
                tokio::time::sleep(Duration::from_secs_f64(args.interval)).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        // Who is not there to look gets nothing before there are rates.
        if before.is_some() || is_live {
            let view = View::of(before.as_ref(), &sample);
            show(args, &view, is_live)?;
            if args.once {
                return Ok(());
            }
        }
        before = Some(sample);
        tokio::time::sleep(Duration::from_secs_f64(args.interval)).await;
    }
}

fn show(args: &TopArgs, view: &View, is_live: bool) -> anyhow::Result<()> {
    let mut text = match args.format {
        Format::Json => view.json(args.partitions),
        Format::Text => view.table(args.partitions),
    };
    if is_live {
        let rows = terminal_rows();
        let cut: Vec<&str> = text.lines().take(rows.saturating_sub(1)).collect();
        // To the top left corner, and clear what was there.
        text = format!("\x1b[H\x1b[2J{}\n", cut.join("\n"));
    }
    let mut stdout = std::io::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// How many lines standard output shows.
fn terminal_rows() -> usize {
    // SAFETY: an all-zero winsize is valid, and the call only writes into it.
    let (answer, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size), size)
    };
    if answer == 0 && size.ws_row > 0 { usize::from(size.ws_row) } else { usize::MAX }
}
