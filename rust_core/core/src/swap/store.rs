//! `SwapStore`: a bounded store of entries and their bytes.
//!
//! Thread-safe. The lock protects the metadata, not the blocks' bytes: an entry that is being written or read is in
//! use and keeps its slot, so copying needs no lock and no thread waits for the disk while holding one. Bytes that were
//! read are verified against their checksum; a damaged entry is removed together with everything below it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::chain_key::{ChainKey, chain_key, checksum, root_key};
use super::entries::{Entries, EntryState};
use super::layout::{Damaged, PAGE, Record, SwapGeometry, header, header_mismatch};
use super::storage::{OpenedFile, Storage};
use super::{EntryId, ROOT, SwapError};
use crate::TokenId;

const MAX_SLOTS: u64 = 1 << 24;

/// Computes the key of a block from its prefix's key; tests inject one that collides.
pub(super) type MakeKey = fn(&ChainKey, &[TokenId]) -> ChainKey;

/// The result of [`SwapStore::reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// An existing entry of these tokens.
    Known(EntryId),
    /// A new entry, which the caller must fill or abandon.
    New(EntryId),
    /// None: the parent was removed, every slot is in use, or the key collides with another block's.
    Refused,
}

/// Current entries, and counters since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapStats {
    /// Entries, being written or complete.
    pub entries: usize,
    /// The most entries.
    pub capacity: usize,
    /// Entries ever evicted for others.
    pub evicted_total: u64,
    /// Entries ever found damaged.
    pub damaged_total: u64,
    /// Bytes of blocks ever written and read.
    pub written_bytes: u64,
    pub read_bytes: u64,
}

#[derive(Debug)]
struct StoreState {
    entries: Entries,
    /// Number of slots that the file covers.
    covered: usize,
    stats: SwapStats,
}

/// See the module.
#[derive(Debug)]
pub struct SwapStore {
    geometry: SwapGeometry,
    identity: ChainKey,
    storage: Storage,
    state: Mutex<StoreState>,
    make_key: MakeKey,
    notice: Option<String>,
}

impl SwapStore {
    /// Opens the store in `path`, or creates one in memory. A file that is damaged, or was written with other
    /// settings or by another version, is replaced by an empty one; [`Self::notice`] then says why.
    ///
    /// * `identity`: depends on everything other than tokens that changes KV bytes.
    /// * `capacity_bytes`: bound on the size of the file or memory.
    ///
    /// # Errors
    /// Another process uses the file, it cannot be used, or the capacity is less than one entry.
    pub fn open(
        path: Option<&Path>,
        identity: ChainKey,
        geometry: SwapGeometry,
        capacity_bytes: u64,
    ) -> Result<Self, SwapError> {
        Self::with_keys(path, identity, geometry, capacity_bytes, chain_key)
    }

    /// As [`Self::open`], with the hash injected.
    pub(super) fn with_keys(
        path: Option<&Path>,
        identity: ChainKey,
        geometry: SwapGeometry,
        capacity_bytes: u64,
        make_key: MakeKey,
    ) -> Result<Self, SwapError> {
        geometry.check()?;
        let stride = geometry.stride();
        let slots = capacity_bytes.saturating_sub(PAGE as u64) / stride as u64;
        let slots = slots.min(MAX_SLOTS) as usize;
        if slots == 0 {
            return Err(SwapError::TooSmall {
                capacity: capacity_bytes,
                entry: (stride + PAGE) as u64,
            });
        }
        let (storage, covered, notice) = match path {
            Some(path) => open_file(path, &header(&geometry, &identity), stride, slots)?,
            None => {
                let memory = Storage::in_memory(stride, slots).map_err(SwapError::Memory)?;
                (memory, slots, None)
            }
        };
        let mut store = Self {
            geometry,
            identity,
            storage,
            state: Mutex::new(StoreState {
                entries: Entries::new(slots),
                covered,
                stats: SwapStats {
                    capacity: slots,
                    ..SwapStats::default()
                },
            }),
            make_key,
            notice,
        };
        if let Some(path) = path {
            store.restore(path, covered);
        }
        Ok(store)
    }

