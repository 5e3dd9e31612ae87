//! What the process's file descriptors are for.

/// How many descriptors the process may have open. First it asks for as many as the system lets it have.
pub(crate) fn of_process() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a value that outlives the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return usize::MAX;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: as above.
    if limit.rlim_cur < limit.rlim_max
        && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0
    {
        limit = raised;
    }
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// How many files of segments are kept open at most: a quarter of the descriptors. They may be exceeded, and an eighth remains
/// for that and for everything else.
pub(crate) fn for_files(max_open_files: usize, descriptors: usize) -> usize {
    max_open_files.min(descriptors / 4).max(1)
}

/// The caps of connections in all and per address, lowered to five eighths of the descriptors; no address gets all of them.
pub(crate) fn for_connections(max: usize, max_per_address: usize, descriptors: usize) -> (usize, usize) {
    let max = max.min(descriptors / 8 * 5).max(1);
    (max, max_per_address.min((max - max / 4).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_other_addresses_keep_descriptors() {
        for (max, per_address, descriptors, caps) in [
            (8192, 6144, 1 << 20, (8192, 6144)),
            (8192, 6144, 1024, (640, 480)),
            (8192, 6144, 64, (40, 30)),
            (8192, 6144, 0, (1, 1)),
            (100, 10, 1024, (100, 10)),
            (2, 2, 1024, (2, 2)),
        ] {
            assert_eq!(for_connections(max, per_address, descriptors), caps);
        }
        for (max, descriptors, files) in
            [(16_384, 1 << 20, 16_384), (16_384, 1024, 256), (7, 1024, 7), (0, 0, 1)]
        {
            assert_eq!(for_files(max, descriptors), files);
        }
    }
}
