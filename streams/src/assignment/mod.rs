//! Which instance and thread runs which task.

mod assignor;
mod sticky;

pub(crate) use assignor::TaskAssignor;
