//! DescribeLogDirs: what the logs take on disk, and what is left (KIP-113, KIP-827).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult,
    DescribeLogDirsTopic,
};

use super::RequestContext;
use crate::core::Core;

/// What stands for a size that is not known.
const UNKNOWN: i64 = -1;

pub(crate) async fn handle(
    context: RequestContext,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let reads = context.core.cold_reads.clone();
    reads.run(move || describe(&context.core, &request)).await
}

/// The answer that refuses the request.
pub(crate) fn refuse(code: ErrorCode) -> DescribeLogDirsResponse {
    DescribeLogDirsResponse { error_code: code.code(), ..Default::default() }
}

fn describe(core: &Core, request: &DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let directory = core.partitions.logs().directory();
    let log_dir = log_dir(core);
    let result = if directory.environment().health.check().is_err() {
        let error_code = ErrorCode::KafkaStorageError.code();
        let (total_bytes, usable_bytes) = (UNKNOWN, UNKNOWN);
        DescribeLogDirsResult { error_code, log_dir, total_bytes, usable_bytes, ..Default::default() }
    } else {
        let (total_bytes, usable_bytes) = space(Path::new(&*log_dir)).unwrap_or((UNKNOWN, UNKNOWN));
        let topics = topics(core, request);
        DescribeLogDirsResult { log_dir, topics, total_bytes, usable_bytes, ..Default::default() }
    };
    DescribeLogDirsResponse { results: vec![result], ..Default::default() }
}

/// The directory of this node's logs, as it is shown.
pub(super) fn log_dir(core: &Core) -> ByteString {
    let directory = core.partitions.logs().directory().path();
    let path = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    path.display().to_string().into()
}

/// The sizes of the logs that are asked for; of those that are not here nothing is said.
fn topics(core: &Core, request: &DescribeLogDirsRequest) -> Vec<DescribeLogDirsTopic> {
    let wanted: Option<HashMap<&str, HashSet<i32>>> = request.topics.as_ref().map(|topics| {
        let mut wanted: HashMap<&str, HashSet<i32>> = HashMap::new();
        for topic in topics {
            wanted.entry(&topic.topic).or_default().extend(&topic.partitions);
        }
        wanted
    });
    let mut by_topic: BTreeMap<ByteString, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for log in core.partitions.logs().logs() {
        let id = log.partition();
        let is_wanted = wanted.as_ref().is_none_or(|wanted| {
            wanted.get(&*id.topic).is_some_and(|partitions| partitions.contains(&id.partition))
        });
        if is_wanted {
            by_topic.entry(id.topic.clone()).or_default().push(DescribeLogDirsPartition {
                partition_index: id.partition,
                partition_size: i64::try_from(log.size_in_bytes()).unwrap_or(i64::MAX),
                // Every log here is its partition's leader, and none is on its way to another directory.
                offset_lag: 0,
                is_future_key: false,
            });
        }
    }
    let topics = by_topic.into_iter().map(|(name, mut partitions)| {
        partitions.sort_by_key(|partition| partition.partition_index);
        DescribeLogDirsTopic { name, partitions }
    });
    topics.collect()
}

/// The bytes of the disk that `path` lies on: all, and those that are left for a process without privileges.
fn space(path: &Path) -> Option<(i64, i64)> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut found = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero byte, and the call writes the structure whole when it succeeds.
    let found = unsafe {
        if libc::statvfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX);
    Some((bytes(found.f_blocks), bytes(found.f_bavail)))
}
