//! Selection of the blocks of a pool that get an entry in the swap tier.
//!
//! Every indexed block may be saved: it is full, computed, and no longer written. An entry requires entries for the
//! block's prefix, so the blocks above it are saved with it. The pool records each block's entry, so a block that has
//! one costs a single lookup.

use std::hash::BuildHasher;

use super::{EntryId, ROOT, Reservation, SwapStore};
use crate::{BlockId, BlockPool};

/// Blocks with newly reserved entries to fill, prefixes first: `(blocks, entries)`.
pub type Saving = (Vec<BlockId>, Vec<EntryId>);

/// Reserves entries for the blocks that the next `count` allocations would evict, and for the blocks above them; at
/// most `max_entries`.
pub fn save_victims<S: BuildHasher>(
    pool: &mut BlockPool<S>,
    store: &SwapStore,
    count: usize,
    max_entries: usize,
) -> Saving {
    let order = pool.allocator().eviction_order().take(count);
    let victims: Vec<BlockId> = order
        .filter(|&id| pool.allocator().is_indexed(id))
        .collect();
    let mut saving = Saving::default();
    for block in victims {
        save(pool, store, block, max_entries, &mut saving);
    }
    saving
}

/// How many of the blocks that the next `count` allocations would evict have no entry.
pub fn count_unsaved_victims<S: BuildHasher>(
    pool: &BlockPool<S>,
    store: &SwapStore,
    count: usize,
) -> usize {
    let saved = |block: BlockId| match pool.entry_of(block) {
        BlockEntry::Saved(entry) => store.is_alive(entry),
        BlockEntry::Unwanted => true, // not to be saved
        BlockEntry::None => false,
    };
    let victims = victims(pool, count).into_iter();
    victims.filter(|&block| !saved(block)).count()
}

fn victims<S: BuildHasher>(pool: &BlockPool<S>, count: usize) -> Vec<BlockId> {
    let order = pool.allocator().eviction_order().take(count);
    order
        .filter(|&block| pool.allocator().is_indexed(block))
        .collect()
}

/// Reserves entries for indexed blocks that have none, oldest first; at most `max_entries`. The remaining blocks are left for
/// the next call; an empty result means that there are none.
pub fn save_indexed<S: BuildHasher>(
    pool: &mut BlockPool<S>,
    store: &SwapStore,
    max_entries: usize,
) -> Saving {
    let mut saving = Saving::default();
    while saving.0.len() < max_entries {
        let Some(block) = pool.next_unsaved() else {
            break;
        };
        if !save(pool, store, block, max_entries, &mut saving) {
            pool.requeue_unsaved(block);
            break;
        }
    }
    saving
}

/// Reserves entries for `block` and the blocks above it that have none. False if they exceed `max_entries`: then some are
/// reserved, and the next call continues.
fn save<S: BuildHasher>(
    pool: &mut BlockPool<S>,
    store: &SwapStore,
    block: BlockId,
    max_entries: usize,
    saving: &mut Saving,
) -> bool {
    let mut path = Vec::new();
    let mut parent = ROOT;
    let mut at = pool.trie().node_of(block);
    while let Some(node) = at.filter(|&node| pool.trie().parent(node).is_some()) {
        let above = pool.trie().block(node);
        match pool.entry_of(above) {
            BlockEntry::Unwanted => return true,
            BlockEntry::Saved(entry) if store.is_alive(entry) => {
                parent = entry;
                break;
            }
            _ => path.push(node),
        }
        at = pool.trie().parent(node);
    }
    let Some(&top) = path.last() else {
        return true;
    };
    let root = pool.trie().root_of(top);
    for node in path.into_iter().rev() {
        if saving.0.len() >= max_entries {
            return false;
        }
        let block = pool.trie().block(node);
        let (salt, tokens) = (pool.trie().salt(root), pool.trie().tokens(node));
        match store.reserve(salt, parent, tokens) {
            Reservation::Known(entry) => parent = entry,
            Reservation::New(entry) => {
                saving.0.push(block);
                saving.1.push(entry);
                parent = entry;
            }
            Reservation::Refused => return true, // recomputed if it is needed again
        }
        pool.set_entry(block, BlockEntry::Saved(parent));
    }
    true
}

/// The swap tier's entry of an indexed block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockEntry {
    /// None known.
    #[default]
    None,
    /// This entry, unless it was evicted since.
    Saved(EntryId),
    /// None, because recomputing the block is cheaper. Reset when the block is referenced again.
    Unwanted,
}
