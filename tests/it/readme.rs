//! What the README shows does what it says.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, ensure};
use thalweg_tests::flights;
use thalweg_tests::node::Node;
use thalweg_tests::process::{Process, binary, forward_lines, run};

const PATIENCE: Duration = Duration::from_secs(120);

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it lies in the repository")
}

fn readme() -> anyhow::Result<String> {
    Ok(fs::read_to_string(repository().join("README.md"))?)
}

/// Runs a line of the README, which must stand there, on `node`.
fn shown(node: &Node, line: &str) -> anyhow::Result<String> {
    ensure!(readme()?.contains(line), "the README does not show: {line}");
    said(node, line)
}

/// Runs a command line as a shell would, from the repository's root.
fn said(node: &Node, line: &str) -> anyhow::Result<String> {
    let program = binary("thalweg")?;
    let mut shell = Command::new("sh");
    shell.args(["-c", &line.replacen("thalweg", "\"$THALWEG\"", 1)]).env("THALWEG", program);
    shell.env("THALWEG_BOOTSTRAP", node.address()).current_dir(repository()).stdin(Stdio::null());
    String::from_utf8(run(&mut shell)?.stdout).with_context(|| line.to_owned())
}

/// The lines of a JSON output, parsed.
fn json(text: &str) -> anyhow::Result<Vec<serde_json::Value>> {
    text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// The ms since 1970 of an hour of 2013 or 2014, `YYYY-MM-DDTHH:00:00Z`.
fn epoch_ms(hour: &str) -> anyhow::Result<i64> {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let number = |range: std::ops::Range<usize>| {
        hour.get(range).context("an hour")?.parse::<i64>().context("a number")
    };
    let (year, month, day, hours) = (number(0..4)?, number(5..7)?, number(8..10)?, number(11..13)?);
    let days = 15_706 + 365 * (year - 2013) + DAYS.iter().take(month as usize - 1).sum::<i64>() + day - 1;
    Ok((days * 24 + hours) * 3_600_000)
}

fn loaded(directory: &Path) -> anyhow::Result<Node> {
    let node = Node::start(&directory.join("data"), "127.0.0.1:0")?;
    shown(&node, "thalweg topic create flights --partitions 4 -c retention.ms=-1")?;
    shown(
        &node,
        "thalweg produce flights --file examples/data/flights.csv.zst --input csv --null NA --key tailnum --timestamp time_hour",
    )?;
    Ok(node)
}

#[test]
fn its_commands_do_what_it_says() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = loaded(directory.path())?;
    // Five before the end of each partition; keys, times and missing values as the options say.
    let last = json(&shown(&node, "thalweg consume flights --offset -5 --until end --format json")?)?;
    ensure!(last.len() == 20, "{} records", last.len());
    for record in &last {
        let value: serde_json::Value = serde_json::from_str(record["value"].as_str().context("a value")?)?;
        ensure!(record["key"] == value["tailnum"], "{record}");
        let hour = value["time_hour"].as_str().context("an hour")?;
        ensure!(record["timestamp"] == epoch_ms(hour)?, "{record}");
        ensure!(value["dep_delay"].is_i64() || value["dep_delay"].is_null(), "{record}");
    }
    let sql = shown(
        &node,
        r#"thalweg sql -c "SELECT carrier, count(*), avg(dep_delay) FROM flights GROUP BY carrier ORDER BY 2 DESC""#,
    )?;
    for (carrier, count) in flights::PER_CARRIER {
        let row = sql.lines().find(|line| line.contains(&format!("| {carrier} ")));
        ensure!(row.is_some_and(|row| row.contains(&format!(" {count} "))), "{carrier} {count}: {sql}");
    }
    let out = directory.path().join("out");
    let copy =
        r#"thalweg sql -c "COPY (SELECT origin, dest, dep_delay FROM flights) TO 'out' (FORMAT parquet)""#;
    ensure!(readme()?.contains(copy), "the README shows it");
    said(&node, &copy.replace("'out'", &format!("'{}'", out.display())))?;
    let file = directory.path().join("count.sql");
    fs::write(&file, format!("SELECT count(*) AS n, count(dep_delay) AS d FROM '{}/';", out.display()))?;
    let counted = said(&node, &format!("thalweg sql --format csv -f {}", file.display()))?;
    ensure!(counted == "n,d\n336776,328521\n", "{counted}");
    for (range, expected) in
        [("+10", None), ("10:20", Some(10)), ("3:4", Some(1)), ("@2013-12-31T00:00:00Z", None)]
    {
        let line = format!("thalweg consume flights -p 0 --offset {range} --format '%p %o %d\\n'");
        let until = if expected.is_none() { " --until end" } else { "" };
        let records = said(&node, &format!("{line}{until}"))?;
        let first = records.lines().next().context("there are some")?;
        match (range, expected) {
            (_, Some(expected)) => ensure!(records.lines().count() == expected, "{range}: {records}"),
            ("+10", None) => ensure!(first.starts_with("0 10 "), "{range}: {first}"),
            _ => {
                let time: i64 = first.rsplit(' ').next().context("a time")?.parse()?;
                ensure!(time >= 1_388_448_000_000, "{range}: {first}");
            }
        }
    }
    said(&node, "thalweg topic create bench -p 2")?;
    let produced = said(&node, "thalweg bench produce bench -n 10000 -s 50")?;
    ensure!(produced.starts_with("produced 10000 records, 0.5 MB"), "{produced}");
    let consumed = said(&node, "thalweg bench consume bench -n 10000")?;
    ensure!(consumed.starts_with("consumed 10000 records, 0.5 MB"), "{consumed}");
    let latency = said(&node, "thalweg bench latency bench -r 1000 -n 1000")?;
    ensure!(latency.starts_with("900 records of 100 bytes at 1000/s: p50 "), "{latency}");
    ensure!(node.stop()? == 0, "it stops in order");
    Ok(())
}

