//! Reference counts, pins, generations and the free list of KV blocks.
//!
//! Invariants:
//! 1. A block is free, cached or active, and the counts of these add up to the pool's size.
//! 2. A block is in the free list exactly when it has no references and no pins.
//! 3. The free list is the eviction order: free blocks (not indexed) first, most recently released
//!    first; then cached blocks (indexed), least recently released first.
//! 4. A block's generation increases each time it is allocated, so that a stale id can be detected.
//!
//! Costs: every operation on a block is O(1), no operation allocates memory, and time is a counter.
//! Operations on several blocks check all of them before they change any.
//!
//! The allocator does not depend on the trie: it keeps one bit per block, *indexed*, which the pool sets.

use crate::error::PoolError;
use crate::free_list::FreeList;
use crate::{AllocatorStats, BlockId};

/// State of a block; the numbers are those of `engine.api.snapshot.BlockState`. Its 3 (swapped) does not occur here:
/// a swapped block is no longer in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    Free = 0,
    Active = 1,
    Cached = 2,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Epoch at which it entered the free list.
    released_at: u64,
    generation: u32,
    ref_count: u16,
    pins: u16,
    /// Scratch of `check_all`, zero between calls.
    occurrences: u32,
    indexed: bool,
}

/// A fixed pool of blocks. See the module's invariants.
#[derive(Debug)]
pub struct BlockAllocator {
    blocks: Vec<Block>,
    free_list: FreeList,
    /// Blocks in the free list that are indexed.
    cached: usize,
    pinned: usize,
    allocated_total: u64,
    epoch: u64,
}

impl BlockAllocator {
    /// The most blocks of a pool: at 32 tokens a block, half a billion tokens.
    pub const MAX_BLOCKS: usize = 1 << 24;

    /// A pool of `num_blocks` free blocks.
    pub fn new(num_blocks: usize) -> Result<Self, PoolError> {
        if !(1..=Self::MAX_BLOCKS).contains(&num_blocks) {
            return Err(PoolError::PoolSize {
                given: num_blocks,
                limit: Self::MAX_BLOCKS,
            });
        }
        Ok(Self {
            blocks: vec![Block::default(); num_blocks],
            free_list: FreeList::full(num_blocks as u32),
            cached: 0,
            pinned: 0,
            allocated_total: 0,
            epoch: 0,
        })
    }

    /// Blocks in the pool.
    pub fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks that can be allocated: free and cached ones.
    pub fn num_free(&self) -> usize {
        self.free_list.len()
    }

    /// State of `block`.
    pub fn state(&self, block: BlockId) -> BlockState {
        match (
            self.is_available(block),
            self.blocks[block as usize].indexed,
        ) {
            (false, _) => BlockState::Active,
            (true, true) => BlockState::Cached,
            (true, false) => BlockState::Free,
        }
    }

    /// References to `block`.
    pub fn ref_count(&self, block: BlockId) -> u16 {
        self.blocks[block as usize].ref_count
    }

    /// How often `block` has been allocated.
    pub fn generation(&self, block: BlockId) -> u32 {
        self.blocks[block as usize].generation
    }

    /// Pins of `block`.
    pub fn pins(&self, block: BlockId) -> u16 {
        self.blocks[block as usize].pins
    }

    /// The epoch at which `block` last lost its last reference or pin; 0 if it never did.
    pub fn released_at(&self, block: BlockId) -> u64 {
        self.blocks[block as usize].released_at
    }

    /// Grows with every change of any block.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether `block` is in the free list.
    pub fn is_available(&self, block: BlockId) -> bool {
        self.free_list.contains(block)
    }

    /// Whether `block` is marked as indexed.
    pub fn is_indexed(&self, block: BlockId) -> bool {
        self.blocks[block as usize].indexed
    }

    /// The block that is next in eviction order.
    pub fn next_victim(&self) -> Option<BlockId> {
        self.free_list.front()
    }

    /// The free list in eviction order.
    pub fn eviction_order(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.free_list.iter()
    }

