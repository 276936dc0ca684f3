//! `SwapStore`: entries, their bytes, and the bound on both.
//!
//! Thread-safe. The lock guards the books, never a block's bytes: an entry that is being written or
//! read is in use and stays where it is, so copying needs no lock and nobody waits for a disk while
//! holding one. What is read is checked against its checksum first; a damaged entry is forgotten
//! together with everything below it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::chain_key::{ChainKey, chain_key, checksum};
use super::entries::{Entries, EntryState};
use super::layout::{Damaged, PAGE, Record, SwapGeometry, header, refuse_header};
use super::storage::{OpenedFile, Storage};
use super::{EntryId, ROOT, SwapError};
use crate::TokenId;

const MAX_SLOTS: u64 = 1 << 24;

/// Makes the key of a block from its prefix's key; tests inject one that collides.
pub(super) type MakeKey = fn(&ChainKey, &[TokenId]) -> ChainKey;

/// What came of asking for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// The tier has these tokens already.
    Known(EntryId),
    /// A new entry, which the caller fills or abandons.
    New(EntryId),
    /// The parent is gone, every slot is in use, or another block's key is the same.
    Refused,
}

/// Entries now, and counters since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapStats {
    /// Entries, being written or complete.
    pub entries: usize,
    /// Entries that fit.
    pub capacity: usize,
    /// Entries ever given up for others.
    pub evicted_total: u64,
    /// Entries ever found damaged.
    pub damaged_total: u64,
    /// Bytes of blocks ever written and read.
    pub written_bytes: u64,
    pub read_bytes: u64,
}

#[derive(Debug)]
struct Books {
    entries: Entries,
    /// Slots that the file covers.
    covered: usize,
    stats: SwapStats,
}

/// See the module.
#[derive(Debug)]
pub struct SwapStore {
    geometry: SwapGeometry,
    identity: ChainKey,
    storage: Storage,
    books: Mutex<Books>,
    make_key: MakeKey,
    notice: Option<String>,
}

