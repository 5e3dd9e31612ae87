//! The same results from the text of the CSV, with code that shares nothing with the pipeline.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::results::{Carrier, Results};

/// Computes everything from the file.
pub fn from_csv(path: &Path) -> anyhow::Result<Results> {
    let mut text = String::new();
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if path.extension().is_some_and(|extension| extension == "zst") {
        let mut decoder = zstd::Decoder::new(file)?;
        decoder.window_log_max(31)?;
        decoder.read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().context("the file is empty")?.split(',').collect();
    let column = |name: &str| {
        header.iter().position(|column| *column == name).with_context(|| format!("no column {name}"))
    };
    let (carrier, origin, delay, hour) =
        (column("carrier")?, column("origin")?, column("dep_delay")?, column("time_hour")?);
    let mut results = Results::default();
    let mut delays = std::collections::BTreeMap::<&str, (i64, i64)>::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        ensure!(fields.len() == header.len(), "a row with other columns: {line}");
        results.carriers.entry(fields[carrier].to_string()).or_insert(Carrier::default()).flights += 1;
        if fields[delay] != "NA" {
            let (sum, known) = delays.entry(fields[carrier]).or_default();
            *sum += fields[delay].parse::<i64>()?;
            *known += 1;
        }
        let day = midnight(&fields[hour][..10]).context("a date")?;
        *results.days.entry((fields[origin].to_string(), day)).or_default() += 1;
    }
    for (name, (sum, known)) in delays {
        if let Some(carrier) = results.carriers.get_mut(name) {
            carrier.mean_dep_delay = Some(sum as f64 / known as f64);
        }
    }
    Ok(results)
}

/// Midnight of a `YYYY-MM-DD` in ms since 1970, counted year by year and month by month.
fn midnight(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut days = day - 1;
    for year in 1970..year {
        days += if leap(year) { 366 } else { 365 };
    }
    for month in 1..month {
        days += match month {
            2 if leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
    }
    Some(days * 86_400_000)
}
