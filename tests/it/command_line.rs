//! What commands say about topics, groups, files and settings, to people and to programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use thalweg_client::{Client, ClientConfig, ShareConsumerConfig};
use thalweg_tests::node::Node;
use thalweg_tests::process::{Process, binary, run};

/// The program without what this machine has set for it.
pub fn thalweg(arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(binary("thalweg")?);
    command.args(arguments).stdin(Stdio::null()).env("THALWEG_CONFIG", "/dev/null");
    for name in ["THALWEG_BOOTSTRAP", "THALWEG_DATA", "THALWEG_PROFILE"] {
        command.env_remove(name);
    }
    Ok(command)
}

/// A directory with a log, a topic `t` of two partitions, and files beside it.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> anyhow::Result<Self> {
        let place = Self(tempfile::tempdir()?);
        place.done(&["topic", "create", "t", "--partitions", "2"])?;
        Ok(place)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the program on the log, with this directory as its own.
    pub fn said(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = thalweg(&["--data", "log"])?;
        Ok(command.args(arguments).current_dir(self.path()).output()?)
    }

    pub fn done(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.said(arguments)?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?} ended with {}:\n{error}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the program, and checks its exit code and what its error says.
    pub fn check(&self, arguments: &[&str], code: i32, said: &[&str]) -> anyhow::Result<()> {
        let output = self.said(arguments)?;
        let error = String::from_utf8(output.stderr)?;
        let shown: Vec<String> = arguments.iter().map(|word| word.chars().take(200).collect()).collect();
        ensure!(
            output.status.code() == Some(code),
            "{shown:?} ended with {}, not {code}:\n{error}",
            output.status
        );
        for part in said {
            ensure!(error.contains(part), "{shown:?} does not say `{part}`:\n{error}");
        }
        ensure!(!error.contains("panicked") && !error.contains("bug in DataFusion"), "{shown:?}:\n{error}");
        Ok(())
    }

    /// Runs the program with `--format json`: an object a line.
    pub fn json(&self, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
        let out = self.done(&[arguments, &["--format", "json"]].concat())?;
        out.lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("{arguments:?}: {line}")))
            .collect()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
        Ok(fs::write(self.path().join(name), text)?)
    }
}

#[test]
fn a_refused_record_is_told_by_its_line_and_takes_no_other_along() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.done(&["topic", "create", "small", "-c", "max.message.bytes=2000"])?;
    place.write("lines", format!("one\ntwo\n{}\nfour\nfive\n", "x".repeat(3000)))?;
    place.check(
        &["produce", "small", "--file", "lines"],
        1,
        &["of 5 records that were read 4 are certainly written: line 3 of the input: ", "MESSAGE_TOO_LARGE"],
    )?;
    ensure!(place.done(&["consume", "small", "--until", "end"])? == "one\ntwo\nfour\nfive\n");

    place.done(&["topic", "create", "timed", "-c", "message.timestamp.before.max.ms=1000"])?;
    place.write("times.csv", "at,n\n9999999999000,0\n2013-01-01,1\n2013-01-02,2\n9999999999000,3\n")?;
    place.done(&["topic", "alter", "timed", "-c", "message.timestamp.after.max.ms=9223372036854775807"])?;
    place.check(
        &["produce", "timed", "--file", "times.csv", "--input", "csv", "--timestamp", "at"],
        1,
        &[
            "of 4 records that were read 2 are certainly written",
            "of the input: ",
            "INVALID_TIMESTAMP",
            "line 3",
            "line 4",
        ],
    )?;
    let kept = place.done(&["consume", "timed", "--until", "end"])?;
    ensure!(kept.contains("\"n\":0") && kept.contains("\"n\":3") && kept.lines().count() == 2, "{kept}");
    Ok(())
}

