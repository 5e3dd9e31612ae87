//! Writes a directory of Parquet files: each is written under a temporary name, synced, renamed, and the
//! directory synced, so that a reader never sees half a file and a power cut takes none back. A directory that is
//! given up leaves nothing: some of the rows must not look like all of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::error::Error;

/// A file that is complete and on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// How many rows it holds.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A directory that takes Arrow batches and holds Parquet files. Dropped before it is finished, it removes what it
/// has written.
pub struct ParquetDirectory {
    directory: PathBuf,
    /// Whether the directory itself is to go when this is given up.
    was_made: bool,
    schema: SchemaRef,
    most_rows: u64,
    open: Option<OpenFile>,
    written: Vec<WrittenFile>,
}

struct OpenFile {
    writer: ArrowWriter<File>,
    temporary: PathBuf,
    target: PathBuf,
    rows: u64,
}

/// A row group is closed when its encoded size reaches this: what the writer holds in memory at most, about.
const ROW_GROUP_BYTES: usize = 64 << 20;

impl ParquetDirectory {
    /// Prepares to write batches of `schema` into `directory`, which is created if missing; a file is closed
    /// once it holds `most_rows` rows.
    ///
    /// # Errors
    /// When the directory cannot be made, or holds Parquet files already: two results would be read as one.
    pub fn create(directory: &Path, schema: SchemaRef, most_rows: u64) -> Result<Self, Error> {
        let was_made = !directory.is_dir();
        fs::create_dir_all(directory).map_err(Error::file("create", directory))?;
        for entry in fs::read_dir(directory).map_err(Error::file("read", directory))? {
            let path = entry.map_err(Error::file("read", directory))?.path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                let source = std::io::Error::new(
                    std::io::ErrorKind::AlreadyExists,
                    format!("it already holds {}; name an empty directory", path.display()),
                );
                return Err(Error::File { action: "write into", path: directory.to_path_buf(), source });
            }
        }
        Ok(Self {
            directory: directory.to_path_buf(),
            was_made,
            schema,
            most_rows: most_rows.max(1),
            open: None,
            written: Vec::new(),
        })
    }

    /// Appends the rows of `batch`.
    ///
    /// # Errors
    /// When the disk or the Parquet writer refuses: then nothing but dropping makes sense.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let mut from = 0;
        while from < batch.num_rows() {
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let file = OpenFile::create(&self.directory, self.written.len(), &self.schema)?;
                    self.open.insert(file)
                }
            };
            let room = usize::try_from(self.most_rows - open.rows).unwrap_or(usize::MAX);
            let rows = room.min(batch.num_rows() - from);
            open.writer.write(&batch.slice(from, rows)).map_err(parquet_error(&open.temporary))?;
            open.rows += rows as u64;
            if open.writer.in_progress_size() >= ROW_GROUP_BYTES {
                open.writer.flush().map_err(parquet_error(&open.temporary))?;
            }
            from += rows;
            if open.rows >= self.most_rows {
                self.roll()?;
            }
        }
        Ok(())
    }

    /// Completes the last file and returns all of them. An empty result leaves one file with the schema and
    /// no rows.
    ///
    /// # Errors
    /// As [`ParquetDirectory::write`].
    pub fn finish(mut self) -> Result<Vec<WrittenFile>, Error> {
        if self.open.is_none() && self.written.is_empty() {
            self.open = Some(OpenFile::create(&self.directory, 0, &self.schema)?);
        }
        self.roll()?;
        self.was_made = false;
        Ok(std::mem::take(&mut self.written))
    }

    fn roll(&mut self) -> Result<(), Error> {
        if let Some(open) = self.open.take() {
            self.written.push(open.complete(&self.directory)?);
        }
        Ok(())
    }
}

