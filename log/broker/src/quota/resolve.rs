//! Which quota holds for a client, and with whom it shares it.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_controller::{EntityName, QuotaEntity, Quotas};

/// Whose use is counted together. Those for whom the same default holds each have their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) user: Option<ByteString>,
    pub(super) client_id: Option<ByteString>,
    pub(super) address: Option<ByteString>,
}

/// The quota `key` of a client and its scope: the first that is set, from what is closest to the client on (KIP-55).
pub(super) fn of_client(
    quotas: &BTreeMap<QuotaEntity, Quotas>,
    user: &ByteString,
    client_id: &ByteString,
    key: &str,
) -> Option<(Scope, f64)> {
    let this_user = || Some(EntityName::Named(user.clone()));
    let this_client = || Some(EntityName::Named(client_id.clone()));
    let any = || Some(EntityName::Default);
    let entities = [
        (this_user(), this_client()),
        (this_user(), any()),
        (this_user(), None),
        (any(), this_client()),
        (any(), any()),
        (any(), None),
        (None, this_client()),
        (None, any()),
    ];
    entities.into_iter().find_map(|(by_user, by_client)| {
        let scope = Scope {
            user: by_user.is_some().then(|| user.clone()),
            client_id: by_client.is_some().then(|| client_id.clone()),
            address: None,
        };
        let value = quotas.get(&QuotaEntity { user: by_user, client_id: by_client, ip: None })?.get(key)?;
        Some((scope, value.get()))
    })
}

/// The quota `key` of an address.
pub(super) fn of_address(
    quotas: &BTreeMap<QuotaEntity, Quotas>,
    address: &ByteString,
    key: &str,
) -> Option<(Scope, f64)> {
    [EntityName::Named(address.clone()), EntityName::Default].into_iter().find_map(|ip| {
        let value = quotas.get(&QuotaEntity { ip: Some(ip), ..QuotaEntity::default() })?.get(key)?;
        Some((Scope { address: Some(address.clone()), ..Scope::default() }, value.get()))
    })
}

#[cfg(test)]
mod tests {
    use thalweg_controller::QuotaValue;

    use super::*;

    fn entity(user: Option<&str>, client_id: Option<&str>) -> QuotaEntity {
        let name = |name: &str| match name {
            "*" => EntityName::Default,
            name => EntityName::Named(name.into()),
        };
        QuotaEntity { user: user.map(name), client_id: client_id.map(name), ip: None }
    }

    #[test]
    fn the_closest_quota_holds() {
        // From the one that gives way to all others on.
        let levels = [
            (None, Some("*")),
            (None, Some("c")),
            (Some("*"), None),
            (Some("*"), Some("*")),
            (Some("*"), Some("c")),
            (Some("u"), None),
            (Some("u"), Some("*")),
            (Some("u"), Some("c")),
        ];
        let (user, client_id) = (ByteString::from_static("u"), ByteString::from_static("c"));
        let mut quotas = BTreeMap::new();
        assert_eq!(of_client(&quotas, &user, &client_id, "rate"), None);
        for (at, (by_user, by_client)) in levels.into_iter().enumerate() {
            let value = QuotaValue::new(at as f64 + 1.0).expect("it is finite");
            quotas.insert(entity(by_user, by_client), BTreeMap::from([("rate".to_owned(), value)]));
            let (scope, rate) = of_client(&quotas, &user, &client_id, "rate").expect("there is one");
            assert_eq!(rate, value.get());
            assert_eq!(
                (scope.user.is_some(), scope.client_id.is_some()),
                (by_user.is_some(), by_client.is_some())
            );
            assert_eq!(of_client(&quotas, &user, &client_id, "other"), None);
        }
        let stranger = ByteString::from_static("x");
        let (scope, rate) = of_client(&quotas, &stranger, &stranger, "rate").expect("the default for both");
        assert_eq!((rate, scope.user, scope.client_id), (4.0, Some(stranger.clone()), Some(stranger)));
    }
}
