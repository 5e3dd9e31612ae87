//! Wrong use: what is said, with which exit code, and that nothing is lost by it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    run(Command::new(binary("thalweg")?).args(["--data", data, "topic", "create", "t"]))?;
    check(&["serve", "--lissten", "x"], 2, &["--lissten", "--listen"])?;
    check(&["consum", "t"], 2, &["consum", "consume"])?;
    check(&["consume", "t", "--from-beginning"], 2, &["tip: leave it away: it begins at the start"])?;
    check(&["topic", "--create", "--topic", "t"], 2, &["tip: `thalweg topic create TOPIC`"])?;
    check(
        &["--data", data, "consume", "t", "-o", "earliest"],
        2,
        &["`earliest` is not an offset: it is called `start` here"],
    )?;
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
    check(&["--data", data, "topic", "create", "u", "-c", "retention.msx=1"], 2, &["retention.msx"])?;
    check(&["--data", data, "topic", "create", "u", "-p", "0"], 2, &["u"])?;
    check(&["serve", "--data", data, "--listen", "nonsense"], 2, &["nonsense", "host:port"])?;
    let serve = ["serve", "--data", data, "--listen", "127.0.0.1:0"];
    for (more, said) in [
        (["--metrics", "0.0.0.0:0"], &["--metrics: 0.0.0.0:0 can be reached"][..]),
        (["--default-partitions", "0"], &["--default-partitions: 0 is less than 1"]),
        (["-c", "log.retention.mss=1"], &["did you mean `log.retention.ms`?", "thalweg help node"]),
        (["-c", "bogus=1"], &["there is no such setting", "thalweg help node"]),
    ] {
        check(&[&serve[..], &more].concat(), 2, said)?;
    }
    let unmade = directory.path().join("unmade");
    check(
        &["serve", "--data", text(&unmade), "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"],
        2,
        &["--metrics"],
    )?;
    ensure!(!unmade.exists(), "what is refused leaves nothing behind");
    check(&["--data", data, "topic", "create", "u", "-p", "99999999"], 2, &["POLICY_VIOLATION"])?;
    check(&["--data", data, "produce", "t", "-H", "name"], 2, &["a header is written NAME=VALUE"])?;
    check(
        &["--data", data, "produce", "t", "-Z", "-i", "json"],
        2,
        &["--empty-as-null is for lines of text"],
    )?;
    check(&["--data", data, "produce", "t", "--keep-partition"], 2, &["only --input record"])?;
    check(&["--data", data, "produce", "t", "-i", "record", "-k", "a"], 2, &["says itself what its key is"])
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
fn a_mistyped_directory_is_not_made() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let typo = directory.path().join("typo");
    for command in [&["topic", "list"][..], &["consume", "t"], &["produce", "t"], &["sql", "-c", "SELECT 1"]]
    {
        check(&[&["--data", text(&typo)], command].concat(), 3, &["there is no log in", "typo", "serve"])?;
        ensure!(!typo.exists(), "{command:?} made it");
    }
    Ok(())
}

#[test]
fn the_command_line_goes_before_the_environment() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = text(directory.path());
    check(&["--data", data, "--bootstrap", "127.0.0.1:1", "topic", "list"], 2, &["--data", "--bootstrap"])?;
    check(&["--bootstrap", "nonsense", "topic", "list"], 2, &["nonsense", "host:port"])?;
    let mut command = Command::new(binary("thalweg")?);
    command.args(["--data", data, "topic", "create", "here"]).env("THALWEG_BOOTSTRAP", "127.0.0.1:1");
    run(&mut command)?;
    let mut command = Command::new(binary("thalweg")?);
    command.args(["topic", "list"]).env("THALWEG_DATA", data).env("THALWEG_BOOTSTRAP", "");
    ensure!(String::from_utf8(run(&mut command)?.stdout)?.contains("here"), "what is empty is not set");
    let both = |arguments: &[&str]| -> anyhow::Result<std::process::Output> {
        let mut command = Command::new(binary("thalweg")?);
        command.args(arguments).env("THALWEG_DATA", data).env("THALWEG_BOOTSTRAP", "127.0.0.1:1");
        Ok(command.output()?)
    };
    let (unclear, clear) = (both(&["topic", "list"])?, both(&["topic", "list", "--data", data])?);
    let said = String::from_utf8(unclear.stderr)?;
    ensure!(said.contains("THALWEG_BOOTSTRAP and THALWEG_DATA both say where the log is"), "{said}");
    ensure!(unclear.status.code() == Some(2) && clear.status.success(), "{said}");
    Ok(())
}

