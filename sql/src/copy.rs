//! `COPY … TO 'directory' (FORMAT parquet)`.

use std::fs;
use std::path::Path;

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

/// Writes the rows of a query into `directory`, which must be empty or not there. A copy that fails, or is dropped,
/// leaves no file.
pub(crate) async fn copy(mut rows: Rows, directory: &Path, rows_per_file: u64) -> Result<Written> {
    check_empty(directory)?;
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

/// An error if something is in the directory that a copy which was killed has not left there.
fn check_empty(directory: &Path) -> Result<()> {
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            let is_left_over = |entry: &fs::DirEntry| ParquetDirectory::is_left_over(&entry.file_name());
            match entries.all(|entry| entry.is_ok_and(|entry| is_left_over(&entry))) {
                true => Ok(()),
                false => Err(Error::NotEmpty { directory: directory.to_path_buf() }),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::File { path: directory.to_path_buf(), source }),
    }
}
