//! `SwapStore` for Python: KV blocks kept outside the pool.
//!
//! Calls that copy blocks release the GIL, and hold no lock while they copy.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods};
use pravaha_core::BlockId;
use pravaha_core::swap::{self, BlockEntry, EntryId, SwapError, SwapGeometry, saving};
use pyo3::exceptions::{PyAssertionError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::memory::{Ids, PrefixTrie, to_array};

/// Adds this file's classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SwapStats>()?;
    module.add_class::<SwapStore>()
}

/// Current entries, and counters since the store was opened.
#[pyclass(frozen, get_all, module = "engine._core")]
struct SwapStats {
    entries: usize,
    capacity: usize,
    evicted_total: u64,
    damaged_total: u64,
    written_bytes: u64,
    read_bytes: u64,
}

impl From<swap::SwapStats> for SwapStats {
    fn from(stats: swap::SwapStats) -> Self {
        Self {
            entries: stats.entries,
            capacity: stats.capacity,
            evicted_total: stats.evicted_total,
            damaged_total: stats.damaged_total,
            written_bytes: stats.written_bytes,
            read_bytes: stats.read_bytes,
        }
    }
}

fn refused(error: SwapError) -> PyErr {
    let message = error.to_string();
    match error {
        SwapError::InUse(_) | SwapError::File { .. } | SwapError::Memory(_) => {
            PyOSError::new_err(message)
        }
        SwapError::TooSmall { .. } | SwapError::Geometry { .. } => PyValueError::new_err(message),
    }
}

fn entries_array(py: Python<'_>, entries: Vec<EntryId>) -> Bound<'_, PyArray1<i64>> {
    let entries: Vec<i64> = entries.into_iter().map(|entry| entry as i64).collect();
    entries.into_pyarray(py)
}

type Saving<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i64>>);

/// KV blocks outside the pool, addressed by their contents. Thread-safe.
#[pyclass(frozen, module = "engine._core")]
struct SwapStore {
    /// None once closed.
    store: RwLock<Option<Arc<swap::SwapStore>>>,
}

impl SwapStore {
    fn open_store(&self) -> PyResult<Arc<swap::SwapStore>> {
        let guard = self.store.read().unwrap_or_else(PoisonError::into_inner);
        guard
            .clone()
            .ok_or_else(|| PyValueError::new_err("the swap store is closed"))
    }

    fn check_bytes(store: &swap::SwapStore, entries: usize, shape: &[usize]) -> PyResult<()> {
        let wanted = [entries, store.geometry().block_bytes];
        if shape == wanted {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "bytes of {entries} entries have the shape {wanted:?}, not {shape:?}"
        )))
    }

    /// Runs `reserve` on the trie's pool.
    fn saving<'py>(
        &self,
        py: Python<'py>,
        trie: &PrefixTrie,
        reserve: impl FnOnce(&mut pravaha_core::BlockPool, &swap::SwapStore) -> saving::Saving,
    ) -> PyResult<Saving<'py>> {
        let store = self.open_store()?;
        if trie.block_size != store.geometry().block_size {
            return Err(PyValueError::new_err(
                "the trie's blocks and the store's have different sizes",
            ));
        }
        let (blocks, entries) = reserve(&mut *trie.pool.lock()?, &store);
        Ok((to_array(py, blocks), entries_array(py, entries)))
    }

    /// Records the store's entry of each block.
    fn note(trie: &PrefixTrie, blocks: &Ids, entry: impl Fn(usize) -> BlockEntry) -> PyResult<()> {
        let blocks = existing(trie, blocks)?;
        let mut pool = trie.pool.lock()?;
        for (index, block) in blocks.into_iter().enumerate() {
            pool.set_entry(block, entry(index));
        }
        Ok(())
    }
}

/// `blocks` as ids, all of which exist in the trie's pool.
fn existing(trie: &PrefixTrie, blocks: &Ids) -> PyResult<Vec<BlockId>> {
    let blocks = blocks.blocks(trie.num_blocks)?;
    match blocks.iter().find(|&&id| id as usize >= trie.num_blocks) {
        Some(id) => Err(PyValueError::new_err(format!("there is no block {id}"))),
        None => Ok(blocks),
    }
}

fn entry_ids(entries: Vec<i64>) -> PyResult<Vec<EntryId>> {
    let id = |entry: i64| {
        EntryId::try_from(entry)
            .map_err(|_| PyValueError::new_err(format!("there is no swap entry {entry}")))
    };
    entries.into_iter().map(id).collect()
}

