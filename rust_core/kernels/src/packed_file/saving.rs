//! Copies packed weights to their file, on a thread that uses idle time only.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::CHUNK;
use super::header::{Header, PAGE};
use super::unfinished::UnfinishedFile;
use crate::arena::Arena;

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
        let Some(mut file) = UnfinishedFile::create(&self.path)? else {
            return Ok(Saved::Busy);
        };
        for at in (0..arena.len()).step_by(CHUNK) {
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(Saved::Cancelled);
            }
            let len = CHUNK.min(arena.len() - at);
            // SAFETY: inside the arena, which is not written any more (contract of `Saving::of`).
            let chunk = unsafe { std::slice::from_raw_parts(arena.as_ptr().add(at), len) };
            file.append(chunk)?;
        }
        drop(arena); // syncing may take long
        file.finish(&self.header)?;
        Ok(Saved::Done)
    }
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
