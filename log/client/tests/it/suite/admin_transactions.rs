use thalweg_client::{
    AbortTransaction, ErrorKind, Isolation, ListedTransaction, OffsetSpec, ProducerConfig, ProducerState,
    TransactionFilter, TransactionState,
};
use thalweg_protocol::{ErrorCode, Offset};

use super::{Ground, at};

pub async fn transactions_are_listed_and_described(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(2).await;
    let (open, idle, missing) = (ground.name("open"), ground.name("idle"), ground.name("missing"));
    let producer = ground.transactional(&open).await;
    let _idle = ground.transactional(&idle).await;
    producer.begin_transaction().expect("none is open");
    ground.write(&producer, &topic, 1, &["inside"]).await;
    let listed = admin.list_transactions(&TransactionFilter::default()).await.expect("it answers");
    let failures = listed.failed.values().next().cloned();
    let Some(all) = ground.offered(failures.map_or(Ok(listed.found), Err)) else { return };
    let state = |all: &[ListedTransaction], id: &str| {
        all.iter().find(|listed| listed.transactional_id == id).map(|listed| listed.state.clone())
    };
    assert_eq!(state(&all, &open), Some(TransactionState::Ongoing));
    assert_eq!(state(&all, &idle), Some(TransactionState::Empty));
    let ongoing = TransactionFilter { states: vec![TransactionState::Ongoing], ..Default::default() };
    let listed = admin.list_transactions(&ongoing).await.expect("it answers").complete().expect("all answer");
    assert_eq!((state(&listed, &open), state(&listed, &idle)), (Some(TransactionState::Ongoing), None));
    let named = TransactionFilter { pattern: Some(format!("{idle}.*")), ..Default::default() };
    let listed = admin.list_transactions(&named).await.expect("it answers");
    let failure = listed.failed.values().next().cloned();
    if let Some(listed) = ground.offered(failure.map_or(Ok(listed.found), Err)) {
        assert_eq!(listed.len(), 1, "{listed:?}");
    }

    let described = admin.describe_transactions(&[&open, &idle, &missing]).await;
    assert_eq!(described.len(), 3);
    let open = described[&*open].as_ref().expect("it is known");
    assert_eq!((&open.state, open.timeout_ms), (&TransactionState::Ongoing, 60_000));
    assert_eq!(open.partitions, [at(&topic, 1)]);
    assert!(open.started_ms.is_some_and(|ms| ms > 1_600_000_000_000), "{open:?}");
    let idle = described[&*idle].as_ref().expect("it is known");
    assert_eq!((&idle.state, idle.started_ms, idle.partitions.len()), (&TransactionState::Empty, None, 0));
    let error = described[&*missing].as_ref().expect_err("there is none");
    assert_eq!(error.code(), Some(ErrorCode::TransactionalIdNotFound));
    producer.abort_transaction().await.expect("it is aborted");
}

/// The only producer that writes transactions into a partition, as its leader sees it.
async fn writer(ground: &Ground, topic: &str) -> Option<ProducerState> {
    let wanted = [at(topic, 0)];
    let described = ground.client.admin().describe_producers(&wanted).await.remove(&wanted[0]);
    let states = ground.offered(described.expect("it has an answer"))?;
    let [state] = states.as_slice() else { panic!("one producer wrote: {states:?}") };
    Some(*state)
}

pub async fn a_partition_tells_its_producers(ground: &Ground) {
    let topic = ground.topic(1).await;
    let plain = ground.producer(ProducerConfig::default());
    ground.write(&plain, &topic, 0, &["a", "b", "c"]).await;
    let Some(state) = writer(ground, &topic).await else { return };
    assert_eq!((state.last_sequence, state.transaction_start), (Some(2), None), "{state:?}");
    assert!(state.last_timestamp_ms.is_some(), "{state:?}");
    let admin = ground.client.admin();
    let outside = [at(&topic, 9)];
    let error = admin.describe_producers(&outside).await.remove(&outside[0]).expect("it has an answer");
    assert_eq!(error.expect_err("there is one partition").kind(), ErrorKind::GiveUp);
}

