//! The smallest whole processor, to copy: counts the records of a topic per key, exactly once.
//!
//! `cargo run --release --bin first_processor -- HOST:PORT INPUT OUTPUT` runs it on any Thalweg or Kafka, between topics
//! that exist. The results are JSON numbers, which `thalweg consume` and, as `value::bigint`, SQL can read.

use thalweg_streams::{
    ClientConfig, Event, Grouped, Json, RawBytes, Streams, StreamsBuilder, StreamsConfig, Text,
};

fn main() -> anyhow::Result<()> {
    // Where the broker cannot be reached, say so while waiting for it.
    tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN).init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, input, output] = &arguments[..] else {
        anyhow::bail!("say where and what: first_processor HOST:PORT INPUT OUTPUT");
    };

    let builder = StreamsBuilder::new();
    builder
        .stream::<String, Vec<u8>>(input.clone(), Text, RawBytes)
        .group_by_key(Grouped::new("by-key", Text, RawBytes))
        .count("counts")
        .to_stream()
        .to(output.clone(), Text, Json);

    eprintln!("connecting to {bootstrap}");
    let config = StreamsConfig::new("first-processor", "first-processor-state");
    let streams = Streams::start(builder.build()?, config, ClientConfig::with_bootstrap(bootstrap))?;
    for event in streams.events() {
        match event {
            Event::Replaying { fraction, .. } => println!("{:.0} % of history", fraction * 100.0),
            Event::Live => println!("live"),
            Event::Failed { reason } => anyhow::bail!("{reason}"),
            _ => {}
        }
    }
    Ok(())
}
