//! The client against a scripted broker, over sockets, and against whatever speaks the protocol.

#![allow(clippy::duplicate_mod, reason = "each example brings along how it connects")]

mod admin_faults;
mod coordinated_faults;
mod fake;
mod fetch_sessions;
mod group_faults;
mod queue_faults;
mod queue_restarts;
mod reading_faults;
mod suite;
mod tcp;
mod transaction_faults;
mod writing_faults;

#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/at_least_once.rs"]
mod at_least_once;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/at_most_once.rs"]
mod at_most_once;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/custom_assignor.rs"]
mod custom_assignor;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/custom_partitioner.rs"]
mod custom_partitioner;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/exactly_once.rs"]
mod exactly_once;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/one_database.rs"]
mod one_database;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/queue.rs"]
mod queue;
#[allow(dead_code, reason = "its main is for whoever runs it by itself")]
#[path = "../../examples/sending.rs"]
mod sending;
