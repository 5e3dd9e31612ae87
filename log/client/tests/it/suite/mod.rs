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
