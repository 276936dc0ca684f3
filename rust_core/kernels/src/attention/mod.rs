//! Attention over the paged cache: which rows are computed together, and the kernel that computes them.
//!
//! A *row* is one (query token, query head). A task's rows share a KV head, and its segments say which of
//! them read which chunks from whose blocks: a prompt's tokens read the same ones, and so do requests
//! that share a prefix (*cascade*), so that every key and value is loaded once for all of them.
//!
//! What must stay true: a row's operations depend on its own position alone. It meets its keys in chunks of
//! [`CHUNK`] positions at fixed offsets from position 0, in order, whoever else is in the task; every
//! [`SPLIT`] positions it starts afresh, and what it had is merged, in order. So its bits are the same alone,
//! in a batch, in any chunking of its prompt, with or without a shared prefix, and with a long context
//! spread over several workers.

mod fetch;
mod float;
mod integer;
mod kernel;
mod numbers;
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
pub use work::{Item, Segment, Work, most_split_tasks};

/// Rows of one task at most: enough to load a chunk's keys once for many, few enough for the cache.
pub const MAX_ROWS: usize = 48;

/// Positions whose scores are normalised together.
pub const CHUNK: usize = 64;

/// Positions after which a row starts afresh: the grain in which workers share a long context.
pub const SPLIT: usize = 512;
