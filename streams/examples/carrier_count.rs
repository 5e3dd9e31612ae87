//! Counts flights per carrier, to be killed at any moment: what the exactly-once tests run as a process.
//!
//! ```text
//! carrier_count BOOTSTRAP STATE_DIR APPLICATION INPUT OUTPUT per-record|per-commit
//! ```
//!
//! The input's values are JSON objects with a `carrier`; they are regrouped by it, so that the work passes
//! through a repartition topic. Prints a line an event: `live`, `commit N` with the records of all commits so
//! far, `dropped TASK REASON`, `reopened REASON`. Ends when its standard input does. `THALWEG_FAILPOINT`,
//! `THALWEG_COMMIT_ORDER` and `THALWEG_FLUSH_STATE` make it die, stall or commit wrongly.

use std::error::Error;
use std::io::{Read, Write};
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use serde::{Deserialize, Serialize};
use thalweg_client::ClientConfig;
use thalweg_streams::{
    BigEndian, Emit, Event, Grouped, Json, Materialized, RawBytes, Streams, StreamsBuilder, StreamsConfig,
    TestHooks, Text,
};

#[derive(Clone, Serialize, Deserialize)]
struct Flight {
    carrier: String,
}

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
    let builder = StreamsBuilder::new();
    builder
        .stream::<Vec<u8>, Flight>(input.clone(), RawBytes, Json)
        .group_by(Grouped::new("by-carrier", Text, Json), |record| record.value.carrier.clone())
        .count(Materialized::new("flights-per-carrier").emit(emit))
        .to_stream()
        .to(output.clone(), Text, BigEndian);
    let mut config = StreamsConfig::new(application.clone(), state);
    config.test_hooks = TestHooks::from_environment()?;
    config.session_timeout_ms = SESSION_TIMEOUT_MS;
    config.threads = 2;
    let streams = Streams::start(builder.build()?, config, ClientConfig::with_bootstrap(bootstrap))?;

    let events = streams.events();
    let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
    std::thread::spawn(move || {
        // Whatever ends the input, an error too, ends the program.
        let _read = std::io::stdin().read_to_end(&mut Vec::new());
        drop(stop);
    });
    let mut out = std::io::stdout();
    while !matches!(stopped.try_recv(), Err(crossbeam_channel::TryRecvError::Disconnected)) {
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
