//! A broker and nothing else: `serve DIR HOST:PORT [NAME=VALUE…]` runs until its input ends.

use thalweg_broker::{Broker, BrokerConfig, Error};
use tokio::task::spawn_blocking;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(address)) = (args.next(), args.next()) else {
        eprintln!("serve DIR HOST:PORT [NAME=VALUE…]");
        std::process::exit(2);
    };
    let mut config = BrokerConfig { data_dir: dir.into(), listen: vec![address], ..BrokerConfig::default() };
    for setting in args {
        let (name, value) = setting.split_once('=').unwrap_or((&setting, ""));
        config.set(name, value)?;
    }
    let broker = Broker::start(config).await?;
    println!("{}", broker.bootstrap().unwrap_or_default());
    // An error ends it as well: then nobody is there to end it.
    let _ = spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    broker.shutdown().await
}
