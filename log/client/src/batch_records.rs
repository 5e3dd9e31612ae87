//! The records of batches that were read, one after the other.

use thalweg_protocol::Scratch;
use thalweg_protocol::record::{BatchHeader, OwnedRecord, OwnedRecordIter, RecordBatch, RecordError};

/// The most bytes that one batch may have decompressed when its records are iterated over.
pub(crate) const DECOMPRESSED_BYTES: usize = 256 << 20;

/// All records of some batches, each keeping its batch alive. After an error nothing more comes.
pub(crate) struct BatchRecords {
    batches: std::vec::IntoIter<RecordBatch>,
    current: Option<(BatchHeader, OwnedRecordIter)>,
    scratch: Scratch,
}

impl BatchRecords {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> Self {
        Self { batches: batches.into_iter(), current: None, scratch: Scratch::new(DECOMPRESSED_BYTES) }
    }

    fn fail(&mut self, header: BatchHeader, source: RecordError) -> (BatchHeader, RecordError) {
        self.batches = Vec::new().into_iter();
        self.current = None;
        (header, source)
    }
}

impl Iterator for BatchRecords {
    /// A record, or what is wrong with a batch that has this header.
    type Item = Result<OwnedRecord, (BatchHeader, RecordError)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((header, records)) = &mut self.current {
                let header = *header;
                match records.next() {
                    Some(Ok(record)) => return Some(Ok(record)),
                    Some(Err(source)) => return Some(Err(self.fail(header, source))),
                    None => {}
                }
            }
            let batch = self.batches.next()?;
            match batch.decode(&mut self.scratch) {
                Ok(decoded) => self.current = Some((*batch.header(), decoded.into_iter())),
                Err(source) => return Some(Err(self.fail(*batch.header(), source))),
            }
        }
    }
}
