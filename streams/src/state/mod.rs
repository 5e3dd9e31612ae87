//! State: stores, what keeps them, and what makes them come back after a crash.

mod backend;
mod checkpoint;
mod directory;
mod layout;
mod memory;
mod overlay;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod store;
mod task_state;
mod view;
mod window;

pub(crate) use backend::ByteStrings;
pub(crate) use checkpoint::Checkpoint;
pub(crate) use directory::StateDirectory;
pub(crate) use memory::MemoryBackend;
pub use store::{StateStore, StoreKind, StoreSpec, StoredValue, StoredValues};
pub(crate) use task_state::TaskState;
pub(crate) use view::StorePart;
pub use view::{OwnedValue, StoreView};
pub use window::{TimeWindow, WINDOW_SUFFIX, Windowed, split_windowed_key, windowed_key};
