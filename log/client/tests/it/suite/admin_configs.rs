use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_client::{
    ConfigChanges, ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource, ConfigType, Error,
    NewTopic, QuotaAlteration, QuotaEntity, QuotaFilter, QuotaMatch,
};
use thalweg_protocol::ErrorCode;

use super::{Ground, eventually};

fn of_topic(name: &str) -> ConfigResource {
    ConfigResource::Topic(ByteString::from(name))
}

async fn described(ground: &Ground, resource: &ConfigResource) -> BTreeMap<ByteString, ConfigEntry> {
    let mut described = ground.client.admin().describe_configs(std::slice::from_ref(resource)).await;
    described.remove(resource).expect("it has an answer").expect("it is described")
}

/// What a topic's config is, and who set it.
async fn value_of(ground: &Ground, topic: &str, name: &str) -> (Option<String>, ConfigSource) {
    let entry = described(ground, &of_topic(topic)).await.remove(name).expect("there is such a config");
    (entry.value.map(|value| value.to_string()), entry.source)
}

/// Waits until the topic has it, or not.
async fn becomes(ground: &Ground, topic: &str, name: &str, value: Option<&str>) {
    eventually(async || {
        let (found, source) = value_of(ground, topic, name).await;
        let own = found.filter(|_| source == ConfigSource::Topic);
        (own.as_deref() == value).then_some(())
    })
    .await;
}

pub async fn configs_tell_where_they_come_from(ground: &Ground) {
    let admin = ground.client.admin();
    let (topic, missing) = (ground.name("topic"), ground.name("missing"));
    let new = NewTopic::new(topic.as_str(), 1).config("retention.ms", "12345");
    admin.create_topic(new).await.expect("it is created");
    let broker = ConfigResource::Broker(admin.describe_cluster().await.expect("it answers").brokers[0].id);
    let wanted = [of_topic(&topic), of_topic(&missing), broker.clone()];
    let described = admin.describe_configs(&wanted).await;
    assert_eq!(described.len(), 3);
    assert!(
        matches!(&described[&of_topic(&missing)], Err(Error::UnknownTopic { topic }) if *topic == *missing)
    );

    let configs = described[&of_topic(&topic)].as_ref().expect("it is described");
    let retention = &configs["retention.ms"];
    assert_eq!(retention.value.as_deref(), Some("12345"));
    assert_eq!((retention.source, retention.config_type), (ConfigSource::Topic, ConfigType::Long));
    assert!(!retention.is_default() && !retention.is_read_only && !retention.is_sensitive);
    assert!(retention.documentation.as_deref().is_some_and(|text| text.len() > 20), "{retention:?}");
    let places: Vec<_> = retention.synonyms.iter().map(|synonym| (&*synonym.name, synonym.source)).collect();
    assert_eq!(places[0], ("retention.ms", ConfigSource::Topic), "{places:?}");
    let max = &configs["max.message.bytes"];
    assert!(max.is_default() && max.config_type == ConfigType::Int, "{max:?}");
    let places: Vec<_> = max.synonyms.iter().map(|synonym| (&*synonym.name, synonym.source)).collect();
    assert_eq!(places, [("message.max.bytes", ConfigSource::Default)]);

    let of_broker = described[&broker].as_ref().expect("it is described");
    assert!(of_broker.contains_key("log.retention.ms"), "{:?}", of_broker.keys());
}

pub async fn configs_are_changed_one_by_one(ground: &Ground) {
    let admin = ground.client.admin();
    let (topic, missing) = (ground.topic(1).await, ground.name("missing"));
    let set =
        || ConfigChanges::of(of_topic(&topic)).set("retention.ms", "1000").set("max.message.bytes", "2000");
    for validate_only in [true, false] {
        let changes = [set(), ConfigChanges::of(of_topic(&missing)).set("retention.ms", "1")];
        let changed = admin.alter_configs(&changes, validate_only).await;
        assert!(changed[&of_topic(&topic)].is_ok(), "{changed:?}");
        assert!(matches!(changed[&of_topic(&missing)], Err(Error::UnknownTopic { .. })), "{changed:?}");
        becomes(ground, &topic, "retention.ms", (!validate_only).then_some("1000")).await;
    }
    let only = [ConfigChanges::of(of_topic(&topic)).delete("retention.ms")];
    admin.alter_configs(&only, false).await[&of_topic(&topic)].as_ref().expect("it is changed");
    becomes(ground, &topic, "retention.ms", None).await;
    let kept = (Some("2000".to_owned()), ConfigSource::Topic);
    assert_eq!(value_of(ground, &topic, "max.message.bytes").await, kept);

    let bad = [ConfigChanges::of(of_topic(&topic)).set("retention.ms", "soon").set("max.message.bytes", "1")];
    let refused = admin.alter_configs(&bad, false).await.remove(&of_topic(&topic)).expect("it has an answer");
    assert_eq!(refused.expect_err("that is no number").code(), Some(ErrorCode::InvalidConfig));
    assert_eq!(value_of(ground, &topic, "max.message.bytes").await, kept, "all changes or none");
}

