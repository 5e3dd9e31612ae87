//! A broker and nothing else: `serve DIR HOST:PORT` runs until its input ends.

use thalweg_broker::{Broker, BrokerConfig, Error};
use tokio::task::spawn_blocking;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(address)) = (args.next(), args.next()) else {
        eprintln!("serve DIR HOST:PORT");
        std::process::exit(2);
    };
    let config = BrokerConfig { data_dir: dir.into(), listen: vec![address], ..BrokerConfig::default() };
    let broker = Broker::start(config).await?;
    println!("{}", broker.bootstrap().unwrap_or_default());
    // An error ends it as well: then nobody is there to end it.
    let _ = spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    broker.shutdown().await
}
