//! A program that is not the DSL, with public interface only.

use thalweg_streams::testing::{StateAfterCrash, TestDriver};
use thalweg_streams::{
    Error, Inputs, PartitionChoice, Program, StoreSpec, StoredValues, Subtopology, TaskContext, TaskId,
    Topic, Topology,
};

/// Counts keys on raw bytes; every minute of the wall clock it also reports how many records it has seen.
#[derive(Default)]
struct RawCount {
    seen: u64,
    next_report: i64,
    values: StoredValues,
}

const COUNTS: usize = 0;
const OUT: usize = 0;

impl Program for RawCount {
    fn process(&mut self, inputs: &mut Inputs, task: &mut TaskContext) -> Result<(), Error> {
        let Some(run) = inputs.next_in_any_order() else { return Ok(()) };
        self.seen += run.len() as u64;
        for record in run.iter() {
            let key = record.key.unwrap_or(b"none");
            let stored = task.stores[COUNTS].get(key, &mut self.values)?;
            let count = stored.and_then(|stored| stored.value.try_into().ok()).map_or(0, u64::from_be_bytes);
            let count = (count + 1).to_be_bytes();
            task.stores[COUNTS].put(key, record.timestamp, &count);
            let to = PartitionChoice::Number(1);
            task.output.send(OUT, to, record.timestamp, Some(key), Some(&count), record.headers);
        }
        Ok(())
    }

    fn next_punctuation(&self) -> Option<i64> {
        Some(self.next_report)
    }

    fn punctuate(&mut self, now_ms: i64, task: &mut TaskContext) -> Result<(), Error> {
        self.next_report = now_ms + 60_000;
        let to = PartitionChoice::Number(0);
        task.output.send(OUT, to, now_ms, None, Some(&self.seen.to_be_bytes()), []);
        Ok(())
    }

    fn save(&self, checkpoint: &mut Vec<u8>) {
        checkpoint.extend_from_slice(&self.seen.to_be_bytes());
    }

    fn load(&mut self, checkpoint: &[u8]) -> Result<(), Error> {
        self.seen = u64::from_be_bytes(checkpoint.try_into().map_err(Error::program)?);
        Ok(())
    }
}

#[test]
fn a_program_of_ones_own_counts_and_punctuates() {
    let subtopology = Subtopology::new(|_: TaskId| -> Box<dyn Program> { Box::new(RawCount::default()) })
        .source(Topic::named("in"))
        .store(StoreSpec::key_value("counts"))
        .sink(Topic::named("out"));
    let topology = Topology::new().subtopology(subtopology);
    let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 2)]).expect("started");
    let produce = |driver: &mut TestDriver, keys: &[&str]| {
        for key in keys {
            driver.produce("in", Some(key.as_bytes()), None, 0).expect("the topic exists");
        }
        driver.run().expect("processed");
    };
    produce(&mut driver, &["a", "b", "a"]);
    driver.crash(StateAfterCrash::Lost).expect("opened again");
    produce(&mut driver, &["a"]);
    driver.advance_wall_clock(30_000);
    driver.run().expect("processed");
    driver.advance_wall_clock(30_000);
    driver.run().expect("processed");

    let values = |partition: i32| -> Vec<u64> {
        let records = driver.records("out").into_iter().filter(|record| record.partition == partition);
        records
            .map(|record| record.value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_be_bytes))
            .collect()
    };
    assert_eq!(values(1), [1, 1, 2, 3]);
    assert_eq!(values(0), [3, 4, 4], "at the start, after the crash, and a minute later");
}
