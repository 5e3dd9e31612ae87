//! What the runtime needs of the log.

use thalweg_protocol::TopicPartition;

use crate::error::Error;
use crate::output::OutputTopic;

/// An input offset to commit, with the task's checkpoint as metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedInput {
    pub(crate) partition: TopicPartition,
    /// The offset of the next record to process.
    pub(crate) offset: i64,
    pub(crate) metadata: String,
}

/// The log as a commit sees it: the client's producer, or memory in the test driver. Calls block.
pub(crate) trait TransactionLog {
    /// Hands the records of `topic` to the producer, into the open transaction, and empties the buffers.
    fn send(&mut self, topic: &mut OutputTopic) -> Result<(), Error>;

    /// Waits until everything that was sent is acknowledged.
    fn flush(&mut self) -> Result<(), Error>;

    /// The offsets after the last record of each of `partitions`, committed or not.
    fn ends_of(&mut self, partitions: &[TopicPartition]) -> Result<Vec<i64>, Error>;

    /// Makes the offsets part of the open transaction (without transactions: commits them).
    fn send_offsets(&mut self, offsets: &[CommittedInput]) -> Result<(), Error>;

    /// Commits the open transaction.
    ///
    /// [`Error::UnknownOutcome`] when it was asked for but the answer never came.
    fn end_transaction(&mut self) -> Result<(), Error>;

    /// Makes sure that no transaction of this thread is open: whatever is left of one is finished, as the
    /// coordinator had decided, or aborted.
    fn fence(&mut self) -> Result<(), Error>;

    /// What is committed for these partitions, in their order; waits for transactions that are about to
    /// commit offsets of them.
    fn committed(&mut self, partitions: &[TopicPartition]) -> Result<Vec<Option<CommittedInput>>, Error>;
}
