//! The broker seen from outside: one suite, run over TCP, in process, and in process through bytes.

mod calls;
mod harness;
mod raw_tcp;

mod administration;
mod changes;
mod cluster_changes;
mod committing;
mod compacting;
mod configs;
mod consumer_groups;
mod controllers;
mod cooperative;
mod disk_full;
mod fetch_sessions;
mod fetching;
mod gates;
mod grouping;
mod hostile;
mod kcat;
mod limits;
mod listening;
mod metrics;
mod moving;
mod offset_deleting;
mod offsets;
mod producing;
mod quotas;
mod restarting;
mod securing;
mod topics;
mod transaction_admin;
mod transaction_rules;
mod transactions;
mod versions;
mod zero_copy;
