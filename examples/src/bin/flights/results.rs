//! The results, whichever way they were come by, and their comparison.

use std::collections::BTreeMap;

use anyhow::bail;

/// What is known about a carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Carrier {
    /// How many flights.
    pub flights: i64,
    /// In minutes.
    pub mean_dep_delay: Option<f64>,
}

/// The results of the year.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Per carrier.
    pub carriers: BTreeMap<String, Carrier>,
    /// Flights per origin and midnight of a UTC day, in ms since 1970.
    pub days: BTreeMap<(String, i64), i64>,
}

impl Results {
    /// Flights of all carriers.
    pub fn flights(&self) -> i64 {
        self.carriers.values().map(|carrier| carrier.flights).sum()
    }

    /// Flights of all windows.
    pub fn flights_in_windows(&self) -> i64 {
        self.days.values().sum()
    }
}

/// Means are computed in different orders of operations; they agree when they do to this many minutes.
const TOLERANCE: f64 = 1e-9;

/// Fails on any difference and names each.
pub fn compare(what: &str, expected: &Results, found: &Results) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    for carrier in
        expected.carriers.keys().chain(found.carriers.keys()).collect::<std::collections::BTreeSet<_>>()
    {
        let (wanted, got) = (expected.carriers.get(carrier), found.carriers.get(carrier));
        let same = match (wanted, got) {
            (Some(a), Some(b)) => a.flights == b.flights && near(a.mean_dep_delay, b.mean_dep_delay),
            _ => false,
        };
        if !same {
            differences.push(format!("carrier {carrier}: expected {wanted:?}, found {got:?}"));
        }
    }
    for window in expected.days.keys().chain(found.days.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (wanted, got) = (expected.days.get(window), found.days.get(window));
        if wanted != got {
            differences.push(format!("window {window:?}: expected {wanted:?}, found {got:?}"));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    bail!("{what} differ from the CSV in {} values:\n{}", differences.len(), differences.join("\n"))
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= TOLERANCE,
        (a, b) => a == b,
    }
}
