//! A count on Arrow batches, as a program of the streams runtime: no typed record is built, and nothing is used
//! that the runtime does not offer to everyone.
//!
//! Two sub-topologies, as in the typed count. The first turns each run of records into a batch of Arrow, groups it
//! by carrier, and sends how many there are of each to the partition of the carrier. The second sums these up, in
//! batches too, into its store.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;
use thalweg_streams::{
    Error, InputRun, Inputs, PartitionChoice, Program, RawRecord, StateStore, StoreSpec, StoredValues,
    Subtopology, TaskContext, TaskId, Topic, Topology,
};

/// The store with the counts: carrier to a big-endian i64.
pub const STORE: &str = "flights-per-carrier";

/// When results come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// For every record: each carrier's counts are 1, 2, 3, …
    PerRecord,
    /// With every commit: the last count of each carrier that changed.
    PerCommit,
}

/// Counts the flights of `input` (JSON objects with a `carrier`) into `output`: carrier to a big-endian i64.
pub fn topology(input: &str, output: &str, emit: Emit) -> Topology {
    let by_carrier = || Topic::repartition("by-carrier");
    let group = |_: TaskId| -> Box<dyn Program> { Box::new(Group::new()) };
    let sum = move |_: TaskId| -> Box<dyn Program> { Box::new(Sum { emit, values: StoredValues::new() }) };
    Topology::new()
        .subtopology(
            Subtopology::new(group)
                .source(Topic::named(input))
                .sink(by_carrier())
                .describe("groups Arrow batches by carrier"),
        )
        .subtopology(
            Subtopology::new(sum)
                .source(by_carrier())
                .store(StoreSpec::key_value(STORE))
                .sink(Topic::named(output))
                .describe("sums the groups"),
        )
}

/// The only input, store and sink of each sub-topology.
const ONLY: usize = 0;

/// How many records a decoder takes at once; runs are as long as the batches of the log.
const BATCH_ROWS: usize = 1 << 20;

/// The groups of a batch: each distinct text with how often it occurs or what its values add up to.
struct Groups {
    keys: StringArray,
    sums: Vec<i64>,
}

impl Groups {
    /// Groups `weights` by `keys`: the kernel that makes a dictionary finds the distinct keys.
    fn of(keys: &StringArray, weights: &Int64Array) -> Result<Self, ArrowError> {
        let dictionary = cast(keys, &DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()))?;
        let dictionary = dictionary.as_dictionary::<Int32Type>();
        let mut sums = vec![0; dictionary.values().len()];
        for (key, weight) in dictionary.keys_iter().zip(weights.values()) {
            if let Some(key) = key {
                sums[key] += weight;
            }
        }
        Ok(Self { keys: dictionary.values().as_string::<i32>().clone(), sums })
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.keys.iter().flatten().map(str::as_bytes).zip(self.sums.iter().copied())
    }
}

struct Group {
    schema: SchemaRef,
    decoder: Decoder,
}

impl Group {
    fn new() -> Self {
        let schema = Arc::new(Schema::new(vec![Field::new("carrier", DataType::Utf8, false)]));
        Self { decoder: decoder(&schema), schema }
    }

    /// The carriers of the records; of those that decode, if some do not.
    fn carriers<'r>(
        &mut self,
        records: impl Iterator<Item = RawRecord<'r>>,
    ) -> Result<Option<ArrayRef>, ArrowError> {
        for (at, record) in records.enumerate() {
            self.decoder.decode(record.value.unwrap_or_default())?;
            // A record must not run on into the next one, or hold more than one object.
            if self.decoder.len() != at + 1 || self.decoder.has_partial_record() {
                return Err(ArrowError::JsonError("the value is not one JSON object".into()));
            }
        }
        Ok(self.decoder.flush()?.map(|batch| Arc::clone(batch.column(0))))
    }

    /// Goes over a run record by record, because one of them did not decode.
    fn pick(&mut self, run: &InputRun<'_>, task: &mut TaskContext) -> Result<Vec<ArrayRef>, Error> {
        let mut carriers = Vec::new();
        for record in run.iter() {
            self.decoder = decoder(&self.schema);
            match self.carriers(std::iter::once(record)) {
                Ok(carrier) => carriers.extend(carrier),
                Err(reason) => task.output.dead_letter(run.input(), &record, &reason)?,
            }
        }
        self.decoder = decoder(&self.schema);
        Ok(carriers)
    }
}