#[test]
fn no_record_is_from_before_1970() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("old.csv", "at,n\n1970-01-01,1\n1969-12-31T23:59:59.999Z,2\n")?;
    place.check(
        &["produce", "t", "--file", "old.csv", "--input", "csv", "--timestamp", "at"],
        2,
        &["line 3 of the input", "before 1970", "stopped after 1 record, which is written"],
    )?;
    let kept = "{\"at\":\"1970-01-01\",\"n\":1}\n";
    for from in [
        "@1969-12-31",
        "@1969-12-31T23:59:59.998Z",
        "@1969-12-31T23:59:59.997Z",
        "@0001-01-01",
        "@1970-01-01",
    ] {
        let found = place.done(&["consume", "t", "-o", from, "--until", "end"])?;
        ensure!(found == kept, "{from}: {found}");
    }
    ensure!(place.done(&["consume", "t", "--until", "@1969-12-31T23:59:59.999Z"])?.is_empty());
    ensure!(place.done(&["consume", "t", "--until", "@1969-12-31T23:59:59.998Z"])?.is_empty());
    for sign in [">", ">="] {
        let sql = format!("SELECT count(*) AS n FROM t WHERE _timestamp {sign} '1969-12-31T23:59:59.998Z'");
        ensure!(place.done(&["sql", "--format", "csv", "-c", &sql])? == "n\n1\n", "{sign}");
    }
    place.check(&["consume", "t", "-o", "@2013"], 2, &["`@2013` is not an offset", "2013-01-01"])?;
    place.check(&["consume", "t", "-o", "@2014-01-01:@2013-01-01"], 2, &["it ends before it begins"])
}

#[test]
fn names_that_cannot_be_are_refused_before_anything_is_asked() -> anyhow::Result<()> {
    let place = Place::new()?;
    let long = "n".repeat(100_000);
    place.check(&["topic", "create", &long], 2, &["249 characters at most", "has 100000"])?;
    place.check(&["topic", "create", "a", "b", "a"], 2, &["`a` is named twice"])?;
    place.check(&["topic", "delete", "--yes", "t", "t"], 2, &["`t` is named twice"])?;
    let twice = ["topic", "create", "a", "-c", "retention.ms=1", "-c", "retention.ms=2"];
    place.check(&twice, 2, &["-c names `retention.ms` twice"])?;
    place.check(&["topic", "create", "a", "-c", &format!("retention.ms={long}")], 2, &["retention.ms"])?;
    let topics = place.json(&["topic", "list"])?;
    ensure!(topics.len() == 1 && topics[0]["topic"] == "t", "{topics:?}");
    Ok(())
}

#[test]
fn programs_get_facts_instead_of_sentences() -> anyhow::Result<()> {
    let place = Place::new()?;
    let check = |arguments: &[&str], expected: Value| -> anyhow::Result<()> {
        let mut found = place.json(arguments)?;
        found.iter_mut().for_each(|line| drop(line.as_object_mut().and_then(|line| line.remove("id"))));
        ensure!(json!(found) == expected, "{arguments:?}: {found:?}");
        Ok(())
    };
    check(&["topic", "create", "u"], json!([{"topic": "u", "result": "created", "partitions": 1}]))?;
    check(&["topic", "create", "u", "--if-not-exists"], json!([{"topic": "u", "result": "exists"}]))?;
    check(&["topic", "alter", "u", "-c", "retention.ms=1"], json!([{"topic": "u", "changed": true}]))?;
    check(
        &["topic", "add-partitions", "u", "-p", "3", "--dry-run"],
        json!([{"topic": "u", "partitions": 3, "before": 1, "changed": false}]),
    )?;
    check(
        &["topic", "add-partitions", "u", "-p", "3"],
        json!([{"topic": "u", "partitions": 3, "before": 1, "changed": true}]),
    )?;
    check(&["topic", "delete", "u", "--yes"], json!([{"topic": "u", "result": "deleted"}]))?;
    check(&["cluster", "health"], json!([{"healthy": true, "topics": 1, "internal": 0, "partitions": 2}]))?;
    place.done(&["topic", "create", "strict", "-c", "min.insync.replicas=2"])?;
    // It has one replica, and that is in sync.
    check(&["cluster", "health"], json!([{"healthy": true, "topics": 2, "internal": 0, "partitions": 3}]))?;
    place.done(&["group", "seek", "g", "-t", "t", "--to", "start"])?;
    let (health, info) = (place.json(&["cluster", "health"])?, place.json(&["cluster", "info"])?);
    for counts in [&health[0], &info[0]] {
        ensure!(counts["topics"] == 2 && counts["internal"] == 1, "{counts}");
    }
    ensure!(
        place.done(&["cluster", "health"])?.starts_with("healthy: 2 topics and 1 of the log's own, with ")
    );
    Ok(())
}

