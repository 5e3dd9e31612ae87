//! `COPY … TO 'directory' (FORMAT parquet)`.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatch;
use thalweg_connectors::parquet::{ParquetDirectory, WrittenFile};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::outcome::{Rows, Written};

/// How many batches may wait for the disk.
const WAITING_BATCHES: usize = 4;

enum Message {
    Batch(RecordBatch),
    /// All rows have come. Without it they have not, and no file is completed.
    Finish,
}

/// Writes the rows of a query into `directory`, which must be empty or not there.
pub(crate) async fn copy(mut rows: Rows, directory: &Path, rows_per_file: u64) -> Result<Written> {
    let was_there = is_there_and_empty(directory)?;
    let schema = rows.schema().clone();
    let (sender, mut receiver) = mpsc::channel(WAITING_BATCHES);
    let target = directory.to_path_buf();
    let writing = spawn_blocking(move || -> Result<Option<Vec<WrittenFile>>> {
        let mut parquet = ParquetDirectory::create(&target, schema, rows_per_file)?;
        while let Some(message) = receiver.blocking_recv() {
            match message {
                Message::Batch(batch) => parquet.write(&batch)?,
                Message::Finish => return Ok(Some(parquet.finish()?)),
            }
        }
        Ok(None)
    });
    let read = send(&mut rows, sender).await;
    let written = match writing.await {
        Ok(written) => written,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    match (read, written) {
        (Ok(()), Ok(Some(files))) => Ok(Written {
            rows: files.iter().map(|file| file.rows).sum(),
            bytes: files.iter().map(|file| file.bytes).sum(),
            files,
            undecodable: rows.undecodable(),
            notices: rows.notices(),
        }),
        (read, written) => {
            take_back(directory, was_there);
            written.and(read)?;
            unreachable!("the writer ends without an error only after the last row, or when reading failed")
        }
    }
}

/// Sends all rows to the writer. When it has gone, its own result says why.
async fn send(rows: &mut Rows, sender: mpsc::Sender<Message>) -> Result<()> {
    while let Some(batch) = rows.next().await? {
        if sender.send(Message::Batch(batch)).await.is_err() {
            return Ok(());
        }
    }
    // As above.
    let _ = sender.send(Message::Finish).await;
    Ok(())
}

/// Whether the directory exists; an error if something is in it.
fn is_there_and_empty(directory: &Path) -> Result<bool> {
    let failed = |source| Error::File { path: directory.to_path_buf(), source };
    match fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(true),
            Some(_) => Err(Error::NotEmpty { directory: directory.to_path_buf() }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Removes the files of a copy that did not come to its end: a part of the rows must not look like all of them.
/// The directory was empty before. What cannot be removed is not worth hiding the first error for.
fn take_back(directory: &Path, was_there: bool) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let is_parquet = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
    for file in files.filter(is_parquet) {
        let _ = fs::remove_file(file);
    }
    if !was_there {
        let _ = fs::remove_dir(directory);
    }
}
