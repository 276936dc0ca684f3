//! A read-only memory map of a model file.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use super::{FormatError, Problem};

/// A whole file, mapped private and read-only. Empty files map to an empty slice.
///
/// Whoever shortens the file while it is mapped makes the next read past its end fatal (SIGBUS): models
/// must be replaced by renaming, as `ModelStore` does, never rewritten in place.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps `path`; reads nothing.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let io = |error: std::io::Error| FormatError::new(path, Problem::Io(error.to_string()));
        // Opening a FIFO would wait for a writer, so the kind is checked by path first.
        if !path.metadata().map_err(io)?.is_file() {
            return Err(FormatError::new(path, Problem::NotAFile));
        }
        let file = File::open(path).map_err(io)?;
        let empty = file.metadata().map_err(io)?.len() == 0;
        let map = if empty {
            None
        } else {
            // SAFETY: the map is private and never written here. Another process changing the file
            // could change bytes under a `&[u8]`; readers treat them as untrusted at every use and
            // build no `str` or typed reference that outlives its own check.
            Some(unsafe { Mmap::map(&file) }.map_err(io)?)
        };
        Ok(Self {
            path: path.to_owned(),
            map,
        })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Drops the resident pages that touch `range`; later reads fault them in again.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Some(map) = &self.map
            && range.end <= map.len()
            && !range.is_empty()
        {
            // SAFETY: the map is file-backed, private and never written, so dropped pages come back
            // with the file's bytes. Failure is harmless: the pages merely stay resident.
            let _ = unsafe {
                map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len())
            };
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}
