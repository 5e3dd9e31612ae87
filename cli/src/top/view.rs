//! What two samples say: sums, rates and lags. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};

use super::sample::Sample;
use crate::output::counted;

/// A topic or a partition.
#[derive(Clone, Debug, PartialEq)]
struct LogRow {
    topic: String,
    /// Of a partition, which.
    partition: Option<i32>,
    /// How many partitions there are, and how many of them nobody leads.
    partitions: usize,
    leaderless: usize,
    /// Offsets from the first to the end.
    records: i64,
    bytes: Option<i64>,
    /// By the second; `None` before there are two samples.
    records_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
struct GroupRow {
    group: String,
    state: Option<String>,
    kind: Option<String>,
    /// `None` where a share group's is not known.
    lag: Option<i64>,
    records_per_s: Option<f64>,
}

/// What is shown.
#[derive(Clone, Debug)]
pub struct View {
    time_ms: i64,
    topics: Vec<LogRow>,
    partitions: Vec<LogRow>,
    groups: Vec<GroupRow>,
}

impl View {
    /// What has happened between two samples; of one alone there are no rates.
    pub fn of(before: Option<&Sample>, now: &Sample) -> Self {
        let seconds = before.map(|before| now.at.duration_since(before.at).as_secs_f64());
        // What is made anew, or cut, has not gone backwards.
        let rate =
            |grown: Option<i64>| Some(grown?.max(0) as f64 / seconds.filter(|seconds| *seconds > 0.0)?);
        let partitions = now.partitions.iter().map(|(at, sample)| {
            let earlier = before.and_then(|before| before.partitions.get(at));
            let (start, end) = sample.extent.unwrap_or_default();
            let was_end = earlier.and_then(|earlier| Some(earlier.extent?.1));
            let was_bytes = earlier.and_then(|earlier| earlier.bytes);
            LogRow {
                topic: at.topic.to_string(),
                partition: Some(at.partition),
                partitions: 1,
                leaderless: usize::from(sample.extent.is_none()),
                records: (end - start).max(0),
                bytes: sample.bytes,
                records_per_s: rate(was_end.map(|was| end - was)),
                bytes_per_s: rate(sample.bytes.zip(was_bytes).map(|(bytes, was)| bytes - was)),
            }
        });
        let partitions: Vec<LogRow> = partitions.collect();
        let groups = now.groups.iter().map(|(name, sample)| {
            let earlier = before.and_then(|before| before.groups.get(name));
            let end = |at| now.partitions.get(at).and_then(|sample| Some(sample.extent?.1));
            let lag =
                sample.committed.iter().filter_map(|(at, committed)| Some((end(at)? - committed).max(0)));
            let grown = earlier.map(|earlier| {
                let was = |at| earlier.committed.get(at).copied();
                sample
                    .committed
                    .iter()
                    .filter_map(|(at, committed)| Some((committed - was(at)?).max(0)))
                    .sum()
            });
            GroupRow {
                group: name.clone(),
                state: sample.state.clone(),
                kind: sample.kind.clone(),
                lag: sample.share_lag.unwrap_or_else(|| Some(lag.sum())),
                records_per_s: rate(grown),
            }
        });
        let mut groups: Vec<GroupRow> = groups.collect();
        groups.sort_by(|a, b| b.lag.cmp(&a.lag).then_with(|| a.group.cmp(&b.group)));
        let mut view = Self { time_ms: now.time_ms, topics: by_topic(&partitions), partitions, groups };
        sort(&mut view.topics);
        sort(&mut view.partitions);
        view
    }

