//! Random traffic against a naive model: plain vectors and maps, no links, no hashes.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use pravaha_core::{BlockId, BlockPool, BlockState, PoolError, TokenId};
use proptest::prelude::*;

const NUM_BLOCKS: usize = 12;
const BLOCK_SIZE: usize = 2;

/// Sends every key to the same bucket.
#[derive(Default)]
struct Collide;

impl Hasher for Collide {
    fn finish(&self) -> u64 {
        7
    }

    fn write(&mut self, _: &[u8]) {}
}

/// The salt and the blocks of tokens from the root.
type Path = (Vec<u8>, Vec<Vec<TokenId>>);

/// A naive model of the pool.
#[derive(Default)]
struct Model {
    holders: [u32; NUM_BLOCKS],
    pins: [u32; NUM_BLOCKS],
    /// Free and cached blocks in the order of reuse.
    order: Vec<BlockId>,
    /// Path → (block, when it was inserted).
    index: BTreeMap<Path, (BlockId, u64)>,
    inserted: u64,
    evicted: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            order: (0..NUM_BLOCKS as BlockId).collect(),
            ..Self::default()
        }
    }

    fn path_of(&self, block: BlockId) -> Option<Path> {
        self.index
            .iter()
            .find(|(_, (named, _))| *named == block)
            .map(|(path, _)| path.clone())
    }

    fn newest_child(&self, parent: &Path) -> Option<Path> {
        self.index
            .iter()
            .filter(|((salt, blocks), _)| {
                *salt == parent.0
                    && blocks.len() == parent.1.len() + 1
                    && blocks[..parent.1.len()] == parent.1[..]
            })
            .max_by_key(|(_, (_, inserted))| *inserted)
            .map(|(path, _)| path.clone())
    }

    fn allocate(&mut self, count: usize) -> Option<Vec<BlockId>> {
        if count > self.order.len() {
            return None;
        }
        let mut taken = Vec::new();
        while taken.len() < count {
            let mut block = self.order[0];
            if let Some(mut path) = self.path_of(block) {
                while let Some(child) = self.newest_child(&path) {
                    path = child;
                }
                block = self.index.remove(&path).unwrap().0;
                if !self.order.contains(&block) {
                    continue;
                }
                self.evicted += 1;
            }
            self.order.retain(|&other| other != block);
            self.holders[block as usize] = 1;
            taken.push(block);
        }
        Some(taken)
    }

    fn retain(&mut self, blocks: &[BlockId]) {
        for &block in blocks {
            self.holders[block as usize] += 1;
            self.order.retain(|&other| other != block);
        }
    }

    fn settle(&mut self, block: BlockId) {
        if self.holders[block as usize] > 0 || self.pins[block as usize] > 0 {
            return;
        }
        if self.path_of(block).is_some() {
            self.order.push(block);
        } else {
            self.order.insert(0, block);
        }
    }

    fn release(&mut self, blocks: &[BlockId]) {
        for &block in blocks {
            self.holders[block as usize] -= 1;
            self.settle(block);
        }
    }

    fn state(&self, block: BlockId) -> BlockState {
        match (self.order.contains(&block), self.path_of(block).is_some()) {
            (false, _) => BlockState::Active,
            (true, true) => BlockState::Cached,
            (true, false) => BlockState::Free,
        }
    }

    fn matched(&self, salt: &[u8], tokens: &[TokenId]) -> Vec<BlockId> {
        let blocks: Vec<Vec<TokenId>> =
            tokens.chunks_exact(BLOCK_SIZE).map(<[_]>::to_vec).collect();
        (1..=blocks.len())
            .map_while(|n| self.index.get(&(salt.to_vec(), blocks[..n].to_vec())))
            .map(|&(block, _)| block)
            .collect()
    }

    fn insert(&mut self, salt: &[u8], tokens: &[TokenId], blocks: &[BlockId]) -> Vec<BlockId> {
        let mut named = blocks.to_vec();
        for (at, &own) in blocks.iter().enumerate() {
            let path = tokens[..(at + 1) * BLOCK_SIZE]
                .chunks(BLOCK_SIZE)
                .map(<[_]>::to_vec)
                .collect();
            self.inserted += 1;
            let inserted = self.inserted;
            let entry = self
                .index
                .entry((salt.to_vec(), path))
                .or_insert((own, inserted));
            named[at] = entry.0;
            if entry.0 != own {
                break;
            }
        }
        named
    }
}

