//! The swap tier: KV blocks kept outside the pool, in a file that outlives the process or in memory.
//!
//! [`SwapStore`] is content-addressed: an entry is (the entry of the prefix before it, the block's
//! tokens), under a [`ChainKey`] that hashes the whole prefix and everything else that changes KV bytes. The
//! key locates candidates; equality is decided on tokens and parent. [`saving`] selects the blocks of a pool
//! that get an entry.

mod chain_key;
mod entries;
mod error;
mod layout;
pub mod saving;
mod storage;
mod store;
#[cfg(test)]
mod tests;

pub use chain_key::ChainKey;
pub use error::SwapError;
pub use layout::SwapGeometry;
pub use saving::BlockEntry;
pub use store::{Reservation, SwapStats, SwapStore};

/// Id of an entry, never reused in the lifetime of its file. 0 is the root, which is no entry.
pub type EntryId = u64;

/// The parent of a prefix's first block.
pub const ROOT: EntryId = 0;
