//! One suite for every broker.

use thalweg_client::{Client, ClientConfig, Isolation, NewTopic, OffsetSpec};
use thalweg_protocol::TopicPartition;

#[tokio::test]
async fn admin_on_kafka() {
    let Ok(bootstrap) = std::env::var("THALWEG_TEST_KAFKA") else { return };
    let client = Client::connect(ClientConfig::with_bootstrap(&bootstrap)).await.expect("connects");
    let admin = client.admin();
    println!("{:?}", admin.describe_cluster().await);
    let name = format!("t{}", std::process::id());
    println!("{:?}", admin.create_topic(NewTopic::new(name.as_str(), 3)).await);
    println!("{:?}", admin.create_topic(NewTopic::new(name.as_str(), 3)).await);
    println!("{:?}", admin.describe_topic(&name).await);
    println!("{:?}", admin.list_topics().await.map(|t| t.len()));
    let tp = TopicPartition::new(name.as_str(), 1);
    println!("{:?}", admin.list_offsets(&[(tp.clone(), OffsetSpec::Latest)], Isolation::ReadCommitted).await);
    println!(
        "{:?}",
        admin.list_offsets(&[(tp.clone(), OffsetSpec::MaxTimestamp)], Isolation::ReadCommitted).await
    );
    println!(
        "{:?}",
        admin
            .list_offsets(
                &[(TopicPartition::new(name.as_str(), 7), OffsetSpec::Latest)],
                Isolation::ReadCommitted
            )
            .await
    );
    println!(
        "{:?}",
        admin
            .commit_offsets(
                "g",
                &[(tp.clone(), thalweg_client::CommittedOffset::with_metadata(5.into(), "hi"))]
            )
            .await
    );
    println!("{:?}", admin.committed_offsets("g", Some(&[tp.clone()]), true).await);
    println!("{:?}", admin.committed_offsets("g", None, false).await);
    println!("{:?}", admin.delete_records(&[(tp, 0.into())]).await);
    println!("{:?}", admin.delete_topic(&name).await);
    println!("{:?}", admin.delete_topic(&name).await);
    println!("{:?}", client.partition_count("nope").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn producer_on_kafka() {
    use thalweg_client::*;
    let Ok(bootstrap) = std::env::var("THALWEG_TEST_KAFKA") else { return };
    let client = Client::connect(ClientConfig::with_bootstrap(&bootstrap)).await.expect("connects");
    let admin = client.admin();
    let name = format!("p{}", std::process::id());
    admin.create_topic(NewTopic::new(name.as_str(), 3)).await.expect("created");
    let producer = client.producer(ProducerConfig::default()).expect("p");
    println!(
        "{:?}",
        producer.send_and_wait(ProducerRecord::new(name.as_str(), "hello").key("k").header("a", "b")).await
    );
    println!("{:?}", producer.send_and_wait(ProducerRecord::new(name.as_str(), "hello").partition(1)).await);
    let mut deliveries = Vec::new();
    for i in 0..1000 {
        deliveries.push(
            producer
                .send(ProducerRecord::new(name.as_str(), format!("v{i}")).partition(1))
                .await
                .expect("sent"),
        );
    }
    for (i, d) in deliveries.into_iter().enumerate() {
        assert_eq!(d.await.expect("acked").offset.expect("o").0, i as i64 + 1);
    }
    let tx = client.producer(ProducerConfig::transactional(format!("tx-{name}"))).expect("p");
    println!("init {:?}", tx.init_transactions().await);
    for round in 0..4 {
        println!("begin {:?}", tx.begin_transaction());
        println!("{:?}", tx.send_and_wait(ProducerRecord::new(name.as_str(), "tx").partition(1)).await);
        println!(
            "{:?}",
            tx.send_offsets_to_transaction(
                &[(TopicPartition::new(name.as_str(), 0), CommittedOffset::with_metadata(round.into(), "m"))],
                &GroupMetadata::without_membership("gg")
            )
            .await
        );
        if round % 2 == 0 {
            println!("commit {:?}", tx.commit_transaction().await);
        } else {
            println!("abort {:?}", tx.abort_transaction().await);
        }
        println!("{:?}", admin.committed_offsets("gg", None, true).await);
    }
    admin.delete_topic(&name).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn bench_on_kafka() {
    use thalweg_client::*;
    let Ok(bootstrap) = std::env::var("THALWEG_TEST_KAFKA") else { return };
    let client = Client::connect(ClientConfig::with_bootstrap(&bootstrap)).await.expect("connects");
    let admin = client.admin();
    let name = format!("b{}", std::process::id());
    admin.create_topic(NewTopic::new(name.as_str(), 6)).await.expect("created");
    let producer = client.producer(ProducerConfig::default()).expect("p");
    let mut appender = producer.appender();
    let slot = appender.topic(&name).await.expect("topic");
    let value = [7_u8; 100];
    let n = if cfg!(debug_assertions) { 100_000_u64 } else { 10_000_000 };
    let start = std::time::Instant::now();
    let mut appender = tokio::task::spawn_blocking(move || {
        for i in 0..n {
            appender.append_blocking(slot, (i % 6) as i32, 1, None, Some(&value), &[]).expect("appended");
        }
        appender
    })
    .await
    .expect("joins");
    appender.flush().await.expect("flushed");
    let took = start.elapsed();
    println!("{n} records in {took:?}: {} rec/s", n as f64 / took.as_secs_f64());
    admin.delete_topic(&name).await.expect("deleted");
}
