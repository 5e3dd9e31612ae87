//! Records that go through the program with all that they have, and records that are deleted by it.

use std::fs;

use anyhow::ensure;
use serde_json::json;

use crate::command_line::Place;

/// Two partitions with what is hard to write down: bytes that are no text, null, and nothing.
const RECORDS: &str = r#"{"partition":0,"offset":0,"timestamp":7,"key":"k","value":"line\nbreak \"é\" \u0000","headers":[]}
{"partition":0,"offset":1,"timestamp":8,"key":null,"value":null,"headers":[["a","1"],["a",null],["b",{"base64":"/w=="}]]}
{"partition":0,"offset":2,"timestamp":6,"key":{"base64":"/wA="},"value":{"base64":"gIGC"},"headers":[[{"base64":"/wAQ"},""]]}
{"partition":0,"offset":3,"timestamp":-1,"key":"","value":"","headers":[["",null]]}
{"partition":1,"offset":0,"timestamp":1700000000000,"key":"k","value":"{\"base64\":\"no bytes\"}","headers":[]}
"#;

/// The records of a topic as `--format json` prints them, partition by partition.
fn records(place: &Place, topic: &str) -> anyhow::Result<String> {
    let print =
        |partition| place.done(&["consume", topic, "--until", "end", "--format", "json", "-p", partition]);
    Ok(print("0")? + &print("1")?)
}

