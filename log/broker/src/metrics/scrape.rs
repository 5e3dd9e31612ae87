//! Looks everything up that a page of metrics shows, and whether the broker is healthy.

use thalweg_protocol::Offset;

use super::exposition::{Kind, Page};
use crate::core::Core;
use crate::partition::Partition;

/// The page of metrics.
pub(super) fn page(core: &Core) -> String {
    let mut page = Page::default();
    let version = [("version", env!("CARGO_PKG_VERSION")), ("node", &core.node.to_string())];
    page.metric("thalweg_info", Kind::Gauge, "Which broker this is.");
    page.sample("thalweg_info", &version, 1);
    requests(&mut page, core);
    connections(&mut page, core);
    directory(&mut page, core);
    topics(&mut page, core);
    groups(&mut page, core);
    share_groups(&mut page, core);
    page.into_text()
}

fn requests(page: &mut Page, core: &Core) {
    let effect = "thalweg_request_effect_seconds";
    page.metric(effect, Kind::Histogram, "From the arrival of a request until it was carried out.");
    for (api, of_api) in core.metrics.requests.called() {
        page.histogram(effect, &[("api", api.name())], &of_api.effect.counted());
    }
    let wait = "thalweg_request_wait_seconds";
    page.metric(
        wait,
        Kind::Histogram,
        "From then until its answer was there: syncs, replicas, and the data a fetch waits for.",
    );
    for (api, of_api) in core.metrics.requests.called() {
        page.histogram(wait, &[("api", api.name())], &of_api.wait.counted());
    }
    let memory = "thalweg_request_memory_bytes";
    page.metric(memory, Kind::Gauge, "Bytes of requests in memory.");
    page.sample(memory, &[], core.budget.used());
}

fn connections(page: &mut Page, core: &Core) {
    let (opened, open, refused) = core.metrics.connections.counted();
    let (sent, read_through) = core.metrics.segment_bytes.counted();
    for (name, kind, help, value) in [
        ("thalweg_connections", Kind::Gauge, "Open connections.", open),
        ("thalweg_connections_opened_total", Kind::Counter, "Connections that were accepted.", opened),
        (
            "thalweg_connections_refused_total",
            Kind::Counter,
            "Connections that were refused: too many were open.",
            refused,
        ),
        (
            "thalweg_sendfile_bytes_total",
            Kind::Counter,
            "Bytes of segments that the kernel sent straight from their files.",
            sent,
        ),
        (
            "thalweg_read_through_bytes_total",
            Kind::Counter,
            "Bytes of segments that were read before they were sent: they were not in the page cache.",
            read_through,
        ),
    ] {
        page.metric(name, kind, help);
        page.sample(name, &[], value);
    }
}

fn directory(page: &mut Page, core: &Core) {
    let logs = core.partitions.logs();
    let is_online = logs.directory().environment().health.failure().is_none();
    let online = "thalweg_directory_online";
    page.metric(
        online,
        Kind::Gauge,
        "1 while the data directory takes reads and writes, 0 after an I/O error.",
    );
    page.sample(online, &[], u8::from(is_online));
    let offline = "thalweg_offline_partitions";
    page.metric(offline, Kind::Gauge, "Partitions whose log cannot be opened.");
    page.sample(offline, &[], logs.offline_logs().len());
}

/// A number of each partition that is shown.
type OfPartition = (&'static str, Kind, &'static str, fn(&Partition) -> u64);

const OF_PARTITIONS: [OfPartition; 7] = [
    ("thalweg_log_bytes", Kind::Gauge, "Bytes of a partition's segments.", |of| of.log().size_in_bytes()),
    ("thalweg_log_segments", Kind::Gauge, "Segments of a partition.", |of| of.log().segment_count() as u64),
    ("thalweg_log_start_offset", Kind::Gauge, "A partition's first offset.", |of| {
        offset(of.log().log_start_offset())
    }),
    ("thalweg_high_watermark", Kind::Gauge, "The offset up to which consumers read.", |of| {
        offset(of.log().high_watermark())
    }),
    ("thalweg_appended_records_total", Kind::Counter, "Records appended.", |of| of.traffic().counted()[0]),
    ("thalweg_appended_bytes_total", Kind::Counter, "Bytes of batches appended.", |of| {
        of.traffic().counted()[1]
    }),
    ("thalweg_read_bytes_total", Kind::Counter, "Bytes of batches that fetches found.", |of| {
        of.traffic().counted()[2]
    }),
];