    /// An object a line: each topic, or each partition, and each group.
    pub fn json(&self, each_partition: bool) -> String {
        let mut text = String::new();
        let mut add =
            |value: serde_json::Value| writeln!(text, "{value}").expect("a String takes every write");
        for row in self.logs(each_partition) {
            let mut value = serde_json::json!({"time": self.time_ms, "topic": row.topic});
            match row.partition {
                Some(partition) => value["partition"] = partition.into(),
                None => value["partitions"] = row.partitions.into(),
            }
            value["leaderless"] = row.leaderless.into();
            value["records"] = row.records.into();
            value["records_per_s"] = row.records_per_s.map(rounded).into();
            value["bytes"] = row.bytes.into();
            value["bytes_per_s"] = row.bytes_per_s.map(rounded).into();
            add(value);
        }
        for row in &self.groups {
            add(serde_json::json!({
                "time": self.time_ms, "group": row.group, "state": row.state, "type": row.kind, "lag": row.lag,
                "records_per_s": row.records_per_s.map(rounded),
            }));
        }
        text
    }

    /// Tables: what moves most comes first.
    pub fn table(&self, each_partition: bool) -> String {
        let rows = self.logs(each_partition);
        let records = rows.iter().fold(None, |all, row| sum(all, row.records_per_s));
        let bytes = rows.iter().fold(None, |all, row| sum(all, row.bytes_per_s));
        let leaderless = match self.partitions.iter().filter(|row| row.leaderless > 0).count() {
            0 => String::new(),
            count => format!(" ({count} without a leader)"),
        };
        let mut text = format!(
            "{} · {}{leaderless} · {} · {} records/s · {}B/s\n\n",
            counted(self.topics.len() as u64, "topic"),
            counted(self.partitions.len() as u64, "partition"),
            counted(self.groups.len() as u64, "group"),
            shortened(records).trim_end(),
            shortened(bytes),
        );
        let mut logs = Table::new();
        logs.load_preset(presets::NOTHING);
        let second = if each_partition { "PARTITION" } else { "PARTITIONS" };
        logs.set_header(["TOPIC", second, "RECORDS", "RECORDS/S", "BYTES", "BYTES/S"]);
        for row in rows {
            let partition = match row.partition {
                Some(partition) if row.leaderless > 0 => format!("{partition} (no leader)"),
                Some(partition) => partition.to_string(),
                None if row.leaderless > 0 => {
                    format!("{} ({} without a leader)", row.partitions, row.leaderless)
                }
                None => row.partitions.to_string(),
            };
            logs.add_row([
                row.topic.clone(),
                partition,
                row.records.to_string(),
                shortened(row.records_per_s),
                shortened(row.bytes.map(|bytes| bytes as f64)),
                shortened(row.bytes_per_s),
            ]);
        }
        align(&mut logs, 1);
        writeln!(text, "{logs}").expect("a String takes every write");
        if !self.groups.is_empty() {
            let mut groups = Table::new();
            groups.load_preset(presets::NOTHING).set_header(["GROUP", "STATE", "TYPE", "LAG", "RECORDS/S"]);
            for row in &self.groups {
                let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                groups.add_row([
                    row.group.clone(),
                    known(&row.state),
                    known(&row.kind),
                    row.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
                    shortened(row.records_per_s),
                ]);
            }
            align(&mut groups, 3);
            writeln!(text, "\n{groups}").expect("a String takes every write");
        }
        text
    }

