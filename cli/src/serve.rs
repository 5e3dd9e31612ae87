//! `thalweg serve`: one node in the foreground.

use std::path::{Path, PathBuf};

use anyhow::Context;
use thalweg_broker::{Broker, BrokerConfig};

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure};
use crate::signals::Signals;
use crate::target::{DEFAULT_DATA, TargetArgs};

/// What a node can be told.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The data directory: `thalweg-data` here if not given; made if it is not there [env: THALWEG_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A node is one; it talks to none
    #[arg(long, value_name = "HOST:PORT", hide = true)]
    bootstrap: Option<String>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "localhost:9092")]
    listen: Vec<String>,
    /// The address that clients are told to connect to, where it is not the one listened on
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Where metrics and health are told over HTTP, on this machine only: /metrics, /health/live, /health/ready
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// The node's id: the one that the directory remembers, 1 for a new one
    #[arg(long, value_name = "N")]
    node_id: Option<i32>,
    /// Partitions of topics that are created without a number
    #[arg(long, value_name = "N", default_value_t = 1)]
    default_partitions: i32,
    /// Do not create a topic because a client asks for it
    #[arg(long)]
    no_auto_create: bool,
    /// A setting under the name that Kafka's brokers have for it, such as group.initial.rebalance.delay.ms=3000; `thalweg help
    /// node` lists them
    #[arg(short = 'c', long = "config", value_name = "NAME=VALUE")]
    configs: Vec<String>,
}

/// Serves until SIGTERM or SIGINT, then syncs everything.
pub async fn run(args: ServeArgs, target: &TargetArgs) -> anyhow::Result<()> {
    if args.bootstrap.is_some() {
        return Err(failure(
            Exit::Usage,
            "serve runs a node and talks to none: --bootstrap is for the other commands. --listen HOST:PORT says where it listens",
        ));
    }
    let named = args.data.or_else(|| target.data.clone()).or_else(|| target.directory.clone());
    let data = named.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    let mut config = BrokerConfig {
        data_dir: data.clone(),
        node_id: args.node_id,
        listen: args.listen,
        advertised: args.advertise,
        metrics_listen: args.metrics,
        default_partitions: args.default_partitions,
        auto_create_topics: !args.no_auto_create,
        ..BrokerConfig::default()
    };
    for setting in &args.configs {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(failure(Exit::Usage, format!("--config {setting}: it must be NAME=VALUE")));
        };
        config.set(name, value).map_err(|error| wrong_setting(name, error, &data))?;
    }
    // Before the broker, so that no signal is missed while it recovers.
    let mut signals = Signals::new()?;
    let started = std::time::Instant::now();
    let metrics = config.metrics_listen.clone();
    let started_broker = Broker::start(config).await;
    let broker = started_broker.map_err(|error| explain_start(error, &data, metrics.as_ref()))?;
    let address = broker.addresses().first().map(ToString::to_string).unwrap_or_default();
    tracing::info!(data = %data.display(), took_ms = started.elapsed().as_millis() as u64, "ready on {address}");
    if let Some(address) = broker.metrics_address() {
        tracing::info!("metrics at http://{address}/metrics");
    }
    let signal = signals.next().await;
    tracing::info!("{signal}: closing; a second signal ends at once, and the next start recovers");
    tokio::select! {
        closed = broker.shutdown() => {
            closed.with_context(|| format!("cannot close the log in {} in order", data.display()))?;
        }
        signal = signals.next() => {
            return Err(failure(Exit::Failed, format!("{signal} again: ended before everything was closed")));
        }
    }
    tracing::info!("everything is synced");
    Ok(())
}

/// Offers the name that was probably meant, or the list of all.
fn wrong_setting(name: &str, error: thalweg_broker::Error, data: &Path) -> anyhow::Error {
    let known = BrokerConfig::settings();
    if known.contains_key(name) {
        return explain(error, data);
    }
    let meant = did_you_mean(name, known.keys().copied());
    failure(Exit::Usage, format!("{error}{meant}. `thalweg help node` lists all of them"))
}

/// Says what keeps a broker from starting on `data`, and what to do about it.
pub fn explain(error: thalweg_broker::Error, data: &Path) -> anyhow::Error {
    explain_start(error, data, None)
}

/// As [`explain`], of a broker that was to tell its metrics at this address.
fn explain_start(error: thalweg_broker::Error, data: &Path, metrics: Option<&String>) -> anyhow::Error {
    use thalweg_broker::Error;
    use thalweg_storage::Error as Storage;
    let shown = data.display();
    match &error {
        Error::Listen { address, source } if source.kind() == std::io::ErrorKind::AddrInUse => {
            let option = if metrics == Some(address) { "--metrics" } else { "--listen" };
            let who = match thalweg_storage::DataDirectory::holder(data) {
                Ok(Some(holder)) => {
                    format!("another program, perhaps the node that holds {shown} (process {})", holder.pid)
                }
                _ => "another program".to_owned(),
            };
            failure(
                Exit::Taken,
                format!(
                    "{address} is taken by {who}. Stop it, or listen elsewhere: {option} HOST:PORT (port 0 takes a free one)"
                ),
            )
        }
        Error::Config { name, reason } if option_of(name).is_some() => {
            failure(Exit::Usage, format!("{}: {reason}", option_of(name).unwrap_or(name)))
        }
        Error::Listen { .. }
        | Error::ListenAddress { .. }
        | Error::Config { .. }
        | Error::Setting { .. }
        | Error::NodeId { .. } => failure(Exit::Usage, error.to_string()),
        Error::Storage(Storage::DirectoryHeld { address, .. }) => {
            let other = "or name another directory with --data DIR";
            let advice = match address {
                Some(address) => format!(
                    "One node at a time: stop it, {other}. Other commands than serve reach that node with --data {shown} or \
                     --bootstrap {address}"
                ),
                None => format!("It listens on no port: wait until it ends, {other}"),
            };
            failure(Exit::Taken, format!("{error}. {advice}"))
        }
        Error::Storage(Storage::NewerFormat { .. }) => failure(
            Exit::Failed,
            format!("{error}. Nothing was changed; use the Thalweg that wrote {shown}, or a newer one"),
        ),
        Error::Storage(Storage::ForeignDirectory { .. } | Storage::NotADataDirectory { .. }) => failure(
            Exit::Failed,
            format!("{error}. Nothing was changed; name another directory with --data DIR"),
        ),
        _ => anyhow::Error::new(error).context(format!("cannot open the log in {shown}")),
    }
}

/// The option that sets this field of [`BrokerConfig`].
fn option_of(field: &str) -> Option<&'static str> {
    let options = [
        ("metrics_listen", "--metrics"),
        ("advertised", "--advertise"),
        ("node_id", "--node-id"),
        ("default_partitions", "--default-partitions"),
    ];
    options.into_iter().find(|(known, _)| *known == field).map(|(_, option)| option)
}