fn offset(offset: Offset) -> u64 {
    u64::try_from(offset.0).unwrap_or_default()
}

fn topics(page: &mut Page, core: &Core) {
    let led = core.partitions.led();
    let partitions = "thalweg_partitions";
    page.metric(partitions, Kind::Gauge, "Partitions that this node leads.");
    page.sample(partitions, &[], led.len());
    for (name, kind, help, value) in OF_PARTITIONS {
        page.metric(name, kind, help);
        for partition in &led {
            let id = partition.id();
            page.sample(
                name,
                &[("topic", &id.topic), ("partition", &id.partition.to_string())],
                value(partition),
            );
        }
    }
}

fn groups(page: &mut Page, core: &Core) {
    let mut by_state = std::collections::BTreeMap::<&str, usize>::new();
    for group in core.groups.loaded().iter().flat_map(|shard| shard.list()) {
        *by_state.entry(group.state).or_default() += 1;
    }
    let name = "thalweg_groups";
    page.metric(name, Kind::Gauge, "Groups of all kinds that this node coordinates.");
    for (state, count) in by_state {
        page.sample(name, &[("state", state)], count);
    }
}

/// A number of each share group that is shown: of its share-partitions, acquired and available records.
type OfShareGroup = (&'static str, &'static str, fn((u64, u64, u64)) -> u64);

const OF_SHARE_GROUPS: [OfShareGroup; 3] = [
    ("thalweg_share_partitions", "Partitions that a share group reads.", |of| of.0),
    ("thalweg_share_acquired_records", "Records that members of a share group have.", |of| of.1),
    (
        "thalweg_share_available_records",
        "Records that a share group was given back and has not delivered again.",
        |of| of.2,
    ),
];

fn share_groups(page: &mut Page, core: &Core) {
    let shares = core.groups.shares();
    let in_flight = shares.in_flight();
    for (name, help, value) in OF_SHARE_GROUPS {
        page.metric(name, Kind::Gauge, help);
        for (group, of) in &in_flight {
            page.sample(name, &[("group", group)], value(*of));
        }
    }
    let ((sessions, partitions), counts) = (shares.sessions().counted(), shares.tally().counts());
    for (name, kind, help, value) in [
        ("thalweg_share_sessions", Kind::Gauge, "Open share sessions.", sessions as u64),
        ("thalweg_share_session_partitions", Kind::Gauge, "Partitions of share sessions.", partitions as u64),
        (
            "thalweg_share_delivered_records_total",
            Kind::Counter,
            "Records that members of share groups acquired.",
            counts.delivered,
        ),
        (
            "thalweg_share_redelivered_records_total",
            Kind::Counter,
            "Those of them that had been delivered before.",
            counts.redelivered,
        ),
        (
            "thalweg_share_lock_timeouts_total",
            Kind::Counter,
            "Records that members of share groups kept too long.",
            counts.expired,
        ),
    ] {
        page.metric(name, kind, help);
        page.sample(name, &[], value);
    }
    let said = "thalweg_share_acknowledged_records_total";
    page.metric(
        said,
        Kind::Counter,
        "Records of which members of share groups said something, by what it was.",
    );
    for (what, count) in counts.said {
        page.sample(said, &[("type", what)], count);
    }
}

/// What keeps the broker from doing its work, if anything does.
pub(super) fn trouble(core: &Core) -> Option<String> {
    let logs = core.partitions.logs();
    if let Some(failure) = logs.directory().environment().health.failure() {
        return Some(format!("the data directory is offline: {failure}"));
    }
    let offline = logs.offline_logs();
    let first = offline.first()?;
    let partitions = if offline.len() == 1 { "partition" } else { "partitions" };
    Some(format!(
        "{} {partitions} cannot be opened, {} among them: {}",
        offline.len(),
        first.partition,
        first.error
    ))
}