#[test]
fn its_processor_counts_flights_per_carrier() -> anyhow::Result<()> {
    let code = fs::read_to_string(repository().join("examples/src/bin/carriers.rs"))?;
    ensure!(readme()?.contains(&format!("```rust\n{code}```\n")), "the README shows another program");
    let directory = tempfile::tempdir()?;
    let node = loaded(directory.path())?;
    shown(&node, "thalweg topic create carriers -c retention.ms=-1")?;
    for program in ["carriers", "first_processor"] {
        let mut command = Command::new(binary(program)?);
        command.arg(node.address()).current_dir(directory.path()).stdout(Stdio::piped());
        if program == "first_processor" {
            said(&node, "thalweg topic create tails -c retention.ms=-1")?;
            command.args(["flights", "tails"]);
        }
        let mut processor = Process::spawn(&mut command)?;
        let (sender, lines) = channel();
        forward_lines(processor.child().stdout.take().context("it is piped")?, sender);
        while lines.recv_timeout(PATIENCE).context("it goes live")? != "live" {}
        processor.kill();
    }
    let sql = shown(
        &node,
        r#"thalweg sql -c "SELECT _key, max(value::bigint) FROM carriers GROUP BY _key ORDER BY 2 DESC""#,
    )?;
    for (carrier, count) in flights::PER_CARRIER {
        let row = sql.lines().find(|line| line.contains(&format!("| {carrier} ")));
        ensure!(row.is_some_and(|row| row.contains(&format!(" {count} "))), "{carrier} {count}: {sql}");
    }
    let last = shown(&node, r"thalweg consume carriers --until end --format '%k %v\n'")?;
    ensure!(last.lines().any(|line| line == "UA 58665"), "{last}");
    let sum = said(
        &node,
        r#"thalweg sql --format csv -c "SELECT sum(n) AS s FROM (SELECT max(value::bigint) AS n FROM tails GROUP BY _key)""#,
    )?;
    // 2,512 flights have no tail number, and so no key to count them by.
    ensure!(sum == "s\n334264\n", "{sum}");
    Ok(())
}
