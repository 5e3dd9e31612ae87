//! What a node without SASL and access-control lists says of them.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, ScramCredentialDeletion, ScramCredentialUpsertion,
};
use thalweg_protocol::messages::create_acls::{AclCreation, CreateAclsRequest};
use thalweg_protocol::messages::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};
use thalweg_protocol::messages::describe_acls::DescribeAclsRequest;
use thalweg_protocol::messages::describe_user_scram_credentials::{
    DescribeUserScramCredentialsRequest, UserName,
};

use crate::grouping::code;
use crate::harness::{Harness, three_ways};

three_ways!(there_are_no_access_control_lists, nobody_has_credentials);

async fn there_are_no_access_control_lists(harness: &Harness) {
    let client = harness.connect().await;
    for version in 1..=3 {
        let described = client.call(DescribeAclsRequest::default(), version).await;
        assert_eq!(code(described.error_code), ErrorCode::SecurityDisabled);
        assert!(described.error_message.is_some() && described.resources.is_empty());
        let creations = vec![AclCreation { resource_name: "t".into(), ..Default::default() }; 2];
        let created = client.call(CreateAclsRequest { creations }, version).await;
        let codes: Vec<_> = created.results.iter().map(|result| code(result.error_code)).collect();
        assert_eq!(codes, [ErrorCode::SecurityDisabled; 2]);
        let filters = vec![DeleteAclsFilter::default(); 2];
        let deleted = client.call(DeleteAclsRequest { filters }, version).await;
        let codes: Vec<_> = deleted.filter_results.iter().map(|result| code(result.error_code)).collect();
        assert_eq!(codes, [ErrorCode::SecurityDisabled; 2]);
    }
}

async fn nobody_has_credentials(harness: &Harness) {
    let client = harness.connect().await;
    let named =
        |names: &[&str]| Some(names.iter().map(|&name| UserName { name: name.into() }).collect::<Vec<_>>());
    for (users, expected) in [
        (None, vec![]),
        (named(&[]), vec![]),
        (named(&["u", "v"]), vec![("u", ErrorCode::ResourceNotFound), ("v", ErrorCode::ResourceNotFound)]),
        (named(&["u", "u"]), vec![("u", ErrorCode::DuplicateResource)]),
    ] {
        let answer = client.call(DescribeUserScramCredentialsRequest { users }, 0).await;
        let results: Vec<_> =
            answer.results.iter().map(|result| (&*result.user, code(result.error_code))).collect();
        assert_eq!((code(answer.error_code), results), (ErrorCode::None, expected));
    }
    let request = AlterUserScramCredentialsRequest {
        deletions: vec![ScramCredentialDeletion { name: "u".into(), mechanism: 1 }],
        upsertions: vec![ScramCredentialUpsertion { name: "v".into(), mechanism: 1, ..Default::default() }],
    };
    let answer = client.call(request, 0).await;
    let results: Vec<_> =
        answer.results.iter().map(|result| (&*result.user, code(result.error_code))).collect();
    let expected = [("u", ErrorCode::ResourceNotFound), ("v", ErrorCode::UnsupportedSaslMechanism)];
    assert_eq!(results, expected);
}
