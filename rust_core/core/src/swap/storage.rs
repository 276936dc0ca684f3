//! The storage of a swap tier: a locked file that is mapped for reading, or anonymous memory.
//!
//! Blocks are written with `write` calls and not through the mapping: this is several times faster because it takes
//! no page faults, and a full disk is an error instead of a signal. The mapping covers the whole capacity from the
//! start, the file only what was ever written; bytes after the file's end must not be accessed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use super::error::SwapError;
use super::layout::PAGE;

/// Slots of `stride` bytes after one page of header.
#[derive(Debug)]
pub(super) struct Storage {
    map: MmapRaw,
    /// Locked as long as it is open.
    file: Option<File>,
    stride: usize,
    slots: usize,
}

/// A file just opened and locked.
pub(super) struct OpenedFile {
    file: File,
    /// Its first bytes, at most a page.
    pub head: Vec<u8>,
    len: u64,
}

impl OpenedFile {
    /// Opens or creates the file and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, SwapError> {
        let failed = |source| SwapError::File {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600); // private: KV blocks reveal the user's prompts
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SwapError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let mut head = Vec::with_capacity(PAGE);
        let mut first = (&mut file).take(PAGE as u64);
        first.read_to_end(&mut head).map_err(failed)?;
        Ok(Self {
            file,
            head,
            len: metadata.len(),
        })
    }

    /// Number of whole slots after the header.
    pub(super) fn slots(&self, stride: usize) -> usize {
        (self.len.saturating_sub(PAGE as u64) / stride as u64) as usize
    }

    /// Whether the file ends inside a slot.
    pub(super) fn ends_inside_a_slot(&self, stride: usize) -> bool {
        !self
            .len
            .saturating_sub(PAGE as u64)
            .is_multiple_of(stride as u64)
    }

    /// Discards the contents and writes a new header.
    pub(super) fn reset(&mut self, header: &[u8; PAGE]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(header)?;
        self.len = PAGE as u64;
        Ok(())
    }

    /// Maps `slots` slots, of which the file covers the first `keep`.
    pub(super) fn map(self, stride: usize, slots: usize, keep: usize) -> io::Result<Storage> {
        self.file.set_len((PAGE + keep * stride) as u64)?;
        let map = MmapOptions::new()
            .len(PAGE + slots * stride)
            .map_raw(&self.file)?;
        Ok(Storage {
            map,
            file: Some(self.file),
            stride,
            slots,
        })
    }
}

impl Storage {
    /// Storage in anonymous memory, whose pages are allocated on first write.
    pub(super) fn in_memory(stride: usize, slots: usize) -> io::Result<Self> {
        let map = MmapOptions::new()
            .len(PAGE + slots * stride)
            .no_reserve_swap()
            .map_anon()?;
        Ok(Self {
            map: map.into(),
            file: None,
            stride,
            slots,
        })
    }

    pub(super) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Writes into a slot, `offset` bytes after its start; a file grows as needed.
    ///
    /// # Safety
    /// No other thread reads or writes these bytes meanwhile.
    ///
    /// # Errors
    /// The disk is full or fails; the bytes are undefined then.
    pub(super) unsafe fn write(&self, slot: usize, offset: usize, bytes: &[u8]) -> io::Result<()> {
        assert!(slot < self.slots && offset + bytes.len() <= self.stride);
        let at = PAGE + slot * self.stride + offset;
        match &self.file {
            Some(file) => file.write_all_at(bytes, at as u64),
            None => {
                // SAFETY: inside the mapping by the check; exclusive by contract.
                unsafe {
                    let to = self.map.as_mut_ptr().add(at);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                }
                Ok(())
            }
        }
    }

    /// Makes the file at least as long as `slots` slots, without taking disk space.
    pub(super) fn cover(&self, slots: usize) -> io::Result<()> {
        match &self.file {
            Some(file) => file.set_len((PAGE + slots * self.stride) as u64),
            None => Ok(()),
        }
    }

    /// `len` bytes of a slot, `offset` after its start.
    ///
    /// # Safety
    /// The file covers the slot, and no thread writes these bytes while the slice lives.
    pub(super) unsafe fn read(&self, slot: usize, offset: usize, len: usize) -> &[u8] {
        assert!(slot < self.slots && offset + len <= self.stride);
        // SAFETY: inside the mapping by the check; not written, by contract.
        unsafe {
            let from = self.map.as_ptr().add(PAGE + slot * self.stride + offset);
            std::slice::from_raw_parts(from, len)
        }
    }

    /// Advises the system that these slots are read soon.
    pub(super) fn will_need(&self, slots: impl Iterator<Item = usize>) {
        for slot in slots {
            let at = PAGE + slot * self.stride;
            // Advisory: a failure changes nothing.
            let _ = self
                .map
                .advise_range(memmap2::Advice::WillNeed, at, self.stride);
        }
    }

    /// Unmaps a slot's pages from this process; those of a file stay in the page cache.
    pub(super) fn unload(&self, slot: usize) {
        if self.is_file() {
            let at = PAGE + slot * self.stride;
            // SAFETY: a shared file mapping: what was written is read again from the file.
            let _ = unsafe {
                self.map
                    .unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, at, self.stride)
            };
        }
    }
}
