//! The demonstration is the same on an embedded log, on a node over TCP, and on Apache Kafka.

use std::process::Command;

use thalweg_tests::node::Node;
use thalweg_tests::peers::kafka::Kafka;
use thalweg_tests::process::{binary, run};

/// Runs the demonstration, which fails by itself on any wrong value, and checks that it said all it should.
fn check(arguments: &[&str]) -> anyhow::Result<()> {
    let output = run(Command::new(binary("flights")?).args(["--december-seconds", "1"]).args(arguments))?;
    let text = String::from_utf8(output.stdout)?;
    for part in [
        "Loaded months 1 to 11: 308641 flights",
        "Live after",
        "December is in: 28135 flights",
        " UA       58665   12.11 ",
        " EV       54173   19.96 ",
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
fn it_runs_embedded() -> anyhow::Result<()> {
    check(&[])
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