#[test]
fn an_offset_past_the_end_is_waited_for() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    run(node.command("topic")?.args(["create", "t"]))?;
    let produce = |lines: std::ops::Range<u32>| -> anyhow::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), lines.map(|n| format!("line {n}\n")).collect::<String>())?;
        run(node.command("produce")?.args(["t", "--file", text(file.path())])).map(drop)
    };
    produce(0..10)?;
    let mut command = node.command("consume")?;
    command.args(["t", "-o", "12", "-n", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut reader = Process::spawn(&mut command)?;
    let mut said = std::io::BufReader::new(reader.child().stderr.take().context("it is piped")?);
    let mut note = String::new();
    std::io::BufRead::read_line(&mut said, &mut note)?;
    ensure!(note.contains("t-0 ends at 10; waiting for offset 12"), "{note}");
    note.clear();
    std::io::BufRead::read_line(&mut said, &mut note)?;
    ensure!(note.contains("waiting for 2 records more") && note.contains("--exit"), "{note}");
    produce(10..15)?;
    ensure!(reader.wait(Duration::from_secs(30))? == 0, "two records came");
    let mut out = String::new();
    reader.child().stdout.take().context("it is piped")?.read_to_string(&mut out)?;
    ensure!(out == "line 12\nline 13\n", "{out}");
    // Nothing is waited for by whoever wants what is there.
    for (more, expected) in [
        (&["-o", "13:20"][..], "line 13\nline 14\n"),
        (&["-o", "13:14"], "line 13\n"),
        (&["-o", "20"], ""),
        (&["-o", "13", "-n", "9"], "line 13\nline 14\n"),
        (&["--until", "@2100-01-01", "-o", "-1"], "line 14\n"),
    ] {
        let out = run(node.command("consume")?.args(["t", "--exit"]).args(more))?.stdout;
        ensure!(out == expected.as_bytes(), "{more:?}: {}", String::from_utf8_lossy(&out));
    }
    Ok(())
}

#[test]
fn a_refused_record_stops_the_rest_and_what_is_written_is_counted() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    run(node.command("topic")?.args(["create", "t"]))?;
    let file = tempfile::NamedTempFile::new()?;
    let large = "x".repeat(1_040_000);
    fs::write(file.path(), format!("before\n{large}{large}\nafter\n"))?;
    let output = node.command("produce")?.args(["t", "--file", text(file.path())]).output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(1), "{said}");
    let written =
        run(node.command("consume")?.args(["t", "--until", "end"]))?.stdout.split(|&b| b == b'\n').count()
            - 1;
    let counted = said.contains(&format!("{written} are certainly written"))
        || said.contains(&format!("stopped after {written} record"));
    ensure!(counted, "{written} are there: {said}");
    Ok(())
}

#[test]
fn a_long_expression_is_no_reason_to_die() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = text(directory.path());
    run(Command::new(binary("thalweg")?).args(["--data", data, "topic", "create", "t"]))?;
    // Planning takes time by the square of its length.
    let sum = (0..1500).map(|n| n.to_string()).collect::<Vec<_>>().join("+");
    let said =
        thalweg(&["--data", data, "sql", "--format", "csv", "-c", &format!("-- long\nSELECT {sum} AS s")])?;
    let out = String::from_utf8(said.stdout)?;
    ensure!(said.code == 0 && out == "s\n1124250\n", "{}: {out}", said.code);
    Ok(())
}

