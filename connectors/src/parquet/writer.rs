//! Writes a directory of Parquet files: each is written under a temporary name and synced; when all are, they are renamed
//! and the directory synced, so that a reader never sees half a file and a power cut takes none back. A directory that is
//! given up leaves nothing: some of the rows must not look like all of them. Whoever is killed leaves hidden files, which the
//! next one to write there removes; it knows them from those of somebody who still writes by their locks.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
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
    closed: Vec<ClosedFile>,
    written: Vec<WrittenFile>,
}

/// A file that is whole and synced, but has not got its name.
struct ClosedFile {
    /// Holds the lock.
    _file: File,
    temporary: PathBuf,
    written: WrittenFile,
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
    /// When the directory cannot be made, or holds Parquet files already: two results would be read as one; or when somebody
    /// writes into it.
    pub fn create(directory: &Path, schema: SchemaRef, most_rows: u64) -> Result<Self, Error> {
        let was_made = !directory.is_dir();
        fs::create_dir_all(directory).map_err(Error::file("create", directory))?;
        for entry in fs::read_dir(directory).map_err(Error::file("read", directory))? {
            let path = entry.map_err(Error::file("read", directory))?.path();
            if Self::is_left_over(path.file_name().unwrap_or_default()) {
                remove_left_over(&path)?;
            }
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
            closed: Vec::new(),
            written: Vec::new(),
        })
    }

    /// Whether a file of this name is one that was never finished.
    pub fn is_left_over(name: &OsStr) -> bool {
        let part = name.to_str().and_then(|name| name.strip_prefix(".part-")?.strip_suffix(".parquet.tmp"));
        part.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()))
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
                    let file = OpenFile::create(&self.directory, self.closed.len(), &self.schema)?;
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

    /// Completes the last file, gives all of them their names, and returns them. An empty result leaves one file with the
    /// schema and no rows.
    ///
    /// # Errors
    /// As [`ParquetDirectory::write`].
    pub fn finish(mut self) -> Result<Vec<WrittenFile>, Error> {
        if self.open.is_none() && self.closed.is_empty() {
            self.open = Some(OpenFile::create(&self.directory, 0, &self.schema)?);
        }
        self.roll()?;
        for closed in &self.closed {
            let rename = fs::rename(&closed.temporary, &closed.written.path);
            rename.map_err(Error::file("rename", &closed.temporary))?;
            self.written.push(closed.written.clone());
        }
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(Error::file("sync", &self.directory))?;
        self.closed.clear();
        self.was_made = false;
        Ok(std::mem::take(&mut self.written))
    }

    fn roll(&mut self) -> Result<(), Error> {
        if let Some(open) = self.open.take() {
            self.closed.push(open.complete()?);
        }
        Ok(())
    }
}

impl Drop for ParquetDirectory {
    /// What cannot be removed is not worth hiding the first error for.
    fn drop(&mut self) {
        let unfinished = self.closed.drain(..).map(|closed| closed.temporary);
        let unfinished = unfinished.chain(self.open.take().map(|open| open.temporary));
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
        // Never somebody else's.
        let file = File::create_new(&temporary).map_err(Error::file("create", &temporary))?;
        Self::begin(file, target, temporary.clone(), schema).inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }

    fn begin(file: File, target: PathBuf, temporary: PathBuf, schema: &SchemaRef) -> Result<Self, Error> {
        lock(&file, &temporary)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("thalweg ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))
            .map_err(parquet_error(&temporary))?;
        Ok(Self { writer, temporary, target, rows: 0 })
    }

    /// Makes it a file that is whole, or none.
    fn complete(self) -> Result<ClosedFile, Error> {
        let temporary = self.temporary.clone();
        self.close().inspect_err(|_| {
            // The first error is the one to tell.
            let _ = fs::remove_file(&temporary);
        })
    }

    fn close(self) -> Result<ClosedFile, Error> {
        let file = self.writer.into_inner().map_err(parquet_error(&self.temporary))?;
        file.sync_all().map_err(Error::file("sync", &self.temporary))?;
        let bytes = file.metadata().map_err(Error::file("read", &self.temporary))?.len();
        let written = WrittenFile { path: self.target, rows: self.rows, bytes };
        Ok(ClosedFile { _file: file, temporary: self.temporary, written })
    }
}

/// Marks a file as being written, for as long as it is open.
fn lock(file: &File, path: &Path) -> Result<(), Error> {
    file.try_lock().map_err(|error| {
        let source = match error {
            TryLockError::WouldBlock => std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                "somebody writes it at this moment; name another directory",
            ),
            TryLockError::Error(error) => error,
        };
        Error::File { action: "write", path: path.to_path_buf(), source }
    })
}

/// Removes what somebody left who was killed.
fn remove_left_over(path: &Path) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    lock(&file, path)?;
    fs::remove_file(path).map_err(Error::file("remove", path))
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
        assert!(made.join(".part-00001.parquet.tmp").is_file(), "two files are complete");
        assert!(!made.join("part-00000.parquet").exists(), "some of the rows must not look like all of them");
        drop(sink);
        assert!(!made.exists(), "some of the rows must not look like all of them");
        let sink = ParquetDirectory::create(directory.path(), batch(0, 0).schema(), 100).expect("created");
        let files = sink.finish().expect("finished");
        assert_eq!((files.len(), files[0].rows), (1, 0));
        assert_eq!(rows_of(&files[0].path), Vec::<i64>::new());
    }

    #[test]
    fn what_somebody_left_goes_and_what_somebody_writes_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join(".part-00007.parquet.tmp");
        fs::write(&left, "half of it").expect("written");
        let mut sink =
            ParquetDirectory::create(directory.path(), batch(0, 0).schema(), 2).expect("nobody writes there");
        assert!(!left.exists());
        sink.write(&batch(0, 3)).expect("written");
        let error = ParquetDirectory::create(directory.path(), batch(0, 0).schema(), 2).err().expect("taken");
        assert!(error.to_string().contains("somebody writes it at this moment"), "{error}");
        let files = sink.finish().expect("finished");
        assert_eq!(files.iter().map(|file| file.rows).collect::<Vec<_>>(), [2, 1]);
        for (name, expected) in
            [(".part-00007.parquet.tmp", true), ("part-00007.parquet", false), (".part-x.parquet.tmp", false)]
        {
            assert_eq!(ParquetDirectory::is_left_over(OsStr::new(name)), expected, "{name}");
        }
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
