//! One suite for every broker: each test is a function of the ground it runs on.
//!
//! With `THALWEG_TEST_KAFKA=host:port` it runs on Apache Kafka, too.

mod admin;
mod admin_cluster;
mod admin_configs;
mod admin_groups;
mod admin_share_groups;
mod admin_transactions;
mod compaction;
mod coordinated;
mod crossing;
mod examples;
mod groups;
mod lossy;
mod queues;
mod reading;
mod script;
mod transactions;
mod writing;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use thalweg_broker::{Broker, BrokerConfig};
use thalweg_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, Error, ErrorKind, NewTopic, OffsetReset, Producer,
    ProducerConfig, ProducerRecord, TcpConnector,
};
use thalweg_protocol::record::OwnedRecord;
use thalweg_protocol::{Connect, TopicPartition};
use tokio::time::Instant;

use self::lossy::Lossy;

/// Names are drawn from here, so that tests which run side by side on one broker do not meet.
static NEXT_NAME: AtomicU32 = AtomicU32::new(0);

/// How long something may take that normally takes a moment.
const PATIENCE: Duration = Duration::from_secs(90);

/// A broker, as a test sees it.
pub struct Ground {
    client: Client,
    config: ClientConfig,
    is_kafka: bool,
    /// A broker of its own, with its directory, which goes last.
    _broker: Option<(Broker, TempDir)>,
}

/// How the client reaches a broker of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    InProcess,
    InProcessThroughBytes,
    Tcp,
}

impl Ground {
    async fn kafka() -> Option<Self> {
        let Ok(bootstrap) = std::env::var("THALWEG_TEST_KAFKA") else {
            let must_run = std::env::var_os("THALWEG_TESTS_MUST_RUN").is_some();
            assert!(!must_run, "this test needs Apache Kafka");
            eprintln!("SKIPPED: this test needs Apache Kafka, in THALWEG_TEST_KAFKA");
            return None;
        };
        let config = ClientConfig::with_bootstrap(&bootstrap);
        let client = Client::connect(config.clone()).await.expect("the broker answers");
        Some(Self { client, config, is_kafka: true, _broker: None })
    }

    async fn thalweg(way: Way) -> Option<Self> {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let config = BrokerConfig {
            data_dir: directory.path().to_owned(),
            listen: if way == Way::Tcp { vec!["127.0.0.1:0".to_owned()] } else { Vec::new() },
            in_process_through_bytes: way == Way::InProcessThroughBytes,
            cleaner_check_interval_ms: 50,
            ..BrokerConfig::default()
        };
        let broker = Broker::start(config).await.expect("the broker starts");
        let config = match broker.bootstrap() {
            Some(bootstrap) => ClientConfig::with_bootstrap(&bootstrap),
            None => ClientConfig::with_connector(Arc::new(broker.connect())),
        };
        let client = Client::connect(config.clone()).await.expect("the broker answers");
        Some(Self { client, config, is_kafka: false, _broker: Some((broker, directory)) })
    }

    /// A client whose requests and answers can get lost, and which is not patient.
    async fn lossy(&self) -> (Lossy, Client) {
        let tcp = || -> Arc<dyn Connect> { Arc::new(TcpConnector::new("lossy", PATIENCE)) };
        let lossy = Lossy::new(self.config.connector.clone().unwrap_or_else(tcp));
        let config = ClientConfig {
            connector: Some(Arc::new(lossy.clone())),
            api_timeout_ms: 1_000,
            ..self.config.clone()
        };
        (lossy, Client::connect(config).await.expect("the broker answers"))
    }

