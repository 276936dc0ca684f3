//! One rule a test, by example.

use pravaha_core::{BlockAllocator, BlockId, BlockPool, BlockState, PoolError};

const SALT: &[u8] = b"model";

fn pool(num_blocks: usize) -> BlockPool {
    BlockPool::new(num_blocks, 2).unwrap()
}

/// A sequence of `tokens`, allocated and indexed as far as its blocks are full.
fn indexed(pool: &mut BlockPool, tokens: &[i32]) -> Vec<BlockId> {
    let blocks = pool.allocate(tokens.len() / 2).unwrap();
    assert_eq!(pool.insert(SALT, tokens, &blocks, 0).unwrap(), blocks);
    blocks
}

fn release_tail_first(pool: &mut BlockPool, blocks: &[BlockId]) {
    let reversed: Vec<BlockId> = blocks.iter().rev().copied().collect();
    pool.release(&reversed).unwrap();
}

#[test]
fn an_impossible_allocation_evicts_nothing() {
    let mut pool = pool(3);
    let blocks = indexed(&mut pool, &[1, 2, 3, 4]);
    release_tail_first(&mut pool, &blocks);
    let before = pool.stats();
    assert_eq!(
        pool.allocate(4),
        Err(PoolError::OutOfBlocks {
            wanted: 4,
            free: 3,
            total: 3
        })
    );
    assert_eq!(pool.stats(), before);
    assert_eq!(pool.match_prefix(SALT, &[1, 2, 3, 4]), blocks);
}

#[test]
fn released_indexed_blocks_stay_cached_until_they_are_reused() {
    let mut pool = pool(2);
    let blocks = indexed(&mut pool, &[1, 2]);
    pool.release(&blocks).unwrap();
    assert_eq!(pool.allocator().state(blocks[0]), BlockState::Cached);
    assert_eq!(pool.allocate(1).unwrap(), [1], "the free block goes first");
    assert_eq!(pool.allocate(1).unwrap(), blocks, "then the cached one");
    assert!(pool.match_prefix(SALT, &[1, 2]).is_empty());
    assert_eq!(pool.stats().evicted_total, 1);
}

#[test]
fn the_least_recently_released_sequence_is_evicted_first_and_its_tail_before_its_head() {
    let mut pool = pool(4);
    let old = indexed(&mut pool, &[1, 1, 2, 2]);
    let new = indexed(&mut pool, &[3, 3, 4, 4]);
    release_tail_first(&mut pool, &old);
    release_tail_first(&mut pool, &new);
    assert_eq!(pool.allocate(4).unwrap(), [old[1], old[0], new[1], new[0]]);
}

#[test]
fn a_tail_is_evicted_before_its_head_whatever_the_order_of_release() {
    let mut pool = pool(2);
    let blocks = indexed(&mut pool, &[1, 1, 2, 2]);
    pool.release(&blocks).unwrap();
    assert_eq!(pool.allocate(1).unwrap(), [blocks[1]]);
    assert_eq!(pool.match_prefix(SALT, &[1, 1, 2, 2]), [blocks[0]]);
    pool.check_integrity().unwrap();
}

#[test]
fn a_referenced_block_survives_the_eviction_of_its_released_head() {
    let mut pool = pool(2);
    let blocks = indexed(&mut pool, &[1, 1, 2, 2]);
    pool.release(&blocks[..1]).unwrap();
    assert!(
        pool.check_integrity().is_err(),
        "a child outlives its parent"
    );
    assert_eq!(pool.allocate(1).unwrap(), [blocks[0]]);
    assert_eq!(pool.allocator().ref_count(blocks[1]), 1);
    pool.check_integrity().unwrap();
}

#[test]
fn using_a_hit_takes_it_from_the_free_blocks() {
    let mut pool = pool(2);
    let blocks = indexed(&mut pool, &[1, 1, 2, 2]);
    release_tail_first(&mut pool, &blocks);
    let hit = pool.match_prefix(SALT, &[1, 1, 9]);
    pool.retain(&hit).unwrap();
    assert_eq!(pool.allocator().num_free(), 1);
    assert_eq!(pool.allocate(1).unwrap(), [blocks[1]], "never the hit");
}

#[test]
fn salts_share_nothing() {
    let mut pool = pool(2);
    let blocks = indexed(&mut pool, &[1, 2]);
    assert!(pool.match_prefix(b"other adapter", &[1, 2]).is_empty());
    let other = pool.allocate(1).unwrap();
    assert_eq!(
        pool.insert(b"other adapter", &[1, 2], &other, 0).unwrap(),
        other
    );
    assert_eq!(pool.match_prefix(SALT, &[1, 2]), blocks);
}

