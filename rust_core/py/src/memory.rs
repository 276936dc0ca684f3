//! `BlockAllocator`, `PrefixTrie` and `AllocatorStats` for Python: two handles on one locked pool.
//!
//! Every call holds the pool's lock for its duration and calls no Python meanwhile, so calls from several threads are
//! atomic. Only the walks over all blocks release the GIL: the other calls take microseconds, less than releasing it.

use std::sync::{Arc, Mutex, MutexGuard};

use numpy::{
    IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2,
    PyUntypedArrayMethods,
};
use pravaha_core::{BlockId, BlockPool, PoolError};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyAssertionError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    engine._core,
    OutOfBlocks,
    PyRuntimeError,
    "More KV blocks were requested than are free or cached; nothing was evicted."
);
create_exception!(
    engine._core,
    IntegrityError,
    PyAssertionError,
    "An invariant of the block bookkeeping is violated: a bug in the engine."
);

/// Adds this file's classes and exceptions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("OutOfBlocks", py.get_type::<OutOfBlocks>())?;
    module.add("IntegrityError", py.get_type::<IntegrityError>())?;
    module.add_class::<AllocatorStats>()?;
    module.add_class::<BlockAllocator>()?;
    module.add_class::<PrefixTrie>()
}

/// Current counts of blocks, and counters since the pool was created.
#[pyclass(frozen, get_all, module = "engine._core")]
struct AllocatorStats {
    num_blocks: usize,
    block_size: usize,
    free: usize,
    cached: usize,
    active: usize,
    pinned: usize,
    indexed: usize,
    allocated_total: u64,
    evicted_total: u64,
    epoch: u64,
}

impl From<pravaha_core::AllocatorStats> for AllocatorStats {
    fn from(stats: pravaha_core::AllocatorStats) -> Self {
        Self {
            num_blocks: stats.num_blocks,
            block_size: stats.block_size,
            free: stats.free,
            cached: stats.cached,
            active: stats.active,
            pinned: stats.pinned,
            indexed: stats.indexed,
            allocated_total: stats.allocated_total,
            evicted_total: stats.evicted_total,
            epoch: stats.epoch,
        }
    }
}

/// The pool behind both handles.
#[derive(Clone)]
pub(crate) struct SharedPool(Arc<Mutex<BlockPool>>);

impl SharedPool {
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, BlockPool>> {
        self.0.lock().map_err(|_| {
            IntegrityError::new_err("KV block bookkeeping is damaged: an earlier call panicked")
        })
    }
}

fn refused(error: PoolError) -> PyErr {
    match error {
        PoolError::OutOfBlocks { .. } => OutOfBlocks::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Token or block ids, copied from an int32 array or from any sequence of integers.
pub(crate) struct Ids(pub(crate) Vec<i32>);

impl<'py> FromPyObject<'_, 'py> for Ids {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArray1<'py, i32>>() {
            return Ok(Self(array.as_array().to_vec()));
        }
        object.extract().map(Self).map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(object.py()) {
                PyValueError::new_err("an id does not fit 32 bits")
            } else {
                PyTypeError::new_err("ids are a one-dimensional int32 array or a sequence of ints")
            }
        })
    }
}

impl Ids {
    /// As block ids; the pool checks the upper bound.
    pub(crate) fn blocks(&self, num_blocks: usize) -> PyResult<Vec<BlockId>> {
        let id = |&block: &i32| {
            BlockId::try_from(block).map_err(|_| {
                refused(PoolError::NoSuchBlock {
                    block: i64::from(block),
                    total: num_blocks,
                })
            })
        };
        self.0.iter().map(id).collect()
    }
}

