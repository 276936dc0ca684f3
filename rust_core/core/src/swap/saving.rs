//! Which blocks of a pool get an entry in the tier.
//!
//! Whatever the trie names may be saved: such a block is full, computed, and written by nobody. An entry
//! needs one for the block's prefix, so the blocks above it are saved with it. The pool remembers each
//! block's entry, and asking for one twice costs a look at the books.

use std::hash::BuildHasher;

use super::{EntryId, ROOT, Reservation, SwapStore};
use crate::{BlockId, BlockPool};

/// Blocks that now have entries to fill, prefixes before what follows them: `(blocks, entries)`.
pub type Saving = (Vec<BlockId>, Vec<EntryId>);

/// Reserves entries for the blocks that the next `count` allocations would evict, and for what is above
/// them; at most `most`.
pub fn save_victims<S: BuildHasher>(
    pool: &mut BlockPool<S>,
    store: &SwapStore,
    count: usize,
    most: usize,
) -> Saving {
    let order = pool.allocator().eviction_order().take(count);
    let victims: Vec<BlockId> = order
        .filter(|&id| pool.allocator().is_indexed(id))
        .collect();
    let mut saving = Saving::default();
    for block in victims {
        save(pool, store, block, most, &mut saving);
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
        BlockEntry::Unwanted => true, // or had better have none
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

/// Reserves entries for blocks that were indexed and have none, oldest first; at most `most`. What does
/// not fit stays for the next call; nothing is left when the result is empty.
pub fn save_indexed<S: BuildHasher>(
    pool: &mut BlockPool<S>,
    store: &SwapStore,
    most: usize,
) -> Saving {
    let mut saving = Saving::default();
    while saving.0.len() < most {
        let Some(block) = pool.next_unsaved() else {
            break;
        };
        if !save(pool, store, block, most, &mut saving) {
            pool.put_back_unsaved(block);
            break;
        }
    }
    saving
}

/// Reserves entries for `block` and the blocks above it that have none. False if they were too many for
/// `most`: then some are reserved, and asking again goes on.
fn save<S: BuildHasher>(
    pool: &mut BlockPool<S>,
    store: &SwapStore,
    block: BlockId,
    most: usize,
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
    for node in path.into_iter().rev() {
        if saving.0.len() >= most {
            return false;
        }
        let block = pool.trie().block(node);
        match store.reserve(parent, pool.trie().tokens(node)) {
            Reservation::Known(entry) => parent = entry,
            Reservation::New(entry) => {
                saving.0.push(block);
                saving.1.push(entry);
                parent = entry;
            }
            Reservation::Refused => return true, // computed again, should anybody want it
        }
        pool.set_entry(block, BlockEntry::Saved(parent));
    }
    true
}

/// What the tier has of an indexed block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockEntry {
    /// Nothing that is known of.
    #[default]
    None,
    /// This entry, if it is still alive.
    Saved(EntryId),
    /// Nothing, and it is cheaper to compute the block again; until somebody holds it again.
    Unwanted,
}
