//! What administration makes of a cluster that is slow to agree.

use thalweg_client::{Client, NewTopic};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::ApiKey;

use crate::fake::{Fake, Fate, TOPIC};

#[tokio::test]
async fn created_topics_can_be_used_at_once() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let unheard = Fate::Refused(ErrorCode::UnknownTopicOrPartition);
    fake.script(ApiKey::Metadata, [unheard; 3]);
    let asked = fake.requests(ApiKey::Metadata).len();
    let created = client.admin().create_topics(vec![NewTopic::new(TOPIC, 1)]).await.expect("it answers");
    assert!(created.iter().all(Result::is_ok), "{created:?}");
    assert_eq!(fake.requests(ApiKey::Metadata).len() - asked, 4);
}
