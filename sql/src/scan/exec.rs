//! The plan that reads a topic.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DataFusionResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, Statistics, StatisticsArgs,
};
use futures::stream;
use thalweg_client::Client;
use thalweg_protocol::record::RecordBatch as LogBatch;
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use super::reader::{Extent, ExtentReader};
use crate::error::{Error, Result};
use crate::format::{Format, Origin, RecordDecoder, TableDefinition};
use crate::output::counted;
use crate::statement_context::StatementContext;

/// The most bytes that one batch of the log may have decompressed.
const DECOMPRESSED_BYTES: usize = 256 << 20;

/// A batch of rows is closed when its text reaches this, in bytes. With one more batch of the log it stays far
/// below what Arrow's 32-bit offsets can hold.
const BATCH_TEXT_BYTES: usize = 64 << 20;

/// Reads stretches of a topic's partitions, each as a partition of its own.
pub(super) struct TopicScanExec {
    client: Client,
    definition: Arc<TableDefinition>,
    projection: Vec<usize>,
    extents: Vec<Extent>,
    batch_rows: usize,
    context: Arc<StatementContext>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TopicScanExec {
    pub(super) fn new(
        client: Client,
        definition: Arc<TableDefinition>,
        schema: SchemaRef,
        projection: Vec<usize>,
        extents: Vec<Extent>,
        batch_rows: usize,
        context: Arc<StatementContext>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(extents.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Self {
            client,
            definition,
            projection,
            extents,
            batch_rows,
            context,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl fmt::Debug for TopicScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicScanExec")
            .field("topic", &self.definition.topic)
            .field("extents", &self.extents)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for TopicScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableDefinition { topic, format: encoding, origin, .. } = &*self.definition;
        let encoding = match encoding {
            Format::Json => "json",
            Format::Text => "text",
            Format::Bytes => "bytes",
        };
        let schema = self.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let extents: Vec<String> = self
            .extents
            .iter()
            .map(|extent| format!("{}:{}..{}", extent.partition, extent.start, extent.end))
            .collect();
        let (columns, extents) = (columns.join(", "), extents.join(", "));
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(
                    f,
                    "TopicScanExec: topic={topic}, format={encoding}, offsets=[{extents}], columns=[{columns}]"
                )?;
                match origin {
                    Origin::Declared => Ok(()),
                    Origin::Inferred { records, .. } => {
                        write!(f, ", inferred from {}", counted(*records as u64, "record"))
                    }
                }
            }
            DisplayFormatType::TreeRender => writeln!(f, "topic={topic}\noffsets={extents}"),
        }
    }
}

impl ExecutionPlan for TopicScanExec {
    fn name(&self) -> &'static str {
        "TopicScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DataFusionResult<TreeNodeRecursion>,
    ) -> DataFusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a topic's scan has no children") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, at: usize, _: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let Some(extent) = self.extents.get(at).copied() else {
            return internal_err!("the scan has {} partitions, and {at} was asked for", self.extents.len());
        };
        let topic = &self.definition.topic;
        let reader = ExtentReader::new(&self.client, topic, &[extent]).map_err(Error::from)?;
        let scan = PartitionScan {
            reader,
            partition: TopicPartition::new(topic.clone(), extent.partition),
            end: extent.end,
            decoder: RecordDecoder::new(
                Arc::clone(&self.definition),
                self.schema(),
                self.projection.clone(),
                extent.partition,
            ),
            definition: Arc::clone(&self.definition),
            fetched: VecDeque::new(),
            scratch: Scratch::new(DECOMPRESSED_BYTES),
            ready: VecDeque::new(),
            batch_rows: self.batch_rows.max(1),
            context: Arc::clone(&self.context),
            metrics: ScanMetrics::new(&self.metrics, at),
        };
        let batches = stream::try_unfold(scan, |mut scan| async move {
            let batch = scan.next().await.map_err(DataFusionError::from)?;
            Ok(batch.map(|batch| (batch, scan)))
        });
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches))))
    }

    /// How many rows there are at most: enough to tell which side of a join is the small one.
    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> DataFusionResult<Arc<Statistics>> {
        let offsets = |extent: &Extent| usize::try_from(extent.end.0 - extent.start.0).unwrap_or_default();
        let rows = match args.partition() {
            Some(partition) => self.extents.get(partition).map_or(0, offsets),
            None => self.extents.iter().map(offsets).sum(),
        };
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Arc::new(unknown.with_num_rows(Precision::Inexact(rows))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

struct ScanMetrics {
    baseline: BaselineMetrics,
    bytes_read: Count,
    batches_read: Count,
    undecodable: Count,
}

impl ScanMetrics {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            baseline: BaselineMetrics::new(metrics, partition),
            bytes_read: counter("bytes_read"),
            batches_read: counter("batches_read"),
            undecodable: counter("undecodable"),
        }
    }
}