#[test]
fn what_consume_prints_produce_takes_again() -> anyhow::Result<()> {
    let place = Place::new()?;
    for topic in ["a", "b", "c"] {
        place.done(&["topic", "create", topic, "-p", "2", "-c", "retention.ms=-1"])?;
    }
    place.write("records", RECORDS)?;
    place.done(&["produce", "a", "-i", "record", "--keep-partition", "-f", "records", "-z", "zstd"])?;
    let printed = records(&place, "a")?;
    ensure!(printed == RECORDS, "{printed}");
    place.write("again", &printed)?;
    place.done(&["produce", "b", "-i", "record", "--keep-partition", "-f", "again"])?;
    ensure!(records(&place, "b")? == RECORDS);
    // By key, all else the same.
    place.done(&["produce", "c", "-i", "record", "-f", "again", "-H", "from=a"])?;
    let spread = records(&place, "c")?;
    ensure!(spread.lines().count() == 5 && spread.matches(r#"["from","a"]"#).count() == 5, "{spread}");
    let of_key = |text: &str| text.lines().filter(|line| line.contains(r#""key":"k""#)).count();
    let halves = [&spread[..spread.find("\"partition\":1").unwrap_or(spread.len())], &spread];
    ensure!(
        [0, 2].contains(&of_key(halves[0])) && of_key(halves[1]) == 2,
        "one key, one partition: {spread}"
    );

    place.write("elsewhere", r#"{"partition":7,"value":"x"}"#)?;
    let elsewhere = ["produce", "a", "-i", "record", "--keep-partition", "-f", "elsewhere"];
    place.check(&elsewhere, 3, &["line 1 of the input: it is of partition 7", "0 to 1"])?;
    place.write("plain", "\n{\"a\":1}\n")?;
    place.check(&["produce", "a", "-i", "record", "-f", "plain"], 2, &["line 2 of the input", "`a`"])
}

#[test]
fn plain_lines_have_headers_and_tombstones() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("lines", "k:v\nk:\n:v\n:\n")?;
    let produce =
        ["produce", "t", "-p", "0", "-f", "lines", "--key-delimiter", ":", "-H", "a=1", "-H", "a=b=c"];
    place.done(&produce)?;
    place.done(&[&produce[..], &["-Z"]].concat())?;
    let shown = place.done(&["consume", "t", "--until", "end", "--format", "%k,%K %v,%V %h\\n"])?;
    let headers = "a=1,a=b=c\n";
    let lines = ["k,1 v,1 ", "k,1 ,0 ", ",0 v,1 ", ",0 ,0 ", "k,1 v,1 ", "k,1 ,-1 ", ",-1 v,1 ", ",-1 ,-1 "];
    let expected: String = lines.map(|line| format!("{line}{headers}")).concat();
    ensure!(shown == expected, "{shown}");
    Ok(())
}

#[test]
fn a_line_without_its_delimiter_stops_the_rest() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("lines", "a:1\nb:2\nc3\nd:4\n")?;
    let said = [
        "stopped after 2 records, which are written",
        "line 3 of the input: it has no \":\"",
        "--key-delimiter",
    ];
    place.check(&["produce", "t", "-p", "0", "-f", "lines", "--key-delimiter", ":"], 2, &said)?;
    ensure!(place.done(&["consume", "t", "--until", "end", "--format", "%k=%v\n"])? == "a=1\nb=2\n");
    Ok(())
}

#[test]
fn blank_lines_are_no_json_and_are_counted() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("lines", "{\"a\":1}\n\n \r\n{\"a\":2}\n\n")?;
    place.done(&["produce", "t", "-i", "json", "-p", "0", "-f", "lines"])?;
    ensure!(place.done(&["consume", "t", "--until", "end"])? == "{\"a\":1}\n{\"a\":2}\n");
    place.write("wrong", "\n{\"a\":1}\n\nno\n")?;
    place.check(
        &["produce", "t", "-i", "json", "-f", "wrong"],
        2,
        &["line 4 of the input: this is not a JSON object"],
    )
}

#[test]
fn records_that_are_too_old_to_be_kept_are_told_once() -> anyhow::Result<()> {
    let place = Place::new()?;
    for (topic, configs) in [
        ("kept", &["-c", "retention.ms=-1"][..]),
        ("compacted", &["-c", "cleanup.policy=compact"]),
        ("stamped", &["-c", "message.timestamp.type=LogAppendTime"]),
    ] {
        place.done(&[&["topic", "create", topic][..], configs].concat())?;
    }
    place.write("old", "{\"at\":4102444800000}\n{\"at\":\"2013-01-01\"}\n{\"at\":\"2012-01-01\"}\n")?;
    for (topic, times) in [("t", 1), ("kept", 0), ("compacted", 0), ("stamped", 0)] {
        place.done(&["topic", "alter", topic, "-c", "message.timestamp.after.max.ms=9223372036854775807"])?;
        let said =
            place.said(&["produce", topic, "-i", "json", "-k", "at", "--timestamp", "at", "-f", "old"])?;
        let said = String::from_utf8(said.stderr)?;
        ensure!(said.matches("warning").count() == times, "{topic}: {said}");
        let told = said.contains("line 2 of the input has the time 2013-01-01T00:00:00Z")
            && said.contains("the retention.ms of t (604800000)");
        ensure!(told == (times == 1), "{topic}: {said}");
    }
    Ok(())
}

#[test]
fn the_first_records_of_a_topic_are_deleted() -> anyhow::Result<()> {
    let place = Place::new()?;
    place.write("a.csv", "at\n1\n2\n3\n4\n5\n6\n7\n8\n9\n")?;
    place.done(&["topic", "alter", "t", "-c", "retention.ms=-1"])?;
    for partition in ["0", "1"] {
        place.done(&["produce", "t", "-i", "csv", "--timestamp", "at", "-f", "a.csv", "-p", partition])?;
    }
    let delete = |more: &[&str]| place.json(&[&["topic", "delete-records", "t"], more].concat());
    let line = |partition: i32, before: i64, start: i64, changed: bool| json!({"topic": "t", "partition": partition, "start": start, "before": before, "changed": changed});
    place.check(&["topic", "delete-records", "t", "--before", "end"], 2, &["--yes"])?;
    place.check(&["topic", "delete-records", "tt", "--before", "end", "-y"], 3, &["did you mean `t`"])?;
    place.check(
        &["topic", "delete-records", "t", "-b", "end", "-y", "-p", "2"],
        3,
        &["no partition 2", "0 to 1"],
    )?;
    place.check(&["topic", "delete-records", "t", "-b", "1:2", "-y"], 2, &["it is one place"])?;
    place.check(&["topic", "delete-records", "t", "-y"], 2, &["--before"])?;
    ensure!(delete(&["-b", "end", "--dry-run"])? == [line(0, 0, 9, false), line(1, 0, 9, false)]);
    ensure!(delete(&["-b", "2", "-p", "1", "-y"])? == [line(1, 0, 2, true)]);
    ensure!(delete(&["-b", "@4", "-y"])? == [line(0, 0, 3, true), line(1, 2, 3, true)]);
    ensure!(delete(&["-b", "-5", "-y"])? == [line(0, 3, 4, true), line(1, 3, 4, true)]);
    ensure!(
        delete(&["-b", "1"])? == [line(0, 4, 4, false), line(1, 4, 4, false)],
        "nobody is asked for nothing"
    );
    let left = place.done(&["consume", "t", "-p", "0", "--until", "end"])?;
    ensure!(left.lines().count() == 5 && left.starts_with("{\"at\":5}\n"), "{left}");
    place.check(&["topic", "delete-records", "t", "-b", "99", "-y"], 2, &["t ends at 9", "--before end"])?;
    ensure!(
        place.done(&["topic", "delete-records", "t", "-b", "end", "-y"])?
            == "t-0: begins at 9, began at 4\nt-1: begins at 9, began at 4\n"
    );
    ensure!(place.done(&["consume", "t", "--until", "end"])?.is_empty());
    // A topic that is only compacted keeps the last of each key.
    place.done(&["topic", "create", "c", "-c", "cleanup.policy=compact"])?;
    fs::write(place.path().join("b.txt"), "k:v\n")?;
    place.done(&["produce", "c", "-f", "b.txt", "--key-delimiter", ":"])?;
    for way in ["-y", "--dry-run"] {
        place.check(
            &["topic", "delete-records", "c", "-b", "end", way],
            2,
            &["c has cleanup.policy=compact", "null values"],
        )?;
    }
    place.check(
        &["topic", "delete-records", "__transaction_state", "-b", "end", "-y"],
        3,
        &["there is no topic `__transaction_state`", "makes it for itself"],
    )
}

#[test]
fn large_records_and_far_times_are_for_the_topic_to_judge() -> anyhow::Result<()> {
    let place = Place::new()?;
    let limits =
        ["-c", "max.message.bytes=30000000", "-c", "message.timestamp.after.max.ms=9223372036854775807"];
    place.done(&[&["topic", "create", "large"][..], &limits].concat())?;
    let value = "\u{1}".repeat(9 << 20);
    let line = json!({"value": value, "timestamp": i64::MAX}).to_string();
    place.write("record", &line)?;
    place.done(&["produce", "large", "-i", "record", "-f", "record"])?;
    let read = place.json(&["consume", "large", "--exit"])?;
    ensure!(read.len() == 1 && read[0]["value"] == json!(value) && read[0]["timestamp"] == json!(i64::MAX));
    place.write("small", "x\n")?;
    let said = place.said(&["produce", "large", "-f", "small", "--acks", "0"])?;
    ensure!(
        String::from_utf8(said.stderr)?.contains("sent 1 record to large"),
        "whether it is there nobody knows"
    );
    for format in ["json", "table"] {
        let select = "SELECT _timestamp FROM large";
        place.check(
            &["sql", "--format", format, "-c", select],
            1,
            &["`_timestamp` has a time that no calendar shows"],
        )?;
    }
    let number =
        place.done(&["sql", "--format", "csv", "-c", "SELECT max(_timestamp)::bigint FROM large"])?;
    ensure!(number.lines().last() == Some("9223372036854775807"), "{number}");
    place.check(
        &["topic", "list", "-X", "bootstrap=127.0.0.1:1"],
        2,
        &["--data and -X bootstrap both say where"],
    )
}

#[test]
fn a_bench_reads_what_there_is() -> anyhow::Result<()> {
    let place = Place::new()?;
    ensure!(place.done(&["bench", "consume", "t"])?.starts_with("consumed 0 records, "));
    place.write("lines", "one\n")?;
    place.done(&["produce", "t", "-f", "lines"])?;
    ensure!(place.done(&["bench", "consume", "t"])?.starts_with("consumed 1 record, "));
    place.check(&["bench", "consume", "t", "-n", "2"], 1, &["t has only 1 record:", "Without -n"])
}
