//! Lines that somebody types are records at once, and an interrupt loses none.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use thalweg_tests::node::Node;
use thalweg_tests::process::{Process, run};

const PATIENCE: Duration = Duration::from_secs(30);

fn consumed(node: &Node) -> anyhow::Result<String> {
    Ok(String::from_utf8(run(node.command("consume")?.args(["t", "--until", "end"]))?.stdout)?)
}

#[test]
fn a_typed_line_is_written_before_the_next_one() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    run(node.command("topic")?.args(["create", "t"]))?;
    let mut command = node.command("produce")?;
    command.arg("t").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut writer = Process::spawn(&mut command)?;
    let mut input = writer.child().stdin.take().context("it is piped")?;
    let mut typed = String::new();
    for line in ["one\n", "two\nthree\n", "\n"] {
        input.write_all(line.as_bytes())?;
        typed.push_str(line);
        let begun = Instant::now();
        while consumed(&node)? != typed {
            ensure!(begun.elapsed() < PATIENCE, "{typed:?} was typed, {:?} is there", consumed(&node)?);
        }
    }
    writer.signal(libc::SIGINT);
    ensure!(writer.wait(PATIENCE)? == 1, "an interrupt is no success");
    let mut said = String::new();
    writer.child().stderr.take().context("it is piped")?.read_to_string(&mut said)?;
    ensure!(said.contains("stopped after 4 records, which are written: interrupted"), "{said}");
    drop(input);
    ensure!(consumed(&node)? == typed, "each line once");
    Ok(())
}
