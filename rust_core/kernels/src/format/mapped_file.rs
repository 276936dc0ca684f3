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
/// If the file is truncated while mapped, a read past its new end is fatal (SIGBUS). Models must therefore be replaced by
/// renaming, as `ModelStore` does, never rewritten in place.
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

    /// The path given to [`Self::open`].
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::MappedFile;

    const BYTES: usize = 32 << 20;

    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    #[test]
    fn released_pages_leave_memory_and_read_the_same_again() {
        let path = std::env::temp_dir().join(format!("pravaha-mapped-{}", std::process::id()));
        std::fs::write(&path, vec![7u8; BYTES]).unwrap();
        let file = MappedFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let sum = |file: &MappedFile| {
            file.iter()
                .step_by(512)
                .map(|&b| usize::from(b))
                .sum::<usize>()
        };
        assert_eq!(sum(&file), BYTES / 512 * 7);
        let touched = resident_bytes();
        file.release(0..BYTES);
        // Only half of the file is required to be gone, as other tests of this process allocate memory too.
        assert!(resident_bytes() + BYTES / 2 < touched);
        assert_eq!(sum(&file), BYTES / 512 * 7);
    }

    #[test]
    fn a_range_outside_the_file_is_ignored() {
        let file = MappedFile::open(&std::env::current_exe().unwrap()).unwrap();
        file.release(file.len()..file.len() + 1);
        assert!(file.starts_with(b"\x7fELF"));
    }
}
