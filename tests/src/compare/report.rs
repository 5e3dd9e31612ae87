//! The comparison as a table, in the terminal and in the README.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// One thing measured on two sides, a pair for each round.
#[derive(Clone, Debug)]
pub struct Row {
    /// What, with its unit.
    pub what: String,
    /// In the order of the table's columns.
    pub rounds: Vec<(f64, f64)>,
}

impl Row {
    /// A row without measurements.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), rounds: Vec::new() }
    }

    fn line(&self) -> String {
        let ours = median(self.rounds.iter().map(|round| round.0));
        let theirs = median(self.rounds.iter().map(|round| round.1));
        let ratio = median(self.rounds.iter().map(|round| round.0 / round.1));
        format!("| {} | {} | {} | {} |", self.what, number(ours), number(theirs), times(ratio))
    }
}

/// The middle one of `values`; of an even number, the lower middle one. NaN for none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Three significant digits, with separators between thousands.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if digits < 3 {
        return format!("{value:.*}", (2 - digits).max(0) as usize);
    }
    let step = 10_f64.powi(digits - 2);
    let whole = format!("{:.0}", (value / step).round() * step);
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{}×", number(ratio)) } else { "–".into() }
}

/// A table of `rows` whose two sides have these names.
pub fn table(sides: [&str; 2], rows: &[Row]) -> anyhow::Result<String> {
    let [left, right] = sides;
    let mut text = format!("\n| | {left} | {right} | ratio |\n|---|--:|--:|--:|\n");
    for row in rows {
        writeln!(text, "{}", row.line())?;
    }
    Ok(text)
}

/// When it was measured, on what, and in how many rounds.
pub fn headline(rounds: usize) -> anyhow::Result<String> {
    let rounds = if rounds == 1 { "one round".into() } else { format!("medians of {rounds} rounds") };
    Ok(format!("{} · {} · {rounds}\n", today()?, machine()?))
}

fn today() -> anyhow::Result<String> {
    let output = Command::new("date").arg("+%Y-%m-%d").output().context("date")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Such as "2 cores of AMD EPYC, 24 GB".
fn machine() -> anyhow::Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kilobytes = memory.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    let cores = std::thread::available_parallelism()?;
    let gigabytes = kilobytes.context("MemTotal is a number")? * 1024.0 / 1e9;
    Ok(format!("{cores} cores of {}, {gigabytes:.0} GB", model.trim_start_matches([' ', '\t', ':'])))
}

const BEGIN: &str = "<!-- make bench writes from here -->\n";
const END: &str = "<!-- to here -->\n";

/// Puts `table` where the file at `path` has its marks.
///
/// # Errors
/// When it has none.
pub fn publish(path: &Path, table: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    let replaced = between_marks(&text, table);
    fs::write(path, replaced.with_context(|| format!("{} has no marks for it", path.display()))?)?;
    Ok(())
}

fn between_marks(text: &str, table: &str) -> anyhow::Result<String> {
    let (before, rest) = text.split_once(BEGIN).context("no first mark")?;
    let (_old, after) = rest.split_once(END).context("no last mark")?;
    ensure!(!after.contains(BEGIN), "two first marks");
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let cases = [(0.0, "0.00"), (0.0312, "0.0312"), (6.25, "6.25"), (49.4, "49.4"), (998.4, "998")];
        let thousands = [(1_538_123.0, "1,540,000"), (57_061.0, "57,100"), (1_000.0, "1,000")];
        for (value, text) in cases.into_iter().chain(thousands) {
            assert_eq!(number(value), text);
        }
        assert_eq!(times(f64::NAN), "–");
    }

    #[test]
    fn a_row_has_medians_and_the_median_of_ratios() {
        let row = Row { what: "memory, MB".into(), rounds: vec![(1.0, 10.0), (3.0, 10.0), (2.0, 40.0)] };
        assert_eq!(row.line(), "| memory, MB | 2.00 | 10.0 | 0.100× |");
    }

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        let new = between_marks(&text, "new\n").expect("it has marks");
        assert_eq!(new, format!("a\n{BEGIN}new\n{END}b\n"));
        assert!(between_marks("no marks", "new\n").is_err());
    }
}