/// Block ids as int32: pools have at most 2^24 blocks.
pub(crate) fn to_array(py: Python<'_>, blocks: Vec<BlockId>) -> Bound<'_, PyArray1<i32>> {
    blocks
        .into_iter()
        .map(|block| block as i32)
        .collect::<Vec<_>>()
        .into_pyarray(py)
}

/// Reference counts and the free list of KV blocks. Thread-safe.
#[pyclass(frozen, module = "engine._core")]
struct BlockAllocator {
    pool: SharedPool,
    num_blocks: usize,
    block_size: usize,
}

impl BlockAllocator {
    /// Runs `operation` on the pool with `blocks` as ids.
    fn with_blocks(
        &self,
        blocks: &Ids,
        operation: fn(&mut BlockPool, &[BlockId]) -> Result<(), PoolError>,
    ) -> PyResult<()> {
        let blocks = blocks.blocks(self.num_blocks)?;
        operation(&mut *self.pool.lock()?, &blocks).map_err(refused)
    }

    /// `blocks` as ids, all of which exist in the pool.
    fn existing(&self, blocks: &Ids) -> PyResult<Vec<BlockId>> {
        let blocks = blocks.blocks(self.num_blocks)?;
        match blocks.iter().find(|&&id| id as usize >= self.num_blocks) {
            Some(&id) => Err(refused(PoolError::NoSuchBlock {
                block: i64::from(id),
                total: self.num_blocks,
            })),
            None => Ok(blocks),
        }
    }

    /// One value per block, with the GIL released.
    fn per_block<T: Send>(
        &self,
        py: Python<'_>,
        value: impl Fn(&pravaha_core::BlockAllocator, BlockId) -> T + Sync,
    ) -> PyResult<Vec<T>> {
        py.detach(|| {
            let pool = self.pool.lock()?;
            Ok((0..self.num_blocks as BlockId)
                .map(|id| value(pool.allocator(), id))
                .collect())
        })
    }
}

#[pymethods]
impl BlockAllocator {
    #[new]
    fn new(num_blocks: usize, block_size: usize) -> PyResult<Self> {
        let pool = BlockPool::new(num_blocks, block_size).map_err(refused)?;
        Ok(Self {
            pool: SharedPool(Arc::new(Mutex::new(pool))),
            num_blocks,
            block_size,
        })
    }

    /// Blocks in the pool.
    #[getter]
    fn num_blocks(&self) -> usize {
        self.num_blocks
    }

    /// Tokens in a block.
    #[getter]
    fn block_size(&self) -> usize {
        self.block_size
    }

    /// Blocks that `allocate` can return: free and cached ones.
    #[getter]
    fn num_free(&self) -> PyResult<usize> {
        Ok(self.pool.lock()?.allocator().num_free())
    }

    /// Allocates `count` blocks, each with one reference.
    fn allocate<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let blocks = self.pool.lock()?.allocate(count).map_err(refused)?;
        Ok(to_array(py, blocks))
    }

    /// Adds a reference to each block.
    fn retain(&self, blocks: Ids) -> PyResult<()> {
        self.with_blocks(&blocks, BlockPool::retain)
    }

    /// Removes a reference from each block, in the order given.
    fn release(&self, blocks: Ids) -> PyResult<()> {
        self.with_blocks(&blocks, BlockPool::release)
    }

    /// Keeps each block from being reused until `unpin`.
    fn pin(&self, blocks: Ids) -> PyResult<()> {
        self.with_blocks(&blocks, BlockPool::pin)
    }

    /// Undoes one `pin` of each block.
    fn unpin(&self, blocks: Ids) -> PyResult<()> {
        self.with_blocks(&blocks, BlockPool::unpin)
    }

    /// The current statistics.
    fn stats(&self) -> PyResult<AllocatorStats> {
        Ok(self.pool.lock()?.stats().into())
    }

    /// State of each block.
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let states = self.per_block(py, |allocator, block| allocator.state(block) as u8)?;
        Ok(states.into_pyarray(py))
    }

    /// References to each block.
    fn refcounts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let holders = self.per_block(py, pravaha_core::BlockAllocator::ref_count)?;
        Ok(holders.into_pyarray(py))
    }

    /// Pins of each block.
    fn pins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let pins = self.per_block(py, pravaha_core::BlockAllocator::pins)?;
        Ok(pins.into_pyarray(py))
    }

    /// Epoch at which each block last lost its last reference or pin.
    fn released_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let epochs = self.per_block(py, pravaha_core::BlockAllocator::released_at)?;
        Ok(epochs.into_pyarray(py))
    }

    /// How often each block has been allocated.
    fn generations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let generations = self.per_block(py, pravaha_core::BlockAllocator::generation)?;
        Ok(generations.into_pyarray(py))
    }

    /// References to each block, one more if it is indexed.
    fn claims<'py>(&self, py: Python<'py>, blocks: Ids) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let blocks = self.existing(&blocks)?;
        let pool = self.pool.lock()?;
        let allocator = pool.allocator();
        let claims: Vec<i32> = blocks
            .into_iter()
            .map(|id| i32::from(allocator.ref_count(id)) + i32::from(allocator.is_indexed(id)))
            .collect();
        Ok(claims.into_pyarray(py))
    }

    /// How many of the blocks are neither referenced nor pinned.
    fn count_available(&self, blocks: Ids) -> PyResult<usize> {
        let blocks = self.existing(&blocks)?;
        let pool = self.pool.lock()?;
        let available = |id: &BlockId| pool.allocator().is_available(*id);
        Ok(blocks.iter().filter(|&id| available(id)).count())
    }

    /// Checks every invariant of allocator and trie.
    fn check_integrity(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let outcome = self.pool.lock()?.check_integrity();
            outcome.map_err(|error| IntegrityError::new_err(error.to_string()))
        })
    }
}

/// Depth, parent block, child blocks and tokens of a node.
type NodeView<'py> = (
    usize,
    Option<BlockId>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
);

/// Parents, lengths and blocks of chains, and whether some were left out.
type ChainArrays<'py> = (
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    bool,
);