/// A running sequence, as the block manager keeps it.
#[derive(Clone)]
struct Sequence {
    salt: Vec<u8>,
    tokens: Vec<TokenId>,
    blocks: Vec<BlockId>,
    indexed: usize,
}

#[derive(Debug, Clone)]
enum Op {
    Start {
        salt: u8,
        tokens: Vec<TokenId>,
    },
    Grow {
        sequence: usize,
        tokens: Vec<TokenId>,
    },
    Index {
        sequence: usize,
        incremental: bool,
    },
    Finish {
        sequence: usize,
        tail_first: bool,
    },
    Pin {
        sequence: usize,
    },
    Unpin {
        pin: usize,
    },
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let tokens = |longest| prop::collection::vec(0..2i32, 1..=longest);
    prop_oneof![
        4 => (0..2u8, tokens(9)).prop_map(|(salt, tokens)| Op::Start { salt, tokens }),
        3 => (any::<usize>(), tokens(4))
            .prop_map(|(sequence, tokens)| Op::Grow { sequence, tokens }),
        5 => (any::<usize>(), any::<bool>())
            .prop_map(|(sequence, incremental)| Op::Index { sequence, incremental }),
        4 => (any::<usize>(), prop::bool::weighted(0.8))
            .prop_map(|(sequence, tail_first)| Op::Finish { sequence, tail_first }),
        1 => any::<usize>().prop_map(|sequence| Op::Pin { sequence }),
        1 => any::<usize>().prop_map(|pin| Op::Unpin { pin }),
        1 => Just(Op::Clear),
    ]
}

struct Traffic<S> {
    pool: BlockPool<S>,
    model: Model,
    running: Vec<Sequence>,
    pins: Vec<Vec<BlockId>>,
}

impl<S: BuildHasher> Traffic<S> {
    fn allocate(&mut self, count: usize) -> Option<Vec<BlockId>> {
        let before = self.pool.stats();
        let blocks = self.pool.allocate(count);
        assert_eq!(blocks.as_ref().ok(), self.model.allocate(count).as_ref());
        if let Err(error) = &blocks {
            let (free, total) = (before.free + before.cached, NUM_BLOCKS);
            assert_eq!(
                *error,
                PoolError::OutOfBlocks {
                    wanted: count,
                    free,
                    total
                }
            );
            assert_eq!(
                self.pool.stats(),
                before,
                "a refused allocation changed something"
            );
        }
        blocks.ok()
    }

    fn release(&mut self, blocks: &[BlockId]) {
        self.pool.release(blocks).unwrap();
        self.model.release(blocks);
    }

    fn start(&mut self, salt: u8, tokens: Vec<TokenId>) {
        let salt = vec![salt];
        // The last token is always computed, in a block that the sequence may write.
        let mut blocks = self.pool.match_prefix(&salt, &tokens[..tokens.len() - 1]);
        assert_eq!(
            blocks,
            self.model.matched(&salt, &tokens[..tokens.len() - 1])
        );
        self.pool.retain(&blocks).unwrap();
        self.model.retain(&blocks);
        let indexed = blocks.len();
        match self.allocate(tokens.len().div_ceil(BLOCK_SIZE) - indexed) {
            Some(fresh) => {
                assert!(
                    fresh.iter().all(|block| !blocks.contains(block)),
                    "evicted its own hits"
                );
                blocks.extend(fresh);
                self.running.push(Sequence {
                    salt,
                    tokens,
                    blocks,
                    indexed,
                });
            }
            None => {
                blocks.reverse();
                self.release(&blocks);
            }
        }
    }

    fn grow(&mut self, at: usize, tokens: &[TokenId]) {
        let length = self.running[at].tokens.len() + tokens.len();
        let missing = length.div_ceil(BLOCK_SIZE) - self.running[at].blocks.len();
        if let Some(fresh) = self.allocate(missing) {
            self.running[at].tokens.extend(tokens);
            self.running[at].blocks.extend(fresh);
        }
    }

