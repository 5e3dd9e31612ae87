//! Prints outcomes: as a table for people, as CSV, TSV or JSON lines for programs.

use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::{SortOptions, sort_to_indices};
use arrow::csv::WriterBuilder as CsvWriterBuilder;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder as JsonWriterBuilder;
use arrow::json::writer::LineDelimited;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::common::DataFusionError;
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::outcome::{Outcome, Rows, Written};
use crate::statement_context::Notice;
use crate::undecodable::Undecodable;

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table with borders, once all rows are there; of very many the first.
    #[default]
    Table,
    /// Comma-separated values with a header row; null is empty.
    Csv,
    /// Tab-separated values with a header row; null is empty.
    Tsv,
    /// One JSON object a row; null is `null`.
    Json,
}

impl Format {
    /// The names of the formats.
    pub const NAMES: [&str; 4] = ["table", "csv", "tsv", "json"];
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "table" => Ok(Self::Table),
            "csv" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            "json" => Ok(Self::Json),
            _ => Err(format!("format `{name}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// How many rows a table shows: it is laid out in memory.
const TABLE_ROWS: usize = 10_000;

/// What was printed, and what there is to tell beside it. Displays as the line below a result, such as
/// `3 rows in 0.12 s`.
#[derive(Clone, Debug)]
pub struct Summary {
    what: What,
    /// The time from the beginning of the statement to its last row.
    pub elapsed: Duration,
    /// The records that did not decode.
    pub undecodable: Undecodable,
    /// What the user should know about the statement.
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug)]
enum What {
    Rows { rows: u64, shown: u64 },
    Written { rows: u64, files: usize, bytes: u64 },
    Created { name: String },
    Done,
}

impl Summary {
    /// How many rows the query had or `COPY` wrote; `None` for other statements.
    pub fn rows(&self) -> Option<u64> {
        match self.what {
            What::Rows { rows, .. } | What::Written { rows, .. } => Some(rows),
            What::Created { .. } | What::Done => None,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Rows { rows, shown } => {
                write!(f, "{}", counted(*rows, "row"))?;
                if shown < rows {
                    write!(f, ", of which the first {shown} are shown")?;
                }
            }
            What::Written { rows, files, bytes } => {
                let files = counted(*files as u64, "file");
                write!(f, "wrote {} to {files} ({})", counted(*rows, "row"), counted(*bytes, "byte"))?;
            }
            What::Created { name } => write!(f, "created {name}")?,
            What::Done => f.write_str("done")?,
        }
        write!(f, " in {:.2} s", self.elapsed.as_secs_f64())
    }
}

pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Prints the rows of an outcome to `out`, waiting for them; `began` is when its statement was begun. The
/// [`Summary`] is the caller's to print, beside the rows or below them.
///
/// # Errors
/// What kept the query from going on, and [`Error::Output`].
pub async fn print(
    outcome: Outcome,
    format: Format,
    out: &mut (dyn Write + Send),
    began: Instant,
) -> Result<Summary> {
    print_boxed(outcome, format, out, began).await
}

/// Boxed for the reason that [`Session::run`](crate::Session::run) is: Arrow's writers are compiled here.
#[inline(never)]
fn print_boxed<'o>(
    outcome: Outcome,
    format: Format,
    out: &'o mut (dyn Write + Send),
    began: Instant,
) -> BoxFuture<'o, Result<Summary>> {
    Box::pin(async move {
        let (what, undecodable, notices) = match outcome {
            Outcome::Rows(mut rows) => {
                let (count, shown) = match format {
                    Format::Table => print_table(&mut rows, out).await?,
                    Format::Csv => print_separated(&mut rows, b',', out).await?,
                    Format::Tsv => print_separated(&mut rows, b'\t', out).await?,
                    Format::Json => print_json(&mut rows, out).await?,
                };
                out.flush()?;
                (What::Rows { rows: count, shown }, rows.undecodable(), rows.notices())
            }
            Outcome::Written(written) => {
                let Written { files, rows, bytes, undecodable, notices } = written;
                (What::Written { rows, files: files.len(), bytes }, undecodable, notices)
            }
            Outcome::Created(created) => {
                (What::Created { name: created.name }, created.undecodable, Vec::new())
            }
            Outcome::Done => (What::Done, Undecodable::default(), Vec::new()),
        };
        Ok(Summary { what, elapsed: began.elapsed(), undecodable, notices })
    })
}