pub async fn a_transaction_is_aborted_by_its_markers(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(1).await;
    let producer = ground.transactional(&ground.name("id")).await;
    producer.begin_transaction().expect("none is open");
    ground.write(&producer, &topic, 0, &["hangs", "too"]).await;
    let Some(state) = writer(ground, &topic).await else { return };
    assert_eq!(state.transaction_start, Some(Offset(0)), "{state:?}");
    let stable = async || {
        let wanted = [(at(&topic, 0), OffsetSpec::Latest)];
        let listed = admin.list_offsets(&wanted, Isolation::ReadCommitted).await;
        listed.expect("it answers")[&at(&topic, 0)].offset
    };
    assert_eq!(stable().await, Some(Offset(0)), "readers wait for it");
    let aborted = admin.abort_transaction(&at(&topic, 0), AbortTransaction::from(state)).await;
    if ground.offered(aborted).is_none() {
        return;
    }
    assert_eq!(stable().await, Some(Offset(3)), "they wait no longer");
    let state = writer(ground, &topic).await.expect("it answered before");
    assert_eq!(state.transaction_start, None);
    let older = AbortTransaction { producer_epoch: thalweg_protocol::ProducerEpoch(-1), ..state.into() };
    let refused = admin.abort_transaction(&at(&topic, 0), older).await.expect_err("nobody has that epoch");
    assert_ne!(refused.kind(), ErrorKind::Retry, "{refused}");
}

pub async fn what_its_coordinator_knows_does_not_hang(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(2).await;
    let id = ground.name("id");
    let producer = ground.transactional(&id).await;
    producer.begin_transaction().expect("none is open");
    ground.write(&producer, &topic, 0, &["open"]).await;
    let wanted = [at(&topic, 0), at(&topic, 1), at(&topic, 2)];
    let found = admin.hanging_transactions(&wanted, i64::MAX).await;
    let Some(found) = ground.offered(found) else { return };
    let hanging = |partition| found[&at(&topic, partition)].as_ref().map(Vec::len);
    assert_eq!((hanging(0).ok(), hanging(1).ok()), (Some(0), Some(0)), "{found:?}");
    assert_eq!(hanging(2).expect_err("there are two partitions").kind(), ErrorKind::GiveUp);

    admin.terminate_transaction(&id).await.expect("it is aborted");
    let refused = producer.commit_transaction().await.expect_err("it is fenced");
    assert_eq!(refused.kind(), ErrorKind::Fenced, "{refused}");
    let described = super::eventually(async || {
        let described = admin.describe_transactions(&[&id]).await.remove(&*id).expect("it has an answer");
        let described = described.expect("it is known");
        (!described.partitions.iter().any(|partition| partition.topic == topic)).then_some(described)
    });
    assert_eq!(described.await.started_ms, None);
}

pub async fn producers_are_fenced(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(1).await;
    let (open, idle) = (ground.name("open"), ground.name("idle"));
    let producer = ground.transactional(&open).await;
    let idle_producer = ground.transactional(&idle).await;
    producer.begin_transaction().expect("none is open");
    ground.write(&producer, &topic, 0, &["inside"]).await;
    let fenced = admin.fence_producers(&[&open, &idle]).await;
    assert_eq!(fenced.len(), 2);
    for (id, fenced) in &fenced {
        let fenced = fenced.as_ref().unwrap_or_else(|error| panic!("{id} is taken over: {error}"));
        assert!(fenced.producer_epoch.0 > 0, "{fenced:?}");
    }
    let refused = producer.commit_transaction().await.expect_err("it is fenced");
    assert_eq!(refused.kind(), ErrorKind::Fenced, "{refused}");
    idle_producer.begin_transaction().expect("none is open");
    let sent = thalweg_client::ProducerRecord::new(topic.as_str(), "too late");
    let late = match idle_producer.send(sent).await {
        Ok(delivery) => delivery.await.err(),
        Err(error) => Some(error),
    };
    assert_eq!(late.map(|error| error.kind()), Some(ErrorKind::Fenced));

    let next = ground.transactional(&open).await;
    next.begin_transaction().expect("none is open");
    ground.write(&next, &topic, 0, &["the next"]).await;
    next.commit_transaction().await.expect("it is committed");
    let mut reader = ground.reader(&topic, &[0], Default::default());
    assert_eq!(super::texts(&super::read(&mut reader, 1).await), ["the next"]);
}