#[test]
fn a_match_ends_at_the_last_whole_block() {
    let mut pool = pool(2);
    let blocks = indexed(&mut pool, &[1, 2, 3, 4]);
    assert_eq!(pool.match_prefix(SALT, &[1, 2, 3]), blocks[..1]);
    assert_eq!(pool.match_prefix(SALT, &[1]), []);
}

#[test]
fn a_duplicate_names_the_indexed_block_and_hangs_nothing_below_it() {
    let mut pool = pool(4);
    let first = indexed(&mut pool, &[1, 2]);
    let second = pool.allocate(2).unwrap();
    let named = pool.insert(SALT, &[1, 2, 3, 4], &second, 0).unwrap();
    assert_eq!(named, [first[0], second[1]]);
    assert_eq!(pool.stats().indexed, 1);
    // With a reference to the indexed copy, the rest can be indexed.
    pool.retain(&first).unwrap();
    pool.release(&second[..1]).unwrap();
    assert_eq!(
        pool.insert(SALT, &[1, 2, 3, 4], &named, 1).unwrap(),
        [second[1]]
    );
    pool.check_integrity().unwrap();
}

#[test]
fn an_insertion_that_does_not_fit_indexes_nothing() {
    let mut pool = pool(4);
    let own = indexed(&mut pool, &[1, 2]);
    let fresh = pool.allocate(1).unwrap();
    let before = pool.stats();
    for (tokens, blocks, start, error) in [
        (
            &[5, 6, 1, 2][..],
            [fresh[0], own[0]],
            0,
            PoolError::IndexedElsewhere(own[0]),
        ),
        (
            &[5, 6, 5, 6],
            [fresh[0], fresh[0]],
            0,
            PoolError::IndexedElsewhere(fresh[0]),
        ),
        (
            &[9, 9, 5, 6],
            [own[0], fresh[0]],
            1,
            PoolError::UnknownPath { start: 1 },
        ),
        (
            &[1, 2, 5, 6],
            [own[0], 3],
            1,
            PoolError::IndexNotReferenced(3),
        ),
        (
            &[1, 2, 5, 6],
            [own[0], 4],
            1,
            PoolError::NoSuchBlock { block: 4, total: 4 },
        ),
        (
            &[1, 2, 5, 6],
            [own[0], fresh[0]],
            3,
            PoolError::UnknownPath { start: 3 },
        ),
    ] {
        assert_eq!(pool.insert(SALT, tokens, &blocks, start), Err(error));
        assert_eq!(pool.stats().indexed, before.indexed);
        pool.check_integrity().unwrap();
    }
    let short = pool.insert(SALT, &[1, 2, 5], &[own[0], fresh[0]], 1);
    assert_eq!(
        short,
        Err(PoolError::TooFewTokens {
            blocks: 2,
            block_size: 2,
            wanted: 4,
            given: 3
        })
    );
}

#[test]
fn an_incremental_insertion_begins_at_the_depth_it_says() {
    let mut pool = pool(3);
    let own = indexed(&mut pool, &[1, 2, 1, 2]);
    let fresh = pool.allocate(1).unwrap();
    let refused = pool.insert(SALT, &[1, 2, 5, 6], &[own[1], fresh[0]], 1);
    assert_eq!(refused, Err(PoolError::UnknownPath { start: 1 }));
}

#[test]
fn roots_go_with_their_last_block() {
    let mut pool = pool(2);
    assert!(pool.insert(SALT, &[], &[], 0).unwrap().is_empty());
    assert_eq!(pool.trie().root(SALT), None);
    let blocks = indexed(&mut pool, &[1, 2]);
    assert!(pool.trie().root(SALT).is_some());
    pool.release(&blocks).unwrap();
    pool.allocate(2).unwrap();
    assert_eq!(pool.trie().root(SALT), None);
    pool.check_integrity().unwrap();
}

#[test]
fn an_incremental_insertion_under_another_salt_is_refused() {
    let mut pool = pool(2);
    let own = indexed(&mut pool, &[1, 2]);
    let fresh = pool.allocate(1).unwrap();
    let blocks = [own[0], fresh[0]];
    let refused = pool.insert(b"other", &[1, 2, 3, 4], &blocks, 1);
    assert_eq!(refused, Err(PoolError::UnknownPath { start: 1 }));
}

#[test]
fn releasing_more_than_is_held_changes_nothing() {
    let mut pool = pool(2);
    let blocks = pool.allocate(2).unwrap();
    let before = pool.stats();
    let twice = [blocks[1], blocks[0], blocks[0]];
    assert_eq!(
        pool.release(&twice),
        Err(PoolError::NotReferenced(blocks[0]))
    );
    assert_eq!(
        pool.release(&[7]),
        Err(PoolError::NoSuchBlock { block: 7, total: 2 })
    );
    assert_eq!(pool.stats(), before);
    pool.check_integrity().unwrap();
}

