//! What a log knows of the producers that write to it: sequence numbers, epochs and open transactions.

mod snapshot;
mod states;
mod transactions;

pub(crate) use snapshot::{decode as decode_snapshot, encode as encode_snapshot};
pub(crate) use states::{CompletedTransaction, ProducerStates, Remembered, Verdict};
pub(crate) use transactions::UndecidedTransactions;
