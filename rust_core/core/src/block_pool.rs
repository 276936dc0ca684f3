//! The block pool: allocator and trie, and every operation that changes both.
//!
//! Invariants, beside those of the two parts:
//! 1. A block is marked indexed in the allocator exactly when a node names it.
//! 2. A node's block has at least as many references as any child's: a reference to a block implies references to its
//!    whole prefix. (Callers ensure this; `check_integrity` detects violations.)
//! 3. Cached blocks are evicted leaves first. If callers release tails before heads, the next block in eviction order
//!    is a leaf, and an allocation costs O(1) per block.
//! 4. A referenced or pinned block is never allocated, even if a caller violated rule 2.
//!
//! The block manager ensures that a block being written has one reference and is not indexed, and that block tables
//! only grow while a step reads them: the pool sees neither writes nor tables.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use crate::block_allocator::BlockAllocator;
use crate::error::{IntegrityError, PoolError};
use crate::prefix_trie::{NodeId, PrefixTrie};
use crate::swap::BlockEntry;
use crate::{AllocatorStats, BlockId, TokenId};

/// Blocks and the index of their contents.
#[derive(Debug)]
pub struct BlockPool<S = RandomState> {
    allocator: BlockAllocator,
    trie: PrefixTrie<S>,
    evicted_total: u64,
    /// `[blocks]`, the swap tier's entry of each block; `None` for blocks that are not indexed.
    entries: Vec<BlockEntry>,
    /// Blocks that may lack an entry in the swap tier, in the order in which they were indexed.
    unsaved: VecDeque<BlockId>,
    /// `[blocks]`, whether a block is in `unsaved`, where it occurs at most once.
    queued: Vec<bool>,
}

impl BlockPool {
    /// A pool of `num_blocks` free blocks of `block_size` tokens.
    pub fn new(num_blocks: usize, block_size: usize) -> Result<Self, PoolError> {
        Self::with_hasher(num_blocks, block_size, RandomState::new())
    }
}

impl<S: BuildHasher> BlockPool<S> {
    /// The most tokens of a block: block maps count them in a byte.
    pub const MAX_BLOCK_SIZE: usize = u8::MAX as usize;

    /// As [`BlockPool::new`], with the trie's hash injected.
    pub fn with_hasher(num_blocks: usize, block_size: usize, hasher: S) -> Result<Self, PoolError> {
        if !(1..=Self::MAX_BLOCK_SIZE).contains(&block_size) {
            return Err(PoolError::BlockSize {
                given: block_size,
                limit: Self::MAX_BLOCK_SIZE,
            });
        }
        Ok(Self {
            allocator: BlockAllocator::new(num_blocks)?,
            trie: PrefixTrie::new(num_blocks, block_size, hasher),
            evicted_total: 0,
            entries: vec![BlockEntry::None; num_blocks],
            unsaved: VecDeque::new(),
            queued: vec![false; num_blocks],
        })
    }

    /// Reference counts and the free list.
    pub fn allocator(&self) -> &BlockAllocator {
        &self.allocator
    }

    /// The index of the blocks' contents.
    pub fn trie(&self) -> &PrefixTrie<S> {
        &self.trie
    }

    /// Allocates `count` blocks, each with one reference. Free blocks are taken first, then cached ones, least
    /// recently released first, which are removed from the trie. O(count).
    ///
    /// # Errors
    /// [`PoolError::OutOfBlocks`]; then nothing was evicted.
    pub fn allocate(&mut self, count: usize) -> Result<Vec<BlockId>, PoolError> {
        self.allocator.check_available(count)?;
        Ok((0..count).map(|_| self.allocate_one()).collect())
    }

    fn allocate_one(&mut self) -> BlockId {
        loop {
            let victim = self
                .allocator
                .next_victim()
                .expect("availability was checked");
            let Some(node) = self.trie.node_of(victim) else {
                self.allocator.take(victim);
                return victim;
            };
            // The victim itself, unless a caller released a head before its tail.
            let leaf = self.trie.leaf_below(node);
            let block = self.unindex_leaf(leaf);
            if self.allocator.is_available(block) {
                self.evicted_total += 1;
                self.allocator.take(block);
                return block;
            }
            // Referenced or pinned below an unreferenced block: it stays allocated, no longer indexed.
        }
    }

    fn unindex_leaf(&mut self, leaf: NodeId) -> BlockId {
        let block = self.trie.remove_leaf(leaf);
        self.allocator.set_indexed(block, false);
        self.entries[block as usize] = BlockEntry::None;
        block
    }

    fn index_leaf(&mut self, parent: NodeId, tokens: &[TokenId], block: BlockId) -> NodeId {
        self.allocator.set_indexed(block, true);
        if !self.queued[block as usize] {
            self.queued[block as usize] = true;
            self.unsaved.push_back(block);
        }
        self.trie.insert_child(parent, tokens, block)
    }