impl Drop for ParquetDirectory {
    /// What cannot be removed is not worth hiding the first error for.
    fn drop(&mut self) {
        let unfinished = self.open.take().map(|open| open.temporary);
        for path in self.written.drain(..).map(|file| file.path).chain(unfinished) {
            let _ = fs::remove_file(&path);
        }
        if self.was_made {
            // Only an empty one goes.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

impl OpenFile {
    fn create(directory: &Path, number: usize, schema: &SchemaRef) -> Result<Self, Error> {
        let target = directory.join(format!("part-{number:05}.parquet"));
        let temporary = directory.join(format!(".part-{number:05}.parquet.tmp"));
        Self::begin(target, temporary.clone(), schema).inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }

    fn begin(target: PathBuf, temporary: PathBuf, schema: &SchemaRef) -> Result<Self, Error> {
        let file = File::create(&temporary).map_err(Error::file("create", &temporary))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("thalweg ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))
            .map_err(parquet_error(&temporary))?;
        Ok(Self { writer, temporary, target, rows: 0 })
    }

    /// Makes it a file that is whole, or none.
    fn complete(self, directory: &Path) -> Result<WrittenFile, Error> {
        let temporary = self.temporary.clone();
        self.close(directory).inspect_err(|_| {
            // The first error is the one to tell. After the rename there is nothing of this name.
            let _ = fs::remove_file(&temporary);
        })
    }

    fn close(self, directory: &Path) -> Result<WrittenFile, Error> {
        let file = self.writer.into_inner().map_err(parquet_error(&self.temporary))?;
        file.sync_all().map_err(Error::file("sync", &self.temporary))?;
        let bytes = file.metadata().map_err(Error::file("read", &self.temporary))?.len();
        fs::rename(&self.temporary, &self.target).map_err(Error::file("rename", &self.temporary))?;
        File::open(directory).and_then(|d| d.sync_all()).map_err(Error::file("sync", directory))?;
        Ok(WrittenFile { path: self.target, rows: self.rows, bytes })
    }
}

fn parquet_error(path: &Path) -> impl FnOnce(ParquetError) -> Error + '_ {
    move |error| Error::Parquet { path: path.to_path_buf(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    fn batch(from: i64, rows: i64) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let column = Int64Array::from_iter_values(from..from + rows);
        RecordBatch::try_new(schema, vec![Arc::new(column)]).expect("the column fits")
    }

    fn rows_of(path: &Path) -> Vec<i64> {
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("there")).expect("Parquet");
        let mut rows = Vec::new();
        for batch in reader.build().expect("readable") {
            let batch = batch.expect("readable");
            let column = batch.column(0).as_any().downcast_ref::<Int64Array>().expect("an Int64 column");
            rows.extend(column.values());
        }
        rows
    }

    #[test]
    fn rows_come_back_in_files_of_the_size_asked_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("out");
        let mut sink = ParquetDirectory::create(&target, batch(0, 0).schema(), 4).expect("created");
        sink.write(&batch(0, 3)).expect("written");
        sink.write(&batch(3, 7)).expect("written");
        let files = sink.finish().expect("finished");
        assert_eq!(files.iter().map(|file| file.rows).collect::<Vec<_>>(), [4, 4, 2]);
        let rows: Vec<i64> = files.iter().flat_map(|file| rows_of(&file.path)).collect();
        assert_eq!(rows, (0..10).collect::<Vec<_>>());
        let error = ParquetDirectory::create(&target, batch(0, 0).schema(), 4).err().expect("not empty");
        assert!(error.to_string().contains("name an empty directory"), "{error}");
    }

    #[test]
    fn what_is_given_up_leaves_nothing_and_an_empty_result_one_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut sink =
            ParquetDirectory::create(directory.path(), batch(0, 0).schema(), 100).expect("created");
        sink.write(&batch(0, 3)).expect("written");
        drop(sink);
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
        let made = directory.path().join("made");
        let mut sink = ParquetDirectory::create(&made, batch(0, 0).schema(), 4).expect("created");
        sink.write(&batch(0, 9)).expect("written");
        assert!(made.join("part-00001.parquet").is_file(), "two files are complete");
        drop(sink);
        assert!(!made.exists(), "some of the rows must not look like all of them");
        let sink = ParquetDirectory::create(directory.path(), batch(0, 0).schema(), 100).expect("created");
        let files = sink.finish().expect("finished");
        assert_eq!((files.len(), files[0].rows), (1, 0));
        assert_eq!(rows_of(&files[0].path), Vec::<i64>::new());
    }

    #[test]
    fn a_file_that_cannot_be_completed_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut sink =
            ParquetDirectory::create(directory.path(), batch(0, 0).schema(), 100).expect("created");
        sink.write(&batch(0, 3)).expect("written");
        // A directory that is not empty stands where the file is to go.
        let target = directory.path().join("part-00000.parquet");
        fs::create_dir_all(target.join("x")).expect("made");
        sink.finish().expect_err("it cannot be renamed");
        let left: Vec<_> = fs::read_dir(directory.path()).expect("readable").flatten().collect();
        assert_eq!(left.iter().map(fs::DirEntry::path).collect::<Vec<_>>(), [target]);
    }
}
