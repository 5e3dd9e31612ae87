//! The configs of a group (KIP-848, KIP-932): one row each, as for topics.

use std::collections::BTreeMap;

use crate::topic_config::{
    ConfigDefinition, ConfigError, ConfigKind, ConfigValue, IsolationLevel, any, between, config_table,
    parse, shortened,
};

config_table! {
    /// The configs of a group, as typed values. Those that are not set for the group are the node's own.
    GroupConfig {
    /// Milliseconds without a heartbeat after which a member of the consumer protocol is given up.
    consumer_session_timeout_ms: i32 = "consumer.session.timeout.ms" (Some("group.consumer.session.timeout.ms")),
        default 45_000, between(45_000, 60_000);

    /// Milliseconds between two heartbeats of a member of the consumer protocol.
    consumer_heartbeat_interval_ms: i32 = "consumer.heartbeat.interval.ms" (Some("group.consumer.heartbeat.interval.ms")),
        default 5_000, between(5_000, 15_000);

    /// Milliseconds without a heartbeat after which a member of a share group is given up.
    share_session_timeout_ms: i32 = "share.session.timeout.ms" (Some("group.share.session.timeout.ms")),
        default 45_000, between(45_000, 60_000);

    /// Milliseconds between two heartbeats of a member of a share group.
    share_heartbeat_interval_ms: i32 = "share.heartbeat.interval.ms" (Some("group.share.heartbeat.interval.ms")),
        default 5_000, between(5_000, 15_000);

    /// Milliseconds for which a record that a share group's member has acquired is locked for others.
    share_record_lock_duration_ms: i32 = "share.record.lock.duration.ms" (Some("group.share.record.lock.duration.ms")),
        default 30_000, between(1_000, 3_600_000);

    /// How often a record is delivered to members of a share group before it is given up.
    share_delivery_count_limit: i32 = "share.delivery.count.limit" (Some("group.share.delivery.count.limit")),
        default 5, between(2, 10);

    /// Records of one partition that a share group's members may have acquired at once.
    share_partition_max_record_locks: i32 = "share.partition.max.record.locks" (Some("group.share.partition.max.record.locks")),
        default 2_000, between(100, 10_000);

    /// Where a share group begins to read a partition.
    share_auto_offset_reset: ShareOffsetReset = "share.auto.offset.reset" (None),
        default ShareOffsetReset::Latest, any;

    /// Which records a share group reads.
    share_isolation_level: IsolationLevel = "share.isolation.level" (None),
        default IsolationLevel::ReadUncommitted, any;

    /// Whether members of a share group may ask to keep what they have acquired for longer.
    share_renew_acknowledge_enable: bool = "share.renew.acknowledge.enable" (None),
        default true, any;
    }
}

/// Where a share group begins to read a partition (KIP-932, KIP-1106).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOffsetReset {
    /// At its end.
    Latest,
    /// At its start.
    Earliest,
    /// At the first record that is no older than so many ms.
    ByDuration(i64),
}

const BY_DURATION: &str = "by_duration:";

impl ConfigValue for ShareOffsetReset {
    const KIND: ConfigKind = ConfigKind::String(&["latest", "earliest", "by_duration:<duration>"]);

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "latest" => return Ok(Self::Latest),
            "earliest" => return Ok(Self::Earliest),
            _ => {}
        }
        let duration = text.strip_prefix(BY_DURATION).and_then(duration_ms);
        duration.map(Self::ByDuration).ok_or_else(|| {
            format!(
                "'{}' is none of latest, earliest, by_duration: with a duration as in P7DT12H30M",
                shortened(text)
            )
        })
    }

    fn show(&self) -> String {
        match self {
            Self::Latest => "latest".to_owned(),
            Self::Earliest => "earliest".to_owned(),
            Self::ByDuration(ms) if ms % 1_000 == 0 => format!("{BY_DURATION}PT{}S", ms / 1_000),
            Self::ByDuration(ms) => format!("{BY_DURATION}PT{}.{:03}S", ms / 1_000, ms % 1_000),
        }
    }
}

