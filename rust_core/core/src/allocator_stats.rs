//! A consistent snapshot of the pool's counters, as drawn on the screen and exported to Prometheus.

/// Current counts of blocks, and counters since the pool was created. O(1) to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// `free + cached + active`.
    pub num_blocks: usize,
    /// Tokens in a block.
    pub block_size: usize,
    /// Not referenced, not pinned and not indexed.
    pub free: usize,
    /// Not referenced and not pinned, but indexed by the trie; reused after the free ones.
    pub cached: usize,
    /// Referenced or pinned.
    pub active: usize,
    /// Active blocks with a pin.
    pub pinned: usize,
    /// Blocks in the trie, whatever their state.
    pub indexed: usize,
    /// Blocks ever allocated.
    pub allocated_total: u64,
    /// Cached blocks ever evicted for an allocation.
    pub evicted_total: u64,
    /// Grows with every change of any block; equal epochs mean equal states and reference counts.
    pub epoch: u64,
}