#[test]
fn a_reader_that_has_had_enough_ends_the_writer_quietly() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = text(directory.path());
    run(Command::new(binary("thalweg")?).args(["--data", data, "topic", "create", "t"]))?;
    for command in [
        &["topic", "list"][..],
        &["topic", "describe", "t"],
        &["sql", "-c", "SELECT 1"],
        &["sql", "--format", "csv", "-c", "SELECT 1"],
    ] {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let output =
            Command::new(binary("thalweg")?).args(["--data", data]).args(command).stdout(writer).output()?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.success() && !said.contains("panicked"), "{command:?}: {said}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_printed_is_a_failure() -> anyhow::Result<()> {
    for command in [&["--help"][..], &["--version"], &["serve", "--help"], &["help", "offsets"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full")?;
        let output = Command::new(binary("thalweg")?).args(command).stdout(full).output()?;
        ensure!(output.status.code() == Some(1), "{command:?}: {:?}", output.status);
    }
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
    let metrics = format!("127.0.0.1:{port}");
    check(
        &["serve", "--data", text(&data), "--listen", "127.0.0.1:0", "--metrics", &metrics],
        5,
        &[&port, "taken", "--metrics HOST:PORT"],
    )?;
    drop(held);
    check(
        &["--bootstrap", &format!("127.0.0.1:{port}"), "topic", "list"],
        4,
        &["no broker answers", "thalweg serve"],
    )?;

    let node = Node::start(&data, "127.0.0.1:0")?;
    let pid = node.process().id().to_string();
    let reached = format!(
        "Other commands than serve reach that node with --data {} or --bootstrap {}",
        data.display(),
        node.address()
    );
    check(&["serve", "--data", text(&data), "--listen", "127.0.0.1:0"], 5, &[&pid, "--data DIR", &reached])?;
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
    // What opens it in its own process listens on no port.
    let mut writer = Command::new(binary("thalweg")?);
    let writer = writer.args(["--data", text(&data), "produce", "through-the-lock"]).stdin(Stdio::piped());
    let mut writer = Process::spawn(writer.stderr(Stdio::null()))?;
    // It looks at its input before it opens anything.
    let mut input = writer.child().stdin.take().context("it is piped")?;
    input.write_all(b"a line\n")?;
    let begun = Instant::now();
    while !data.join("lock").is_file()
        || !fs::read_to_string(data.join("lock"))?.contains(&writer.id().to_string())
    {
        ensure!(begun.elapsed() < Duration::from_secs(30), "the writer does not open the directory");
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = [&*writer.id().to_string(), "It listens on no port", "--data DIR"];
    check(&["serve", "--data", text(&data), "--listen", "127.0.0.1:0"], 5, &said)?;
    drop(input);
    ensure!(writer.wait(Duration::from_secs(30))? == 0, "the writer ends with its input");
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
    let said = ["is no data directory", "Nothing was changed", "--data DIR"];
    check(&["serve", "--data", text(&foreign), "--listen", "127.0.0.1:0"], 1, &said)?;
    // Where there is nothing to lose, the other commands say that there is nothing.
    check(&["topic", "list", "--data", text(&foreign)], 3, &["there is no log in"])?;
    let names: Vec<_> = fs::read_dir(&foreign)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    ensure!(names == ["letter.txt"], "{names:?}");
    ensure!(fs::read_to_string(foreign.join("letter.txt"))? == "dear reader", "it is as it was");
    Ok(())
}

#[test]
fn a_newer_directory_is_refused_and_left_alone() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    ensure!(Node::start(&data, "127.0.0.1:0")?.stop()? == 0, "the node stops in order");
    let meta = data.join("meta");
    let newer = fs::read_to_string(&meta)?.replace("format: 1", "format: 2");
    ensure!(newer.contains("format: 2"), "{newer}");
    fs::write(&meta, &newer)?;
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["topic", "list"]] {
        check(
            &[&["--data", text(&data)], command].concat(),
            1,
            &["format 2", "Nothing was changed", "a newer one"],
        )?;
    }
    ensure!(fs::read_to_string(&meta)? == newer, "it is as it was");
    Ok(())
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this user may not mount.
    fn mount() -> anyhow::Result<Option<Self>> {
        let directory = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(directory.path());
        let output = mount.output()?;
        // Only root may, and root can be told that no test is to be passed over.
        let must =
            fs::metadata("/proc/self")?.uid() == 0 && std::env::var_os("THALWEG_TESTS_MUST_RUN").is_some();
        ensure!(output.status.success() || !must, "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.status.success().then_some(Self(directory)))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_holds_writers_up_until_there_is_room() -> anyhow::Result<()> {
    let Some(disk) = SmallDisk::mount()? else {
        eprintln!("SKIPPED: only root can mount a small disk");
        return Ok(());
    };
    let node = Node::start(&disk.0.path().join("data"), "127.0.0.1:0")?;
    run(node.command("topic")?.args(["create", "t", "-c", "segment.index.bytes=4096"]))?;
    let filler = disk.0.path().join("filler");
    fs::write(&filler, vec![0; 16 << 20])?;
    let lines: String = (0..80_000).map(|n| format!("line {n} {}\n", "x".repeat(100))).collect();
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), &lines)?;

    let mut command = node.command("produce")?;
    command.args(["t", "--file", text(file.path())]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut writer = Process::spawn(&mut command)?;
    let full = |written: &str| written.len() > 1_000_000 && written.len() < lines.len();
    let mut written = String::new();
    let patience = Instant::now() + Duration::from_secs(30);
    while Instant::now() < patience {
        // What is written no longer grows: the disk is full. Reading goes on meanwhile.
        let now = consumed(&node)?;
        if full(&now) && now == written {
            break;
        }
        written = now;
        std::thread::sleep(Duration::from_millis(300));
    }
    ensure!(full(&written), "{} of {} bytes on a disk with no room for them", written.len(), lines.len());
    ensure!(lines.starts_with(&written), "what is written is the first part");
    fs::remove_file(&filler)?;
    let code = writer.wait(Duration::from_secs(60))?;
    let mut said = String::new();
    writer.child().stderr.take().context("it is piped")?.read_to_string(&mut said)?;
    ensure!(code == 0, "ended with {code}:\n{said}");
    ensure!(consumed(&node)? == lines, "each line once, in order");
    ensure!(node.stop()? == 0, "the node stops in order");
    Ok(())
}

fn consumed(node: &Node) -> anyhow::Result<String> {
    let output = run(node.command("consume")?.args(["t", "--offset", "start", "--until", "end"]))?;
    Ok(String::from_utf8(output.stdout)?)
}
