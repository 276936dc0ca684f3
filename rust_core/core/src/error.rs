//! Errors of the pool. A failed operation changed nothing.

use thiserror::Error;

use crate::BlockId;

/// Why an operation failed, as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoolError {
    #[error(
        "{wanted} KV blocks are needed, but only {free} of {total} are available; wait for running requests to finish"
    )]
    OutOfBlocks {
        wanted: usize,
        free: usize,
        total: usize,
    },
    #[error("block {block} does not exist in a pool of {total}")]
    NoSuchBlock { block: i64, total: usize },
    #[error("block {0} is released more often than it is referenced")]
    NotReferenced(BlockId),
    #[error("block {0} is free and has no contents to keep; allocate a block instead")]
    BlockIsFree(BlockId),
    #[error("block {0} has 65535 references, the most that can be counted")]
    TooManyReferences(BlockId),
    #[error("block {0} is unpinned more often than it is pinned")]
    NotPinned(BlockId),
    #[error("block {0} must be referenced by the caller that indexes it")]
    IndexNotReferenced(BlockId),
    #[error("block {0} is already indexed under other tokens")]
    IndexedElsewhere(BlockId),
    #[error(
        "blocks before {start} are not the indexed path of these tokens; insert from the first block"
    )]
    UnknownPath { start: usize },
    #[error("{blocks} blocks of {block_size} tokens need {wanted} tokens, but {given} are given")]
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

/// A violated invariant: a bug in this crate or in a caller.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("KV block bookkeeping is damaged: {0}")]
pub struct IntegrityError(pub String);
