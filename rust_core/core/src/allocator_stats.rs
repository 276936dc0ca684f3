//! One consistent set of numbers about the pool: what the screen draws and Prometheus exports.

/// Counts of blocks now, and counters since the pool was made. Costs O(1) to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// `free + cached + active`.
    pub num_blocks: usize,
    /// Tokens in a block.
    pub block_size: usize,
    /// Held by nobody and not indexed.
    pub free: usize,
    /// Held by nobody, kept because the trie indexes them; the next to be reused after the free ones.
    pub cached: usize,
    /// Held or pinned.
    pub active: usize,
    /// Active blocks with a pin.
    pub pinned: usize,
    /// Blocks in the trie, whatever their state.
    pub indexed: usize,
    /// Blocks ever allocated.
    pub allocated_total: u64,
    /// Cached blocks ever given up to serve an allocation.
    pub evicted_total: u64,
    /// Grows with every change of any block; equal epochs mean equal states and reference counts.
    pub epoch: u64,
}