#[test]
fn files_are_tables_by_the_names_that_they_have() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("a[1].csv", "x,y\n1,NA\n2,4\n")?;
    place.write("a1.csv", "x,y\n7,7\n")?;
    place.write("numbers.txt", "x\n5\n")?;
    place.write("marked.csv", b"\xef\xbb\xbfx,y\n3,4\n")?;
    let sql = |sql: &str| place.done(&["sql", "--format", "csv", "-c", sql]);
    ensure!(sql("SELECT x FROM 'a[1].csv' ORDER BY x")? == "x\n1\n2\n");
    ensure!(sql("SELECT x FROM 'a?.csv'")? == "x\n7\n", "what is not there as it stands is a pattern");
    ensure!(sql("SELECT x FROM 'marked.csv'")? == "x\n3\n", "a byte order mark is no part of a name");
    let fails = |sql: &str, code, said: &[&str]| place.check(&["sql", "-c", sql], code, said);
    fails("SELECT * FROM 'numbers.txt'", 2, &["`numbers.txt` is there", "STORED AS CSV LOCATION"])?;
    let create = "CREATE EXTERNAL TABLE n STORED AS CSV LOCATION 'numbers.txt' OPTIONS ('has_header' 'true')";
    ensure!(sql(&format!("{create}; SELECT x FROM n"))?.ends_with("x\n5\n"));
    fails("SELECT * FROM 'nowhere.csv'", 3, &["there is no file `nowhere.csv`"])?;
    fails(
        "CREATE EXTERNAL TABLE n STORED AS CSV LOCATION 'nowhere.csv'",
        3,
        &["there is no file `nowhere.csv`"],
    )?;
    fails("CREATE EXTERNAL TABLE n (x INT) STORED AS CSV LOCATION 'nowhere.csv'", 3, &["there is no file"])?;
    fails("CREATE EXTERNAL TABLE n (x INT) STORED AS CSV LOCATION 'no*.csv'", 3, &["there is no file"])?;
    let create = "CREATE EXTERNAL TABLE n STORED AS CSV LOCATION 'a[1].csv' OPTIONS ('null_value' 'NA')";
    ensure!(sql(&format!("{create}; SELECT avg(y) AS mean FROM n"))?.ends_with("mean\n4.0\n"));
    fails("SELECT avg(y) FROM 'a[1].csv'", 2, &["avg"])?;
    ensure!(sql("SHOW TOPICS")? == sql("SHOW TABLES")?, "a topic is a table");
    ensure!(sql("DESCRIBE t").is_ok(), "as a table is described");
    fails("SELECT * FROM t EMIT CHANGES", 2, &["EMIT is not supported", "thalweg consume"])?;
    fails("SHOW STREAMS", 2, &["SHOW TABLES"])?;
    fails("INSERT INTO t VALUES (1)", 2, &["thalweg produce"])?;
    sql("CREATE TABLE m AS SELECT 1 AS one; INSERT INTO m VALUES (2); DROP TABLE m")?;
    fails("DROP TABLE t", 2, &["dropping a topic is not supported", "thalweg topic delete"])?;
    fails("DROP TABLE IF EXISTS t", 2, &["thalweg topic delete"])?;
    fails("DROP TABLE tt", 3, &["there is no topic or table `tt`", "did you mean `t`"])?;
    sql(
        "DROP TABLE IF EXISTS tt; CREATE TABLE m AS SELECT 1 AS one; DROP TABLE m; CREATE VIEW v AS SELECT 1 AS one; DROP VIEW v",
    )?;
    ensure!(place.done(&["topic", "list"])?.contains('t'), "the topic is still there");
    Ok(())
}

