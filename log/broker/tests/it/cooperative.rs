//! Cooperative rebalances of classic groups, by way of librdkafka: members keep what they need not give up.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg_protocol::messages::describe_groups::DescribeGroupsRequest;
use thalweg_protocol::messages::records::ConsumerProtocolAssignment;

use crate::calls::create_topic;
use crate::grouping::find_coordinator;
use crate::harness::{Client, Harness, Way, pass_over};
use crate::kcat::{has_kcat, kcat};

const PARTITIONS: i32 = 4;

/// How long a rebalance may take: a member that is killed is given up after 6 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// A member that is killed when it is dropped.
struct Member {
    child: Child,
    output: std::path::PathBuf,
}

impl Member {
    fn start(address: &str, dir: &std::path::Path, name: &str) -> Self {
        let output = dir.join(name);
        let file = std::fs::File::create(&output).expect("the file can be made");
        let arguments = [
            ("client.id", name),
            ("partition.assignment.strategy", "cooperative-sticky"),
            ("session.timeout.ms", "6000"),
            ("heartbeat.interval.ms", "200"),
            ("auto.offset.reset", "earliest"),
            ("auto.commit.interval.ms", "100"),
        ];
        let settings = arguments.map(|(name, value)| format!("{name}={value}"));
        let child = Command::new("kcat")
            .args(["-q", "-u", "-b", address, "-G", "g"])
            .args(settings.iter().flat_map(|setting| ["-X", setting]))
            .arg("t")
            .stdout(file)
            .stderr(Stdio::null())
            .spawn()
            .expect("kcat is installed");
        Self { child, output }
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.output).expect("the file is there");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What each member has been assigned, by client id; `None` while the group rebalances.
async fn assigned(client: &Client) -> Option<BTreeMap<String, BTreeSet<i32>>> {
    let request = DescribeGroupsRequest { groups: vec!["g".into()], ..Default::default() };
    let group = client.call(request, 5).await.groups.remove(0);
    let members = group.members.into_iter().map(|member| {
        let told = ConsumerProtocolAssignment::from_bytes(member.member_assignment).expect("an assignment");
        let partitions = told.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect();
        (member.client_id.to_string(), partitions)
    });
    (group.group_state == "Stable").then(|| members.collect())
}

/// Waits until each of the members has so many partitions.
async fn wait_for(client: &Client, loads: &[(&str, usize)]) -> BTreeMap<String, BTreeSet<i32>> {
    let give_up_at = Instant::now() + PATIENCE;
    let expected: BTreeMap<String, usize> =
        loads.iter().map(|&(name, load)| (name.to_owned(), load)).collect();
    loop {
        let assigned = assigned(client).await.unwrap_or_default();
        let found: BTreeMap<String, usize> =
            assigned.iter().map(|(name, partitions)| (name.clone(), partitions.len())).collect();
        if found == expected {
            return assigned;
        }
        assert!(Instant::now() < give_up_at, "{found:?} instead of {expected:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Writes a line to each partition.
fn write(address: &str, text: &str) {
    for partition in 0..PARTITIONS {
        let at = partition.to_string();
        let line = format!("{text} {partition}\n");
        kcat(&["-q", "-b", address, "-P", "-t", "t", "-p", &at, "-X", "acks=all"], line.as_bytes());
    }
}

/// Waits until the members have read `count` lines, and returns them.
async fn read(members: &[&Member], count: usize) -> Vec<String> {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let mut lines: Vec<_> = members.iter().flat_map(|member| member.lines()).collect();
        if lines.len() >= count {
            lines.sort();
            return lines;
        }
        assert!(Instant::now() < give_up_at, "{lines:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_keep_what_they_need_not_give_up() {
    if !has_kcat() {
        return pass_over("members_keep_what_they_need_not_give_up", "kcat");
    }
    let harness = Harness::start(Way::Tcp).await;
    let address = harness.broker.addresses()[0].to_string();
    let client = harness.connect().await;
    create_topic(&client, "t", PARTITIONS).await;
    find_coordinator(&client, "g", 0).await;
    let dir = tempfile::TempDir::new().expect("a temporary directory");

    let a = Member::start(&address, dir.path(), "a");
    let alone = wait_for(&client, &[("a", 4)]).await;
    let b = Member::start(&address, dir.path(), "b");
    let shared = wait_for(&client, &[("a", 2), ("b", 2)]).await;
    assert!(shared["a"].is_subset(&alone["a"]) && shared["a"].is_disjoint(&shared["b"]), "{shared:?}");
    tokio::task::block_in_place(|| write(&address, "shared"));
    let lines = read(&[&a, &b], 4).await;
    let expected: Vec<_> = (0..PARTITIONS).map(|at| format!("shared {at}")).collect();
    assert_eq!(lines, expected, "each line is read once");

    drop(b);
    let alone = wait_for(&client, &[("a", 4)]).await;
    assert!(alone["a"].is_superset(&shared["a"]), "it keeps what it had");
    tokio::task::block_in_place(|| write(&address, "alone"));
    let give_up_at = Instant::now() + PATIENCE;
    let read_alone = |member: &Member| member.lines().iter().filter(|line| line.starts_with("alone")).count();
    while read_alone(&a) < 4 {
        assert!(Instant::now() < give_up_at, "{:?}", a.lines());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(a);
    harness.finish().await;
}