    fn index(&mut self, at: usize, incremental: bool) {
        let Sequence {
            salt,
            tokens,
            mut blocks,
            indexed,
        } = self.running[at].clone();
        let full = tokens.len() / BLOCK_SIZE;
        let start = if incremental { indexed } else { 0 };
        let named = self
            .pool
            .insert(&salt, &tokens, &blocks[..full], start)
            .unwrap();
        assert_eq!(
            named,
            self.model.insert(&salt, &tokens, &blocks[..full])[start..]
        );
        self.running[at].indexed = full;
        // Take the indexed copy instead of a duplicate; the blocks after it are indexed next time.
        if let Some(duplicate) = (start..full).find(|&i| named[i - start] != blocks[i]) {
            let (own, shared) = (blocks[duplicate], named[duplicate - start]);
            self.pool.retain(&[shared]).unwrap();
            self.model.retain(&[shared]);
            self.release(&[own]);
            blocks[duplicate] = shared;
            self.running[at].blocks = blocks;
            self.running[at].indexed = duplicate + 1;
        }
    }

    fn finish(&mut self, at: usize, tail_first: bool) {
        let mut blocks = self.running.swap_remove(at).blocks;
        if tail_first {
            blocks.reverse();
        }
        self.release(&blocks);
    }

    fn apply(&mut self, op: Op) {
        let running = self.running.len();
        match op {
            Op::Start { salt, tokens } => self.start(salt, tokens),
            Op::Grow { sequence, tokens } if running > 0 => self.grow(sequence % running, &tokens),
            Op::Index {
                sequence,
                incremental,
            } if running > 0 => {
                self.index(sequence % running, incremental);
            }
            Op::Finish {
                sequence,
                tail_first,
            } if running > 0 => {
                self.finish(sequence % running, tail_first);
            }
            Op::Pin { sequence } if running > 0 => {
                let blocks = self.running[sequence % running].blocks.clone();
                self.pool.pin(&blocks).unwrap();
                blocks
                    .iter()
                    .for_each(|&block| self.model.pins[block as usize] += 1);
                self.pins.push(blocks);
            }
            Op::Unpin { pin } if !self.pins.is_empty() => self.unpin(pin % self.pins.len()),
            Op::Clear => {
                assert_eq!(self.pool.clear_index(), self.model.index.len());
                self.model.index.clear();
                // The pool frees leaves first; the model need not know in which order.
                self.model.order = self.pool.allocator().eviction_order().collect();
                self.running
                    .iter_mut()
                    .for_each(|sequence| sequence.indexed = 0);
            }
            _ => {}
        }
    }

    fn unpin(&mut self, at: usize) {
        let blocks = self.pins.swap_remove(at);
        self.pool.unpin(&blocks).unwrap();
        for block in blocks {
            self.model.pins[block as usize] -= 1;
            self.model.settle(block);
        }
    }

    fn compare(&self) {
        self.pool.check_integrity().unwrap();
        let allocator = self.pool.allocator();
        assert_eq!(
            allocator.eviction_order().collect::<Vec<_>>(),
            self.model.order
        );
        for block in 0..NUM_BLOCKS as BlockId {
            assert_eq!(
                allocator.state(block),
                self.model.state(block),
                "state of {block}"
            );
            assert_eq!(
                u32::from(allocator.ref_count(block)),
                self.model.holders[block as usize]
            );
        }
        for ((salt, blocks), (block, _)) in &self.model.index {
            assert_eq!(
                self.pool.match_prefix(salt, &blocks.concat()).last(),
                Some(block)
            );
        }
        let stats = self.pool.stats();
        assert_eq!(stats.indexed, self.model.index.len());
        assert_eq!(stats.evicted_total, self.model.evicted);
        assert_eq!(stats.free + stats.cached + stats.active, NUM_BLOCKS);
    }

    fn run(hasher: S, ops: Vec<Op>) {
        let pool = BlockPool::with_hasher(NUM_BLOCKS, BLOCK_SIZE, hasher).unwrap();
        let mut traffic = Self {
            pool,
            model: Model::new(),
            running: vec![],
            pins: vec![],
        };
        for op in ops {
            traffic.apply(op);
            traffic.compare();
        }
        while !traffic.running.is_empty() {
            traffic.finish(0, true);
        }
        while !traffic.pins.is_empty() {
            traffic.unpin(0);
        }
        traffic.compare();
        assert_eq!(traffic.pool.stats().active, 0, "leaked blocks");
        traffic.pool.clear_index();
        assert_eq!(traffic.pool.stats().free, NUM_BLOCKS);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn r14_random_traffic_matches_the_model(ops in prop::collection::vec(op(), 0..120)) {
        Traffic::run(RandomState::new(), ops);
    }

    #[test]
    fn r06_hash_collisions_change_nothing(ops in prop::collection::vec(op(), 0..120)) {
        Traffic::run(BuildHasherDefault::<Collide>::default(), ops);
    }
}