#[test]
fn what_a_killed_copy_left_does_not_hinder_the_next() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("lines", (0..100).map(|n| format!("{n}\n")).collect::<String>())?;
    place.done(&["produce", "t", "--file", "lines"])?;
    let out = place.path().join("out");
    fs::create_dir(&out)?;
    fs::write(out.join(".part-00000.parquet.tmp"), "half a file")?;
    place.done(&["sql", "-c", "COPY t TO 'out'"])?;
    let names: Vec<String> = fs::read_dir(&out)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<_>>()?;
    ensure!(names == ["part-00000.parquet"], "{names:?}");
    ensure!(place.done(&["sql", "--format", "csv", "-c", "SELECT count(*) AS n FROM 'out/'"])? == "n\n100\n");
    place.check(&["sql", "-c", "COPY t TO 'out'"], 5, &["is not empty"])
}

#[test]
fn settings_come_from_profiles_too() -> anyhow::Result<()> {
    let place = Place::new()?;
    let data = place.path().join("log");
    place.write(
        "config.toml",
        format!(
            "[default]\nbootstrap = \"127.0.0.1:1\"\n\n[here]\ndata = \"{}\"\n\n[broken]\nbootstrp = x\n",
            data.display()
        ),
    )?;
    let with_file = |arguments: &[&str]| -> anyhow::Result<Output> {
        let mut command = thalweg(arguments)?;
        Ok(command.env("THALWEG_CONFIG", place.path().join("config.toml")).output()?)
    };
    let check = |arguments: &[&str], code: i32, said: &str| -> anyhow::Result<()> {
        let output = with_file(arguments)?;
        let both = [output.stdout, output.stderr].concat();
        let both = String::from_utf8(both)?;
        ensure!(
            output.status.code() == Some(code) && both.contains(said),
            "{arguments:?}: {} {both}",
            output.status
        );
        Ok(())
    };
    check(&["topic", "list", "--profile", "here"], 0, "t ")?;
    check(&["topic", "list", "-X", &format!("data={}", data.display())], 0, "t ")?;
    check(&["topic", "list"], 4, "no broker answers at 127.0.0.1:1")?;
    check(&["topic", "list", "--profile", "her"], 3, "did you mean `here`?")?;
    check(&["topic", "list", "--profile", "broken"], 2, "line 8: there is no setting `bootstrp`")?;
    let elsewhere = ["--profile", "here", "topic", "list"];
    let mut command = thalweg(&elsewhere)?;
    command.env("THALWEG_CONFIG", place.path().join("config.toml")).env("THALWEG_BOOTSTRAP", "127.0.0.1:1");
    let said = String::from_utf8(command.output()?.stderr)?;
    ensure!(
        said.contains("the profile `here` says where the log is") && said.contains("--bootstrap"),
        "{said}"
    );
    check(&["topic", "list", "-X", "timeout=1"], 2, "there is no setting `timeout`")?;
    check(
        &["topic", "list", "--profile", "here", "-X", "api_timeout_ms=x"],
        2,
        "`x` is not a number of milliseconds",
    )?;
    let mut command = thalweg(&["topic", "list", "--profile", "here"])?;
    ensure!(command.output()?.status.code() == Some(3), "there is no file of profiles");
    Ok(())
}

#[test]
fn a_topic_is_analyzed() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("in.csv", "k,at\na,3\nb,1\nNA,2\n")?;
    let produce =
        ["produce", "t", "--file", "in.csv", "--input", "csv", "--null", "NA", "-p", "1", "-z", "gzip"];
    place.done(&[&produce[..], &["--key", "k", "--timestamp", "at"]].concat())?;
    let found = place.json(&["topic", "analyze", "t"])?;
    let [found] = &found[..] else { anyhow::bail!("{found:?}") };
    for (name, expected) in [
        ("records", json!(3)),
        ("null_keys", json!(1)),
        ("batches", json!(1)),
        ("codecs", json!({"gzip": 1})),
        ("first_timestamp", json!(1)),
        ("last_timestamp", json!(3)),
        ("out_of_order", json!(2)),
    ] {
        ensure!(found[name] == expected && found["partitions"][1][name] == expected, "{name}: {found}");
    }
    ensure!(found["partitions"][0]["records"] == 0, "{found}");
    let found = place.json(&["topic", "analyze", "t", "-o", "1:2"])?;
    ensure!(found[0]["records"] == 1, "{found:?}");
    ensure!(place.done(&["topic", "analyze", "t"])?.contains("1970-01-01T00:00:00.001Z"));
    place.check(&["topic", "analyze", "tt"], 3, &["did you mean `t`"])
}

