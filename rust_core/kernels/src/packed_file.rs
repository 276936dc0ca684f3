//! Packed weights kept in files, so that a model is packed once: the second start maps what the first one wrote.
//!
//! A file is written beside its place, synced, and renamed into place ([`UnfinishedFile`]): a reader sees a whole file or none.
//! It is a copy of weights that were packed in memory ([`PackedSaving`]), or, for models that may be larger than memory, the
//! weights are packed into it part by part (`weights/into_file.rs`).
//! It is never written again. It is replaced by another rename and removed by unlinking, never truncated, because a
//! read past the end of a mapping is fatal. Processes that map a file share its pages in the page cache, from which the system
//! evicts them when memory is short.
//!
//! A file is used if everything that determines its bytes is the same: the source files (`source_id`, computed by the caller),
//! and the plan, that is every matrix's name, type, shape and place, and how this build packs them. Both are in its name and in
//! its header. The header has a checksum, and the file's length must be exact. The checksum of the contents is compared by
//! [`verify`] only, since it would read the whole file at each start. Damaged contents give wrong numbers, as in a damaged
//! model file, but no invalid access: kernels take any bytes.

mod header;
mod saving;
#[cfg(test)]
mod tests;
mod unfinished;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::arena::Arena;
use crate::error::KernelError;

pub use self::header::{Header, SOURCE_BYTES};
pub use self::saving::{PackedSaving, Saved, Saving};
pub use self::unfinished::UnfinishedFile;

use self::header::PAGE;

/// Suffix of the files.
pub const SUFFIX: &str = "packed";

/// Bytes that are read or written at once.
const CHUNK: usize = 4 << 20;

/// Where a model's packed weights are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedLocation {
    pub folder: PathBuf,
    /// Identifies the contents of the source files.
    pub source_id: [u8; 32],
    /// Path of the model, for those who list the files; at most [`SOURCE_BYTES`].
    pub source: String,
    /// Weights that are not there are packed into the file and mapped, and not in memory.
    pub packs_into_file: bool,
}

/// The file of a model's packed weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedFile {
    pub path: PathBuf,
    /// Its length.
    pub bytes: usize,
    /// Whether it is there and can be used.
    pub found: bool,
}

impl PackedLocation {
    /// The file for a plan.
    pub fn path(&self, plan: &[u8; 16]) -> PathBuf {
        let hex =
            |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        let name = format!("{}-{}.{SUFFIX}", hex(&self.source_id[..16]), hex(plan));
        self.folder.join(name)
    }
}

/// What was done about packed weights on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackedState {
    /// They are not kept.
    Off,
    /// The file was mapped.
    Mapped(PathBuf),
    /// There was no file.
    Missing(PathBuf),
    /// There was one that could not be used, for this reason.
    Unusable(PathBuf, String),
}

/// Map the packed weights at `path`; None if there is no file.
///
/// # Errors
/// The file cannot be used; one clause says why.
pub fn open(path: &Path, wanted: &Header) -> Result<Option<Arena>, String> {
    let Some(file) = open_wanted(path, wanted)? else {
        return Ok(None);
    };
    // The order of eviction. Advisory: a failure changes nothing.
    let _ = file.set_modified(std::time::SystemTime::now());
    let map = Arena::of_file(&file, PAGE..PAGE + wanted.bytes);
    map.map(Some)
        .map_err(|error| format!("it cannot be mapped: {error}"))
}

/// What is known of the file at `path` without mapping it.
pub fn find(path: PathBuf, wanted: &Header) -> PackedFile {
    PackedFile {
        bytes: PAGE + wanted.bytes,
        found: matches!(open_wanted(&path, wanted), Ok(Some(_))),
        path,
    }
}

/// Open the file with these weights; None if there is no file.
fn open_wanted(path: &Path, wanted: &Header) -> Result<Option<File>, String> {
    let file = match open_private(path) {
        Ok(file) => file,
        // Also if a folder of the path is a file: saving will say so.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let found = read_header(&file)?;
    if (found.source_id, found.plan, found.bytes) != (wanted.source_id, wanted.plan, wanted.bytes) {
        return Err("it holds other weights".into());
    }
    Ok(Some(file))
}

/// The header of the file at `path`.
///
/// # Errors
/// It is not a file of packed weights, or is damaged.
pub fn inspect(path: &Path) -> Result<Header, KernelError> {
    let inspected = || read_header(&open_private(path).map_err(|error| error.to_string())?);
    inspected().map_err(|reason| {
        KernelError::model(format!("{} cannot be used: {reason}.", path.display()))
    })
}

/// Read the whole file and compare its checksum.
///
/// # Errors
/// It is not a file of packed weights, or is damaged.
pub fn verify(path: &Path) -> Result<(), KernelError> {
    let verified = || -> Result<(), String> {
        let file = open_private(path).map_err(|error| error.to_string())?;
        let header = read_header(&file)?;
        let mut chunk = vec![0; CHUNK];
        let mut hash = Xxh3::new();
        loop {
            // The position is after the header.
            match (&file).read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => hash.update(&chunk[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        if hash.digest128().to_le_bytes() == header.digest {
            Ok(())
        } else {
            Err("its contents are damaged".into())
        }
    };
    verified().map_err(|reason| {
        KernelError::model(format!("{} cannot be used: {reason}.", path.display()))
    })
}

/// Open a file for reading that nobody but this user can change.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Not through a link, and without waiting for the writer of a FIFO.
    options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if !is_ours(&metadata) {
        return Err(io::Error::other("other users can write to it"));
    }
    Ok(file)
}

fn is_ours(metadata: &Metadata) -> bool {
    // SAFETY: no precondition.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

/// The header of an open file, whose length is checked.
fn read_header(file: &File) -> Result<Header, String> {
    let mut page = Vec::with_capacity(PAGE);
    let first = file.take(PAGE as u64).read_to_end(&mut page);
    first.map_err(|error| error.to_string())?;
    let header = Header::parse(&page)?;
    let len = file.metadata().map_err(|error| error.to_string())?.len();
    // Cannot overflow: parsed lengths are limited.
    if len != (PAGE + header.bytes) as u64 {
        return Err("it is truncated".into());
    }
    Ok(header)
}
