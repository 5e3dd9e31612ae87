//! DescribeAcls, CreateAcls and DeleteAcls: a node keeps no access-control lists, and says so as Kafka does without an
//! authorizer. Who may do what is decided by its [`Gate`](crate::Gate).

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::create_acls::{AclCreationResult, CreateAclsRequest, CreateAclsResponse};
use thalweg_protocol::messages::delete_acls::{
    DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse,
};
use thalweg_protocol::messages::describe_acls::DescribeAclsResponse;

use crate::error::Refusal;

/// What every request is answered that may be made at all.
pub(crate) fn none() -> Refusal {
    Refusal::new(ErrorCode::SecurityDisabled, "this node keeps no access-control lists")
}

/// The answer that refuses to tell.
pub(crate) fn refuse_describe(refusal: Refusal) -> DescribeAclsResponse {
    DescribeAclsResponse {
        error_code: refusal.code.code(),
        error_message: refusal.message.map(ByteString::from),
        ..Default::default()
    }
}

/// The answer that refuses every creation.
pub(crate) fn refuse_create(request: &CreateAclsRequest, refusal: &Refusal) -> CreateAclsResponse {
    let result = AclCreationResult {
        error_code: refusal.code.code(),
        error_message: refusal.message.clone().map(ByteString::from),
    };
    CreateAclsResponse { results: vec![result; request.creations.len()], ..Default::default() }
}

/// The answer that refuses every deletion.
pub(crate) fn refuse_delete(request: &DeleteAclsRequest, refusal: &Refusal) -> DeleteAclsResponse {
    let result = DeleteAclsFilterResult {
        error_code: refusal.code.code(),
        error_message: refusal.message.clone().map(ByteString::from),
        matching_acls: Vec::new(),
    };
    DeleteAclsResponse { filter_results: vec![result; request.filters.len()], ..Default::default() }
}