#[test]
fn top_tells_rates_and_lag() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    run(node.command("topic")?.args(["create", "t", "-p", "2"]))?;
    let mut produce = node.command("bench")?;
    produce.args(["produce", "t", "-n", "2000"]).stdout(Stdio::null());
    run(&mut produce)?;
    run(node.command("group")?.args(["seek", "g", "--topic", "t", "--to", "start"]))?;
    let missing =
        node.command("group")?.args(["seek", "g", "-t", "t", "-p", "0,77", "--to", "end"]).output()?;
    ensure!(missing.status.code() == Some(3), "{missing:?}");
    let mut top = node.command("top")?;
    top.args(["--once", "--interval", "2", "--format", "json"]).stdout(Stdio::piped());
    let top = top.spawn()?;
    std::thread::sleep(Duration::from_millis(700));
    run(&mut produce)?;
    let out = String::from_utf8(top.wait_with_output()?.stdout)?;
    let lines: Vec<Value> = out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let topic = lines.iter().find(|line| line["topic"] == "t").context("the topic is there")?;
    ensure!(topic["records"] == 4000 && topic["partitions"] == 2, "{topic}");
    ensure!(
        topic["records_per_s"].as_f64() > Some(100.0) && topic["bytes_per_s"].as_f64() > Some(100.0),
        "{topic}"
    );
    let group = lines.iter().find(|line| line["group"] == "g").context("the group is there")?;
    ensure!(group["lag"] == 4000 && group["records_per_s"] == 0.0, "{group}");

    let out = String::from_utf8(run(node.command("top")?.args(["--once", "-i", "0.1", "-p"]))?.stdout)?;
    ensure!(
        out.contains("RECORDS/S")
            && out.contains("GROUP")
            && out.lines().any(|line| line.trim_start().starts_with("t ")),
        "{out}"
    );
    ensure!(node.command("top")?.args(["--interval", "0"]).output()?.status.code() == Some(2));
    ensure!(node.command("top")?.args(["--once", "nope"]).output()?.status.code() == Some(3));
    // An interrupt is how it ends.
    let mut watching = node.command("top")?;
    let mut watching = Process::spawn(watching.args(["-i", "0.2"]).stdout(Stdio::null()))?;
    std::thread::sleep(Duration::from_secs(1));
    watching.signal(libc::SIGINT);
    ensure!(watching.wait(Duration::from_secs(10))? == 0);
    Ok(())
}

/// Runs the program on `node`, and checks its exit code and that it says this, be it a result or an error.
fn answers(node: &Node, line: &str, code: i32, said: &str) -> anyhow::Result<()> {
    let mut words = line.split_whitespace();
    let output = node.command(words.next().context("a command")?)?.args(words).output()?;
    let both = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.code() == Some(code) && both.contains(said), "{line}: {} {both}", output.status);
    Ok(())
}