pub async fn lists_are_appended_to(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(1).await;
    for (change, expected) in [
        (ConfigChanges::of(of_topic(&topic)).set("cleanup.policy", "compact"), &["compact"][..]),
        (ConfigChanges::of(of_topic(&topic)).append("cleanup.policy", "delete"), &["compact", "delete"]),
        (ConfigChanges::of(of_topic(&topic)).subtract("cleanup.policy", "compact"), &["delete"]),
    ] {
        let changed = admin.alter_configs(std::slice::from_ref(&change), false).await;
        assert!(changed[&of_topic(&topic)].is_ok(), "{change:?}: {changed:?}");
        eventually(async || {
            let (value, _) = value_of(ground, &topic, "cleanup.policy").await;
            let value = value.unwrap_or_default();
            let mut values: Vec<&str> = value.split(',').collect();
            values.sort_unstable();
            (values == expected).then_some(())
        })
        .await;
    }
}

pub async fn resources_with_configs_are_listed(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(1).await;
    let Some(all) = ground.offered(admin.list_config_resources(&[]).await) else { return };
    assert!(all.contains(&of_topic(&topic)), "{all:?}");
    assert!(all.iter().any(|resource| matches!(resource, ConfigResource::Broker(_))), "{all:?}");
    let topics = admin.list_config_resources(&[ConfigResourceType::Topic]).await.expect("it answers");
    assert!(topics.contains(&of_topic(&topic)), "{topics:?}");
    assert!(topics.iter().all(|resource| resource.resource_type() == ConfigResourceType::Topic));
}

pub async fn quotas_are_set_and_taken_away(ground: &Ground) {
    let admin = ground.client.admin();
    let (user, client) = (ground.name("user"), ground.name("client"));
    let both = || QuotaEntity::user(Some(&user)).and("client-id", Some(&client));
    let named = |name: &str| QuotaMatch::Named(ByteString::from(name));
    let of_user = QuotaFilter::default().with("user", named(&user));
    let strict = QuotaFilter { is_strict: true, ..of_user.clone() };
    if ground.offered(admin.describe_client_quotas(&of_user).await).is_none() {
        return;
    }
    let changes = [
        QuotaAlteration::of(QuotaEntity::user(Some(&user))).set("producer_byte_rate", Some(5e6)),
        QuotaAlteration::of(both()).set("consumer_byte_rate", Some(1e6)),
        QuotaAlteration::of(QuotaEntity::client_id(Some(&client))).set("no_such_quota", Some(1.0)),
    ];
    for (validate_only, found, found_strictly) in [(true, 0, 0), (false, 2, 1)] {
        let changed = admin.alter_client_quotas(&changes, validate_only).await;
        let oks: Vec<bool> = changes.iter().map(|change| changed[&change.entity].is_ok()).collect();
        assert_eq!(oks, [true, true, false], "{changed:?}");
        // Brokers hear of it from the controller.
        let described = eventually(async || {
            let described = admin.describe_client_quotas(&of_user).await.expect("it answers");
            (described.len() == found).then_some(described)
        });
        let described = described.await;
        let strictly = admin.describe_client_quotas(&strict).await.expect("it answers");
        assert_eq!((described.len(), strictly.len()), (found, found_strictly));
        if !validate_only {
            assert_eq!(described[&both()]["consumer_byte_rate"], 1e6);
            assert_eq!(described[&QuotaEntity::user(Some(&user))]["producer_byte_rate"], 5e6);
        }
    }
    let away = [QuotaAlteration::of(both()).set("consumer_byte_rate", None)];
    admin.alter_client_quotas(&away, false).await[&both()].as_ref().expect("it is taken away");
    eventually(async || {
        let described = admin.describe_client_quotas(&of_user).await.expect("it answers");
        (described.len() == 1).then_some(())
    })
    .await;
}
