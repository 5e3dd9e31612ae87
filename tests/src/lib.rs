//! The harness of the whole-system tests and benchmarks: real processes, real data, peers. Not published.