#[pymethods]
impl SwapStore {
    #[new]
    #[pyo3(signature = (path, *, identity, block_size, block_bytes, capacity_bytes))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        identity: &[u8],
        block_size: usize,
        block_bytes: usize,
        capacity_bytes: u64,
    ) -> PyResult<Self> {
        let identity = identity
            .try_into()
            .map_err(|_| PyValueError::new_err("a store's identity has 32 bytes"))?;
        let geometry = SwapGeometry {
            block_size,
            block_bytes,
        };
        let opened = py
            .detach(|| swap::SwapStore::open(path.as_deref(), identity, geometry, capacity_bytes));
        Ok(Self {
            store: RwLock::new(Some(Arc::new(opened.map_err(refused)?))),
        })
    }

    /// The problem found in the file, or None.
    #[getter]
    fn notice(&self) -> PyResult<Option<String>> {
        Ok(self.open_store()?.notice().map(str::to_owned))
    }

    /// Whether it outlives the process.
    #[getter]
    fn persistent(&self) -> PyResult<bool> {
        Ok(self.open_store()?.is_persistent())
    }

    /// The current statistics.
    fn stats(&self) -> PyResult<SwapStats> {
        Ok(self.open_store()?.stats().into())
    }

    /// The complete entries of the longest prefix.
    fn match_prefix<'py>(
        &self,
        py: Python<'py>,
        salt: &[u8],
        tokens: Ids,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let entries = self.open_store()?.match_prefix(salt, &tokens.0);
        Ok(entries_array(py, entries))
    }

    /// Reserves entries for the blocks that the next `count` allocations would evict.
    fn save_victims<'py>(
        &self,
        py: Python<'py>,
        trie: &Bound<'py, PrefixTrie>,
        count: usize,
        max_entries: usize,
    ) -> PyResult<Saving<'py>> {
        self.saving(py, trie.get(), |pool, store| {
            saving::save_victims(pool, store, count, max_entries)
        })
    }

    /// How many of the next `count` victims have no entry.
    fn count_unsaved_victims(&self, trie: &Bound<'_, PrefixTrie>, count: usize) -> PyResult<usize> {
        let (store, trie) = (self.open_store()?, trie.get());
        let pool = trie.pool.lock()?;
        Ok(saving::count_unsaved_victims(&pool, &store, count))
    }

    /// Reserves entries for indexed blocks that have none.
    fn save_indexed<'py>(
        &self,
        py: Python<'py>,
        trie: &Bound<'py, PrefixTrie>,
        max_entries: usize,
    ) -> PyResult<Saving<'py>> {
        self.saving(py, trie.get(), |pool, store| {
            saving::save_indexed(pool, store, max_entries)
        })
    }

    /// Fills reserved entries.
    fn fill(
        &self,
        py: Python<'_>,
        entries: Vec<i64>,
        data: PyReadonlyArray2<'_, u8>,
    ) -> PyResult<usize> {
        let (store, entries) = (self.open_store()?, entry_ids(entries)?);
        Self::check_bytes(&store, entries.len(), data.shape())?;
        let bytes = data.as_slice()?;
        let parts = bytes.chunks_exact(store.geometry().block_bytes);
        let filled: std::io::Result<Vec<bool>> = py.detach(|| {
            let pairs = entries.into_iter().zip(parts);
            pairs.map(|(entry, part)| store.fill(entry, part)).collect()
        });
        Ok(filled?.into_iter().filter(|&filled| filled).count())
    }

    /// Releases reserved entries.
    fn abandon(&self, entries: Vec<i64>) -> PyResult<()> {
        let store = self.open_store()?;
        for entry in entry_ids(entries)?.into_iter().rev() {
            store.abandon(entry);
        }
        Ok(())
    }

    /// Copies entries out; stops at the first that is missing or damaged.
    fn read(
        &self,
        py: Python<'_>,
        entries: Vec<i64>,
        mut data: PyReadwriteArray2<'_, u8>,
    ) -> PyResult<usize> {
        let (store, entries) = (self.open_store()?, entry_ids(entries)?);
        Self::check_bytes(&store, entries.len(), data.shape())?;
        let size = store.geometry().block_bytes;
        let bytes = data.as_slice_mut()?;
        Ok(py.detach(|| {
            store.will_need(&entries);
            let mut parts = entries.iter().zip(bytes.chunks_exact_mut(size));
            let mut read = 0;
            while let Some((&entry, part)) = parts.next()
                && store.read(entry, part)
            {
                read += 1;
            }
            read
        }))
    }

    /// Records the entries of indexed blocks.
    fn note_saved(
        &self,
        trie: &Bound<'_, PrefixTrie>,
        blocks: Ids,
        entries: Vec<i64>,
    ) -> PyResult<()> {
        let entries = entry_ids(entries)?;
        if entries.len() != blocks.0.len() {
            return Err(PyValueError::new_err(
                "blocks and entries must be equally many",
            ));
        }
        Self::note(trie.get(), &blocks, |index| {
            BlockEntry::Saved(entries[index])
        })
    }

    /// Records that recomputing these indexed blocks is cheaper than saving them.
    fn note_unwanted(&self, trie: &Bound<'_, PrefixTrie>, blocks: Ids) -> PyResult<()> {
        Self::note(trie.get(), &blocks, |_| BlockEntry::Unwanted)
    }

    /// How many of the blocks have an entry.
    fn count_saved(&self, trie: &Bound<'_, PrefixTrie>, blocks: Ids) -> PyResult<usize> {
        let (store, trie) = (self.open_store()?, trie.get());
        let blocks = existing(trie, &blocks)?;
        let pool = trie.pool.lock()?;
        let saved = |&block: &BlockId| match pool.entry_of(block) {
            BlockEntry::Saved(entry) => store.is_alive(entry),
            _ => false,
        };
        Ok(blocks.iter().filter(|block| saved(block)).count())
    }

    /// Checks every invariant of the store.
    fn check_integrity(&self) -> PyResult<()> {
        self.open_store()?
            .check_integrity()
            .map_err(PyAssertionError::new_err)
    }

    /// Closes the file. Idempotent.
    fn close(&self, py: Python<'_>) {
        let store = self
            .store
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        py.detach(|| drop(store));
    }
}
