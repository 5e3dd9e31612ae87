//! The coordinator of one transactional id.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::end_txn::{EndTxnRequest, EndTxnResponse};
use thalweg_protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use super::State;

/// Where the transactional id is.
pub(super) struct Transactional {
    id: i64,
    epoch: i16,
    /// The epoch before, if its owner raised it.
    last_epoch: Option<i16>,
    pub(super) is_open: bool,
    /// How the last transaction ended.
    committed: Option<bool>,
}

impl State {
    pub(super) fn init_producer(
        &mut self,
        request: &InitProducerIdRequest,
        code: i16,
    ) -> InitProducerIdResponse {
        let refused = |code| InitProducerIdResponse { error_code: code, ..InitProducerIdResponse::default() };
        if code != 0 {
            return refused(code);
        }
        let given = (request.producer_id >= 0).then_some((request.producer_id, request.producer_epoch));
        let fresh = self.next_producer_id;
        let (producer_id, producer_epoch) = match (&mut self.transactional, &request.transactional_id) {
            (_, None) => {
                self.next_producer_id += 1;
                (fresh, 0)
            }
            (none @ None, Some(_)) => {
                self.next_producer_id += 1;
                let known =
                    Transactional { id: fresh, epoch: 0, last_epoch: None, is_open: false, committed: None };
                *none = Some(known);
                (fresh, 0)
            }
            (Some(known), Some(_)) => {
                let is_repeated = given.is_some_and(|(id, epoch)| {
                    id == known.id && Some(epoch) == known.last_epoch && !known.is_open
                });
                if given.is_some_and(|given| given != (known.id, known.epoch)) && !is_repeated {
                    return refused(ErrorCode::ProducerFenced.code());
                }
                if known.is_open {
                    // Aborted under an epoch that nobody has, whoever asks; then they have to ask again.
                    known.is_open = false;
                    known.epoch += 1;
                    known.last_epoch = None;
                    known.committed = Some(false);
                    self.ended.push(false);
                    return refused(ErrorCode::ConcurrentTransactions.code());
                }
                if !is_repeated {
                    known.last_epoch = given.map(|_| known.epoch);
                    known.epoch += 1;
                }
                (known.id, known.epoch)
            }
        };
        InitProducerIdResponse { producer_id, producer_epoch, ..InitProducerIdResponse::default() }
    }

    pub(super) fn end_transaction(&mut self, request: &EndTxnRequest, code: i16) -> EndTxnResponse {
        let code = if code == 0 { self.end(request) } else { code };
        let mut response = EndTxnResponse { error_code: code, ..EndTxnResponse::default() };
        if let (0, 2.., Some(known)) = (code, self.transaction_version, &self.transactional) {
            response.producer_id = known.id;
            response.producer_epoch = known.epoch;
        }
        response
    }

    fn end(&mut self, request: &EndTxnRequest) -> i16 {
        let known = self.transactional.as_mut().expect("it was initialised");
        let raises_epoch = self.transaction_version >= 2;
        let is_current = (request.producer_id, request.producer_epoch) == (known.id, known.epoch);
        if is_current && known.is_open {
            known.is_open = false;
            known.committed = Some(request.committed);
            if raises_epoch {
                known.last_epoch = Some(known.epoch);
                known.epoch += 1;
            }
            self.ended.push(request.committed);
            return 0;
        }
        // The same end again is answered like the first time.
        let is_repeated = match raises_epoch {
            true => !known.is_open && Some(request.producer_epoch) == known.last_epoch,
            false => is_current,
        };
        match is_repeated {
            true if known.committed == Some(request.committed) => 0,
            true => ErrorCode::InvalidTxnState.code(),
            false if is_current => ErrorCode::InvalidTxnState.code(),
            false => ErrorCode::ProducerFenced.code(),
        }
    }
}
