//! The swap tier: KV blocks kept outside the pool, in a file that outlives the process or in memory.
//!
//! [`SwapStore`] is content-addressed: an entry is (the entry of the prefix before it, the block's
//! tokens), under a [`ChainKey`] that stands for the whole prefix and for everything else that changes
//! KV bytes. The key finds a candidate; comparing tokens and parent decides. [`saving`] picks the blocks
//! of a pool that are worth an entry.

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

/// Names an entry for as long as its file lives: never used twice. 0 is no entry, the root.
pub type EntryId = u64;

/// The parent of a prefix's first block.
pub const ROOT: EntryId = 0;
