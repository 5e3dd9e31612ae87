//! The client against a scripted broker, over sockets, and against whatever speaks the protocol.

mod admin_faults;
mod fake;
mod fetch_sessions;
mod group_faults;
mod reading_faults;
mod suite;
mod tcp;
mod transaction_faults;
mod writing_faults;