    /// Fails unless `count` blocks can be allocated.
    pub fn check_available(&self, count: usize) -> Result<(), PoolError> {
        let (free, total) = (self.num_free(), self.num_blocks());
        if count > free {
            return Err(PoolError::OutOfBlocks {
                wanted: count,
                free,
                total,
            });
        }
        Ok(())
    }

    /// Allocates `block`, which must be available and not indexed: one reference, a new generation.
    pub(crate) fn take(&mut self, block: BlockId) {
        debug_assert!(self.is_available(block) && !self.is_indexed(block));
        self.free_list.remove(block);
        let entry = &mut self.blocks[block as usize];
        entry.ref_count = 1;
        entry.generation = entry.generation.wrapping_add(1);
        self.allocated_total += 1;
        self.epoch += 1;
    }

    /// Adds a reference to each block; cached blocks become active.
    ///
    /// # Errors
    /// A block is free, or has too many references.
    pub fn retain(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.check_all(blocks, |id, block, occurrences| {
            if block.ref_count == 0 && block.pins == 0 && !block.indexed {
                Err(PoolError::BlockIsFree(id))
            } else if u32::from(block.ref_count) + occurrences > u32::from(u16::MAX) {
                Err(PoolError::TooManyReferences(id))
            } else {
                Ok(())
            }
        })?;
        for &block in blocks {
            self.make_unavailable(block);
            self.blocks[block as usize].ref_count += 1;
            self.epoch += 1;
        }
        Ok(())
    }

    /// Removes a reference from each block, in order: of blocks whose count drops to zero, the first is
    /// reused first. Callers pass a sequence's blocks last to first, so that tails are evicted before heads.
    ///
    /// # Errors
    /// A block is released more often than it is referenced.
    pub fn release(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.check_all(blocks, |id, block, occurrences| {
            if occurrences > u32::from(block.ref_count) {
                Err(PoolError::NotReferenced(id))
            } else {
                Ok(())
            }
        })?;
        for &block in blocks {
            self.blocks[block as usize].ref_count -= 1;
            self.epoch += 1;
            self.free_if_unused(block);
        }
        Ok(())
    }

    /// Keeps each block from being reused until `unpin`, even if its references are released meanwhile: for
    /// copies and steps in flight.
    ///
    /// # Errors
    /// A block is free, or has too many pins.
    pub fn pin(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.check_all(blocks, |id, block, occurrences| {
            if block.ref_count == 0 && block.pins == 0 && !block.indexed {
                Err(PoolError::BlockIsFree(id))
            } else if u32::from(block.pins) + occurrences > u32::from(u16::MAX) {
                Err(PoolError::TooManyReferences(id))
            } else {
                Ok(())
            }
        })?;
        for &block in blocks {
            self.make_unavailable(block);
            let entry = &mut self.blocks[block as usize];
            self.pinned += usize::from(entry.pins == 0);
            entry.pins += 1;
            self.epoch += 1;
        }
        Ok(())
    }

    /// Undoes one `pin` of each block.
    ///
    /// # Errors
    /// A block is unpinned more often than it is pinned.
    pub fn unpin(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.check_all(blocks, |id, block, occurrences| {
            if occurrences > u32::from(block.pins) {
                Err(PoolError::NotPinned(id))
            } else {
                Ok(())
            }
        })?;
        for &block in blocks {
            let entry = &mut self.blocks[block as usize];
            entry.pins -= 1;
            self.pinned -= usize::from(entry.pins == 0);
            self.epoch += 1;
            self.free_if_unused(block);
        }
        Ok(())
    }

    /// Records whether the trie indexes `block`. A cached block that is no longer indexed is free.
    pub(crate) fn set_indexed(&mut self, block: BlockId, indexed: bool) {
        debug_assert_ne!(self.is_indexed(block), indexed);
        let available = self.is_available(block);
        if available {
            self.make_unavailable(block);
        }
        self.blocks[block as usize].indexed = indexed;
        self.epoch += 1;
        if available {
            self.free_if_unused(block);
        }
    }