    fn logs(&self, each_partition: bool) -> &[LogRow] {
        if each_partition { &self.partitions } else { &self.topics }
    }
}

/// Numbers stand at the right.
fn align(table: &mut Table, first: usize) {
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn by_topic(partitions: &[LogRow]) -> Vec<LogRow> {
    let mut topics: BTreeMap<&str, LogRow> = BTreeMap::new();
    for row in partitions {
        let Some(topic) = topics.get_mut(row.topic.as_str()) else {
            topics.insert(&row.topic, LogRow { partition: None, ..row.clone() });
            continue;
        };
        topic.partitions += 1;
        topic.leaderless += row.leaderless;
        topic.records += row.records;
        topic.bytes = sum(topic.bytes, row.bytes);
        topic.records_per_s = sum(topic.records_per_s, row.records_per_s);
        topic.bytes_per_s = sum(topic.bytes_per_s, row.bytes_per_s);
    }
    topics.into_values().collect()
}

/// The sum of what is known.
fn sum<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// What moves most comes first.
fn sort(rows: &mut [LogRow]) {
    rows.sort_by(|a, b| {
        let rate = |row: &LogRow| row.records_per_s.unwrap_or_default();
        rate(b).total_cmp(&rate(a)).then_with(|| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)))
    });
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Three digits and a prefix: `950`, `12.3 k`, `4.56 M`; `-` for nothing.
fn shortened(number: Option<f64>) -> String {
    let Some(mut number) = number else { return "- ".to_owned() };
    let mut prefixes = ["", "k", "M", "G", "T", "P"].iter();
    let mut prefix = prefixes.next().copied().unwrap_or_default();
    while number >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        (number, prefix) = (number / 1000.0, next);
    }
    let digits = match number {
        _ if prefix.is_empty() => usize::from(number > 0.0 && number < 9.95),
        number if number < 9.995 => 2,
        number if number < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {prefix}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use thalweg_protocol::TopicPartition;

    use super::super::sample::{GroupSample, PartitionSample};
    use super::*;

    fn sample(at: Instant, partitions: &[(&str, i32, i64, i64)], committed: i64) -> Sample {
        let partition = |(topic, partition, end, bytes): &(&str, i32, i64, i64)| {
            let sample = PartitionSample { extent: Some((10, *end)), bytes: Some(*bytes) };
            (TopicPartition::new(*topic, *partition), sample)
        };
        let committed = BTreeMap::from([(TopicPartition::new("a", 0), committed)]);
        let (state, kind) = (Some("Stable".to_owned()), Some("classic".to_owned()));
        let share = GroupSample {
            kind: Some("share".to_owned()),
            share_lag: Some(Some(9)),
            ..GroupSample::default()
        };
        let group = GroupSample { state, kind, committed, share_lag: None };
        Sample {
            at,
            time_ms: 7,
            partitions: partitions.iter().map(partition).collect(),
            groups: BTreeMap::from([("g".to_owned(), group), ("s".to_owned(), share)]),
        }
    }

    #[test]
    fn two_samples_make_rates() {
        let begin = Instant::now();
        let before = sample(begin, &[("a", 0, 100, 1000), ("a", 1, 50, 500), ("b", 0, 500, 9)], 40);
        let after = begin + Duration::from_secs(2);
        // b has been made anew.
        let now = sample(after, &[("a", 0, 160, 3000), ("a", 1, 52, 500), ("b", 0, 20, 5)], 90);
        let view = View::of(Some(&before), &now);
        let lines: Vec<serde_json::Value> =
            view.json(false).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let expected = [
            r#"{"time":7,"topic":"a","partitions":2,"leaderless":0,"records":192,"records_per_s":31.0,"bytes":3500,"bytes_per_s":1000.0}"#,
            r#"{"time":7,"topic":"b","partitions":1,"leaderless":0,"records":10,"records_per_s":0.0,"bytes":5,"bytes_per_s":0.0}"#,
            r#"{"time":7,"group":"g","state":"Stable","type":"classic","lag":70,"records_per_s":25.0}"#,
            r#"{"time":7,"group":"s","state":null,"type":"share","lag":9,"records_per_s":0.0}"#,
        ];
        for (line, expected) in lines.iter().zip(expected) {
            assert_eq!(*line, serde_json::from_str::<serde_json::Value>(expected).expect("JSON"));
        }
        assert_eq!(lines.len(), expected.len());
        assert_eq!(view.json(true).lines().count(), 5);
        assert!(
            view.table(true).contains("31") && view.table(false).contains("1.00 k"),
            "{}",
            view.table(false)
        );
        let alone = View::of(None, &now);
        assert!(alone.json(false).contains(r#""records_per_s":null"#), "{}", alone.json(false));
        assert!(alone.table(false).contains("RECORDS/S"));
    }

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (0.0, "0 "),
            (0.5, "0.5 "),
            (42.0, "42 "),
            (999.0, "999 "),
            (999.9, "1.00 k"),
            (12_345.0, "12.3 k"),
            (9_999_999.0, "10.0 M"),
        ] {
            assert_eq!(shortened(Some(number)), expected);
        }
        assert_eq!(shortened(None), "- ");
    }
}
