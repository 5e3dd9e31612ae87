//! What is computed: two aggregates over one stream.

use serde::{Deserialize, Serialize};
use thalweg_streams::{
    Grouped, Json, RawBytes, Record, StreamsBuilder, Text, TimeWindows, Topology, Windowed,
};

use crate::Topics;

/// The columns that are looked at; the others are ignored.
#[derive(Clone, Serialize, Deserialize)]
struct Flight {
    carrier: String,
    origin: String,
    dep_delay: Option<i64>,
}

/// What is kept per carrier.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Delays {
    flights: i64,
    /// How many of them have a known delay.
    known: i64,
    /// The sum of those, in minutes.
    minutes: i64,
}

/// What comes out per carrier.
#[derive(Clone, Serialize, Deserialize)]
pub struct CarrierRow {
    /// Two letters or digits.
    pub carrier: String,
    /// How many flights.
    pub flights: i64,
    /// In minutes; null without any known delay.
    pub mean_dep_delay: Option<f64>,
}

/// What comes out per origin and UTC day.
#[derive(Clone, Serialize, Deserialize)]
pub struct DayRow {
    /// The airport.
    pub origin: String,
    /// Midnight, in ms since 1970.
    pub day: i64,
    /// How many flights.
    pub flights: i64,
}

const DAY_MS: i64 = 86_400_000;
/// Flights of one day come from four partitions that are read at different paces; with this grace none is late.
const GRACE_MS: i64 = 400 * DAY_MS;

/// The topology of the demonstration.
pub fn build(topics: &Topics) -> anyhow::Result<Topology> {
    let builder = StreamsBuilder::new();
    let flights = builder.stream::<Vec<u8>, Flight>(topics.flights.clone(), RawBytes, Json);

    flights
        .group_by(Grouped::new("by-carrier", Text, Json), |flight| flight.value.carrier.clone())
        .aggregate("carriers", Json, Delays::default, |flight, delays| {
            delays.flights += 1;
            if let Some(minutes) = flight.value.dep_delay {
                delays.known += 1;
                delays.minutes += minutes;
            }
        })
        .to_stream()
        .map(|record| {
            let carrier = record.key.clone().unwrap_or_default();
            let Delays { flights, known, minutes } = record.value;
            let mean_dep_delay = (known > 0).then(|| minutes as f64 / known as f64);
            record.with_value(CarrierRow { carrier, flights, mean_dep_delay })
        })
        .to(topics.carriers.clone(), Text, Json);

    flights
        .group_by(Grouped::new("by-origin", Text, Json), |flight| flight.value.origin.clone())
        .windowed_by(TimeWindows::tumbling(DAY_MS).grace(GRACE_MS))
        .count("days")
        .to_stream()
        .map(|record: Record<Windowed<String>, i64>| {
            let Some(Windowed { key: origin, window }) = record.key.clone() else {
                unreachable!("a window has a key");
            };
            let row = DayRow { origin, day: window.start_ms, flights: record.value };
            Record::new(Some(format!("{} {}", row.origin, row.day)), row, record.timestamp)
        })
        .to(topics.days.clone(), Text, Json);
    Ok(builder.build()?)
}
