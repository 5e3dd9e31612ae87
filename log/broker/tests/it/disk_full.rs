//! A full disk: produce is refused so that clients try again, everything else goes on.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_broker::Broker;
use thalweg_protocol::ErrorCode;

use crate::calls::{
    PRODUCE, batch, create_topic_with, delete_topic, list_offset, only, produce, produce_request, read_all,
};
use crate::harness::{Client, Harness, Way, pass_over};

/// A small file system of its own, unmounted when dropped.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` where that takes more than this user may do.
    pub fn mount(test: &str) -> Option<Self> {
        let dir = TempDir::new().expect("a temporary directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(dir.path())
            .output()
            .is_ok_and(|output| output.status.success());
        // SAFETY: it only reads a number.
        if !mounted && unsafe { libc::geteuid() } == 0 {
            pass_over(test, "to mount a tmpfs");
        } else if !mounted {
            eprintln!("SKIPPED: only root can mount a small disk for {test}");
        }
        mounted.then_some(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    let Some(disk) = SmallDisk::mount("a_full_disk_refuses_writes_until_there_is_room") else { return };
    let config = Harness::config(Way::InProcess, &disk.path().join("data"));
    let broker = Broker::start(config.clone()).await.expect("it starts");
    let client = Client(broker.connect().open().expect("it runs"));
    let configs = [("segment.index.bytes", "4096")];
    assert_eq!(create_topic_with(&client, "t", 1, &configs).await.error_code, 0);
    let filler = disk.path().join("filler");
    produce(&client, "t", batch(["first"])).await;
    std::fs::write(&filler, vec![0; 4 << 20]).expect("there is room");

    let large = batch(["x".repeat(500_000)]);
    let mut appended = 1;
    let refused = loop {
        let answer = only(client.call(produce_request("t", -1, vec![(0, large.clone())]), PRODUCE).await);
        if answer.error_code != 0 {
            break answer;
        }
        appended += 1;
        assert!(appended < 100, "the disk is never full");
    };
    assert_eq!(ErrorCode::from(refused.error_code), ErrorCode::KafkaStorageError, "{refused:?}");
    // Reads go on, and so do refusals.
    assert_eq!(read_all(&client, "t", 0).await.len(), appended);
    let again = only(client.call(produce_request("t", -1, vec![(0, large.clone())]), PRODUCE).await);
    assert_eq!(ErrorCode::from(again.error_code), ErrorCode::KafkaStorageError);
    let topic = create_topic_with(&client, "another", 1, &[("retention.ms", &"1".repeat(18))]).await;
    assert!(matches!(ErrorCode::from(topic.error_code), ErrorCode::None | ErrorCode::KafkaStorageError));

    std::fs::remove_file(&filler).expect("it is there");
    assert_eq!(produce(&client, "t", large).await, appended as i64, "it recovers by itself");
    assert_eq!(list_offset(&client, "t", -1).await.offset, appended as i64 + 1);
    broker.shutdown().await.expect("it stops in order");
    let broker = Broker::start(config).await.expect("it starts again");
    let client = Client(broker.connect().open().expect("it runs"));
    assert_eq!(read_all(&client, "t", 0).await.len(), appended + 1);
    broker.shutdown().await.expect("it stops in order");
}

#[tokio::test]
async fn a_full_disk_is_stopped_on_started_on_and_emptied_by_deleting() {
    let Some(disk) = SmallDisk::mount("a_full_disk_is_stopped_on_started_on_and_emptied_by_deleting") else {
        return;
    };
    let config = Harness::config(Way::InProcess, &disk.path().join("data"));
    let broker = Broker::start(config.clone()).await.expect("it starts");
    let client = Client(broker.connect().open().expect("it runs"));
    let configs = [("segment.index.bytes", "4096")];
    for topic in ["large", "small"] {
        assert_eq!(create_topic_with(&client, topic, 1, &configs).await.error_code, 0);
    }
    produce(&client, "small", batch(["kept"])).await;
    for size in [500_000, 3_000, 100] {
        let filling = batch(["x".repeat(size)]);
        let fill = async || {
            only(client.call(produce_request("large", -1, vec![(0, filling.clone())]), PRODUCE).await)
        };
        while fill().await.error_code == 0 {}
    }
    drop(client);
    broker.shutdown().await.expect("a full disk is no reason not to stop in order");

    let broker = Broker::start(config).await.expect("it starts on a full disk");
    let client = Client(broker.connect().open().expect("it runs"));
    delete_topic(&client, "large").await;
    let start = Instant::now();
    let appended = loop {
        let answer = only(
            client
                .call(produce_request("small", -1, vec![(0, batch(["more".repeat(100_000)]))]), PRODUCE)
                .await,
        );
        if answer.error_code == 0 {
            break answer.base_offset;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(appended, 1);
    assert_eq!(read_all(&client, "small", 0).await[0], (0, "kept".to_owned()));
    broker.shutdown().await.expect("it stops in order");
}
