//! Which log a command works on: a broker, a data directory opened in this process, or the node that holds it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use thalweg_broker::Broker;
use thalweg_client::{Client, ClientConfig, PartitionMetadata, TopicMetadata};
use thalweg_protocol::{NodeId, TopicPartition};
use thalweg_storage::DataDirectory;

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure};
use crate::settings::{BOOTSTRAP, DATA, Settings, key_and_value};

/// The data directory that is meant when none is named.
pub const DEFAULT_DATA: &str = "thalweg-data";

/// Where the log is. With neither, the data directory `thalweg-data` here is meant.
#[derive(Clone, Debug, clap::Args)]
pub struct TargetArgs {
    /// Brokers to talk to, Thalweg's or any Kafka's: HOST:PORT[,HOST:PORT…] [env: THALWEG_BOOTSTRAP]
    #[arg(long, value_name = "HOST:PORT", global = true, conflicts_with = "data")]
    pub bootstrap: Option<String>,
    /// A data directory to open in this process; if a node holds it, the command talks to that node [env: THALWEG_DATA]
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
    /// Settings from this profile of the file $THALWEG_CONFIG, ~/.config/thalweg/config.toml if not given
    /// [env: THALWEG_PROFILE]
    #[arg(long, value_name = "NAME", global = true)]
    profile: Option<String>,
    /// A setting, such as api_timeout_ms=60000; may be repeated [env: THALWEG_API_TIMEOUT_MS and so on]
    #[arg(short = 'X', value_name = "KEY=VALUE", global = true, value_parser = key_and_value)]
    setting: Vec<(String, String)>,
    /// What all that comes to.
    #[arg(skip)]
    settings: Settings,
    /// Two that say where the log is and of which neither goes before the other.
    #[arg(skip)]
    conflict: Option<String>,
    /// The directory that a setting names for a node of one's own.
    #[arg(skip)]
    pub directory: Option<PathBuf>,
}

/// What a directory without a log in it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    IsAnError,
    IsMade,
}

/// An open log.
pub struct Target {
    client: Client,
    /// What runs in this process, if it does.
    broker: Option<Broker>,
}

