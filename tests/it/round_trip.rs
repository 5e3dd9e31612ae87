//! All lines of the flights, in and out byte for byte, by every pair of our program, kcat and Java's tools.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use thalweg_tests::flights;
use thalweg_tests::node::Node;
use thalweg_tests::peers::kafka;
use thalweg_tests::process::run;

const LINES: usize = 336_776;

/// The rows as they stand in the file, without the header.
fn text() -> &'static str {
    flights::csv().split_once('\n').expect("a header line").1
}

fn lines_file(directory: &Path) -> anyhow::Result<std::path::PathBuf> {
    let path = directory.join("lines");
    fs::write(&path, text())?;
    Ok(path)
}

fn create(node: &Node, topic: &str, partitions: u32) -> anyhow::Result<()> {
    run(node.command("topic")?.args(["create", topic, "--partitions", &partitions.to_string()]))?;
    Ok(())
}

fn ours_in(node: &Node, topic: &str, lines: &Path, codec: &str) -> anyhow::Result<()> {
    run(node.command("produce")?.arg(topic).arg("--file").arg(lines).args(["--compression", codec]))?;
    Ok(())
}

fn ours_out(node: &Node, topic: &str) -> anyhow::Result<Vec<u8>> {
    Ok(run(node.command("consume")?.arg(topic).args(["--until", "end"]))?.stdout)
}

fn kcat_in(node: &Node, topic: &str, lines: &Path, codec: &str) -> anyhow::Result<()> {
    let mut command = Command::new("kcat");
    command.args(["-P", "-b", node.address(), "-t", topic, "-z", codec]).stdin(File::open(lines)?);
    run(&mut command)?;
    Ok(())
}

fn kcat_out(node: &Node, topic: &str) -> anyhow::Result<Vec<u8>> {
    Ok(run(Command::new("kcat").args([
        "-C",
        "-b",
        node.address(),
        "-t",
        topic,
        "-e",
        "-q",
        "-o",
        "beginning",
    ]))?
    .stdout)
}

fn java_in(node: &Node, topic: &str, lines: &Path) -> anyhow::Result<()> {
    let mut command = kafka::class("org.apache.kafka.tools.ConsoleProducer", "512m")?;
    command.args(["--bootstrap-server", node.address(), "--topic", topic]).stdin(File::open(lines)?);
    run(&mut command)?;
    Ok(())
}

fn java_out(node: &Node, topic: &str) -> anyhow::Result<Vec<u8>> {
    let mut command = kafka::class("org.apache.kafka.tools.consumer.ConsoleConsumer", "512m")?;
    command.args(["--bootstrap-server", node.address(), "--topic", topic, "--from-beginning"]);
    command.args(["--max-messages", &LINES.to_string(), "--timeout-ms", "60000"]);
    Ok(run(&mut command)?.stdout)
}

fn same(what: &str, out: &[u8]) -> anyhow::Result<()> {
    ensure!(out.len() == text().len(), "{what}: {} bytes came out of {}", out.len(), text().len());
    ensure!(out == text().as_bytes(), "{what}: the bytes differ");
    Ok(())
}

#[test]
fn every_line_comes_out_as_it_went_in() -> anyhow::Result<()> {
    ensure!(text().lines().count() == LINES, "the data is whole");
    let directory = tempfile::tempdir()?;
    let lines = lines_file(directory.path())?;
    let mut node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    for codec in ["none", "zstd"] {
        let (ours, kcat) = (format!("ours-{codec}"), format!("kcat-{codec}"));
        create(&node, &ours, 1)?;
        create(&node, &kcat, 1)?;
        ours_in(&node, &ours, &lines, codec)?;
        kcat_in(&node, &kcat, &lines, codec)?;
        for topic in [&ours, &kcat] {
            same(&format!("{topic}, read by thalweg"), &ours_out(&node, topic)?)?;
            same(&format!("{topic}, read by kcat"), &kcat_out(&node, topic)?)?;
        }
    }
    create(&node, "java", 1)?;
    java_in(&node, "java", &lines)?;
    same("java, read by thalweg", &ours_out(&node, "java")?)?;
    same("java, read by java", &java_out(&node, "java")?)?;
    same("java, read by kcat", &kcat_out(&node, "java")?)?;
    same("ours, read by java", &java_out(&node, "ours-zstd")?)?;
    same("kcat's, read by java", &java_out(&node, "kcat-none")?)?;

    // And again after a kill: what was acknowledged is there.
    let address = node.address().to_string();
    node.kill();
    let node = Node::start(&directory.path().join("data"), &address)?;
    same("after a kill", &ours_out(&node, "ours-none")?)?;
    same("after a kill, kcat's", &ours_out(&node, "kcat-zstd")?)?;
    ensure!(node.stop()? == 0, "the node stops in order");
    Ok(())
}

