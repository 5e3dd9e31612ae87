//! The counts of all clients that have quotas.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::{Mutex, RwLock};
use thalweg_controller::{QuotaDefinition, QuotaEntity, Quotas};
use tokio::time::Instant;

use super::bucket::Bucket;
use super::resolve::{self, Scope};

/// The most clients that are counted at once. Those beyond them are not held up.
const MAX_COUNTED: usize = 10_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Usage {
    /// Bytes of records produced.
    Produce,
    /// Bytes of records fetched.
    Fetch,
    /// Seconds of a thread's time.
    Requests,
    /// Partitions made and deleted.
    Mutations,
    /// Connections opened.
    Connections,
}

impl Usage {
    fn quota(self) -> &'static str {
        let definition = match self {
            Self::Produce => QuotaDefinition::PRODUCER_BYTE_RATE,
            Self::Fetch => QuotaDefinition::CONSUMER_BYTE_RATE,
            Self::Requests => QuotaDefinition::REQUEST_PERCENTAGE,
            Self::Mutations => QuotaDefinition::CONTROLLER_MUTATION_RATE,
            Self::Connections => QuotaDefinition::CONNECTION_CREATION_RATE,
        };
        definition.name
    }

    /// How much of it a quota allows in a second.
    fn rate(self, quota: f64) -> f64 {
        match self {
            Self::Requests => quota / 100.0,
            _ => quota,
        }
    }
}

/// The quotas of clients, and what they have used of them.
#[derive(Debug, Default)]
pub(crate) struct ClientQuotas {
    /// Whether anyone has a quota: most clusters have none, and then nothing is counted.
    is_any: AtomicBool,
    /// Guards the quotas as the metadata has them; held for a look-up.
    quotas: RwLock<Arc<BTreeMap<QuotaEntity, Quotas>>>,
    /// Guards the counts; held for one of them.
    counted: Mutex<HashMap<(Usage, Scope), Count>>,
}

#[derive(Debug)]
struct Count {
    bucket: Bucket,
    rate: f64,
}

impl ClientQuotas {
    /// Takes over the quotas of the metadata.
    pub(crate) fn set(&self, quotas: &Arc<BTreeMap<QuotaEntity, Quotas>>) {
        *self.quotas.write() = Arc::clone(quotas);
        self.is_any.store(!quotas.is_empty(), Ordering::Release);
    }

    /// Whether anyone has a quota.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Whether the client has a quota of this.
    pub(crate) fn has(&self, usage: Usage, user: &ByteString, client_id: &ByteString) -> bool {
        self.is_any() && resolve::of_client(&self.quotas.read(), user, client_id, usage.quota()).is_some()
    }

    /// Counts what a client has used. Returns how long it is to pause, if it has used too much.
    pub(crate) fn charge(
        &self,
        usage: Usage,
        (user, client_id): (&ByteString, &ByteString),
        amount: f64,
        now: Instant,
    ) -> Duration {
        let found = resolve::of_client(&self.quotas.read(), user, client_id, usage.quota());
        self.count(usage, found, now, |bucket, rate| bucket.take(amount, rate, now))
    }

    /// How long a client is to pause that has used too much already.
    pub(crate) fn overdrawn(
        &self,
        usage: Usage,
        (user, client_id): (&ByteString, &ByteString),
        now: Instant,
    ) -> Duration {
        let found = resolve::of_client(&self.quotas.read(), user, client_id, usage.quota());
        self.count(usage, found, now, |bucket, rate| bucket.look(rate, now))
    }

    /// Counts a connection from an address. Returns how long it is to wait.
    pub(crate) fn charge_connection(&self, address: &ByteString, now: Instant) -> Duration {
        let usage = Usage::Connections;
        let found = resolve::of_address(&self.quotas.read(), address, usage.quota());
        self.count(usage, found, now, |bucket, rate| bucket.take(1.0, rate, now))
    }

