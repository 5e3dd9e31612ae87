//! Where a producer gets its id and epoch from.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId};

use super::queue::Identity;
use crate::cluster::Cluster;
use crate::error::{Error, ErrorKind, Result};

/// Version 6 is unstable: it is for two-phase commit with other systems.
pub(super) const INIT_VERSIONS: RangeInclusive<i16> = 0..=5;

/// The first version that can raise the epoch of a known producer.
pub(super) const INIT_KNOWN: i16 = 3;

/// An identity for a producer without transactions: any broker gives it.
pub(super) async fn request_identity(cluster: &Arc<Cluster>) -> Result<Identity> {
    let mut retry = cluster.retry("getting a producer id");
    loop {
        let answer = match cluster.any_node().await {
            Ok(node) => node.call_within(init_request(None, 0, None), INIT_VERSIONS, Duration::ZERO).await,
            Err(error) => Err(error),
        };
        let error = match answer.map(|response| identity_of(&response, false)) {
            Ok(Ok(identity)) => return Ok(identity),
            Ok(Err(code)) => {
                let subject = "a producer".to_owned();
                Error::Broker { api: ApiKey::InitProducerId, code, subject, message: None }
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::Retry => retry.pause(error).await?,
            _ => return Err(error),
        }
    }
}

/// A request for an identity; `known` is one whose epoch is to be raised.
pub(super) fn init_request(
    transactional_id: Option<&str>,
    transaction_timeout_ms: i32,
    known: Option<Identity>,
) -> InitProducerIdRequest {
    let none = (ProducerId::NONE, ProducerEpoch::NONE);
    let (id, epoch) = known.map_or(none, |known| (known.id, known.epoch));
    InitProducerIdRequest {
        transactional_id: transactional_id.map(ByteString::from),
        transaction_timeout_ms,
        producer_id: id.0,
        producer_epoch: epoch.0,
        ..InitProducerIdRequest::default()
    }
}

pub(super) fn identity_of(
    response: &InitProducerIdResponse,
    transactional: bool,
) -> Result<Identity, ErrorCode> {
    match ErrorCode::from(response.error_code) {
        ErrorCode::None => Ok(Identity {
            id: ProducerId(response.producer_id),
            epoch: ProducerEpoch(response.producer_epoch),
            transactional,
        }),
        code => Err(code),
    }
}
