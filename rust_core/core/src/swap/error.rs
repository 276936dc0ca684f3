//! Errors of opening the swap tier, one sentence each.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The tier could not be opened. The engine runs without it and recomputes evicted blocks.
#[derive(Debug, Error)]
pub enum SwapError {
    #[error("the swap file {0} is in use by another Pravāha")]
    InUse(PathBuf),
    #[error("the swap file {path} cannot be used: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{capacity} bytes of swap hold no entry: one takes {entry}")]
    TooSmall { capacity: u64, entry: u64 },
    #[error("memory for the swap tier cannot be reserved: {0}")]
    Memory(io::Error),
    #[error("blocks of {block_size} tokens and {block_bytes} bytes cannot be swapped")]
    Geometry {
        block_size: usize,
        block_bytes: usize,
    },
}
