//! Block allocator, prefix trie and their statistics: pure Rust, no Python.
//!
//! [`BlockPool`] owns a [`BlockAllocator`] (reference counts and the free list) and a [`PrefixTrie`] (which tokens a
//! block's KV belongs to), and keeps them consistent. It never sees the bytes of blocks; [`swap`] keeps copies of them
//! outside the pool.
//!
//! [`prompt_lookup`] drafts a sequence's next tokens, and [`steady`] updates rows that only decode between two steps.

mod allocator_stats;
mod block_allocator;
mod block_pool;
mod error;
mod free_list;
mod prefix_chains;
mod prefix_trie;
pub mod prompt_lookup;
pub mod steady;
pub mod swap;

pub use allocator_stats::AllocatorStats;
pub use block_allocator::{BlockAllocator, BlockState};
pub use block_pool::BlockPool;
pub use error::{IntegrityError, PoolError};
pub use prefix_chains::PrefixChains;
pub use prefix_trie::{NodeId, PrefixTrie};

/// Index of a block, `[0, num_blocks)`.
pub type BlockId = u32;
/// A token id as the model's vocabulary numbers it.
pub type TokenId = i32;