    /// The swap tier's entry of a block.
    pub fn entry_of(&self, block: BlockId) -> BlockEntry {
        self.entries[block as usize]
    }

    /// Records the swap tier's entry of an indexed block, until the block is removed from the trie.
    pub fn set_entry(&mut self, block: BlockId, entry: BlockEntry) {
        if self.allocator.is_indexed(block) {
            self.entries[block as usize] = entry;
        }
    }

    /// Removes and returns the block indexed longest ago among those that may lack an entry in the swap tier.
    pub(crate) fn next_unsaved(&mut self) -> Option<BlockId> {
        while let Some(block) = self.unsaved.pop_front() {
            self.queued[block as usize] = false;
            if self.allocator.is_indexed(block) && self.entry_of(block) == BlockEntry::None {
                return Some(block);
            }
        }
        None
    }

    /// Undoes [`Self::next_unsaved`].
    pub(crate) fn requeue_unsaved(&mut self, block: BlockId) {
        self.queued[block as usize] = true;
        self.unsaved.push_front(block);
    }

    /// See [`BlockAllocator::retain`]. A block that is referenced again is worth saving again.
    pub fn retain(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.allocator.retain(blocks)?;
        for &block in blocks {
            if self.entry_of(block) == BlockEntry::Unwanted {
                self.entries[block as usize] = BlockEntry::None;
                if !self.queued[block as usize] {
                    self.requeue_unsaved(block);
                }
            }
        }
        Ok(())
    }

    /// See [`BlockAllocator::release`].
    pub fn release(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.allocator.release(blocks)
    }

    /// See [`BlockAllocator::pin`].
    pub fn pin(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.allocator.pin(blocks)
    }

    /// See [`BlockAllocator::unpin`].
    pub fn unpin(&mut self, blocks: &[BlockId]) -> Result<(), PoolError> {
        self.allocator.unpin(blocks)
    }

    /// The blocks of the longest indexed prefix of `tokens` under `salt`, first block first.
    ///
    /// References are not incremented: call `retain` before the next allocation, which may otherwise evict
    /// the blocks.
    pub fn match_prefix(&self, salt: &[u8], tokens: &[TokenId]) -> Vec<BlockId> {
        self.trie.match_prefix(salt, tokens)
    }

    /// Indexes full blocks of one sequence and returns, for each of `blocks[start..]`, the block that
    /// the trie names for it.
    ///
    /// * `tokens`: the sequence's first `blocks.len() * block_size` tokens, or more.
    /// * `blocks`: the sequence's blocks from its first one, all referenced by the caller and written.
    /// * `start`: how many of them an earlier call has indexed; the walk begins there, in O(1).
    ///
    /// Where another block already holds the same tokens, that one is returned, and nothing is indexed
    /// below it, because the caller has no reference to it. The caller may then retain the returned block,
    /// put it in its table, release its own, and continue from there.
    ///
    /// # Errors
    /// The arguments contradict each other or the trie; then nothing was indexed.
    pub fn insert(
        &mut self,
        salt: &[u8],
        tokens: &[TokenId],
        blocks: &[BlockId],
        start: usize,
    ) -> Result<Vec<BlockId>, PoolError> {
        self.check_insert(tokens, blocks, start)?;
        let block_size = self.trie.block_size();
        let mut at = match start {
            0 => self.trie.root_or_new(salt),
            _ => self.indexed_path_end(salt, tokens, blocks, start)?,
        };
        let (top, mut above_new) = (at, None);
        let mut named = Vec::with_capacity(blocks.len() - start);
        let tokens = tokens[start * block_size..].chunks_exact(block_size);
        for (&own, tokens) in blocks[start..].iter().zip(tokens) {
            match self.trie.child(at, tokens) {
                Some(child) => at = child,
                None if self.allocator.is_indexed(own) => {
                    self.undo_insert(above_new, at);
                    self.trie.drop_root_if_empty(top);
                    return Err(PoolError::IndexedElsewhere(own));
                }
                None => {
                    above_new.get_or_insert(at);
                    at = self.index_leaf(at, tokens, own);
                }
            }
            named.push(self.trie.block(at));
            if self.trie.block(at) != own {
                break;
            }
        }
        self.trie.drop_root_if_empty(top);
        named.extend_from_slice(&blocks[start + named.len()..]);
        Ok(named)
    }