    /// Restores the entries of the file's first `covered` slots.
    fn restore(&mut self, path: &Path, covered: usize) {
        let (mut records, mut bad) = (Vec::new(), Vec::new());
        for slot in 0..covered {
            // SAFETY: the store is not shared yet, and the file covers the slot.
            let (bytes, used) = unsafe { (self.sealed_bytes(slot), self.used_bytes(slot)) };
            let used = u64::from_le_bytes(used.try_into().expect("8 bytes"));
            match Record::decode(bytes) {
                Ok(Some(record)) => records.push((slot, record, used)),
                Ok(None) => {}
                Err(Damaged) => bad.push(slot),
            }
            self.storage.unload(slot);
        }
        let damaged = bad.len();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.stats.damaged_total = damaged as u64;
        bad.extend(state.entries.restore(records));
        for &slot in &bad {
            // SAFETY: as above.
            unsafe { self.clear_record(slot) };
        }
        if damaged > 0 {
            self.notice = Some(format!(
                "The swap file {} is damaged: {damaged} of its {covered} entries are ignored.",
                path.display()
            ));
        }
    }

    /// The problem found in the file, as one sentence for the log.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Whether it outlives the process.
    pub fn is_persistent(&self) -> bool {
        self.storage.is_file()
    }

    /// Sizes of the stored blocks.
    pub fn geometry(&self) -> SwapGeometry {
        self.geometry
    }

