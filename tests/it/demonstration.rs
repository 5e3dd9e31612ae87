//! The demonstration is the same on an embedded log, on a node over TCP, and on Apache Kafka.

use std::process::Command;

use thalweg_tests::flights::PER_CARRIER;
use thalweg_tests::node::Node;
use thalweg_tests::peers::kafka::Kafka;
use thalweg_tests::process::{binary, run};

/// Runs the demonstration, which fails by itself on any wrong value, and checks that it said all it should.
fn check(arguments: &[&str]) -> anyhow::Result<()> {
    let output = run(Command::new(binary("flights")?).args(["--december-seconds", "1"]).args(arguments))?;
    let text = String::from_utf8(output.stdout)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    for (carrier, flights) in PER_CARRIER {
        let count = flights.to_string();
        anyhow::ensure!(
            words.windows(2).any(|pair| pair == [carrier, count.as_str()]),
            "no {count} flights of {carrier} in:\n{text}"
        );
    }
    for part in [
        "Loaded months 1 to 11: 308641 flights",
        "Live after",
        "December is in: 28135 flights",
        "336776 flights on 1098 days and origins",
        "United Air Lines Inc.",
        "336776 flights, 16 carriers, 1098 windows. Topics and SQL agree with it in every value.",
    ] {
        anyhow::ensure!(text.contains(part), "no `{part}` in:\n{text}");
    }
    anyhow::ensure!(text.matches("Live after").count() == 1, "live is said once:\n{text}");
    Ok(())
}

#[test]
fn it_runs_embedded_and_leaves_the_right_values() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let dir = directory.path().to_str().expect("temporary paths are UTF-8");
    check(&["--dir", dir])?;
    let query = |sql: &str| -> anyhow::Result<String> {
        let log = directory.path().join("log");
        let mut command = Command::new(binary("thalweg")?);
        command.arg("--data").arg(log).args(["sql", "--format", "csv", "-c", sql]);
        Ok(String::from_utf8(run(&mut command)?.stdout)?)
    };
    let last = |topic: &str| {
        format!(
            "(SELECT *, row_number() OVER (PARTITION BY _key ORDER BY _offset DESC) AS recency FROM \"{topic}\") AS t \
             WHERE recency = 1"
        )
    };
    let means = query(&format!(
        "SELECT carrier, round(mean_dep_delay, 4) FROM {} AND carrier IN ('UA', 'EV', 'OO') ORDER BY 1",
        last("flights-carriers")
    ))?;
    let means: Vec<&str> = means.lines().skip(1).collect();
    anyhow::ensure!(means == ["EV,19.9554", "OO,12.5862", "UA,12.1061"], "{means:?}");
    let windows = query(&format!("SELECT count(*) FROM {}", last("flights-days")))?;
    anyhow::ensure!(windows.lines().nth(1) == Some("1098"), "{windows}");
    let fullest = query(&format!(
        "SELECT flights, origin FROM {} ORDER BY flights DESC, day LIMIT 5",
        last("flights-days")
    ))?;
    let fullest: Vec<&str> = fullest.lines().skip(1).collect();
    anyhow::ensure!(fullest[..4] == ["375,EWR"; 4] && fullest[4] != "375,EWR", "{fullest:?}");
    let unknown = query("SELECT count(*) FROM flights WHERE dep_delay IS NULL")?;
    anyhow::ensure!(unknown.lines().nth(1) == Some("8255"), "{unknown}");
    Ok(())
}

#[test]
fn it_runs_on_a_node() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(directory.path(), "127.0.0.1:0")?;
    check(&["--bootstrap", node.address()])?;
    anyhow::ensure!(node.stop()? == 0, "the node stops in order");
    Ok(())
}

#[test]
fn it_runs_on_kafka() -> anyhow::Result<()> {
    let kafka = Kafka::start()?;
    check(&["--bootstrap", kafka.address()])
}