    /// The answer of an API that this broker may lack, which it must then say; Kafka has all of them.
    fn offered<R>(&self, answer: Result<R, Error>) -> Option<R> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error @ Error::UnsupportedVersion { .. }) if !self.is_kafka => {
                assert_eq!(error.kind(), ErrorKind::GiveUp);
                assert!(error.to_string().contains("; Apache Kafka has "), "it says what would do: {error}");
                None
            }
            Err(error) => panic!("it is refused: {error}"),
        }
    }

    /// A name that nobody else uses.
    fn name(&self, what: &str) -> String {
        format!("{what}-{}-{}", std::process::id(), NEXT_NAME.fetch_add(1, Ordering::Relaxed))
    }

    /// A new topic.
    async fn topic(&self, partitions: i32) -> String {
        let name = self.name("topic");
        let admin = self.client.admin();
        admin.create_topic(NewTopic::new(name.as_str(), partitions)).await.expect("the topic is created");
        name
    }

    fn producer(&self, config: ProducerConfig) -> Producer {
        self.client.producer(config).expect("the configuration is right")
    }

    async fn transactional(&self, id: &str) -> Producer {
        let producer = self.producer(ProducerConfig::transactional(id));
        producer.init_transactions().await.expect("the transactional id is taken over");
        producer
    }

    fn consumer(&self, config: ConsumerConfig) -> Consumer {
        self.client.consumer(config).expect("the configuration is right")
    }

    /// A consumer without a group that reads these partitions from their start.
    fn reader(&self, topic: &str, partitions: &[i32], config: ConsumerConfig) -> Consumer {
        let mut consumer = self.consumer(ConsumerConfig { offset_reset: OffsetReset::Earliest, ..config });
        consumer
            .assign(partitions.iter().map(|partition| at(topic, *partition)))
            .expect("it reads nothing yet");
        consumer
    }

    /// Writes values into one partition and waits for them.
    async fn write(&self, producer: &Producer, topic: &str, partition: i32, values: &[&str]) {
        for value in values {
            let record = ProducerRecord::new(topic, value.to_string()).partition(partition);
            producer.send(record).await.expect("there is room");
        }
        producer.flush().await.expect("all are written");
    }
}

fn at(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

/// Polls until there are `count` records.
async fn read(consumer: &mut Consumer, count: usize) -> Vec<OwnedRecord> {
    let deadline = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    while records.len() < count {
        assert!(Instant::now() < deadline, "only {} of {count} records came", records.len());
        let polled = consumer.poll(Duration::from_millis(500)).await.expect("the poll succeeds");
        for batches in polled.batches {
            records.extend(batches.into_records().map(|record| record.expect("nothing is damaged")));
        }
    }
    records
}

/// Polls until everything that could be read at the start of the last fetches has been, and returns the
/// values.
async fn read_to_end(consumer: &mut Consumer) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut values = Vec::new();
    loop {
        assert!(Instant::now() < deadline, "the end was not reached");
        let polled = consumer.poll(Duration::from_millis(50)).await.expect("the poll succeeds");
        for batches in polled.batches {
            values.extend(batches.into_records().map(|record| text(&record.expect("nothing is damaged"))));
        }
        let progress =
            consumer.assignment().iter().map(|partition| consumer.progress(partition)).collect::<Vec<_>>();
        if progress.iter().all(|progress| progress.is_some_and(|progress| progress.is_caught_up())) {
            return values;
        }
    }
}

/// Waits for what brokers hear of only some time after the controller has decided it.
async fn eventually<R>(mut check: impl AsyncFnMut() -> Option<R>) -> R {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not come to be");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn text(record: &OwnedRecord) -> String {
    String::from_utf8(record.value.as_deref().unwrap_or(b"null").to_vec()).expect("the test writes text")
}

fn texts(records: &[OwnedRecord]) -> Vec<String> {
    records.iter().map(text).collect()
}

/// Something that is being waited for, whatever its type: the runtime is compiled once, and not for each test.
type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Runs a test on its ground, if there is one, on a runtime of its own.
fn run(ground: Awaited<'_, Option<Ground>>, test: fn(&Ground) -> Awaited<'_, ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("the system has threads left");
    runtime.block_on(async {
        if let Some(ground) = ground.await {
            test(&ground).await;
        }
    });
}

