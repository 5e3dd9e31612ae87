//! The results in SQL: joined with the names of the airlines, and as Parquet.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use datafusion::arrow::array::{Array, Float64Array, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;
use thalweg_client::Client;
use thalweg_sql::output::{Format, print};
use thalweg_sql::{Outcome, Session};

use crate::Topics;
use crate::results::{Carrier, Results};

/// Shows the carriers by name, writes the results as Parquet, and reads the same results from the topics and from
/// the files.
pub async fn query(
    client: &Client,
    topics: &Topics,
    airlines: &Path,
    parquet: &Path,
) -> anyhow::Result<Results> {
    let session = Session::new(client.clone());
    // An output topic holds every result of a key; the last one counts.
    let last = |topic: &str| {
        format!(
            "(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY _key ORDER BY _offset DESC) AS recency \
             FROM \"{topic}\") WHERE recency = 1)"
        )
    };
    let began = Instant::now();
    let named = format!(
        "SELECT name, flights, round(mean_dep_delay, 4) AS mean_delay FROM {} AS carriers JOIN '{}' AS airlines \
         ON carriers.carrier = airlines.carrier ORDER BY flights DESC LIMIT 5",
        last(&topics.carriers),
        airlines.display()
    );
    let summary = print(session.execute(&named).await?, Format::Table, &mut std::io::stdout(), began).await?;
    println!("SQL over the output topic, joined with airlines.csv: {summary}.");

    for (topic, columns) in
        [(&topics.carriers, "carrier, flights, mean_dep_delay"), (&topics.days, "origin, day, flights")]
    {
        let directory = parquet.join(topic);
        let copy = format!(
            "COPY (SELECT {columns} FROM {} AS last) TO '{}' (FORMAT parquet)",
            last(topic),
            directory.display()
        );
        let Outcome::Written(written) = session.execute(&copy).await? else {
            bail!("COPY wrote nothing");
        };
        println!("Parquet: {} rows of {topic}, {} bytes.", written.rows, written.bytes);
    }

    let mut results = Results::default();
    let carriers = format!(
        "SELECT carrier, flights, mean_dep_delay FROM '{}/'",
        parquet.join(&topics.carriers).display()
    );
    for batch in rows(&session, &carriers).await? {
        let (names, flights) = (text(&batch, 0)?, integers(&batch, 1)?);
        let means = cast(batch.column(2), &DataType::Float64)?;
        let means = means.as_any().downcast_ref::<Float64Array>().context("a mean is a number")?;
        for row in 0..batch.num_rows() {
            let mean_dep_delay = means.is_valid(row).then(|| means.value(row));
            results.carriers.insert(
                names.value(row).to_string(),
                Carrier { flights: flights.value(row), mean_dep_delay },
            );
        }
    }
    let days = format!("SELECT origin, day, flights FROM {} AS last", last(&topics.days));
    for batch in rows(&session, &days).await? {
        let (origins, days, flights) = (text(&batch, 0)?, integers(&batch, 1)?, integers(&batch, 2)?);
        for row in 0..batch.num_rows() {
            results.days.insert((origins.value(row).to_string(), days.value(row)), flights.value(row));
        }
    }
    Ok(results)
}

async fn rows(session: &Session, sql: &str) -> anyhow::Result<Vec<RecordBatch>> {
    match session.execute(sql).await? {
        Outcome::Rows(mut rows) => Ok(rows.collect().await?),
        _ => bail!("a SELECT gave no rows"),
    }
}

fn text(batch: &RecordBatch, column: usize) -> anyhow::Result<StringArray> {
    let array = cast(batch.column(column), &DataType::Utf8)?;
    Ok(array.as_any().downcast_ref::<StringArray>().context("a text column")?.clone())
}

fn integers(batch: &RecordBatch, column: usize) -> anyhow::Result<Int64Array> {
    let array = cast(batch.column(column), &DataType::Int64)?;
    Ok(array.as_any().downcast_ref::<Int64Array>().context("a column of integers")?.clone())
}
