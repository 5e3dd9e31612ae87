//! The end of a transaction.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::end_txn::EndTxnRequest;
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId};

use super::super::queue::Identity;
use super::{END_IMPLICIT, Phase, Transaction};
use crate::error::{Error, ErrorKind, Result};

/// A transaction that is being ended, closed to records. Dropped before its time, for the caller has cancelled the
/// call, it leaves the transaction where it then is: as before, as long as the coordinator has not been asked.
pub(in crate::producer) struct Ending<'a> {
    transaction: &'a Transaction,
    commit: bool,
    /// Why the transaction could only be aborted from the beginning.
    failure: Option<Arc<Error>>,
    /// Whether the coordinator may have ended the transaction without our knowing.
    is_ambiguous: bool,
}

/// What the coordinator answered to the end of a transaction.
enum Ended {
    Done(Option<Identity>),
    /// An answer that says nothing, or none.
    Maybe(Error),
    /// Nothing has happened.
    NotYet(Error),
    Refused(Error),
}

impl Transaction {
    /// Closes the transaction to records, before it is ended.
    pub(in crate::producer) fn start_ending(&self, commit: bool) -> Result<Ending<'_>> {
        let mut state = self.state.lock();
        let failure = match &state.phase {
            Phase::Open => None,
            Phase::Failed(source) if !commit => Some(Arc::clone(source)),
            phase => {
                let operation = if commit { "commit_transaction" } else { "abort_transaction" };
                return Err(self.misfit(operation, phase));
            }
        };
        state.phase = Phase::Ending;
        Ok(Ending { transaction: self, commit, failure, is_ambiguous: false })
    }
}

impl Ending<'_> {
    /// Ends the transaction; returns the identity for the next one, if it changes.
    pub(in crate::producer) async fn end(mut self) -> Result<Option<Identity>> {
        let transaction = self.transaction;
        let (identity, is_implicit, has_started) = {
            let state = transaction.state.lock();
            (state.identity, state.is_implicit, state.has_started)
        };
        let Some(identity) = identity else {
            return Err(Error::Misuse { operation: "end", advice: "call init_transactions first" });
        };
        let mut next = None;
        if has_started {
            next = self.end_started(identity, is_implicit).await?;
        }
        // The batches that an abort has given up have left a gap in the sequence numbers, which a newer epoch closes:
        // until there is one, no transaction begins. Ending the transaction has raised it already under KIP-890.
        let must_init = !self.commit && has_started && next.is_none();
        {
            let mut state = transaction.state.lock();
            state.phase = if must_init { Phase::New } else { Phase::Ready };
            state.identity = next.or(Some(identity));
        }
        if must_init {
            next = Some(transaction.init().await?);
        }
        Ok(next)
    }

    async fn end_started(&mut self, identity: Identity, is_implicit: bool) -> Result<Option<Identity>> {
        let mut retry = self.transaction.coordinator.cluster().retry("ending a transaction");
        loop {
            let error = match self.end_once(identity, is_implicit).await {
                Ended::Done(next) => return Ok(next),
                Ended::Maybe(error) | Ended::NotYet(error) => error,
                Ended::Refused(error) => return Err(self.refused(error)),
            };
            if let Err(error) = retry.pause(error).await {
                return Err(self.given_up(error));
            }
        }
    }

    async fn end_once(&mut self, identity: Identity, is_implicit: bool) -> Ended {
        let coordinator = &self.transaction.coordinator;
        let node = match coordinator.node().await {
            Ok(node) => node,
            Err(error) if error.kind() == ErrorKind::Retry => return Ended::NotYet(error),
            Err(error) => return Ended::Refused(error),
        };
        let request = EndTxnRequest {
            transactional_id: ByteString::from(self.transaction.id.as_str()),
            producer_id: identity.id.0,
            producer_epoch: identity.epoch.0,
            committed: self.commit,
        };
        let versions = match is_implicit {
            true => END_IMPLICIT..=*EndTxnRequest::VERSIONS.end(),
            false => *EndTxnRequest::VERSIONS.start()..=(END_IMPLICIT - 1),
        };
        let was_ambiguous = std::mem::replace(&mut self.is_ambiguous, true);
        let response = match node.call_within(request, versions, Duration::ZERO).await {
            Ok(response) => response,
            Err(error @ Error::UnsupportedVersion { .. }) => {
                self.is_ambiguous = was_ambiguous;
                return Ended::Refused(error);
            }
            Err(error) => {
                coordinator.forget();
                return Ended::Maybe(error);
            }
        };
        let code = ErrorCode::from(response.error_code);
        if let ErrorCode::UnknownServerError | ErrorCode::RequestTimedOut | ErrorCode::NetworkException = code
        {
            return Ended::Maybe(coordinator.refused(ApiKey::EndTxn, code));
        }
        self.is_ambiguous = was_ambiguous;
        match code {
            ErrorCode::None if is_implicit && response.producer_id >= 0 => Ended::Done(Some(Identity {
                id: ProducerId(response.producer_id),
                epoch: ProducerEpoch(response.producer_epoch),
                transactional: true,
            })),
            ErrorCode::None => Ended::Done(None),
            // The coordinator has no transaction: an abort has what it wants.
            ErrorCode::InvalidTxnState if !self.commit && !is_implicit => Ended::Done(None),
            code if code.is_retriable() => Ended::NotYet(coordinator.refused(ApiKey::EndTxn, code)),
            code => Ended::Refused(coordinator.refused(ApiKey::EndTxn, code)),
        }
    }

    /// There is no time for another attempt.
    fn given_up(&mut self, error: Error) -> Error {
        if self.is_ambiguous {
            return self.outcome_unknown(error);
        }
        if !self.commit {
            self.failure.get_or_insert_with(|| Arc::new(error.clone()));
        }
        error
    }

    /// What a final refusal means: after an attempt without an answer it may be the answer to a success.
    fn refused(&mut self, error: Error) -> Error {
        if error.kind() == ErrorKind::Fenced {
            self.transaction.state.lock().phase = Phase::Fenced;
            return self.transaction.fenced();
        }
        if self.is_ambiguous {
            return self.outcome_unknown(error);
        }
        let source = Arc::new(error);
        self.transaction.state.lock().phase = Phase::Failed(Arc::clone(&source));
        Error::TransactionFailed { source }
    }

    fn outcome_unknown(&self, error: Error) -> Error {
        let (transactional_id, source) = (self.transaction.id.clone(), Arc::new(error));
        Error::OutcomeUnknown { transactional_id, commit: self.commit, source }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.transaction.state.lock();
        state.phase = match (&state.phase, self.is_ambiguous, self.commit) {
            (Phase::Ending | Phase::Failed(_), true, _) => Phase::Unknown,
            // Nothing has happened: the end can be asked for again.
            (Phase::Ending, false, true) => Phase::Open,
            // An abort has given up batches already: a commit would be one of the others only.
            (Phase::Ending, false, false) => {
                Phase::Failed(self.failure.take().unwrap_or_else(|| Arc::new(Error::Aborted)))
            }
            _ => return,
        };
    }
}