#[test]
fn a_free_block_cannot_be_retained() {
    let mut pool = pool(1);
    assert_eq!(pool.retain(&[0]), Err(PoolError::BlockIsFree(0)));
    assert_eq!(pool.pin(&[0]), Err(PoolError::BlockIsFree(0)));
}

#[test]
fn reference_counts_do_not_overflow() {
    let mut pool = pool(1);
    let block = pool.allocate(1).unwrap()[0];
    pool.retain(&vec![block; 65534]).unwrap();
    assert_eq!(
        pool.retain(&[block]),
        Err(PoolError::TooManyReferences(block))
    );
    assert_eq!(pool.allocator().ref_count(block), u16::MAX);
}

#[test]
fn a_pinned_block_is_not_reused_before_it_is_unpinned() {
    let mut pool = pool(1);
    let blocks = pool.allocate(1).unwrap();
    pool.pin(&blocks).unwrap();
    pool.release(&blocks).unwrap();
    assert_eq!(pool.allocator().state(blocks[0]), BlockState::Active);
    assert!(pool.allocate(1).is_err());
    pool.unpin(&blocks).unwrap();
    assert_eq!(pool.unpin(&blocks), Err(PoolError::NotPinned(blocks[0])));
    assert_eq!(pool.allocate(1).unwrap(), blocks);
}

#[test]
fn a_reused_block_has_a_new_generation() {
    let mut pool = pool(1);
    let block = pool.allocate(1).unwrap()[0];
    let first = pool.allocator().generation(block);
    pool.release(&[block]).unwrap();
    pool.allocate(1).unwrap();
    assert_ne!(pool.allocator().generation(block), first);
}

#[test]
fn clearing_the_index_frees_what_is_cached_and_keeps_what_is_held() {
    let mut pool = pool(3);
    let cached = indexed(&mut pool, &[1, 1, 2, 2]);
    let held = indexed(&mut pool, &[3, 3]);
    release_tail_first(&mut pool, &cached);
    assert_eq!(pool.clear_index(), 3);
    let stats = pool.stats();
    assert_eq!(
        (stats.free, stats.cached, stats.active, stats.indexed),
        (2, 0, 1, 0)
    );
    pool.release(&held).unwrap();
    assert_eq!(pool.stats().free, 3);
    pool.check_integrity().unwrap();
}

#[test]
fn sizes_that_make_no_pool_are_refused() {
    let limit = BlockAllocator::MAX_BLOCKS;
    for given in [0, limit + 1] {
        assert_eq!(
            BlockPool::new(given, 2).unwrap_err(),
            PoolError::PoolSize { given, limit }
        );
    }
    for given in [0, 256] {
        let limit = 255;
        assert_eq!(
            BlockPool::new(1, given).unwrap_err(),
            PoolError::BlockSize { given, limit }
        );
    }
}

#[test]
fn a_duplicate_is_swapped_for_the_indexed_copy_and_new_blocks_hang_below_that() {
    let mut pool = pool(6);
    let first = indexed(&mut pool, &[1, 1, 2, 2]);
    let mut own = pool.allocate(3).unwrap();
    let given = own.clone();
    let adopted = pool
        .index_or_adopt(SALT, &[1, 1, 2, 2, 3, 3], &mut own, 0)
        .unwrap();
    assert_eq!(adopted, 2);
    assert_eq!(own, [first[0], first[1], given[2]]);
    assert_eq!(pool.allocator().ref_count(first[0]), 2);
    assert_eq!(pool.allocator().state(given[0]), BlockState::Free);
    assert_eq!(pool.match_prefix(SALT, &[1, 1, 2, 2, 3, 3]), own);
    pool.check_integrity().unwrap();
    release_tail_first(&mut pool, &first);
    release_tail_first(&mut pool, &own);
    assert_eq!(pool.stats().cached, 3);
    pool.check_integrity().unwrap();
}

#[test]
fn adopting_goes_on_where_an_earlier_call_stopped_and_repeats_without_effect() {
    let mut pool = pool(6);
    let mut own = pool.allocate(3).unwrap();
    let given = own.clone();
    let tokens = [1, 1, 2, 2, 3, 3];
    assert_eq!(pool.index_or_adopt(SALT, &tokens, &mut own[..1], 0), Ok(0));
    for _ in 0..2 {
        assert_eq!(pool.index_or_adopt(SALT, &tokens, &mut own, 1), Ok(0));
        assert_eq!(own, given);
    }
    assert_eq!(pool.match_prefix(SALT, &tokens), given);
    pool.check_integrity().unwrap();
}
