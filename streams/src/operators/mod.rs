//! The operators of the typed DSL: batch at a time, one virtual call a batch, loops inside.

mod aggregate;
mod program;
mod record;
mod sink;
mod slots;
mod source;
mod stateless;
mod windowing;

pub use aggregate::Emit;
pub(crate) use aggregate::{Aggregate, AggregateParts};
pub(crate) use program::{DslProgram, Operator};
pub use record::Record;
pub(crate) use sink::Sink;
pub(crate) use slots::{Outlet, SlotId, Slots};
pub(crate) use source::Source;
pub(crate) use stateless::{Filter, FlatMap, Peek, Relay};
pub use windowing::TimeWindows;
pub(crate) use windowing::{Tumbling, Unwindowed, Windowing};
