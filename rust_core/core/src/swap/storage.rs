//! The bytes of a swap tier: a mapped, locked file that grows slot by slot, or plain memory.
//!
//! The mapping covers the whole capacity from the start; only slots below `grown` may be touched, since
//! beyond the file's end a touch would end the process. Disk space is allocated before it is mapped in,
//! so a full disk is an error here and not a signal later.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use super::error::SwapError;
use super::layout::PAGE;

/// Slots of `stride` bytes after one page of header.
#[derive(Debug)]
pub(super) struct Storage {
    map: MmapRaw,
    /// The lock on it is held as long as it is open.
    file: Option<File>,
    stride: usize,
    slots: usize,
}

/// A file just opened and locked.
pub(super) struct OpenedFile {
    file: File,
    /// What it begins with, at most a page.
    pub head: Vec<u8>,
    len: u64,
}

impl OpenedFile {
    /// Opens or makes the file and takes its lock.
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
        #[cfg(unix)]
        {
            // What somebody said to a model is nobody else's business.
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
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

    /// Whole slots behind the header.
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

    /// Forgets the contents and writes a new header.
    pub(super) fn begin_anew(&mut self, header: &[u8; PAGE]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(header)?;
        self.len = PAGE as u64;
        Ok(())
    }

    /// Maps room for `slots` slots, of which the first `keep` may be touched already.
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
    /// Memory of this process; its pages take room when they are first written.
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

    /// Makes the slots below `slots`, of which `grown` can be touched already, touchable.
    ///
    /// # Errors
    /// The disk has no room; nothing changed.
    pub(super) fn grow(&self, grown: usize, slots: usize) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let at = (PAGE + grown * self.stride) as u64;
        let len = ((slots - grown) * self.stride) as u64;
        let outcome = allocate(file, at, len);
        if outcome.is_err() {
            file.set_len(at)?;
        }
        outcome
    }

    /// First byte of a slot. Callers uphold that nobody writes where another reads or writes, and touch
    /// slots that were grown.
    pub(super) fn slot(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.slots);
        // SAFETY: inside the mapping by the check.
        unsafe { self.map.as_mut_ptr().add(PAGE + slot * self.stride) }
    }

    /// Tells the system that these slots are read soon.
    pub(super) fn will_need(&self, slots: impl Iterator<Item = usize>) {
        #[cfg(unix)]
        for slot in slots {
            let at = PAGE + slot * self.stride;
            // Advice only: a refusal changes nothing.
            let _ = self
                .map
                .advise_range(memmap2::Advice::WillNeed, at, self.stride);
        }
        #[cfg(not(unix))]
        let _ = slots;
    }

    /// Takes a slot's pages out of this process; in a file they stay in the system's cache.
    pub(super) fn unload(&self, slot: usize) {
        #[cfg(unix)]
        if self.is_file() {
            let at = PAGE + slot * self.stride;
            // SAFETY: a shared file mapping: what was written is read again from the file.
            let _ = unsafe {
                self.map
                    .unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, at, self.stride)
            };
        }
        #[cfg(not(unix))]
        let _ = slot;
    }
}

/// Makes the file longer, with disk space behind it.
#[cfg(target_os = "linux")]
fn allocate(file: &File, at: u64, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let (at, len) = (at as libc::off_t, len as libc::off_t);
    // SAFETY: a plain system call on a descriptor that is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), at, len) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Makes the file longer, with disk space behind it: by writing zeros, which works everywhere.
#[cfg(not(target_os = "linux"))]
fn allocate(mut file: &File, at: u64, len: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    io::copy(&mut io::repeat(0).take(len), &mut file).map(|_| ())
}
