//! The year of flights, read without any of Thalweg's code.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Flights per carrier over the year.
pub const PER_CARRIER: [(&str, u32); 16] = [
    ("9E", 18460),
    ("AA", 32729),
    ("AS", 714),
    ("B6", 54635),
    ("DL", 48110),
    ("EV", 54173),
    ("F9", 685),
    ("FL", 3260),
    ("HA", 342),
    ("MQ", 26397),
    ("OO", 32),
    ("UA", 58665),
    ("US", 20536),
    ("VX", 5162),
    ("WN", 12275),
    ("YV", 601),
];

/// The compressed CSV that the project ships.
pub fn compressed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/flights.csv.zst")
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
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// Two letters.
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
        Self {
            month: fields[1].parse().expect("a month"),
            day: fields[2].parse().expect("a day"),
            carrier: fields[9],
            tail: (fields[11] != "NA").then_some(fields[11]),
            origin: fields[12],
            time_hour: fields[18],
        }
    }
}