    fn count(
        &self,
        usage: Usage,
        found: Option<(Scope, f64)>,
        now: Instant,
        work: impl FnOnce(&mut Bucket, f64) -> Duration,
    ) -> Duration {
        let Some((scope, quota)) = found else { return Duration::ZERO };
        let rate = usage.rate(quota);
        let mut counted = self.counted.lock();
        if let Some(count) = counted.get_mut(&(usage, scope.clone())) {
            count.rate = rate;
            return work(&mut count.bucket, rate);
        }
        if counted.len() >= MAX_COUNTED {
            counted.retain(|_, count| !count.bucket.is_full(count.rate, now));
            if counted.len() >= MAX_COUNTED {
                return Duration::ZERO;
            }
        }
        // The names may share the memory of a request's frame.
        let own = |name: ByteString| ByteString::from(name.to_string());
        let scope = Scope {
            user: scope.user.map(own),
            client_id: scope.client_id.map(own),
            address: scope.address.map(own),
        };
        let mut bucket = Bucket::new(rate, now);
        let pause = work(&mut bucket, rate);
        counted.insert((usage, scope), Count { bucket, rate });
        pause
    }
}

#[cfg(test)]
mod tests {
    use thalweg_controller::{EntityName, QuotaValue};

    use super::*;

    fn quotas(client_id: EntityName, key: &str, value: f64) -> Arc<BTreeMap<QuotaEntity, Quotas>> {
        let entity = QuotaEntity { client_id: Some(client_id), ..QuotaEntity::default() };
        let value = QuotaValue::new(value).expect("it is finite");
        Arc::new(BTreeMap::from([(entity, BTreeMap::from([(key.to_owned(), value)]))]))
    }

    #[test]
    fn each_client_is_counted_by_itself() {
        let (clients, now) = (ClientQuotas::default(), Instant::now());
        let (user, one, other) = ("u".into(), "one".into(), "other".into());
        assert!(!clients.is_any());
        assert_eq!(clients.charge(Usage::Produce, (&user, &one), 1e9, now), Duration::ZERO);
        clients.set(&quotas(EntityName::Default, "producer_byte_rate", 100.0));
        assert!(clients.has(Usage::Produce, &user, &one) && !clients.has(Usage::Fetch, &user, &one));
        assert_eq!(clients.charge(Usage::Produce, (&user, &one), 1100.0, now), Duration::from_secs(1));
        assert_eq!(clients.charge(Usage::Produce, (&user, &other), 1000.0, now), Duration::ZERO);
        assert_eq!(clients.overdrawn(Usage::Produce, (&user, &one), now), Duration::from_secs(1));
        assert_eq!(clients.charge(Usage::Fetch, (&user, &one), 1e9, now), Duration::ZERO);
        clients.set(&quotas(EntityName::Named("other".into()), "request_percentage", 50.0));
        assert_eq!(clients.charge(Usage::Requests, (&user, &other), 6.0, now), Duration::from_secs(2));
        assert_eq!(clients.charge(Usage::Requests, (&user, &one), 6.0, now), Duration::ZERO);
    }

    #[test]
    fn no_more_clients_are_counted_than_there_is_room_for() {
        let (clients, start) = (ClientQuotas::default(), Instant::now());
        clients.set(&quotas(EntityName::Default, "producer_byte_rate", 1.0));
        let charge =
            |at: usize, now| clients.charge(Usage::Produce, (&"u".into(), &at.to_string().into()), 11.0, now);
        for at in 0..MAX_COUNTED {
            assert_eq!(charge(at, start), Duration::from_secs(1));
        }
        assert_eq!(charge(MAX_COUNTED, start), Duration::ZERO, "nobody is forgotten who has used something");
        assert_eq!(charge(MAX_COUNTED, start + Duration::from_secs(60)), Duration::from_secs(1));
        assert!(clients.counted.lock().len() < 10);
    }
}