#[test]
fn java_measures_our_node_with_its_performance_tools() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    create(&node, "perf", 6)?;
    let lines = lines_file(directory.path())?;
    let records = LINES.to_string();
    let mut producer = kafka::class("org.apache.kafka.tools.ProducerPerformance", "512m")?;
    producer.args(["--topic", "perf", "--num-records", &records, "--throughput", "-1"]);
    producer.arg("--payload-file").arg(&lines);
    producer.args(["--producer-props", &format!("bootstrap.servers={}", node.address()), "acks=all"]);
    let said = String::from_utf8(run(&mut producer)?.stdout)?;
    ensure!(said.contains(&format!("{records} records sent")), "{said}");
    // It draws lines: what comes out are so many of those in the file.
    let known: HashSet<&str> = text().lines().collect();
    let ours = String::from_utf8(ours_out(&node, "perf")?)?;
    ensure!(ours.lines().count() == LINES, "{} lines", ours.lines().count());
    ensure!(ours.lines().all(|line| known.contains(line)), "a line is none of the file's");

    create(&node, "flights", 1)?;
    ours_in(&node, "flights", &lines, "lz4")?;
    let bytes = text().len() - LINES;
    for (topic, bytes) in [("perf", ours.len() - LINES), ("flights", bytes)] {
        let mut consumer = kafka::class("org.apache.kafka.tools.ConsumerPerformance", "512m")?;
        consumer.args(["--bootstrap-server", node.address(), "--topic", topic, "--timeout", "60000"]);
        consumer.args(["--num-records", &records]);
        let said = String::from_utf8(run(&mut consumer)?.stdout)?;
        // start, end, MB, MB/s, records, records/s, …
        let last: Vec<&str> = said.lines().last().unwrap_or_default().split(", ").collect();
        let megabytes = format!("{:.4}", bytes as f64 / (1024.0 * 1024.0));
        ensure!(
            last.get(4) == Some(&&*records) && last.get(2) == Some(&&*megabytes),
            "{megabytes} MB: {said}"
        );
    }
    Ok(())
}

#[test]
fn keys_choose_the_partition_that_java_chooses() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    for topic in ["ours", "java"] {
        create(&node, topic, 7)?;
    }
    let mut tails: Vec<&str> = flights::rows().filter_map(|flight| flight.tail).collect();
    tails.sort_unstable();
    tails.dedup();
    ensure!(tails.len() > 4_000, "only {} tail numbers", tails.len());
    let keyed = directory.path().join("keyed");
    let mut file = File::create(&keyed)?;
    for tail in &tails {
        writeln!(file, "{tail}|x")?;
    }
    drop(file);
    run(node.command("produce")?.arg("ours").arg("--file").arg(&keyed).args(["--key-delimiter", "|"]))?;
    let mut java = kafka::class("org.apache.kafka.tools.ConsoleProducer", "512m")?;
    java.args(["--bootstrap-server", node.address(), "--topic", "java"]);
    java.args(["--reader-property", "parse.key=true", "--reader-property", "key.separator=|"]);
    java.stdin(File::open(&keyed)?).stdout(Stdio::null());
    run(&mut java)?;
    let partitions = |topic: &str| -> anyhow::Result<BTreeMap<String, String>> {
        let out =
            run(node.command("consume")?.args([topic, "--until", "end", "--format", r"%k %p\n"]))?.stdout;
        let out = String::from_utf8(out)?;
        out.lines()
            .map(|line| {
                let (key, partition) = line.split_once(' ').context("a key and a partition")?;
                Ok((key.to_string(), partition.to_string()))
            })
            .collect()
    };
    let (ours, javas) = (partitions("ours")?, partitions("java")?);
    ensure!(ours.len() == tails.len(), "{} keys came out", ours.len());
    ensure!(ours == javas, "some key is in another partition");
    Ok(())
}