/// Index of the tokens whose KV the blocks of a `BlockAllocator` hold. Thread-safe.
#[pyclass(frozen, module = "engine._core")]
pub(crate) struct PrefixTrie {
    pub(crate) pool: SharedPool,
    pub(crate) num_blocks: usize,
    pub(crate) block_size: usize,
}

#[pymethods]
impl PrefixTrie {
    #[new]
    fn new(allocator: &Bound<'_, BlockAllocator>) -> Self {
        let allocator = allocator.get();
        Self {
            pool: allocator.pool.clone(),
            num_blocks: allocator.num_blocks,
            block_size: allocator.block_size,
        }
    }

    /// Tokens in a block.
    #[getter]
    fn block_size(&self) -> usize {
        self.block_size
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.pool.lock()?.trie().len())
    }

    /// The blocks of the longest indexed prefix.
    fn match_prefix<'py>(
        &self,
        py: Python<'py>,
        salt: &[u8],
        tokens: Ids,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let blocks = self.pool.lock()?.match_prefix(salt, &tokens.0);
        Ok(to_array(py, blocks))
    }

    /// Indexes full blocks of one sequence.
    #[pyo3(signature = (salt, tokens, blocks, *, start = 0))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        salt: &[u8],
        tokens: Ids,
        blocks: Ids,
        start: usize,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let blocks = blocks.blocks(self.num_blocks)?;
        let named = self
            .pool
            .lock()?
            .insert(salt, &tokens.0, &blocks, start)
            .map_err(refused)?;
        Ok(to_array(py, named))
    }

    /// Indexes the full blocks of many sequences.
    #[pyo3(signature = (salt, token_table, block_tables, rows, start, stop))]
    #[allow(clippy::too_many_arguments)]
    fn index_rows(
        &self,
        salt: &[u8],
        token_table: PyReadonlyArray2<'_, i32>,
        mut block_tables: PyReadwriteArray2<'_, i32>,
        rows: Ids,
        start: Ids,
        stop: Ids,
    ) -> PyResult<usize> {
        let runs = rows.0.iter().zip(&start.0).zip(&stop.0);
        if rows.0.len() != start.0.len() || rows.0.len() != stop.0.len() {
            return Err(PyValueError::new_err(
                "rows, start and stop must be equally long",
            ));
        }
        let (max_tokens, max_blocks) = (token_table.shape()[1], block_tables.shape()[1]);
        let max_rows = token_table.shape()[0].min(block_tables.shape()[0]);
        let max_full = max_blocks.min(max_tokens / self.block_size);
        let tokens = token_table.as_slice()?;
        let tables = block_tables.as_slice_mut()?;
        let mut pool = self.pool.lock()?;
        let mut adopted = 0;
        for ((&row, &start), &stop) in runs {
            let run =
                [row, start, stop].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
            let [at, first, end] = run;
            if at >= max_rows || first > end || end > max_full {
                return Err(PyValueError::new_err(format!(
                    "row {row} cannot have full blocks [{start}, {stop})"
                )));
            }
            let table = &mut tables[at * max_blocks..][..end];
            let known = &tokens[at * max_tokens..][..end * self.block_size];
            let mut blocks = Ids(table.to_vec()).blocks(self.num_blocks)?;
            let outcome = pool.index_or_adopt(salt, known, &mut blocks, first);
            for (entry, block) in table.iter_mut().zip(blocks) {
                *entry = block as i32;
            }
            adopted += outcome.map_err(refused)?;
        }
        Ok(adopted)
    }

    /// The node of one block: depth, parent block, child blocks and tokens; None if it is not indexed.
    fn node<'py>(&self, py: Python<'py>, block: usize) -> PyResult<Option<NodeView<'py>>> {
        if block >= self.num_blocks {
            return Err(refused(PoolError::NoSuchBlock {
                block: block as i64,
                total: self.num_blocks,
            }));
        }
        let pool = self.pool.lock()?;
        let trie = pool.trie();
        let Some(node) = trie.node_of(block as BlockId) else {
            return Ok(None);
        };
        let depth = trie.depth(node);
        let parent = trie.parent(node).filter(|_| depth > 1);
        let children = trie.children(node).map(|child| trie.block(child)).collect();
        Ok(Some((
            depth,
            parent.map(|parent| trie.block(parent)),
            to_array(py, children),
            trie.tokens(node).to_vec().into_pyarray(py),
        )))
    }

    /// The trie as chains.
    fn chains<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<ChainArrays<'py>> {
        let chains = py.detach(|| {
            let pool = self.pool.lock()?;
            Ok::<_, PyErr>(pravaha_core::PrefixChains::of(pool.trie(), limit))
        })?;
        Ok((
            chains.parents.into_pyarray(py),
            chains.lengths.into_pyarray(py),
            to_array(py, chains.blocks),
            chains.truncated,
        ))
    }

    /// Empties the trie.
    fn clear(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| Ok(self.pool.lock()?.clear_index()))
    }
}
