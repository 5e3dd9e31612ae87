//! The count on Arrow batches, over the year of flights.

#[path = "../../examples/arrow_count/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use thalweg_streams::testing::{StateAfterCrash, TestDriver};
use thalweg_streams::{Event, Streams, StreamsConfig};

use self::program::{Emit, STORE, topology};
use crate::flights::PER_CARRIER;
use crate::ground::{Ground, lines};

/// How long the year may take.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn the_flights_of_each_carrier_are_counted() {
    let ground = Ground::new().await;
    ground.load_flights("flights").await;
    ground.create("counts", 2).await;
    let config = StreamsConfig::new("arrow-count", ground.path("state"));
    let client = ground.client_config();
    let streams =
        Streams::start(topology("flights", "counts", Emit::PerCommit), config, client).expect("it starts");
    let events = streams.events();
    let deadline = Instant::now() + PATIENCE;
    loop {
        match events.recv_deadline(deadline).expect("it is live in time") {
            Event::Live => break,
            Event::Failed { reason } => panic!("{reason}"),
            _ => {}
        }
    }
    let mut counts = BTreeMap::new();
    let read = streams.store(STORE).for_each(|carrier, _, count| {
        let count = i64::from_be_bytes(count.try_into().expect("eight bytes"));
        counts.insert(String::from_utf8(carrier.to_vec()).expect("UTF-8"), count);
    });
    read.expect("the store is read");
    let expected: BTreeMap<String, i64> =
        PER_CARRIER.into_iter().map(|(carrier, count)| (carrier.to_owned(), count)).collect();
    assert_eq!(counts, expected);
    streams.close().expect("it closes");

    let session = ground.session();
    let sql = "SELECT _key, encode(max(value), 'hex') FROM counts GROUP BY _key ORDER BY _key";
    let expected: Vec<String> =
        PER_CARRIER.iter().map(|(carrier, count)| format!("{carrier},{count:016x}")).collect();
    assert_eq!(lines(&session, sql).await, expected);
}

#[test]
fn every_count_comes_once_and_bad_records_are_put_aside() {
    let topology = topology("in", "out", Emit::PerRecord);
    let mut driver = TestDriver::new(topology, &[("in", 2), ("out", 1)]).expect("it starts");
    let produce = |driver: &mut TestDriver, values: &[&str]| {
        for value in values {
            driver
                .produce("in", Some(value.as_bytes()), Some(value.as_bytes()), 0)
                .expect("the topic is there");
        }
        driver.run().expect("processed");
    };
    let flight = |carrier: &str| format!(r#"{{"carrier":"{carrier}","n":1}}"#);
    let (a, b) = (flight("A"), flight("B"));
    produce(&mut driver, &[&a, &b, "broken", &a, r#"{"n":1}"#, &a]);
    driver.crash(StateAfterCrash::Lost).expect("opened again");
    produce(&mut driver, &[&b, "{}{}", &a]);

    let mut counts: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for record in driver.records("out") {
        let carrier = String::from_utf8(record.key.expect("a carrier")).expect("UTF-8");
        let count = record.value.expect("a count").try_into().map(i64::from_be_bytes).expect("eight bytes");
        counts.entry(carrier).or_default().push(count);
    }
    let expected = BTreeMap::from([("A".to_owned(), vec![1, 2, 3, 4]), ("B".to_owned(), vec![1, 2])]);
    assert_eq!(counts, expected);
    assert_eq!(driver.records("test-dead-letter").len(), 3);
}