/// Makes a test of each function for each ground.
macro_rules! suite {
    ($($way:ident: $ground:expr;)*) => {$(
        mod $way {
            suite! { @tests $ground;
                admin: a_topic_is_created_described_and_deleted, refusals_say_what_and_why,
                    offsets_are_listed, records_are_deleted, groups_offsets_are_kept,
                    topics_are_validated_and_deleted_together, partitions_are_added,
                    lost_answers_make_no_failures;
                admin_configs: configs_tell_where_they_come_from, configs_are_changed_one_by_one,
                    lists_are_appended_to, resources_with_configs_are_listed, quotas_are_set_and_taken_away;
                admin_groups: groups_are_listed_and_described, groups_are_deleted_when_they_are_empty,
                    members_are_put_out, a_group_forgets_offsets;
                admin_share_groups: share_groups_are_listed_and_described, a_share_group_tells_where_it_is,
                    a_share_group_goes_on_where_it_is_told, a_share_group_forgets_offsets_and_is_deleted,
                    lost_answers_about_share_groups_make_no_failures;
                admin_transactions: transactions_are_listed_and_described, a_partition_tells_its_producers,
                    a_transaction_is_aborted_by_its_markers, what_its_coordinator_knows_does_not_hang,
                    producers_are_fenced;
                admin_cluster: leaders_are_elected, logs_are_found_in_their_directories,
                    features_are_described_and_validated, the_quorum_is_described, replicas_are_reassigned;
                writing: records_come_back_as_they_were_sent, keys_go_where_java_puts_them,
                    many_batches_keep_their_order, an_appender_writes_without_futures,
                    threads_without_a_runtime_send_and_wait, every_level_of_acks_works, a_record_that_is_too_large_fails_alone;
                reading: a_consumer_seeks_and_pauses, a_consumer_starts_where_it_is_told,
                    offsets_are_found_by_time, a_position_that_is_gone_is_reset_or_told,
                    a_reader_knows_when_it_has_caught_up, a_waiting_poll_can_be_woken,
                    a_position_at_the_end_of_an_emptied_log_is_good;
                compaction: a_compacted_topic_is_read_through_its_gaps;
                crossing: history_goes_over_into_what_arrives_from_every_offset,
                    a_reader_may_arrive_at_any_moment, a_tail_without_a_visible_record_is_passed,
                    readers_race_with_writers;
                transactions: committed_records_are_read_and_aborted_ones_are_not,
                    an_open_transaction_holds_readers_up, offsets_are_part_of_the_transaction,
                    a_newer_producer_fences_the_older, what_a_dead_producer_left_is_aborted,
                    an_end_of_unknown_outcome_is_cleared_up, many_transactions_follow_one_another;
                groups: members_share_partitions_and_take_over, eager_members_give_up_everything_first,
                    a_subscription_can_grow, a_group_goes_on_where_it_committed, a_static_member_keeps_its_partitions,
                    a_static_member_with_another_subscription_enforces_a_rebalance,
                    a_member_without_polls_is_lost;
                coordinated: the_coordinator_shares_partitions_out, a_static_member_comes_back_to_its_partitions,
                    an_assignor_that_the_coordinator_lacks_is_told, topics_are_found_by_a_pattern;
                queues: members_share_records_and_each_is_delivered_once,
                    released_records_come_again_and_rejected_ones_do_not,
                    records_that_are_kept_too_long_go_to_others, a_record_that_is_renewed_stays,
                    a_record_that_is_delivered_too_often_is_given_up, what_a_consumer_leaves_behind_comes_again,
                    transactions_are_delivered_as_the_group_says, a_number_of_records_is_kept_to,
                    a_lost_answer_leaves_open_what_was_said, a_name_that_is_taken_is_told;
                examples: a_queue_is_worked_off, records_are_processed_and_not_again, records_are_transformed_exactly_once,
                    words_are_counted_exactly_once_in_one_database,
                    words_are_counted_exactly_once_in_postgres,
                    records_are_sent_in_four_ways, partitions_and_members_are_chosen_by_own_rules;
            }
        }
    )*};
    (@tests $ground:expr; $($module:ident: $($test:ident),*;)*) => {$(
        mod $module {
            $(
                #[test]
                fn $test() {
                    crate::suite::run(Box::pin($ground), |ground| {
                        Box::pin(crate::suite::$module::$test(ground))
                    });
                }
            )*
        }
    )*};
}

suite! {
    in_process: crate::suite::Ground::thalweg(crate::suite::Way::InProcess);
    in_process_through_bytes: crate::suite::Ground::thalweg(crate::suite::Way::InProcessThroughBytes);
    over_tcp: crate::suite::Ground::thalweg(crate::suite::Way::Tcp);
    on_kafka: crate::suite::Ground::kafka();
}