    /// The current statistics. O(1).
    pub fn stats(&self) -> SwapStats {
        let state = self.lock_state();
        SwapStats {
            entries: state.entries.len(),
            ..state.stats
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, StoreState> {
        // No operation leaves the state half changed when it panics: there is nothing to repair.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the entry `id` exists, being written or complete.
    pub fn is_alive(&self, id: EntryId) -> bool {
        let state = self.lock_state();
        let slot = state.entries.slot_of(id);
        slot.is_some_and(|slot| state.entries.entry(slot).state != EntryState::Failed)
    }

    /// The complete entries of the longest prefix of `tokens` under `salt`, first block first. They become the most
    /// recently used. Tokens after the last whole block are ignored.
    pub fn match_prefix(&self, salt: &[u8], tokens: &[TokenId]) -> Vec<EntryId> {
        let mut found = Vec::new();
        let (mut parent, mut key) = (ROOT, root_key(&self.identity, salt));
        let mut state = self.lock_state();
        for block in tokens.chunks_exact(self.geometry.block_size) {
            key = (self.make_key)(&key, block);
            let Some(slot) = state.entries.slot_under(&key) else {
                break;
            };
            let entry = state.entries.entry(slot);
            let ready = entry.state == EntryState::Ready;
            if !ready || entry.parent != parent || *entry.tokens != *block {
                break;
            }
            parent = entry.id;
            found.push(parent);
        }
        if parent != ROOT {
            state.entries.touch(parent);
        }
        found
    }

    /// Reserves an entry of `tokens` below `parent`, which is an entry under `salt` or `ROOT`. May evict another
    /// entry.
    pub fn reserve(&self, salt: &[u8], parent: EntryId, tokens: &[TokenId]) -> Reservation {
        debug_assert_eq!(tokens.len(), self.geometry.block_size);
        let mut state = self.lock_state();
        let above = match parent {
            ROOT => root_key(&self.identity, salt),
            _ => match state.entries.slot_of(parent) {
                Some(slot) if state.entries.entry(slot).state != EntryState::Failed => {
                    state.entries.entry(slot).key
                }
                _ => return Reservation::Refused,
            },
        };
        let key = (self.make_key)(&above, tokens);
        if let Some(slot) = state.entries.slot_under(&key) {
            let entry = state.entries.entry(slot);
            let equal = entry.parent == parent && *entry.tokens == *tokens;
            if !equal || entry.state == EntryState::Failed {
                return Reservation::Refused;
            }
            let id = entry.id;
            state.entries.touch(id);
            return Reservation::Known(id);
        }
        state.entries.touch(parent); // so that it is not evicted for its child
        let Some(slot) = state.entries.next_slot(parent) else {
            return Reservation::Refused;
        };
        if !state.entries.is_empty_slot(slot) {
            state.entries.remove(slot);
            state.stats.evicted_total += 1;
            // SAFETY: the entry is not in use, and cannot come into use while the lock is held.
            unsafe { self.clear_record(slot) };
        }
        Reservation::New(state.entries.add(slot, parent, key, tokens.into()))
    }

    /// Copies a block's bytes into a reserved entry and completes it. False if the entry is not reserved, or
    /// its parent was not filled.
    ///
    /// # Errors
    /// The disk is full or fails; the entry and all that are reserved below it fail.
    pub fn fill(&self, id: EntryId, bytes: &[u8]) -> io::Result<bool> {
        assert_eq!(bytes.len(), self.geometry.block_bytes);
        let Some((slot, mut record)) = self.begin_fill(id)? else {
            return Ok(false);
        };
        record.checksum = checksum(bytes);
        let mut sealed = vec![0; self.geometry.sealed_bytes()];
        record.encode(&mut sealed);
        // SAFETY: only the caller that reserved an entry accesses its slot, except for `used`.
        let written = unsafe {
            let block = self.storage.write(slot, 0, bytes);
            block.and_then(|()| self.storage.write(slot, self.geometry.record_at(), &sealed))
        };
        let mut state = self.lock_state();
        if let Err(error) = written {
            // SAFETY: as above.
            unsafe { self.clear_record(slot) };
            Self::fail_fill(&mut state, slot);
            return Err(error);
        }
        state.stats.written_bytes += bytes.len() as u64;
        state.entries.set_ready(slot);
        state.entries.touch(id);
        Ok(true)
    }

    /// Handles an entry that could not be written: the store no longer grows.
    fn fail_fill(state: &mut StoreState, slot: usize) {
        state.entries.fail(slot);
        state.stats.capacity = state.entries.drop_empty_slots();
    }

    /// The slot and record of a reserved entry, after extending the file to cover the slot.
    fn begin_fill(&self, id: EntryId) -> io::Result<Option<(usize, Record)>> {
        let mut state = self.lock_state();
        let Some(slot) = state.entries.slot_of(id) else {
            return Ok(None);
        };
        let entry = state.entries.entry(slot);
        if entry.state != EntryState::Reserved {
            return Ok(None);
        }
        let record = Record {
            id,
            parent: entry.parent,
            key: entry.key,
            checksum: [0; 16],
            tokens: entry.tokens.to_vec(),
        };
        let above = state.entries.slot_of(record.parent);
        if above.is_some_and(|above| state.entries.entry(above).state != EntryState::Ready) {
            state.entries.fail(slot);
            return Ok(None);
        }
        if slot >= state.covered {
            if let Err(error) = self.storage.cover(slot + 1) {
                Self::fail_fill(&mut state, slot);
                return Err(error);
            }
            state.covered = slot + 1;
        }
        Ok(Some((slot, record)))
    }

    /// Releases a reserved entry that will not be filled, and all that are reserved below it.
    pub fn abandon(&self, id: EntryId) {
        let mut state = self.lock_state();
        let Some(slot) = state.entries.slot_of(id) else {
            return;
        };
        if state.entries.entry(slot).state == EntryState::Reserved {
            state.entries.fail(slot); // its record was cleared when it was reserved
        }
    }

    /// Copies an entry's bytes out. False if there is no such entry, or if its bytes are damaged: then it is
    /// removed with all entries below it.
    pub fn read(&self, id: EntryId, bytes: &mut [u8]) -> bool {
        assert_eq!(bytes.len(), self.geometry.block_bytes);
        let slot = {
            let mut state = self.lock_state();
            let Some(slot) = state.entries.slot_of(id) else {
                return false;
            };
            if state.entries.entry(slot).state != EntryState::Ready {
                return false;
            }
            state.entries.begin_read(slot);
            slot
        };
        // SAFETY: an entry being read is not written, and the file covers its slot.
        let stored = unsafe {
            bytes.copy_from_slice(self.storage.read(slot, 0, bytes.len()));
            Record::decode(self.sealed_bytes(slot))
        };
        self.storage.unload(slot);
        let sound = matches!(stored, Ok(Some(record)) if record.id == id
            && record.checksum == checksum(bytes));
        let mut state = self.lock_state();
        state.entries.end_read(slot);
        if sound {
            state.stats.read_bytes += bytes.len() as u64;
            state.entries.touch(id);
        } else {
            state.stats.damaged_total += 1;
            self.forget(&mut state, id);
        }
        sound
    }

    /// Advises the system that these entries are read soon.
    pub fn will_need(&self, ids: &[EntryId]) {
        let slots: Vec<usize> = {
            let state = self.lock_state();
            let slots = ids.iter().filter_map(|&id| state.entries.slot_of(id));
            slots.collect()
        };
        self.storage.will_need(slots.into_iter());
    }

    /// Removes an entry and all below it that are not in use.
    fn forget(&self, state: &mut StoreState, id: EntryId) {
        for slot in state.entries.subtree(id) {
            let entry = state.entries.entry(slot);
            if entry.reads > 0 || entry.state != EntryState::Ready || entry.children > 0 {
                continue; // it or an entry below it is in use; a later read detects the damage again
            }
            state.entries.remove(slot);
            // SAFETY: not in use, and cannot come into use while the lock is held.
            unsafe { self.clear_record(slot) };
        }
    }

    /// The sealed part of a slot's record.
    ///
    /// # Safety
    /// The file covers the slot, and no thread writes these bytes meanwhile.
    unsafe fn sealed_bytes(&self, slot: usize) -> &[u8] {
        let (at, len) = (self.geometry.record_at(), self.geometry.sealed_bytes());
        // SAFETY: the caller's promise.
        unsafe { self.storage.read(slot, at, len) }
    }

    /// The bytes of a slot's `used`.
    ///
    /// # Safety
    /// As [`Self::sealed_bytes`].
    unsafe fn used_bytes(&self, slot: usize) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { self.storage.read(slot, self.geometry.used_at(), 8) }
    }

    /// Marks a slot as empty. If the write fails, the record stays until the slot is filled again; its checksum
    /// then does not match the block.
    ///
    /// # Safety
    /// No other thread reads or writes the slot's record meanwhile.
    unsafe fn clear_record(&self, slot: usize) {
        // SAFETY: the caller's promise.
        let _ = unsafe {
            self.storage
                .write(slot, self.geometry.record_at(), &[0; 16])
        };
    }

    /// Checks every invariant; O(entries).
    ///
    /// # Errors
    /// The first violated invariant, as one sentence.
    pub fn check_integrity(&self) -> Result<(), String> {
        self.lock_state().entries.check()
    }
}

impl Drop for SwapStore {
    /// Writes the order of use for the next opening of the file.
    fn drop(&mut self) {
        if !self.storage.is_file() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (slot, entry) in state.entries.iter() {
            if entry.state == EntryState::Ready {
                // SAFETY: `&mut self`. A failed write only changes the eviction order.
                let _ = unsafe {
                    let at = self.geometry.used_at();
                    self.storage.write(slot, at, &entry.used.to_le_bytes())
                };
            }
        }
    }
}

/// Opens, checks and maps a file. Returns its storage, the number of slots it covers, and the problem found, if any.
fn open_file(
    path: &Path,
    wanted: &[u8; PAGE],
    stride: usize,
    slots: usize,
) -> Result<(Storage, usize, Option<String>), SwapError> {
    let failed = |source| SwapError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = OpenedFile::open(path)?;
    let mut notice = None;
    if file.head.is_empty() {
        file.reset(wanted).map_err(failed)?;
    } else if let Some(why) = header_mismatch(&file.head, wanted) {
        notice = Some(format!(
            "The swap file {} is not used, because {why}; a new one is created.",
            path.display()
        ));
        file.reset(wanted).map_err(failed)?;
    } else if file.ends_inside_a_slot(stride) {
        notice = Some(format!(
            "The swap file {} is truncated; its complete entries are used.",
            path.display()
        ));
    }
    let covered = file.slots(stride).min(slots);
    let storage = file.map(stride, slots, covered).map_err(failed)?;
    Ok((storage, covered, notice))
}