#[test]
fn share_groups_are_shown_moved_and_deleted() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::start(&directory.path().join("data"), "127.0.0.1:0")?;
    let lines = directory.path().join("lines");
    fs::write(&lines, "record\n".repeat(10))?;
    run(node.command("topic")?.args(["create", "q", "-p", "2"]))?;
    run(node.command("produce")?.args(["q", "-p", "0", "-f"]).arg(&lines))?;
    let described = || -> anyhow::Result<Value> {
        let out = run(node.command("group")?.args(["describe", "w", "--format", "json"]))?.stdout;
        Ok(serde_json::from_slice(&out)?)
    };
    let place = |partition: i32, start: i64, lag: i64| json!({"topic": "q", "partition": partition, "start": start, "lag": lag});
    answers(&node, "group seek w --share -t q --to start", 0, "q-0 goes on at 0")?;
    answers(&node, "group seek w --to +4 -p 0 --dry-run", 0, "q-0 would go on at 4")?;
    let begun = described()?;
    ensure!(
        begun["type"] == "share" && begun["state"] == "Empty" && begun["members"] == json!([]),
        "{begun}"
    );
    ensure!(begun["partitions"] == json!([place(0, 0, 10), place(1, 0, 0)]) && begun["lag"] == 10, "{begun}");
    answers(&node, "group seek w --to +4 -p 0", 0, "q-0 goes on at 4")?;
    ensure!(described()?["partitions"] == json!([place(0, 4, 6), place(1, 0, 0)]), "{}", described()?);
    let top = run(node.command("top")?.args(["--once", "-i", "0.1", "--format", "json"]))?.stdout;
    let top = String::from_utf8(top)?;
    let row = top.lines().find(|line| line.contains(r#""group":"w""#)).context("top names it")?;
    let row: Value = serde_json::from_str(row)?;
    ensure!(row["type"] == "share" && row["lag"] == 6, "{row}");

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let client = Client::connect(ClientConfig::with_bootstrap(node.address())).await?;
        let mut member = client.share_consumer(ShareConsumerConfig::group("w").explicit())?;
        member.subscribe(["q"])?;
        while member.poll(Duration::from_secs(1)).await?.is_empty() {}
        let joined = described()?;
        ensure!(
            joined["members"][0]["partitions"] == json!(["q-0", "q-1"]) && joined["state"] == "Stable",
            "{joined}"
        );
        answers(&node, "group describe w", 0, "q-0, q-1")?;
        answers(&node, "group describe w", 0, "w · Stable · share · simple · 1 member · lag 6")?;
        for refused in ["seek w --to start", "delete w --yes", "delete w -t q --yes"] {
            answers(&node, &format!("group {refused}"), 5, "group `w` has members")?;
        }
        member.close().await?;
        anyhow::Ok(())
    })?;

    answers(&node, "group delete w -t nope --yes", 3, "group `w` has read nothing of nope")?;
    answers(&node, "group delete w -t q --yes", 0, "w has forgotten q")?;
    ensure!(described()?["partitions"] == json!([]), "{}", described()?);
    answers(&node, "group seek w --to end", 3, "group `w` has read nothing")?;
    answers(&node, "group seek c -t q --to start", 0, "q-0 goes on at 0")?;
    answers(&node, "group seek c -t q --to end --share", 2, "leave --share away")?;
    answers(&node, "group delete w --yes", 0, "deleted w")?;
    answers(&node, "group describe w", 3, "there is no group `w`")
}

#[test]
fn the_program_explains_itself() -> anyhow::Result<()> {
    let place = Place::new()?;
    for (words, said) in [
        (&["offsets"][..], "@-1h"),
        (&["templates"], "%k"),
        (&["formats"], "--null TEXT"),
        (&["settings"], "THALWEG_PROFILE"),
        (&["topic", "create"], "--replication-factor"),
        (&["top"], "--once"),
        (&[], "completions"),
    ] {
        let out = String::from_utf8(run(thalweg(&["help"])?.args(words))?.stdout)?;
        ensure!(out.contains(said), "{words:?}: {out}");
    }
    let node = String::from_utf8(run(&mut thalweg(&["help", "node"])?)?.stdout)?;
    ensure!(
        node.contains("group.initial.rebalance.delay.ms = ") && node.contains("log.retention.ms = "),
        "{node}"
    );
    place.check(&["help", "ofsets"], 2, &["did you mean `offsets`?"])?;
    for (shell, said) in
        [("bash", "complete -F"), ("zsh", "#compdef thalweg"), ("fish", "complete -c thalweg")]
    {
        let out = String::from_utf8(run(&mut thalweg(&["completions", shell])?)?.stdout)?;
        ensure!(out.contains(said) && out.contains("add-partitions"), "{shell}");
    }
    place.done(&["man", "pages"])?;
    for page in ["thalweg.1", "thalweg-topic-create.1", "thalweg-top.1"] {
        ensure!(fs::read_to_string(place.path().join("pages").join(page))?.contains(".TH"), "{page}");
    }
    Ok(())
}
