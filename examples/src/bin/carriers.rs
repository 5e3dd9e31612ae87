use thalweg_streams::{
    ClientConfig, Event, Grouped, Json, RawBytes, Streams, StreamsBuilder, StreamsConfig, Text,
};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Flight {
    carrier: String,
}

fn main() -> Result<(), thalweg_streams::Error> {
    let bootstrap = std::env::args().nth(1).unwrap_or("localhost:9092".to_owned());
    eprintln!("connecting to {bootstrap}");
    let client = ClientConfig { api_timeout_ms: 10_000, ..ClientConfig::with_bootstrap(&bootstrap) };
    let builder = StreamsBuilder::new();
    builder
        .stream::<Vec<u8>, Flight>("flights", RawBytes, Json)
        .group_by(Grouped::new("by-carrier", Text, Json), |flight| flight.value.carrier.clone())
        .count("flights-per-carrier")
        .to_stream()
        .to("carriers", Text, Json);
    let config = StreamsConfig::new("carriers", "carriers-state");
    let streams = Streams::start(builder.build()?, config, client)?;
    for event in streams.events() {
        match event {
            Event::Live => println!("live"),
            Event::Failed { reason } => return Err(thalweg_streams::Error::Stopped(reason)),
            _ => {}
        }
    }
    Ok(())
}