async fn print_table(rows: &mut Rows, out: &mut (dyn Write + Send)) -> Result<(u64, u64)> {
    let (mut kept, mut shown, mut count) = (Vec::new(), 0, 0);
    while let Some(batch) = rows.next().await? {
        check_times(&batch)?;
        let kept_rows = batch.num_rows().min(TABLE_ROWS - shown);
        if kept_rows > 0 {
            kept.push(batch.slice(0, kept_rows));
        }
        shown += kept_rows;
        count += batch.num_rows() as u64;
    }
    if !rows.schema().fields().is_empty() {
        let table = pretty_format_batches_with_schema(rows.schema().clone(), &kept).map_err(arrow_error)?;
        writeln!(out, "{table}")?;
    }
    Ok((count, shown as u64))
}

async fn print_separated(rows: &mut Rows, delimiter: u8, out: &mut (dyn Write + Send)) -> Result<(u64, u64)> {
    let mut header = Some(flattened(&RecordBatch::new_empty(rows.schema().clone()))?);
    let mut text = Vec::new();
    let mut count = 0;
    loop {
        let (batch, is_first) = match header.take() {
            Some(header) => (header, true),
            None => match rows.next().await? {
                Some(batch) => (flattened(&batch)?, false),
                None => return Ok((count, count)),
            },
        };
        count += batch.num_rows() as u64;
        // Into memory first: Arrow's writer would make a text of what standard output says.
        let builder = CsvWriterBuilder::new().with_header(is_first).with_delimiter(delimiter);
        builder.build(&mut text).write(&batch).map_err(arrow_error)?;
        out.write_all(&text)?;
        text.clear();
    }
}

/// The batch with nested columns as text, which CSV has no other way for.
fn flattened(batch: &RecordBatch) -> Result<RecordBatch> {
    if !batch.schema().fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(batch.clone());
    }
    let schema = batch.schema();
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if field.data_type().is_nested() {
            fields.push(Field::new(field.name(), DataType::Utf8, true));
            columns.push(Arc::new(as_text(column)?));
        } else {
            fields.push(field.as_ref().clone());
            columns.push(Arc::clone(column));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow_error)
}

fn as_text(column: &ArrayRef) -> Result<StringArray> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options).map_err(arrow_error)?;
    let text = |row: usize| column.is_valid(row).then(|| formatter.value(row).to_string());
    Ok((0..column.len()).map(text).collect())
}

async fn print_json(rows: &mut Rows, out: &mut (dyn Write + Send)) -> Result<(u64, u64)> {
    let mut writer = JsonWriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out);
    let mut count = 0;
    while let Some(batch) = rows.next().await? {
        check_times(&batch)?;
        count += batch.num_rows() as u64;
        writer.write(&batch).map_err(arrow_error)?;
    }
    writer.finish().map_err(arrow_error)?;
    Ok((count, count))
}

/// Arrow's writers put the text of an error in the place of a time that no calendar has.
///
/// # Errors
/// When a column has one.
fn check_times(batch: &RecordBatch) -> Result<()> {
    let options = FormatOptions::default().with_display_error(false);
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if !matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
            continue;
        }
        // The first and the last tell of all.
        let order = sort_to_indices(
            column,
            Some(SortOptions { nulls_first: false, ..SortOptions::default() }),
            Some(1),
        );
        let last = SortOptions { descending: true, nulls_first: false };
        for order in [order, sort_to_indices(column, Some(last), Some(1))] {
            let Some(row) = order.map_err(arrow_error)?.values().first().copied() else { continue };
            let formatter = ArrayFormatter::try_new(column, &options).map_err(arrow_error)?;
            if formatter.value(row as usize).try_to_string().is_err() {
                let name = field.name();
                let reason = format!(
                    "the column `{name}` has a time that no calendar shows; select it as a number: {name}::bigint"
                );
                return Err(Error::Execution(DataFusionError::Execution(reason)));
            }
        }
    }
    Ok(())
}

fn arrow_error(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, source) => Error::Output(source),
        error => Error::Execution(DataFusionError::from(error)),
    }
}
