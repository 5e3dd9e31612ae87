//! Wrong use: what is said, with which exit code, and that nothing is lost by it.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use thalweg_tests::node::Node;
use thalweg_tests::process::{Process, binary, run};

fn thalweg(arguments: &[&str]) -> anyhow::Result<Said> {
    let mut command = Command::new(binary("thalweg")?);
    command.args(arguments).stdin(Stdio::null()).env_remove("THALWEG_BOOTSTRAP").env_remove("THALWEG_DATA");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::spawn(&mut command)?;
    // What should be refused might run for ever. Nothing here prints more than a pipe holds.
    let code = process.wait(Duration::from_secs(30))?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    process.child().stdout.take().context("it is piped")?.read_to_end(&mut stdout)?;
    process.child().stderr.take().context("it is piped")?.read_to_end(&mut stderr)?;
    Ok(Said { code, stdout, stderr })
}

/// How a command ended, and what it printed.
struct Said {
    code: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs the program, and checks its exit code and that its error says each of `said`.
fn check(arguments: &[&str], code: i32, said: &[&str]) -> anyhow::Result<()> {
    let output = thalweg(arguments)?;
    let error = String::from_utf8(output.stderr)?;
    ensure!(output.code == code, "{arguments:?} ended with {}, not {code}:\n{error}", output.code);
    for part in said {
        ensure!(error.contains(part), "{arguments:?} does not say `{part}`:\n{error}");
    }
    ensure!(!error.contains("panicked"), "{arguments:?}:\n{error}");
    Ok(())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

#[test]
fn wrong_arguments_say_what_would_be_right() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = text(directory.path());
    check(&["serve", "--lissten", "x"], 2, &["--lissten", "--listen"])?;
    check(&["consum", "t"], 2, &["consum", "consume"])?;
    check(
        &["--data", data, "consume", "t", "--offset", "yesterday"],
        2,
        &["`yesterday` is not an offset", "@-1h"],
    )?;
    check(&["--data", data, "consume", "t", "--format", "%q"], 2, &["`%q`", "%k key"])?;
    check(
        &["--data", data, "consume", "t", "--offset", "1:2", "--until", "end"],
        2,
        &["the end is given twice"],
    )?;
    check(&["--data", data, "produce", "t", "--key", "a"], 2, &["text has no columns"])?;
    check(&["--data", data, "produce", "t", "--file", "/no/such/file"], 3, &["/no/such/file"])?;
    check(&["--data", data, "produce", "t", "-z", "brotli"], 2, &["there is no codec `brotli`"])?;
    check(&["--data", data, "topic", "create", "a/b"], 2, &["a/b"])?;
    check(&["--data", data, "topic", "create", "t", "-c", "retention.msx=1"], 2, &["retention.msx"])?;
    check(&["--data", data, "topic", "create", "t", "-p", "0"], 2, &["t"])?;
    check(&["serve", "--data", data, "--listen", "nonsense"], 2, &["nonsense", "host:port"])
}

#[test]
fn what_does_not_exist_is_offered_by_a_similar_name() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = text(directory.path());
    run(Command::new(binary("thalweg")?).args(["--data", data, "topic", "create", "flights"]))?;
    for command in [
        &["consume", "flihgts", "--until", "end"][..],
        &["topic", "describe", "flihgts"],
        &["topic", "delete", "flihgts", "--yes"],
        &["produce", "flihgts"],
    ] {
        check(
            &[&["--data", data], command].concat(),
            3,
            &["there is no topic `flihgts`", "did you mean `flights`"],
        )?;
    }
    check(
        &["--data", data, "sql", "-c", "SELECT * FROM flihgts"],
        3,
        &["`flihgts`", "did you mean `flights`"],
    )?;
    check(&["--data", data, "sql", "-c", "SELEC 1"], 2, &["line 1"])?;
    check(&["--data", data, "sql", "-c", "SELECT nope FROM flights"], 2, &["nope"])?;
    check(&["--data", data, "consume", "flights", "-p", "9"], 3, &["no partition 9", "0 to 0"])?;
    check(&["--data", data, "topic", "create", "flights"], 5, &["flights"])?;
    check(&["--data", data, "topic", "delete", "flights"], 2, &["--yes"])?;
    let listed = thalweg(&["--data", data, "topic", "list"])?;
    ensure!(String::from_utf8(listed.stdout)?.contains("flights"), "nothing was deleted");
    Ok(())
}

#[test]
fn nobody_there_and_everything_taken() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let held = TcpListener::bind("127.0.0.1:0")?;
    let port = held.local_addr()?.port().to_string();
    check(
        &["serve", "--data", text(&data), "--listen", &format!("127.0.0.1:{port}")],
        5,
        &[&port, "taken", "--listen"],
    )?;
    drop(held);
    check(
        &["--bootstrap", &format!("127.0.0.1:{port}"), "topic", "list"],
        4,
        &["no broker answers", "thalweg serve"],
    )?;

    let node = Node::start(&data, "127.0.0.1:0")?;
    let pid = node.process().id().to_string();
    check(&["serve", "--data", text(&data), "--listen", "127.0.0.1:0"], 5, &[&pid, "--data"])?;
    // Other commands talk to the node that holds the directory.
    run(Command::new(binary("thalweg")?).args([
        "--data",
        text(&data),
        "topic",
        "create",
        "through-the-lock",
    ]))?;
    let listed = run(node.command("topic")?.arg("list"))?;
    ensure!(String::from_utf8(listed.stdout)?.contains("through-the-lock"), "the node has the topic");
    ensure!(node.stop()? == 0, "the node stops in order");
    // And open it themselves once the node is gone.
    let listed = run(Command::new(binary("thalweg")?).args(["--data", text(&data), "topic", "list"]))?;
    ensure!(String::from_utf8(listed.stdout)?.contains("through-the-lock"), "the topic is still there");
    Ok(())
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign)?;
    fs::write(foreign.join("letter.txt"), "dear reader")?;
    check(&["serve", "--data", text(&foreign), "--listen", "127.0.0.1:0"], 1, &["foreign"])?;
    let names: Vec<_> = fs::read_dir(&foreign)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    ensure!(names.iter().any(|name| name == "letter.txt"), "{names:?}");
    ensure!(fs::read_to_string(foreign.join("letter.txt"))? == "dear reader", "it is as it was");
    Ok(())
}
