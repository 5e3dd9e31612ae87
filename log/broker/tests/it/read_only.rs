//! A data directory that cannot be written: a start says so, and a running node refuses what it would have to write, serves
//! what can be read, and goes on when it can write again.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use thalweg_broker::Broker;
use thalweg_protocol::ErrorCode;

use crate::calls::{
    PRODUCE, batch, create_topic, create_topic_with, list_offset, only, produce, produce_request, read_all,
};
use crate::disk_full::SmallDisk;
use crate::harness::{Client, Harness, Way};

fn run(program: &str, arguments: &[&str], path: &Path) {
    let output = Command::new(program).args(arguments).arg(path).output().expect("it can be run");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

#[tokio::test]
async fn a_start_names_the_directory() {
    let Some(disk) = SmallDisk::mount("a_start_names_the_directory") else { return };
    let config = Harness::config(Way::InProcess, &disk.path().join("data"));
    let broker = Broker::start(config.clone()).await.expect("it starts");
    let client = Client(broker.connect().open().expect("it runs"));
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["kept"])).await;
    drop(client);
    broker.shutdown().await.expect("it stops in order");

    run("mount", &["-o", "remount,ro"], disk.path());
    let new = Harness::config(Way::InProcess, &disk.path().join("new"));
    for config in [&config, &new] {
        let error = Broker::start(config.clone()).await.err().expect("it cannot take the directory");
        let text = error.to_string();
        let names_it = text.contains(config.data_dir.to_str().expect("UTF-8"));
        assert!(names_it && text.contains("read-only"), "{text}");
    }
    run("mount", &["-o", "remount,rw"], disk.path());
    let broker = Broker::start(config).await.expect("it starts again");
    let client = Client(broker.connect().open().expect("it runs"));
    assert_eq!(read_all(&client, "t", 0).await, [(0, "kept".to_owned())]);
    drop(client);
    broker.shutdown().await.expect("it stops in order");
}

/// A read-only mount over the directory is what new and renamed files meet with; files that are open for writing stay so.
#[tokio::test]
async fn a_directory_that_becomes_read_only_refuses_writes_until_it_is_not() {
    let test = "a_directory_that_becomes_read_only_refuses_writes_until_it_is_not";
    let Some(disk) = SmallDisk::mount(test) else { return };
    let config = Harness::config(Way::InProcess, &disk.path().join("data"));
    let broker = Broker::start(config.clone()).await.expect("it starts");
    let client = Client(broker.connect().open().expect("it runs"));
    let configs = [("segment.bytes", "20000"), ("segment.index.bytes", "4096"), ("retention.ms", "-1")];
    assert_eq!(create_topic_with(&client, "t", 1, &configs).await.error_code, 0);
    let mut appended = 0;
    let write = async |client: &Client, at: i64| {
        let value = format!("{at} {}", "x".repeat(6_000));
        only(client.call(produce_request("t", -1, vec![(0, batch([value]))]), PRODUCE).await)
    };
    while appended < 10 {
        assert_eq!(write(&client, appended).await.base_offset, appended);
        appended += 1;
    }

    let data = config.data_dir.to_str().expect("UTF-8");
    run("mount", &["-o", "bind,ro", data], &config.data_dir);
    let refused = loop {
        let answer = write(&client, appended).await;
        if answer.error_code != 0 {
            break answer;
        }
        appended += 1;
        assert!(appended < 20, "a new segment takes new files");
    };
    assert_eq!(ErrorCode::from(refused.error_code), ErrorCode::KafkaStorageError, "{refused:?}");
    let text = refused.error_message.expect("it says why");
    assert!(text.contains("read-only"), "{text}");
    // Reads go on, and so do refusals.
    for _ in 0..3 {
        assert_eq!(read_all(&client, "t", 0).await.len() as i64, appended);
        let again = ErrorCode::from(write(&client, appended).await.error_code);
        assert_eq!(again, ErrorCode::KafkaStorageError);
    }

    run("umount", &[], &config.data_dir);
    let start = Instant::now();
    loop {
        let answer = write(&client, appended).await;
        if answer.error_code == 0 {
            assert_eq!(answer.base_offset, appended, "it recovers by itself");
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{answer:?}");
    }
    assert_eq!(list_offset(&client, "t", -1).await.offset, appended + 1);
    let before = read_all(&client, "t", 0).await;
    drop(client);
    broker.shutdown().await.expect("it stops in order");
    let broker = Broker::start(config).await.expect("it starts again");
    let client = Client(broker.connect().open().expect("it runs"));
    assert_eq!(read_all(&client, "t", 0).await, before);
    drop(client);
    broker.shutdown().await.expect("it stops in order");
}
