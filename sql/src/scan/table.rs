//! A topic as a table of DataFusion.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use thalweg_client::{Client, Isolation, OffsetSpec};
use thalweg_protocol::{Offset, TopicPartition};

use super::bounds::Bounds;
use super::exec::TopicScanExec;
use super::reader::Extent;
use crate::config::SqlConfig;
use crate::error::Result;
use crate::format::{Origin, TableDefinition};
use crate::hidden::HiddenColumn;
use crate::statement_context::{Notice, Snapshot, StatementContext};

/// A table over a topic: its columns, and behind them the hidden ones.
pub(crate) struct TopicTable {
    client: Client,
    config: SqlConfig,
    definition: Arc<TableDefinition>,
    schema: SchemaRef,
}

impl TopicTable {
    pub(crate) fn new(client: Client, config: SqlConfig, definition: TableDefinition) -> Self {
        let column = |column: &crate::format::Column| {
            Field::new(&column.name, column.column_type.data_type(), column.is_nullable)
        };
        let columns = definition.columns.iter().map(column);
        let hidden = HiddenColumn::ALL.map(|column| column.field(definition.key));
        let schema = Arc::new(Schema::new(columns.chain(hidden).collect::<Vec<_>>()));
        Self { client, config, definition: Arc::new(definition), schema }
    }

    /// What of the snapshot lies within the bounds.
    async fn extents(&self, snapshot: &Snapshot, bounds: &Bounds) -> Result<Vec<Extent>> {
        let mut extents: Vec<Extent> = Vec::new();
        for known in &snapshot.partitions {
            if bounds.partitions.as_ref().is_some_and(|partitions| !partitions.contains(&known.partition)) {
                continue;
            }
            let end = known.end.0.min(bounds.last_offset.saturating_add(1));
            let extent = Extent {
                partition: known.partition,
                start: Offset(known.start.0.max(bounds.first_offset)),
                end: Offset(end),
                is_cut: end < known.end.0,
            };
            if extent.start < extent.end {
                extents.push(extent);
            }
        }
        if let Some(timestamp) = bounds.first_timestamp {
            self.skip_to(timestamp, &mut extents).await?;
        }
        Ok(extents)
    }

    /// Begins each extent at its first record of at least this timestamp: all records before it have smaller ones.
    async fn skip_to(&self, timestamp: i64, extents: &mut Vec<Extent>) -> Result<()> {
        let partition =
            |extent: &Extent| TopicPartition::new(self.definition.topic.clone(), extent.partition);
        let spec = OffsetSpec::Timestamp(timestamp);
        let wanted: Vec<_> = extents.iter().map(|extent| (partition(extent), spec)).collect();
        let found: BTreeMap<_, _> = match wanted.is_empty() {
            true => BTreeMap::new(),
            false => self.client.admin().list_offsets(&wanted, Isolation::ReadCommitted).await?,
        };
        extents.retain_mut(|extent| {
            let first = found.get(&partition(extent)).and_then(|listed| listed.offset);
            if let Some(first) = first {
                extent.start = extent.start.max(first);
            }
            first.is_some() && extent.start < extent.end
        });
        Ok(())
    }
}

impl fmt::Debug for TopicTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicTable").field("definition", &self.definition).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for TopicTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match Bounds::is_bounding(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let context = session.config().get_extension::<StatementContext>();
        let context =
            context.unwrap_or_else(|| Arc::new(StatementContext::new(self.config.undecodable_shown)));
        if let Origin::Inferred { records, partitions } = self.definition.origin {
            let topic = self.definition.topic.clone();
            context.notice(Notice::Inferred { topic, records, partitions });
        }
        let snapshot = context.snapshot(&self.client, &self.definition.topic).await?;
        let extents = self.extents(&snapshot, &Bounds::of(filters)).await?;
        let projection: Vec<usize> = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&projection)?);
        if extents.is_empty() {
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        Ok(Arc::new(TopicScanExec::new(
            self.client.clone(),
            Arc::clone(&self.definition),
            schema,
            projection,
            extents,
            self.config.batch_rows,
            context,
        )))
    }
}
