//! The log's catalog: every topic is a table, looked up when a statement names it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytestring::ByteString;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result as DataFusionResult, exec_err};
use datafusion::logical_expr::TableType;
use parking_lot::RwLock;
use thalweg_client::Client;

use crate::config::SqlConfig;
use crate::error::Result;
use crate::format::{Column, ColumnType, Format, Inferred, Origin, TableDefinition, infer};
use crate::scan::{Sample, TopicTable, sample};
use crate::statement_context::Snapshot;

/// The name of the catalog with the log in it, and of its one schema.
pub(crate) const CATALOG: &str = "thalweg";
/// The name of the schema that the topics are in.
pub(crate) const SCHEMA: &str = "public";

/// The longest name that a topic can have.
const TOPIC_NAME_LIMIT: usize = 249;

/// The catalog: one schema.
#[derive(Debug)]
pub(crate) struct LogCatalog {
    schema: Arc<LogSchema>,
}

/// The schema: the tables that were created, and a table for every topic.
pub(crate) struct LogSchema {
    client: Client,
    config: SqlConfig,
    /// What `CREATE` put here, by name. A created table hides a topic of the same name.
    tables: RwLock<HashMap<String, Arc<dyn TableProvider>>>,
}

impl LogCatalog {
    pub(crate) fn new(schema: Arc<LogSchema>) -> Self {
        Self { schema }
    }
}

impl CatalogProvider for LogCatalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| Arc::clone(&self.schema) as _)
    }
}

impl LogSchema {
    pub(crate) fn new(client: Client, config: SqlConfig) -> Self {
        Self { client, config, tables: RwLock::default() }
    }

    /// Whether `name` is a table over a topic, declared or not.
    pub(crate) async fn is_topic(&self, name: &str) -> Result<bool> {
        if let Some(table) = self.created(name) {
            return Ok(table.is::<TopicTable>());
        }
        self.has_topic(name).await
    }

    /// Whether `name` is any table.
    pub(crate) async fn is_table(&self, name: &str) -> Result<bool> {
        Ok(self.created(name).is_some() || self.has_topic(name).await?)
    }

    fn created(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.tables.read().get(name).cloned()
    }

    /// Whether the cluster has such a topic. It is not asked for names that no topic can have, such as paths.
    pub(crate) async fn has_topic(&self, name: &str) -> Result<bool> {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > TOPIC_NAME_LIMIT || !name.chars().all(is_legal) {
            return Ok(false);
        }
        let topics = self.client.admin().list_topics().await?;
        Ok(topics.iter().any(|topic| *topic.name == *name))
    }

    /// The names of all tables: the created ones, and the topics that users made.
    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        self.client.admin().list_topics().await?;
        Ok(self.table_names())
    }

    /// The first records of a topic.
    pub(crate) async fn sample(&self, topic: &ByteString) -> Result<Sample> {
        let snapshot = Snapshot::take(&self.client, topic).await?;
        Ok(sample(&self.client, topic, &snapshot, &self.config).await?)
    }

    /// A table over a topic.
    pub(crate) fn topic_table(&self, definition: TableDefinition) -> TopicTable {
        TopicTable::new(self.client.clone(), self.config.clone(), definition)
    }

    /// A table over a topic that nobody declared.
    async fn infer(&self, topic: &ByteString) -> Result<TopicTable> {
        let sample = self.sample(topic).await?;
        let whole = |column_type| vec![Column::new("value", column_type)];
        let (format, columns) = match infer(sample.values()) {
            Inferred::Json(columns) => (Format::Json, columns),
            Inferred::Text => (Format::Text, whole(ColumnType::Text)),
            Inferred::Bytes => (Format::Bytes, whole(ColumnType::Bytes)),
        };
        Ok(self.topic_table(TableDefinition {
            topic: topic.clone(),
            format,
            key: sample.key_format(),
            columns: columns.into_iter().filter(|column| !is_hidden(&column.name)).collect(),
            origin: Origin::Inferred { records: sample.len(), partitions: sample.partitions },
        }))
    }
}

/// Whether a key of JSON objects has the name of a hidden column, which hides it.
fn is_hidden(name: &str) -> bool {
    crate::hidden::HiddenColumn::of_name(name).is_some()
}

impl fmt::Debug for LogSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSchema").field("tables", &self.tables.read().keys()).finish_non_exhaustive()
    }
}

#[async_trait]
impl SchemaProvider for LogSchema {
    /// What was created, and the topics that are known: ask [`LogSchema::names`] to learn of new ones.
    fn table_names(&self) -> Vec<String> {
        let metadata = self.client.metadata();
        let topics = metadata.topics().into_iter().filter(|topic| !topic.is_internal);
        let mut names: Vec<String> = topics.map(|topic| topic.name.to_string()).collect();
        names.extend(self.tables.read().keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.created(name) {
            return Ok(Some(table));
        }
        if !self.has_topic(name).await? {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.infer(&name.into()).await?)))
    }

    async fn table_type(&self, name: &str) -> DataFusionResult<Option<TableType>> {
        if let Some(table) = self.created(name) {
            return Ok(Some(table.table_type()));
        }
        Ok(self.has_topic(name).await?.then_some(TableType::Base))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        if self.table_exist(&name) {
            return exec_err!("table `{name}` exists already");
        }
        Ok(self.tables.write().insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        Ok(self.tables.write().remove(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.read().contains_key(name)
    }
}