/// Milliseconds of a duration in days, hours, minutes and seconds as ISO 8601 writes it; `None` for what is none.
fn duration_ms(text: &str) -> Option<i64> {
    let mut rest = text.strip_prefix('P')?;
    let (mut total, mut is_time, mut last) = (0_i64, false, None);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T').filter(|time| !is_time && !time.is_empty()) {
            (rest, is_time) = (time, true);
            continue;
        }
        let unit_at = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = rest.split_at(unit_at);
        // Each unit is less than the one before it.
        let (rank, unit_ms) = match (is_time, unit.chars().next()?) {
            (false, 'D') => (0, 86_400_000),
            (true, 'H') => (1, 3_600_000),
            (true, 'M') => (2, 60_000),
            (true, 'S') => (3, 1_000),
            _ => return None,
        };
        if last.is_some_and(|last| last >= rank) {
            return None;
        }
        last = Some(rank);
        let ms = match number.split_once('.') {
            Some((whole, fraction)) if rank == 3 => {
                digits(whole)?.checked_mul(unit_ms)?.checked_add(millis(fraction)?)?
            }
            _ => digits(number)?.checked_mul(unit_ms)?,
        };
        total = total.checked_add(ms)?;
        rest = unit.get(1..)?;
    }
    last.map(|_| total)
}

fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The ms of a fraction of a second; what is less than one is dropped.
fn millis(fraction: &str) -> Option<i64> {
    digits(fraction)?;
    digits(&format!("{fraction:0<3}").chars().take(3).collect::<String>())
}

impl GroupConfig {
    /// What is known of each config, in the order in which they are best read.
    pub fn definitions() -> &'static [ConfigDefinition] {
        DEFINITIONS
    }

    /// What is known of this config.
    pub fn definition(key: &str) -> Option<&'static ConfigDefinition> {
        DEFINITIONS.iter().find(|definition| definition.name == key)
    }

    /// This config with other values in the places that `overrides` names.
    ///
    /// # Errors
    /// For a name that there is not, and a value that it cannot have.
    pub fn with_overrides(mut self, overrides: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        for (key, text) in overrides {
            self.set(key, text).map_err(|reason| ConfigError { key: key.clone(), reason })?;
        }
        Ok(self)
    }
}

fn unknown(key: &str) -> String {
    format!("groups have no config '{}'", shortened(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let check = |key: &str, text: &str, expected: Option<&str>| {
            let overrides = BTreeMap::from([(key.to_owned(), text.to_owned())]);
            let shown =
                GroupConfig::default().with_overrides(&overrides).ok().and_then(|config| config.get(key));
            assert_eq!(shown.as_deref(), expected, "{key}={text}");
        };
        check("consumer.session.timeout.ms", "50000", Some("50000"));
        check("consumer.session.timeout.ms", "44999", None);
        check("consumer.heartbeat.interval.ms", "15001", None);
        check("share.auto.offset.reset", "earliest", Some("earliest"));
        check("share.auto.offset.reset", "by_duration:P1DT2H", Some("by_duration:PT93600S"));
        check("share.auto.offset.reset", "by_duration:PT0.25S", Some("by_duration:PT0.250S"));
        check("share.isolation.level", "read_committed", Some("read_committed"));
        check("share.isolation.level", "all", None);
        check("streams.num.standby.replicas", "1", None);
        for definition in GroupConfig::definitions() {
            assert_eq!(definition.check(&definition.default_value()), Ok(()), "{}", definition.name);
            assert!(definition.documentation().ends_with('.'), "{}", definition.name);
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, expected) in [
            ("P7DT12H30M", Some(649_800_000)),
            ("PT1M1.5S", Some(61_500)),
            ("P0D", Some(0)),
            ("P", None),
            ("PT", None),
            ("P1DT", None),
            ("P1H", None),
            ("PT1S1M", None),
            ("PT1S1S", None),
            ("PT1.5M", None),
            ("PT-1S", None),
            ("PT.S", None),
            ("P1Y", None),
            ("P9223372036854775807D", None),
            ("1D", None),
            ("P1D ", None),
            ("PT1Ä", None),
        ] {
            assert_eq!(duration_ms(text), expected, "{text}");
        }
    }
}