    fn make_unavailable(&mut self, block: BlockId) {
        if self.is_available(block) {
            self.free_list.remove(block);
            self.cached -= usize::from(self.blocks[block as usize].indexed);
        }
    }

    /// Puts `block` into the free list if it has no references and no pins.
    fn free_if_unused(&mut self, block: BlockId) {
        let entry = &mut self.blocks[block as usize];
        if entry.ref_count > 0 || entry.pins > 0 {
            return;
        }
        entry.released_at = self.epoch;
        if entry.indexed {
            self.cached += 1;
            self.free_list.push_back(block);
        } else {
            self.free_list.push_front(block);
        }
    }

    /// Runs `check(id, block, occurrences so far)` over `blocks` before anything changes. A block may occur
    /// several times.
    fn check_all(
        &mut self,
        blocks: &[BlockId],
        check: impl Fn(BlockId, &Block, u32) -> Result<(), PoolError>,
    ) -> Result<(), PoolError> {
        let total = self.blocks.len();
        let mut checked = 0;
        let mut outcome = Ok(());
        for &id in blocks {
            let Some(block) = self.blocks.get_mut(id as usize) else {
                outcome = Err(PoolError::NoSuchBlock {
                    block: i64::from(id),
                    total,
                });
                break;
            };
            block.occurrences += 1;
            checked += 1;
            outcome = check(id, block, block.occurrences);
            if outcome.is_err() {
                break;
            }
        }
        for &id in &blocks[..checked] {
            self.blocks[id as usize].occurrences = 0;
        }
        outcome
    }

    /// The allocator's part of the statistics; the pool adds the trie's.
    pub(crate) fn stats(&self) -> AllocatorStats {
        AllocatorStats {
            num_blocks: self.num_blocks(),
            free: self.num_free() - self.cached,
            cached: self.cached,
            active: self.num_blocks() - self.num_free(),
            pinned: self.pinned,
            allocated_total: self.allocated_total,
            epoch: self.epoch,
            ..AllocatorStats::default()
        }
    }

    /// Checks every block and the free list; O(blocks).
    pub(crate) fn check(&self) -> Result<(), String> {
        self.free_list.check()?;
        let (mut available, mut cached, mut pinned) = (0, 0, 0);
        for (id, block) in self.blocks.iter().enumerate() {
            let in_list = self.free_list.contains(id as BlockId);
            let kept = block.ref_count > 0 || block.pins > 0;
            if in_list == kept {
                return Err(format!(
                    "block {id} has {} references and {} pins and is {}in the free list",
                    block.ref_count,
                    block.pins,
                    if in_list { "" } else { "not " }
                ));
            }
            if block.occurrences != 0 {
                return Err(format!(
                    "block {id} keeps an occurrence count of a finished check"
                ));
            }
            available += usize::from(in_list);
            cached += usize::from(in_list && block.indexed);
            pinned += usize::from(block.pins > 0);
        }
        if (available, cached, pinned) != (self.free_list.len(), self.cached, self.pinned) {
            return Err(format!(
                "{available} available, {cached} cached and {pinned} pinned blocks are counted as {}, {} and {}",
                self.free_list.len(),
                self.cached,
                self.pinned
            ));
        }
        self.check_eviction_order()
    }

    fn check_eviction_order(&self) -> Result<(), String> {
        let mut last_cached: Option<(BlockId, u64)> = None;
        for id in self.free_list.iter() {
            let block = &self.blocks[id as usize];
            match last_cached {
                Some((before, _)) if !block.indexed => {
                    return Err(format!(
                        "free block {id} comes after cached block {before} in the free list"
                    ));
                }
                Some((before, released_at)) if released_at > block.released_at => {
                    return Err(format!(
                        "cached block {before} comes before the earlier released block {id} in the free list"
                    ));
                }
                _ if block.indexed => last_cached = Some((id, block.released_at)),
                _ => {}
            }
        }
        Ok(())
    }
}
