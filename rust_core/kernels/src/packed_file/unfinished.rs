//! A file of packed weights while it is written.
//!
//! At most one process writes a file: it holds a lock on the unfinished file beside it. A killed process leaves an unfinished
//! file without a lock, which the next one overwrites; no reader ever opens one.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::SUFFIX;
use super::header::{Header, PAGE};

/// Suffix of unfinished files.
const UNFINISHED: &str = "part";

/// A locked file beside its place; removed when it is dropped, unless it was finished.
pub struct UnfinishedFile {
    /// None once it was finished.
    file: Option<File>,
    unfinished: PathBuf,
    path: PathBuf,
    hash: Xxh3,
    /// Length of the weights so far.
    bytes: usize,
}

impl UnfinishedFile {
    /// Begin the file that is to be at `path`, in a folder that may not exist yet; None if another process is writing it.
    ///
    /// # Errors
    /// The folder or file cannot be written.
    pub fn create(path: &Path) -> io::Result<Option<Self>> {
        Self::create_locked(path, |file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        })
    }

    /// As [`Self::create`]; while another process is writing it, wait. None if that one completed it or gave up meanwhile.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn wait_to_create(path: &Path) -> io::Result<Option<Self>> {
        Self::create_locked(path, |file| file.lock().map(|()| true))
    }

    fn create_locked(
        path: &Path,
        lock: impl FnOnce(&File) -> io::Result<bool>,
    ) -> io::Result<Option<Self>> {
        let unfinished = path.with_extension(format!("{SUFFIX}.{UNFINISHED}"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder_of(path))?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(&unfinished)?;
        if !lock(&file)? {
            return Ok(None);
        }
        // Between opening and locking, the other process may have renamed the file into place, where it must not be
        // truncated, or removed it.
        let (opened, named) = (file.metadata()?, std::fs::symlink_metadata(&unfinished));
        let same = named.is_ok_and(|named| {
            named.is_file() && (named.dev(), named.ino()) == (opened.dev(), opened.ino())
        });
        if !same {
            return Ok(None);
        }
        let created = Self {
            file: Some(file),
            unfinished,
            path: path.to_owned(),
            hash: Xxh3::new(),
            bytes: 0,
        };
        let mut file = created.file();
        file.set_len(0)?;
        file.write_all(&[0; PAGE])?;
        Ok(Some(created))
    }

    fn file(&self) -> &File {
        self.file.as_ref().expect("not finished")
    }

    /// Append weights, and begin to write them to the disk.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn append(&mut self, weights: &[u8]) -> io::Result<()> {
        self.hash.update(weights);
        self.file().write_all(weights)?;
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let at = (PAGE + self.bytes) as libc::off64_t;
            let (file, len) = (self.file().as_raw_fd(), weights.len() as libc::off64_t);
            // Otherwise pages that are to be written gather in memory, and syncing takes long.
            // SAFETY: no memory is passed. Advisory: a failure is found by syncing.
            unsafe { libc::sync_file_range(file, at, len, libc::SYNC_FILE_RANGE_WRITE) };
        }
        self.bytes += weights.len();
        Ok(())
    }

    /// Write the header, which is complete but for the digest, sync the file and rename it into place.
    ///
    /// # Errors
    /// The file cannot be written or renamed; it is removed.
    ///
    /// # Panics
    /// The weights are not as long as the header says.
    pub fn finish(mut self, header: &Header) -> io::Result<()> {
        assert_eq!(self.bytes, header.bytes);
        let header = Header {
            digest: self.hash.digest128().to_le_bytes(),
            ..header.clone()
        };
        let file = self.file();
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        std::fs::rename(&self.unfinished, &self.path)?;
        self.file = None;
        // The new name survives a power failure once the folder is synced.
        File::open(folder_of(&self.path))?.sync_all()
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Still locked, so it is ours.
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}
