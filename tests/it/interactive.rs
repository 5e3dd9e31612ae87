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

/// A topic whose node has gone, and a command that writes to it.
fn writer_without_node(directory: &std::path::Path) -> anyhow::Result<(Process, std::process::ChildStdin)> {
    let mut node = Node::start(&directory.join("data"), "127.0.0.1:0")?;
    run(node.command("topic")?.args(["create", "t"]))?;
    let mut command = node.command("produce")?;
    command.arg("t").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut writer = Process::spawn(&mut command)?;
    let mut input = writer.child().stdin.take().context("it is piped")?;
    input.write_all(b"one\n")?;
    let begun = Instant::now();
    while consumed(&node)? != "one\n" {
        ensure!(begun.elapsed() < PATIENCE, "the first line was not written");
    }
    node.kill();
    input.write_all(b"two\n")?;
    // It finds out that nobody answers.
    std::thread::sleep(Duration::from_secs(1));
    Ok((writer, input))
}

fn told(mut process: Process) -> anyhow::Result<String> {
    let mut said = String::new();
    process.child().stderr.take().context("it is piped")?.read_to_string(&mut said)?;
    Ok(said)
}

#[test]
fn an_interrupt_ends_a_writer_whose_broker_has_gone() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let (mut writer, input) = writer_without_node(directory.path())?;
    let interrupted = Instant::now();
    writer.signal(libc::SIGINT);
    ensure!(writer.wait(PATIENCE)? == 1, "an interrupt is no success");
    ensure!(interrupted.elapsed() < Duration::from_secs(10), "it took {:?}", interrupted.elapsed());
    let said = told(writer)?;
    ensure!(said.contains("of 2 records that were read 1 is certainly written"), "{said}");
    ensure!(said.contains("interrupted while records wait"), "{said}");
    drop(input);
    Ok(())
}

#[test]
fn an_end_of_input_waits_for_the_broker_until_it_is_interrupted() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let (mut writer, input) = writer_without_node(directory.path())?;
    drop(input);
    std::thread::sleep(Duration::from_secs(1));
    ensure!(writer.child().try_wait()?.is_none(), "a record waits");
    writer.signal(libc::SIGTERM);
    ensure!(writer.wait(Duration::from_secs(10))? == 1, "an interrupt is no success");
    Ok(())
}

#[test]
fn a_second_interrupt_ends_at_once() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let (mut writer, _input) = writer_without_node(directory.path())?;
    writer.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(100));
    let second = Instant::now();
    writer.signal(libc::SIGINT);
    ensure!(writer.wait(PATIENCE)? == 1, "an interrupt is no success");
    ensure!(second.elapsed() < Duration::from_secs(1), "it took {:?}", second.elapsed());
    let said = told(writer)?;
    ensure!(said.contains("interrupted again: ended at once"), "{said}");
    Ok(())
}

#[test]
fn an_interrupt_ends_a_statement_that_is_being_planned() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    // Planning takes time by the square of its length.
    let sum = (0..20_000).map(|n| n.to_string()).collect::<Vec<_>>().join("+");
    let file = directory.path().join("long.sql");
    std::fs::write(&file, format!("SELECT {sum}"))?;
    let mut command = node.command("sql")?;
    command.arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut planner = Process::spawn(&mut command)?;
    std::thread::sleep(Duration::from_secs(2));
    ensure!(planner.child().try_wait()?.is_none(), "it is still planning");
    planner.signal(libc::SIGINT);
    let interrupted = Instant::now();
    ensure!(planner.wait(PATIENCE)? == 1, "an interrupt is no success");
    ensure!(interrupted.elapsed() < Duration::from_secs(10), "it took {:?}", interrupted.elapsed());
    let said = told(planner)?;
    ensure!(said.contains("error: interrupted"), "{said}");
    Ok(())
}
