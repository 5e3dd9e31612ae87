//! One instant on both clocks.

/// One instant on both clocks. Deadlines are kept on the monotonic one, so that a jump of the wall clock ends no
/// session; what is written down carries the time of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds since an arbitrary moment before this process served anything; never goes back.
    pub(crate) monotonic_ms: u64,
    /// Milliseconds since 1970, UTC.
    pub(crate) wall_ms: i64,
}

/// Jumps of the wall clock, in ms: a day and a year, either way.
#[cfg(test)]
pub(crate) const JUMPS_MS: [i64; 4] = [86_400_000, -86_400_000, 365 * 86_400_000, -365 * 86_400_000];