impl TargetArgs {
    /// What the command line says; where it says nothing, what the environment does, and then the profile.
    ///
    /// # Errors
    /// As [`Settings::gather`].
    pub fn or_environment(&self) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let settings = Settings::gather(self.profile.as_deref(), &self.setting, variable)?;
        let mut target = self.clone();
        for (option, has_it, other) in
            [("--bootstrap", self.bootstrap.is_some(), DATA), ("--data", self.data.is_some(), BOOTSTRAP)]
        {
            if has_it && self.setting.iter().any(|(name, _)| name == other) {
                let reason = format!("{option} and -X {other} both say where the log is. Take one away");
                return Err(failure(Exit::Usage, reason));
            }
        }
        if self.bootstrap.is_none() && self.data.is_none() {
            target.bootstrap = settings.get(BOOTSTRAP).map(str::to_owned);
            target.data = settings.get(DATA).map(PathBuf::from);
            target.conflict = settings.conflict().map(str::to_owned);
        }
        target.directory = settings.directory().map(PathBuf::from);
        target.settings = settings;
        Ok(target)
    }

    /// Connects to the log, opening it in this process where nobody holds it.
    ///
    /// # Errors
    /// When nobody answers, or the directory holds no log or cannot be opened.
    pub async fn open(&self) -> anyhow::Result<Target> {
        self.open_as(Missing::IsAnError).await
    }

    /// As [`TargetArgs::open`], and begins a log where the directory holds none.
    ///
    /// # Errors
    /// When nobody answers, or the directory cannot be opened.
    pub async fn open_or_create(&self) -> anyhow::Result<Target> {
        self.open_as(Missing::IsMade).await
    }

    async fn open_as(&self, missing: Missing) -> anyhow::Result<Target> {
        if let Some(conflict) = &self.conflict {
            let advice =
                "Take one away, or say --bootstrap HOST:PORT or --data DIR, which goes before all of them";
            return Err(failure(Exit::Usage, format!("{conflict}. {advice}")));
        }
        if let Some(bootstrap) = &self.bootstrap {
            return Ok(Target { client: self.connect(bootstrap).await?, broker: None });
        }
        let data = match &self.data {
            Some(data) => data.clone(),
            None if Path::new(DEFAULT_DATA).is_dir() => PathBuf::from(DEFAULT_DATA),
            None => {
                return Err(failure(
                    Exit::Usage,
                    format!(
                        "there is no log to work on: no --bootstrap, no --data, and no directory `{DEFAULT_DATA}` here.\n\
                         Start a node with `thalweg serve`, or name a broker (--bootstrap HOST:PORT) or a directory (--data DIR)"
                    ),
                ));
            }
        };
        if let Some(holder) =
            DataDirectory::holder(&data).with_context(|| format!("cannot look into {}", data.display()))?
        {
            let Some(address) = holder.address else {
                return Err(failure(
                    Exit::Taken,
                    format!(
                        "{} is held by process {}, which does not listen on any port. Wait for it to end, or stop it",
                        data.display(),
                        holder.pid
                    ),
                ));
            };
            return Ok(Target { client: self.connect(&address).await?, broker: None });
        }
        if missing == Missing::IsAnError && !DataDirectory::is_one(&data) {
            return Err(failure(
                Exit::NotFound,
                format!(
                    "there is no log in {0}. Is the path right? `thalweg serve --data {0}` or \
                     `thalweg topic create NAME --data {0}` begins one",
                    data.display()
                ),
            ));
        }
        let broker = Broker::embedded(&data).await.map_err(|error| crate::serve::explain(error, &data))?;
        let config = ClientConfig::with_connector(std::sync::Arc::new(broker.connect()));
        let client = Client::connect(self.settings.apply(config)?).await?;
        Ok(Target { client, broker: Some(broker) })
    }

    async fn connect(&self, bootstrap: &str) -> anyhow::Result<Client> {
        let mut config = ClientConfig::with_bootstrap(bootstrap);
        // A person waits: what does not answer within this time is not there.
        config.connect_timeout_ms = 5_000;
        config.api_timeout_ms = 15_000;
        let mut config_of_start = config.clone();
        (config_of_start.api_timeout_ms, config_of_start.request_timeout_ms) = (5_000, 5_000);
        // A first try with little patience tells a wrong address apart soon.
        Client::connect(self.settings.apply(config_of_start)?).await.map_err(|error| match error {
            thalweg_client::Error::Config { .. } => failure(Exit::Usage, error.to_string()),
            error => failure(
                Exit::Unreachable,
                format!("no broker answers at {bootstrap}: {error}\nIs the address right, and does a node run there? `thalweg serve` starts one"),
            ),
        })?;
        Ok(Client::connect(self.settings.apply(config)?).await?)
    }
}

/// Which partitions of a topic nobody can read or write at present, and why.
pub fn leaderless(topic: &TopicMetadata, is_meant: impl Fn(i32) -> bool) -> Vec<thalweg_client::Error> {
    let without = topic.partitions.iter().filter(|at| at.leader == NodeId::NONE && is_meant(at.partition));
    let error = |at: &PartitionMetadata| thalweg_client::Error::NoLeader {
        partition: TopicPartition::new(topic.name.clone(), at.partition),
        offline: at.offline.clone(),
    };
    without.map(error).collect()
}

/// The topics that a log keeps for itself, Kafka's as well as ours.
const OF_THE_LOG: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

impl Target {
    /// The client of the log.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What is known of `topic`.
    ///
    /// # Errors
    /// When there is no such topic; the error offers one with a similar name.
    pub async fn topic(&self, topic: &str) -> anyhow::Result<TopicMetadata> {
        let mut topics = self.client.admin().list_topics().await?;
        if let Some(at) = topics.iter().position(|known| known.name == topic) {
            return Ok(topics.swap_remove(at));
        }
        let names = topics.iter().filter(|known| !known.is_internal).map(|known| &*known.name);
        let advice = match OF_THE_LOG.contains(&topic) {
            true => "The log makes it for itself when it is needed".to_owned(),
            false => {
                format!("`thalweg topic list` shows them all, `thalweg topic create {topic}` makes it")
            }
        };
        let similar = did_you_mean(topic, names);
        Err(failure(Exit::NotFound, format!("there is no topic `{topic}`{similar}. {advice}")))
    }

    /// How many partitions `topic` has.
    ///
    /// # Errors
    /// As [`Target::topic`].
    pub async fn partitions_of(&self, topic: &str) -> anyhow::Result<i32> {
        Ok(self.topic(topic).await?.partitions.len() as i32)
    }

    /// Closes what was opened: everything that was written is on disk when this returns.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.client);
        if let Some(broker) = self.broker {
            broker.shutdown().await.context("cannot close the log")?;
        }
        Ok(())
    }
}