fn decoder(schema: &SchemaRef) -> Decoder {
    let builder = ReaderBuilder::new(Arc::clone(schema)).with_batch_size(BATCH_ROWS);
    builder.build_decoder().expect("text can be decoded")
}

impl Program for Group {
    fn process(&mut self, inputs: &mut Inputs, task: &mut TaskContext) -> Result<(), Error> {
        let Some(run) = inputs.next_in_any_order() else { return Ok(()) };
        let timestamp = run.iter().map(|record| record.timestamp).max().unwrap_or_default();
        let decoded = match self.carriers(run.iter()) {
            Ok(carriers) => carriers.into_iter().collect(),
            Err(_) => self.pick(&run, task)?,
        };
        for carriers in decoded {
            let ones = Int64Array::from_value(1, carriers.len());
            let groups = Groups::of(carriers.as_string(), &ones).map_err(Error::program)?;
            for (carrier, count) in groups.iter() {
                let count = count.to_be_bytes();
                let by_key = PartitionChoice::ByKey;
                task.output.send(ONLY, by_key, timestamp, Some(carrier), Some(&count), []);
            }
        }
        Ok(())
    }
}

struct Sum {
    emit: Emit,
    values: StoredValues,
}

impl Sum {
    /// Adds what the groups say to the store, and sends every count on the way if that is asked for.
    fn add(&mut self, groups: &Groups, timestamp: i64, task: &mut TaskContext) -> Result<(), Error> {
        let store: &mut StateStore = &mut task.stores[ONLY];
        store.multi_get(groups.iter().map(|(carrier, _)| carrier), &mut self.values)?;
        for (at, (carrier, added)) in groups.iter().enumerate() {
            let before = self.values.get(at).map_or(Ok(0), |stored| number(stored.value))?;
            let count = before + added;
            store.put(carrier, timestamp, &count.to_be_bytes());
            if self.emit == Emit::PerRecord {
                for count in before + 1..=count {
                    let (to, count) = (PartitionChoice::ByKey, count.to_be_bytes());
                    task.output.send(ONLY, to, timestamp, Some(carrier), Some(&count), []);
                }
            }
        }
        Ok(())
    }
}

impl Program for Sum {
    fn process(&mut self, inputs: &mut Inputs, task: &mut TaskContext) -> Result<(), Error> {
        let Some(run) = inputs.next_in_any_order() else { return Ok(()) };
        let timestamp = run.iter().map(|record| record.timestamp).max().unwrap_or_default();
        let carriers: Result<StringArray, Error> =
            run.iter().map(|record| Ok(Some(text(record.key.unwrap_or_default())?))).collect();
        let counts: Result<Vec<i64>, Error> =
            run.iter().map(|record| number(record.value.unwrap_or_default())).collect();
        let groups = Groups::of(&carriers?, &Int64Array::from(counts?)).map_err(Error::program)?;
        self.add(&groups, timestamp, task)
    }

    fn before_commit(&mut self, task: &mut TaskContext) -> Result<(), Error> {
        if self.emit == Emit::PerCommit {
            for (carrier, timestamp, count) in task.stores[ONLY].changed() {
                let to = PartitionChoice::ByKey;
                task.output.send(ONLY, to, timestamp, Some(carrier), count, []);
            }
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(Error::program)
}

fn number(bytes: &[u8]) -> Result<i64, Error> {
    bytes.try_into().map(i64::from_be_bytes).map_err(Error::program)
}