impl SwapStore {
    /// The store in `path`, or one in memory. A file that is damaged, or that other settings or another
    /// version wrote, is begun anew; [`Self::notice`] then says why.
    ///
    /// * `identity`: changes with everything beside the tokens that changes KV bytes.
    /// * `capacity_bytes`: the file, or memory, is no larger.
    ///
    /// # Errors
    /// Another process uses the file, it cannot be used, or nothing fits.
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
            books: Mutex::new(Books {
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

    /// Takes over the entries of the file's first `covered` slots.
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
        let books = self.books.get_mut().unwrap_or_else(PoisonError::into_inner);
        books.stats.damaged_total = damaged as u64;
        bad.extend(books.entries.restore(records));
        for &slot in &bad {
            // SAFETY: as above.
            unsafe { self.clear_record(slot) };
        }
        if damaged > 0 {
            self.notice = Some(format!(
                "The swap file {} is damaged: {damaged} of its {covered} entries are left out.",
                path.display()
            ));
        }
    }

    /// What was wrong with the file, as one sentence for the log.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Whether it outlives the process.
    pub fn is_persistent(&self) -> bool {
        self.storage.is_file()
    }

    /// Sizes of what is kept.
    pub fn geometry(&self) -> SwapGeometry {
        self.geometry
    }

    /// The store's numbers now. O(1).
    pub fn stats(&self) -> SwapStats {
        let books = self.books();
        SwapStats {
            entries: books.entries.len(),
            ..books.stats
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // No operation leaves the books half changed when it panics: there is nothing to repair.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `id` still has its entry, being written or complete.
    pub fn is_alive(&self, id: EntryId) -> bool {
        let books = self.books();
        let slot = books.entries.slot_of(id);
        slot.is_some_and(|slot| books.entries.entry(slot).state != EntryState::Failed)
    }

    /// The complete entries of the longest prefix of `tokens`, first block first. They are used by
    /// this, so other entries go before them. Tokens after the last whole block are not looked at.
    pub fn match_prefix(&self, tokens: &[TokenId]) -> Vec<EntryId> {
        let mut found = Vec::new();
        let mut books = self.books();
        let (mut parent, mut key) = (ROOT, self.identity);
        for block in tokens.chunks_exact(self.geometry.block_size) {
            key = (self.make_key)(&key, block);
            let Some(slot) = books.entries.slot_under(&key) else {
                break;
            };
            let entry = books.entries.entry(slot);
            let ready = entry.state == EntryState::Ready;
            if !ready || entry.parent != parent || *entry.tokens != *block {
                break;
            }
            parent = entry.id;
            found.push(parent);
        }
        if parent != ROOT {
            books.entries.touch(parent);
        }
        found
    }

    /// Asks for an entry of `tokens` below `parent`. A new one may evict another.
    pub fn reserve(&self, parent: EntryId, tokens: &[TokenId]) -> Reservation {
        debug_assert_eq!(tokens.len(), self.geometry.block_size);
        let mut books = self.books();
        let above = match parent {
            ROOT => self.identity,
            _ => match books.entries.slot_of(parent) {
                Some(slot) if books.entries.entry(slot).state != EntryState::Failed => {
                    books.entries.entry(slot).key
                }
                _ => return Reservation::Refused,
            },
        };
        let key = (self.make_key)(&above, tokens);
        if let Some(slot) = books.entries.slot_under(&key) {
            let entry = books.entries.entry(slot);
            let equal = entry.parent == parent && *entry.tokens == *tokens;
            if !equal || entry.state == EntryState::Failed {
                return Reservation::Refused;
            }
            let id = entry.id;
            books.entries.touch(id);
            return Reservation::Known(id);
        }
        books.entries.touch(parent); // so that it is not what makes room for its child
        let Some(slot) = books.entries.next_slot(parent) else {
            return Reservation::Refused;
        };
        if !books.entries.is_empty_slot(slot) {
            books.entries.remove(slot);
            books.stats.evicted_total += 1;
            // SAFETY: the entry was not in use, and under the lock nobody begins to.
            unsafe { self.clear_record(slot) };
        }
        Reservation::New(books.entries.add(slot, parent, key, tokens.into()))
    }

    /// Copies a block's bytes into a reserved entry and completes it. False if the entry is not
    /// waiting for bytes, or what comes before it was not written.
    ///
    /// # Errors
    /// The disk is full or fails; the entry and all that was reserved below it are given up.
    pub fn fill(&self, id: EntryId, bytes: &[u8]) -> io::Result<bool> {
        assert_eq!(bytes.len(), self.geometry.block_bytes);
        let Some((slot, mut record)) = self.begin_fill(id)? else {
            return Ok(false);
        };
        record.checksum = checksum(bytes);
        let mut sealed = vec![0; self.geometry.sealed_bytes()];
        record.encode(&mut sealed);
        // SAFETY: a reserved entry's slot is touched by whoever reserved it alone, but for `used`.
        let written = unsafe {
            let block = self.storage.write(slot, 0, bytes);
            block.and_then(|()| self.storage.write(slot, self.geometry.record_at(), &sealed))
        };
        let mut books = self.books();
        if let Err(error) = written {
            // SAFETY: as above.
            unsafe { self.clear_record(slot) };
            Self::give_up(&mut books, slot);
            return Err(error);
        }
        books.stats.written_bytes += bytes.len() as u64;
        books.entries.set_ready(slot);
        books.entries.touch(id);
        Ok(true)
    }

    /// An entry could not be written: from now on what there is has to do.
    fn give_up(books: &mut Books, slot: usize) {
        books.entries.fail(slot);
        books.stats.capacity = books.entries.give_up_empty_slots();
    }

    /// The slot of an entry that waits for its bytes, in a file that covers it, and its record.
    fn begin_fill(&self, id: EntryId) -> io::Result<Option<(usize, Record)>> {
        let mut books = self.books();
        let Some(slot) = books.entries.slot_of(id) else {
            return Ok(None);
        };
        let entry = books.entries.entry(slot);
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
        let above = books.entries.slot_of(record.parent);
        if above.is_some_and(|above| books.entries.entry(above).state != EntryState::Ready) {
            books.entries.fail(slot);
            return Ok(None);
        }
        if slot >= books.covered {
            if let Err(error) = self.storage.cover(slot + 1) {
                Self::give_up(&mut books, slot);
                return Err(error);
            }
            books.covered = slot + 1;
        }
        Ok(Some((slot, record)))
    }

    /// Gives up a reserved entry that will not be filled, and whatever is reserved below it.
    pub fn abandon(&self, id: EntryId) {
        let mut books = self.books();
        let Some(slot) = books.entries.slot_of(id) else {
            return;
        };
        if books.entries.entry(slot).state == EntryState::Reserved {
            books.entries.fail(slot); // its record was cleared when it was made
        }
    }

    /// Copies an entry's bytes out. False if there is no such entry, or if its bytes were damaged: then
    /// it is forgotten with all below it.
    pub fn read(&self, id: EntryId, bytes: &mut [u8]) -> bool {
        assert_eq!(bytes.len(), self.geometry.block_bytes);
        let slot = {
            let mut books = self.books();
            let Some(slot) = books.entries.slot_of(id) else {
                return false;
            };
            if books.entries.entry(slot).state != EntryState::Ready {
                return false;
            }
            books.entries.begin_read(slot);
            slot
        };
        // SAFETY: an entry being read is written by nobody, and the file covers its slot.
        let stored = unsafe {
            bytes.copy_from_slice(self.storage.read(slot, 0, bytes.len()));
            Record::decode(self.sealed_bytes(slot))
        };
        self.storage.unload(slot);
        let sound = matches!(stored, Ok(Some(record)) if record.id == id
            && record.checksum == checksum(bytes));
        let mut books = self.books();
        books.entries.end_read(slot);
        if sound {
            books.stats.read_bytes += bytes.len() as u64;
            books.entries.touch(id);
        } else {
            books.stats.damaged_total += 1;
            self.forget(&mut books, id);
        }
        sound
    }

    /// Tells the system that these entries are read soon.
    pub fn will_need(&self, ids: &[EntryId]) {
        let slots: Vec<usize> = {
            let books = self.books();
            let slots = ids.iter().filter_map(|&id| books.entries.slot_of(id));
            slots.collect()
        };
        self.storage.will_need(slots.into_iter());
    }

    /// Removes an entry and all below it that is not in use.
    fn forget(&self, books: &mut Books, id: EntryId) {
        for slot in books.entries.family(id) {
            let entry = books.entries.entry(slot);
            if entry.reads > 0 || entry.state != EntryState::Ready || entry.children > 0 {
                continue; // it is in use, or something below it is; a later match finds it again
            }
            books.entries.remove(slot);
            // SAFETY: not in use, and under the lock nobody begins to.
            unsafe { self.clear_record(slot) };
        }
    }

    /// The sealed part of a slot's record.
    ///
    /// # Safety
    /// The file covers the slot, and nobody writes these bytes meanwhile.
    unsafe fn sealed_bytes(&self, slot: usize) -> &[u8] {
        let (at, len) = (self.geometry.record_at(), self.geometry.sealed_bytes());
        // SAFETY: the caller's promise.
        unsafe { self.storage.read(slot, at, len) }
    }

    /// Where a slot keeps the instant of its last use.
    ///
    /// # Safety
    /// As [`Self::sealed_bytes`].
    unsafe fn used_bytes(&self, slot: usize) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { self.storage.read(slot, self.geometry.used_at(), 8) }
    }

    /// Marks a slot as empty. If the disk refuses, the record stays until the slot is filled again: its
    /// checksum tells then that the block is another.
    ///
    /// # Safety
    /// Nobody reads or writes the slot's record meanwhile.
    unsafe fn clear_record(&self, slot: usize) {
        // SAFETY: the caller's promise.
        let _ = unsafe {
            self.storage
                .write(slot, self.geometry.record_at(), &[0; 16])
        };
    }

    /// Walks every invariant; O(entries).
    ///
    /// # Errors
    /// The first that does not hold, as one sentence.
    pub fn check_integrity(&self) -> Result<(), String> {
        self.books().entries.check()
    }
}

impl Drop for SwapStore {
    /// Keeps the order of use for whoever opens the file next.
    fn drop(&mut self) {
        if !self.storage.is_file() {
            return;
        }
        let books = self.books.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (slot, entry) in books.entries.iter() {
            if entry.state == EntryState::Ready {
                // SAFETY: nobody else has the store. A stamp that is lost changes who goes first.
                let _ = unsafe {
                    let at = self.geometry.used_at();
                    self.storage.write(slot, at, &entry.used.to_le_bytes())
                };
            }
        }
    }
}

/// Opens, checks and maps a file: its storage, the slots it covers, and what was wrong with it.
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
        file.begin_anew(wanted).map_err(failed)?;
    } else if let Some(why) = refuse_header(&file.head, wanted) {
        notice = Some(format!(
            "The swap file {} is not used, because {why}; a new one is begun.",
            path.display()
        ));
        file.begin_anew(wanted).map_err(failed)?;
    } else if file.ends_inside_a_slot(stride) {
        notice = Some(format!(
            "The swap file {} is truncated; what is left of it is used.",
            path.display()
        ));
    }
    let covered = file.slots(stride).min(slots);
    let storage = file.map(stride, slots, covered).map_err(failed)?;
    Ok((storage, covered, notice))
}