/// The scan of one partition.
struct PartitionScan {
    reader: ExtentReader,
    partition: TopicPartition,
    end: Offset,
    definition: Arc<TableDefinition>,
    decoder: RecordDecoder,
    /// What was fetched and not yet decoded: batches, each with the offset from which it counts.
    fetched: VecDeque<(Offset, LogBatch)>,
    scratch: Scratch,
    ready: VecDeque<RecordBatch>,
    batch_rows: usize,
    context: Arc<StatementContext>,
    metrics: ScanMetrics,
}

impl PartitionScan {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch.record_output(&self.metrics.baseline)));
            }
            if let Some((position, batch)) = self.fetched.pop_front() {
                self.decode(position, &batch)?;
                if self.decoder.rows() >= self.batch_rows || self.decoder.variable_bytes() >= BATCH_TEXT_BYTES
                {
                    self.close_batch()?;
                }
                continue;
            }
            match self.reader.next().await? {
                Some(fetched) => {
                    for fetched in fetched {
                        let position = fetched.position;
                        self.fetched.extend(fetched.batches.into_iter().map(|batch| (position, batch)));
                    }
                }
                None if self.decoder.rows() > 0 => self.close_batch()?,
                None => return Ok(None),
            }
        }
    }

    /// Decodes the records of a batch that lie in the extent.
    fn decode(&mut self, position: Offset, batch: &LogBatch) -> Result<()> {
        let _timer = self.metrics.baseline.elapsed_compute().timer();
        let size = batch.size_in_bytes();
        self.metrics.bytes_read.add(size);
        self.metrics.batches_read.add(1);
        self.context.read.bytes.fetch_add(size as u64, Ordering::Relaxed);
        self.context.read.batches.fetch_add(1, Ordering::Relaxed);
        let damaged = |source| thalweg_client::Error::DamagedBatch {
            partition: self.partition.clone(),
            offset: batch.header().base_offset,
            next_offset: batch.header().next_offset(),
            source,
        };
        let mut records = 0;
        for record in batch.records(&mut self.scratch).map_err(damaged)? {
            let record = record.map_err(damaged)?;
            if record.offset < position {
                continue;
            }
            if record.offset >= self.end {
                break;
            }
            records += 1;
            if let Err(error) = self.decoder.push(&record) {
                self.metrics.undecodable.add(1);
                let TopicPartition { topic, partition } = &self.partition;
                let reason = || error.describe(&self.definition, record.value);
                self.context.undecodable.add(topic, *partition, record.offset.0, reason);
            }
        }
        self.context.read.records.fetch_add(records, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the rows so far ready, in batches of the size that the operators want.
    fn close_batch(&mut self) -> Result<()> {
        let batch = self.decoder.finish().map_err(DataFusionError::from)?;
        let slice = |from| batch.slice(from, self.batch_rows.min(batch.num_rows() - from));
        self.ready.extend((0..batch.num_rows()).step_by(self.batch_rows).map(slice));
        Ok(())
    }
}
