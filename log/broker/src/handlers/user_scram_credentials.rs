//! DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554): nobody logs in here, so that no user has any, and
//! none is taken that nobody could use.

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, AlterUserScramCredentialsResult,
};
use thalweg_protocol::messages::describe_user_scram_credentials::{
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
};

use crate::error::Refusal;

/// Of all users there is nothing to be told; of each that is named, that it has none.
pub(crate) fn describe(
    request: &DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse {
    let mut asked: BTreeMap<&ByteString, usize> = BTreeMap::new();
    for user in request.users.iter().flatten() {
        *asked.entry(&user.name).or_default() += 1;
    }
    let results = asked.into_iter().map(|(user, count)| {
        let refusal = match count {
            1 => Refusal::new(ErrorCode::ResourceNotFound, "the user has no credentials"),
            _ => Refusal::new(ErrorCode::DuplicateResource, "the user occurs more than once in the request"),
        };
        DescribeUserScramCredentialsResult {
            user: user.clone(),
            error_code: refusal.code.code(),
            error_message: refusal.message.map(ByteString::from),
            ..Default::default()
        }
    });
    DescribeUserScramCredentialsResponse {
        error_message: None,
        results: results.collect(),
        ..Default::default()
    }
}

/// The answer that refuses to tell.
pub(crate) fn refuse_describe(code: ErrorCode) -> DescribeUserScramCredentialsResponse {
    DescribeUserScramCredentialsResponse {
        error_code: code.code(),
        error_message: Some(code.message().into()),
        ..Default::default()
    }
}

/// What is not there cannot be deleted, and nothing is set.
pub(crate) fn alter(request: &AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse {
    let sets: BTreeSet<_> = request.upsertions.iter().map(|upsertion| &upsertion.name).collect();
    answer(request, |user| match sets.contains(user) {
        true => Refusal::new(
            ErrorCode::UnsupportedSaslMechanism,
            "this node has no SASL: nobody could log in with the credential",
        ),
        false => Refusal::new(ErrorCode::ResourceNotFound, "the user has no such credential"),
    })
}

/// The answer that refuses every change.
pub(crate) fn refuse_alter(
    request: &AlterUserScramCredentialsRequest,
    code: ErrorCode,
) -> AlterUserScramCredentialsResponse {
    answer(request, |_| code.into())
}

/// One result for each user, as Kafka has it.
fn answer(
    request: &AlterUserScramCredentialsRequest,
    refusal: impl Fn(&ByteString) -> Refusal,
) -> AlterUserScramCredentialsResponse {
    let deleted = request.deletions.iter().map(|deletion| &deletion.name);
    let set = request.upsertions.iter().map(|upsertion| &upsertion.name);
    let users: BTreeSet<_> = deleted.chain(set).collect();
    let results = users.into_iter().map(|user| {
        let refusal = refusal(user);
        AlterUserScramCredentialsResult {
            user: user.clone(),
            error_code: refusal.code.code(),
            error_message: refusal.message.map(ByteString::from),
        }
    });
    AlterUserScramCredentialsResponse { results: results.collect(), ..Default::default() }
}
