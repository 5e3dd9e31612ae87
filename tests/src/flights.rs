//! The year of flights, and values computed from its text without any of Thalweg's code.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The compressed CSV that the project ships.
pub fn compressed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/flights.csv.zst")
}

/// `carrier,name` for each carrier.
pub fn airlines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/airlines.csv")
}

/// The whole CSV: a header line and 336,776 rows.
///
/// # Panics
/// When the shipped file is missing or damaged.
pub fn csv() -> &'static str {
    static CSV: OnceLock<String> = OnceLock::new();
    CSV.get_or_init(|| {
        let file = std::fs::File::open(compressed()).expect("the flights are part of the repository");
        let mut decoder = zstd::Decoder::new(file).expect("a Zstandard file");
        decoder.window_log_max(31).expect("a window that decoders accept");
        let mut text = String::new();
        decoder.read_to_string(&mut text).expect("whole and UTF-8");
        text
    })
}

/// The rows, without the header.
pub fn rows() -> impl Iterator<Item = Flight<'static>> {
    csv().lines().skip(1).map(Flight::read)
}

/// The columns that tests look at.
#[derive(Clone, Copy, Debug)]
pub struct Flight<'a> {
    /// The row as it stands in the file.
    pub line: &'a str,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// Departure delay in minutes; `None` for NA.
    pub dep_delay: Option<i64>,
    /// Two letters or digits.
    pub carrier: &'a str,
    /// `None` for NA.
    pub tail: Option<&'a str>,
    /// EWR, JFK or LGA.
    pub origin: &'a str,
    /// `YYYY-MM-DDTHH:00:00Z`
    pub time_hour: &'a str,
}

impl<'a> Flight<'a> {
    fn read(line: &'a str) -> Self {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 19, "{line}");
        let known = |text: &'a str| (text != "NA").then_some(text);
        Self {
            line,
            month: fields[1].parse().expect("a month"),
            day: fields[2].parse().expect("a day"),
            dep_delay: known(fields[5]).map(|text| text.parse().expect("minutes")),
            carrier: fields[9],
            tail: known(fields[11]),
            origin: fields[12],
            time_hour: fields[18],
        }
    }

    /// The UTC day of the scheduled hour, `YYYY-MM-DD`.
    pub fn utc_day(&self) -> &'a str {
        &self.time_hour[..10]
    }
}

/// Flights, and the sum and count of known departure delays, per carrier.
pub fn per_carrier() -> BTreeMap<&'static str, (u64, i64, u64)> {
    let mut carriers = BTreeMap::new();
    for flight in rows() {
        let (flights, sum, known) = carriers.entry(flight.carrier).or_insert((0, 0, 0));
        *flights += 1;
        if let Some(delay) = flight.dep_delay {
            *sum += delay;
            *known += 1;
        }
    }
    carriers
}

/// Flights per (origin, UTC day).
pub fn per_origin_and_day() -> BTreeMap<(&'static str, &'static str), u64> {
    let mut windows = BTreeMap::new();
    for flight in rows() {
        *windows.entry((flight.origin, flight.utc_day())).or_insert(0) += 1;
    }
    windows
}
