//! Attention over the paged KV cache: which rows are computed together, and the kernel that computes them.
//!
//! A *row* is one (query token, query head). The rows of a task share a KV head. Its segments say which rows read which
//! chunks of whose blocks: the tokens of a prompt read the same chunks, and so do requests that share a prefix (cascade
//! attention), so every key and value is loaded once for all of them.
//!
//! Invariant: a row's operations depend on its own position alone. It processes its keys in order, in chunks of
//! [`CHUNK`] positions at fixed offsets from position 0, whatever other rows are in the task; every [`SPLIT`] positions
//! it merges its state into a total, in order, and starts with an empty one. So its bits are the same alone, in a batch,
//! in any chunking of its prompt, with or without a shared prefix, and with a long context divided among workers.

mod float;
mod integer;
mod kernel;
mod prefetch;
mod quantized_rows;
mod softcap;
mod softmax;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod visible;
mod work;

pub use kernel::{attend, combine, partial_floats};
pub use state::Scratch;
pub use task::Task;
pub use work::{Item, Segment, Work, max_split_rows};

/// The most rows of a task: enough to load a chunk's keys once for many rows, few enough for the CPU cache.
pub const MAX_ROWS: usize = 48;

/// Positions whose scores go through one update of the online softmax.
pub const CHUNK: usize = 64;

/// Positions after which a row starts with an empty state: the unit in which workers divide a long context.
pub const SPLIT: usize = 512;
