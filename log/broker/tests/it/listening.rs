//! Addresses: localhost in both families, and ports that are taken.

use std::net::{Ipv4Addr, Ipv6Addr};

use tempfile::TempDir;
use thalweg_broker::{Broker, BrokerConfig, Error};
use thalweg_protocol::messages::metadata::MetadataRequest;

use crate::harness::Client;
use crate::raw_tcp::RawTcp;

fn config(dir: &TempDir, listen: &str) -> BrokerConfig {
    BrokerConfig {
        data_dir: dir.path().to_owned(),
        listen: vec![listen.to_owned()],
        ..BrokerConfig::default()
    }
}

#[tokio::test]
async fn localhost_answers_on_both_families() {
    let dir = TempDir::new().expect("a temporary directory");
    let broker = Broker::start(config(&dir, "localhost:0")).await.expect("it starts");
    let has_ipv6 = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    assert_eq!(broker.addresses().len(), if has_ipv6 { 2 } else { 1 });
    assert_eq!(broker.addresses()[0].ip(), Ipv4Addr::LOCALHOST);
    let port = broker.addresses()[0].port();
    assert_eq!(broker.bootstrap(), Some(format!("localhost:{port}")));
    for &address in broker.addresses() {
        assert_eq!(address.port(), port);
        let client = Client(RawTcp::connect(address).await);
        let brokers = client.call(MetadataRequest::default(), 12).await.brokers;
        assert_eq!((&*brokers[0].host, brokers[0].port), ("localhost", i32::from(port)));
    }
    broker.shutdown().await.expect("it stops in order");
}

#[tokio::test]
async fn a_taken_port_and_a_bad_address_are_said() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = taken.local_addr().expect("it is bound").port();
    let dir = TempDir::new().expect("a temporary directory");
    for listen in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let error = Broker::start(config(&dir, &listen)).await.err().expect("the port is taken");
        assert!(matches!(&error, Error::Listen { address, .. } if *address == listen), "{error}");
        assert!(error.to_string().contains(&listen), "{error}");
    }
    for listen in ["localhost", "localhost:http", ":", "no such host.invalid:1"] {
        let error = Broker::start(config(&dir, listen)).await.err().expect("it is no address");
        assert!(matches!(&error, Error::ListenAddress { .. }), "{listen}: {error}");
    }
    // None of these attempts has left the directory in a state that keeps a broker from starting.
    let broker = Broker::start(config(&dir, "localhost:0")).await.expect("it starts");
    broker.shutdown().await.expect("it stops in order");
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let dir = TempDir::new().expect("a temporary directory");
    let check = |change: fn(&mut BrokerConfig), name: &'static str| {
        let mut config = config(&dir, "localhost:0");
        change(&mut config);
        (config, name)
    };
    for (config, expected) in [
        check(|config| config.node_id = Some(-1), "node_id"),
        check(|config| config.default_partitions = 0, "default_partitions"),
        check(|config| config.advertised = Some("nowhere".to_owned()), "advertised"),
        check(|config| config.listen = vec!["0.0.0.0:0".to_owned()], "advertised"),
        check(
            |config| {
                config.topic_defaults.insert("retention.ms".to_owned(), "soon".to_owned());
            },
            "topic_defaults",
        ),
    ] {
        let error = Broker::start(config).await.err().expect(expected);
        assert!(matches!(&error, Error::Config { name, .. } if *name == expected), "{error}");
    }
}
