//! Why the pool refuses an operation. A refused operation changed nothing.

use thiserror::Error;

use crate::BlockId;

/// A refused operation, as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoolError {
    #[error(
        "{wanted} KV blocks are wanted and {free} of {total} can be had; wait for running requests to end"
    )]
    OutOfBlocks {
        wanted: usize,
        free: usize,
        total: usize,
    },
    #[error("block {block} does not exist in a pool of {total}")]
    NoSuchBlock { block: i64, total: usize },
    #[error("block {0} is given back more often than it is held")]
    NotHeld(BlockId),
    #[error("block {0} is free and holds nothing to keep; allocate a block instead")]
    NothingToRetain(BlockId),
    #[error("block {0} has 65535 holders, and no more can be counted")]
    TooManyHolders(BlockId),
    #[error("block {0} is unpinned more often than it is pinned")]
    NotPinned(BlockId),
    #[error("block {0} must be held by whoever indexes it")]
    IndexNotHeld(BlockId),
    #[error("block {0} is already indexed under other tokens")]
    IndexedElsewhere(BlockId),
    #[error(
        "blocks before {start} are not the indexed path of these tokens; insert from the first block"
    )]
    UnknownPath { start: usize },
    #[error("{blocks} blocks of {block_size} need {wanted} tokens, and {given} are given")]
    TooFewTokens {
        blocks: usize,
        block_size: usize,
        wanted: usize,
        given: usize,
    },
    #[error("a pool has 1 to {limit} blocks, not {given}")]
    PoolSize { given: usize, limit: usize },
    #[error("a block holds 1 to {limit} tokens, not {given}")]
    BlockSize { given: usize, limit: usize },
}

/// An invariant that does not hold: a bug in here or in a caller.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("KV block bookkeeping is damaged: {0}")]
pub struct IntegrityError(pub String);
