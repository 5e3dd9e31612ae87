//! Counts flights per carrier on Arrow batches, to be killed at any moment: what the exactly-once tests run as a
//! process.
//!
//! ```text
//! arrow_count BOOTSTRAP STATE_DIR APPLICATION INPUT OUTPUT per-record|per-commit
//! ```
//!
//! Arguments, output and failpoints are those of the typed `carrier_count` of thalweg-streams: it prints a line an
//! event (`live`, `commit N`, `dropped TASK REASON`, `reopened REASON`), ends when its standard input does, and
//! `THALWEG_FAILPOINT`, `THALWEG_COMMIT_ORDER` and `THALWEG_FLUSH_STATE` make it die, stall or commit wrongly.

mod program;

use std::error::Error;
use std::io::{Read, Write};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, TryRecvError};
use thalweg_client::ClientConfig;
use thalweg_streams::{Event, Streams, StreamsConfig, TestHooks};

use program::Emit;

/// The time after which the group takes a killed process for dead, in ms: it need not be waited for long.
const SESSION_TIMEOUT_MS: u32 = 6_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, state, application, input, output, emit] = &arguments[..] else {
        return Err("see the head of the source for the arguments".into());
    };
    let emit = match emit.as_str() {
        "per-record" => Emit::PerRecord,
        "per-commit" => Emit::PerCommit,
        _ => return Err("results come out per-record or per-commit".into()),
    };
    let mut config = StreamsConfig::new(application.clone(), state);
    config.test_hooks = TestHooks::from_environment()?;
    config.session_timeout_ms = SESSION_TIMEOUT_MS;
    let topology = program::topology(input, output, emit);
    let streams = Streams::start(topology, config, ClientConfig::with_bootstrap(bootstrap))?;

    let events = streams.events();
    let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
    std::thread::spawn(move || {
        // Whatever ends the input, an error too, ends the program.
        let _read = std::io::stdin().read_to_end(&mut Vec::new());
        drop(stop);
    });
    let mut out = std::io::stdout();
    while !matches!(stopped.try_recv(), Err(TryRecvError::Disconnected)) {
        match events.recv_timeout(Duration::from_millis(50)) {
            Ok(Event::Live) => writeln!(out, "live")?,
            Ok(Event::Committed(_)) => writeln!(out, "commit {}", streams.committed().records_in)?,
            Ok(Event::Restoring { task, done, total, .. }) if done == total && total > 0 => {
                writeln!(out, "behind {task} {total}")?;
            }
            Ok(Event::StateDropped { task, reason }) => writeln!(out, "dropped {task} {reason}")?,
            Ok(Event::Reopened { reason }) => writeln!(out, "reopened {reason}")?,
            Ok(Event::Failed { reason }) => return Err(reason.to_string().into()),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        out.flush()?;
    }
    Ok(streams.close()?)
}
