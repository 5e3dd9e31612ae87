//! What statements return.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use thalweg_connectors::parquet::WrittenFile;

use crate::error::{Error, Result};
use crate::statement_context::{LogRead, Notice, StatementContext};
use crate::undecodable::Undecodable;

/// What became of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// A query: its rows come as they are computed.
    Rows(Rows),
    /// `COPY … TO`: the rows are in files.
    Written(Written),
    /// `CREATE …`: a table or view is there.
    Created(Created),
    /// Anything else, such as `DROP` or `SET`.
    Done,
}

/// The rows of a query.
pub struct Rows {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    context: Arc<StatementContext>,
}

impl Rows {
    pub(crate) fn new(stream: SendableRecordBatchStream, context: Arc<StatementContext>) -> Self {
        Self { schema: stream.schema(), stream, context }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// What kept the query from going on; nothing more comes then.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.stream.next().await.transpose().map_err(Error::from_datafusion)
    }

    /// All rows that are left.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn collect(&mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The records that did not decode so far; all of them once the last row has come.
    pub fn undecodable(&self) -> Undecodable {
        self.context.undecodable.report()
    }

    /// How much of the log has been read so far.
    pub fn log_read(&self) -> LogRead {
        self.context.read.total()
    }

    /// What the user should know about the statement.
    pub fn notices(&self) -> Vec<Notice> {
        self.context.notices()
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// What `COPY` wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The files, all complete and on disk.
    pub files: Vec<WrittenFile>,
    /// How many rows they hold.
    pub rows: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The records that did not decode and are not in them.
    pub undecodable: Undecodable,
    /// What the user should know about the statement.
    pub notices: Vec<Notice>,
}

/// What `CREATE` made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The name of the table or view.
    pub name: String,
    /// The records that did not decode, where rows of topics were copied into a table.
    pub undecodable: Undecodable,
}
