//! Writes packed weights to their file, on a thread that uses idle time only.
//!
//! At most one process writes a file: it holds a lock on the unfinished file beside it. A killed process leaves an unfinished
//! file without a lock, which the next one overwrites; no reader ever opens one.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use super::header::{Header, PAGE};
use super::{CHUNK, SUFFIX};
use crate::arena::Arena;

/// Suffix of unfinished files.
pub(super) const UNFINISHED: &str = "part";

/// What became of an attempt to save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// The file is complete and in place.
    Done,
    /// It was cancelled, or saved already.
    Cancelled,
    /// Another process is writing the same file.
    Busy,
}

/// What is to be saved, before the weights are packed.
#[derive(Debug)]
pub struct Saving {
    pub path: PathBuf,
    pub header: Header,
}

impl Saving {
    /// With the packed weights, which nobody writes to any more.
    pub fn of(self, arena: Arc<Arena>) -> PackedSaving {
        assert_eq!(self.header.bytes, arena.len());
        PackedSaving {
            path: self.path,
            header: self.header,
            arena: Mutex::new(Some(arena)),
            cancelled: AtomicBool::new(false),
        }
    }
}

/// Saves a loaded model's packed weights, once.
#[derive(Debug)]
pub struct PackedSaving {
    path: PathBuf,
    /// Complete but for the digest.
    header: Header,
    /// None once it was copied or the attempt was cancelled: the weights' memory is not held longer.
    arena: Mutex<Option<Arc<Arena>>>,
    cancelled: AtomicBool,
}

impl PackedSaving {
    /// The file that will be written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file that will be written.
    pub fn file_bytes(&self) -> usize {
        PAGE + self.header.bytes
    }

    /// Stop [`Self::save`] soon; its unfinished file is removed.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Write, sync and rename the file; blocks until that is done, failed or cancelled. The work is done by another thread
    /// that only runs when no other wants its core.
    ///
    /// # Errors
    /// The folder or file cannot be written; nothing is left behind.
    pub fn save(&self) -> io::Result<Saved> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("pravaha-save".into())
                .spawn_scoped(scope, || {
                    run_when_idle();
                    self.save_here()
                })?;
            let failed = |_| io::Error::other("the writing thread failed");
            thread.join().map_err(failed)?
        })
    }

    fn save_here(&self) -> io::Result<Saved> {
        let taken = self
            .arena
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(arena) = taken else {
            return Ok(Saved::Cancelled);
        };
        let unfinished = self.path.with_extension(format!("{SUFFIX}.{UNFINISHED}"));
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let Some(file) = lock_unfinished(&unfinished)? else {
            return Ok(Saved::Busy);
        };
        let written = self.write(&file, arena).and_then(|complete| {
            if complete {
                std::fs::rename(&unfinished, &self.path)?;
                // The new name survives a power failure once the folder is synced.
                File::open(folder)?.sync_all()?;
            }
            Ok(complete)
        });
        if !matches!(written, Ok(true)) {
            // Still locked, so it is ours; after the rename it is gone already.
            let _ = std::fs::remove_file(&unfinished);
        }
        let complete = written?;
        Ok(if complete {
            Saved::Done
        } else {
            Saved::Cancelled
        })
    }

    /// Fill the locked file; false if cancelled.
    fn write(&self, mut file: &File, arena: Arc<Arena>) -> io::Result<bool> {
        file.set_len(0)?;
        file.write_all(&[0; PAGE])?;
        let mut hash = Xxh3::new();
        for at in (0..arena.len()).step_by(CHUNK) {
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let len = CHUNK.min(arena.len() - at);
            // SAFETY: inside the arena, which is not written any more (contract of `Saving::of`).
            let chunk = unsafe { std::slice::from_raw_parts(arena.as_ptr().add(at), len) };
            hash.update(chunk);
            file.write_all(chunk)?;
        }
        drop(arena); // syncing may take long
        let header = Header {
            digest: hash.digest128().to_le_bytes(),
            ..self.header.clone()
        };
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        Ok(true)
    }
}

/// Open and lock the unfinished file; None if another process has it.
fn lock_unfinished(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Between opening and locking, the other process may have renamed the file into place, where it must not be
    // truncated, or removed it.
    let (opened, named) = (file.metadata()?, std::fs::symlink_metadata(path));
    let same = named.is_ok_and(|named| {
        named.is_file() && (named.dev(), named.ino()) == (opened.dev(), opened.ino())
    });
    Ok(same.then_some(file))
}

/// Give this thread the lowest priority, so that it only uses cores that nobody wants.
fn run_when_idle() {
    #[cfg(target_os = "linux")]
    {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: a valid structure; 0 is the calling thread. Advisory: a failure changes nothing.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) };
    }
}