    /// As [`BlockPool::insert`], but continues below duplicates: where another block already holds the same
    /// tokens, the caller's reference moves to that one, its own block is released, and `blocks` names the
    /// indexed one. So the caller has a reference to every node above the ones it adds. Returns the number of
    /// duplicates.
    ///
    /// The blocks are full and no step that reads them is in flight.
    ///
    /// # Errors
    /// As [`BlockPool::insert`], or a block has too many references; what was indexed until then stays
    /// indexed, and `blocks` names the caller's references.
    pub fn index_or_adopt(
        &mut self,
        salt: &[u8],
        tokens: &[TokenId],
        blocks: &mut [BlockId],
        start: usize,
    ) -> Result<usize, PoolError> {
        let (mut done, mut adopted) = (start, 0);
        while done < blocks.len() {
            let named = self.insert(salt, tokens, blocks, done)?;
            let Some(at) = named.iter().zip(&blocks[done..]).position(|(a, b)| a != b) else {
                break;
            };
            let (indexed, own) = (named[at], blocks[done + at]);
            self.allocator.retain(&[indexed])?;
            self.allocator.release(&[own])?;
            blocks[done + at] = indexed;
            adopted += 1;
            done += at + 1;
        }
        Ok(adopted)
    }

    /// Removes the chain of new nodes from `last` up to, not including, `above`.
    fn undo_insert(&mut self, above: Option<NodeId>, last: NodeId) {
        let mut at = last;
        while above.is_some_and(|above| above != at) {
            let parent = self.trie.parent(at).expect("new nodes hang below `above`");
            self.unindex_leaf(at);
            at = parent;
        }
    }

    fn check_insert(
        &self,
        tokens: &[TokenId],
        blocks: &[BlockId],
        start: usize,
    ) -> Result<(), PoolError> {
        let block_size = self.trie.block_size();
        let (wanted, given) = (blocks.len() * block_size, tokens.len());
        if start > blocks.len() {
            return Err(PoolError::UnknownPath { start });
        }
        if given < wanted {
            return Err(PoolError::TooFewTokens {
                blocks: blocks.len(),
                block_size,
                wanted,
                given,
            });
        }
        let total = self.allocator.num_blocks();
        for &block in &blocks[start.saturating_sub(1)..] {
            if block as usize >= total {
                return Err(PoolError::NoSuchBlock {
                    block: i64::from(block),
                    total,
                });
            }
            if self.allocator.ref_count(block) == 0 {
                return Err(PoolError::IndexNotReferenced(block));
            }
        }
        Ok(())
    }

    /// The node of `blocks[start - 1]`, if it ends the path that the caller says it does.
    fn indexed_path_end(
        &self,
        salt: &[u8],
        tokens: &[TokenId],
        blocks: &[BlockId],
        start: usize,
    ) -> Result<NodeId, PoolError> {
        let last = (start - 1) * self.trie.block_size()..start * self.trie.block_size();
        self.trie
            .node_of(blocks[start - 1])
            .filter(|&node| self.trie.depth(node) == start)
            .filter(|&node| Some(self.trie.root_of(node)) == self.trie.root(salt))
            .filter(|&node| self.trie.tokens(node) == &tokens[last])
            .ok_or(PoolError::UnknownPath { start })
    }

    /// Empties the trie; cached blocks become free, referenced ones keep their references. Returns how many
    /// blocks were indexed. O(n log n) in that number.
    pub fn clear_index(&mut self) -> usize {
        let mut nodes: Vec<NodeId> = self.trie.nodes().collect();
        nodes.sort_unstable_by_key(|&node| std::cmp::Reverse(self.trie.depth(node)));
        for &node in &nodes {
            self.unindex_leaf(node);
        }
        nodes.len()
    }

    /// The current statistics. O(1).
    pub fn stats(&self) -> AllocatorStats {
        AllocatorStats {
            block_size: self.trie.block_size(),
            indexed: self.trie.len(),
            evicted_total: self.evicted_total,
            ..self.allocator.stats()
        }
    }

    /// Checks every invariant of pool, allocator and trie; O(blocks × block size).
    ///
    /// # Errors
    /// The first violated invariant, as one sentence.
    pub fn check_integrity(&self) -> Result<(), IntegrityError> {
        self.allocator
            .check()
            .and_then(|()| self.check_index())
            .map_err(IntegrityError)
    }

    fn check_index(&self) -> Result<(), String> {
        self.trie.check(|parent, child| {
            let (above, below) = (
                self.allocator.ref_count(parent),
                self.allocator.ref_count(child),
            );
            if above < below {
                return Err(format!(
                    "block {child} has {below} references and its parent {parent} only {above}"
                ));
            }
            Ok(())
        })?;
        for block in 0..self.allocator.num_blocks() as BlockId {
            if self.allocator.is_indexed(block) != self.trie.node_of(block).is_some() {
                return Err(format!(
                    "allocator and trie disagree whether block {block} is indexed"
                ));
            }
            if !self.allocator.is_indexed(block) && self.entry_of(block) != BlockEntry::None {
                return Err(format!("block {block} is not indexed but has a swap entry"));
            }
        }
        Ok(())
    }
}
