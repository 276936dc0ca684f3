//! GGUF versions 2 and 3, little-endian: metadata and tensor table over a memory map.
//!
//! Layout: magic, version, counts; key-value metadata; tensor table; padding to `general.alignment`;
//! tensor data. Metadata values stay in the mapped file and are decoded on access, so opening costs one
//! pass over the header and one small record per key and per tensor.

mod cursor;
mod header;
mod metadata;
mod set;
mod split;
mod tensor_table;

use std::ops::Range;
use std::path::Path;

pub use header::Header;
pub use metadata::{MetadataArray, MetadataValue, ValueType};
pub use set::{GgufSet, split_of};
pub use split::Split;
pub use tensor_table::TensorInfo;

use super::error::quoted;
use super::{FormatError, MappedFile, Problem, TensorSource, TensorView};

/// The first four bytes of every GGUF file.
pub const MAGIC: &[u8] = b"GGUF";

/// Limit for metadata and tensor table together; the largest vocabularies need about 25 MB.
const MAX_HEADER_BYTES: usize = 128 << 20;

/// An open GGUF file: a whole model or one part of a split one. [`GgufSet`] opens models.
#[derive(Debug)]
pub struct GgufFile {
    file: MappedFile,
    header: Header,
}

impl GgufFile {
    /// Opens and checks `path`.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        Self::from_mapped(MappedFile::open(path)?)
    }

    /// Checks the header of a file that is already mapped.
    pub fn from_mapped(file: MappedFile) -> Result<Self, FormatError> {
        match Header::parse(&file) {
            Ok(header) => Ok(Self { file, header }),
            Err(problem) => Err(FormatError::new(file.path(), problem)),
        }
    }

    /// The path given to [`Self::open`].
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Format version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// The file's place in a split model; None if it is a whole one.
    pub fn split(&self) -> Option<Split> {
        self.header.split
    }

    /// Every tensor, in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// The value of metadata `key`, decoded from the map.
    pub fn metadata(&self, key: &str) -> Option<MetadataValue<'_>> {
        self.header.metadata(key, &self.file)
    }

    /// Every metadata key and value, in file order.
    pub fn metadata_entries(&self) -> impl Iterator<Item = (&str, MetadataValue<'_>)> {
        self.header.metadata_entries(&self.file)
    }
}

impl TensorSource for GgufFile {
    fn names(&self) -> Vec<&str> {
        self.header
            .tensors
            .iter()
            .map(|tensor| tensor.name.as_str())
            .collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        let info = self
            .header
            .tensor(name)
            .ok_or_else(|| FormatError::new(self.path(), Problem::NoTensor(quoted(name))))?;
        Ok(TensorView {
            name: &info.name,
            shape: &info.shape,
            dtype: info.dtype,
            bytes: &self.file[info.range.clone()],
        })
    }

    fn release(&self, name: &str) {
        if let Some(info) = self.header.tensor(name) {
            self.file.release(info.range.clone());
        }
    }

    fn release_rows(&self, name: &str, rows: Range<usize>) {
        if let (Some(info), Ok(tensor)) = (self.header.tensor(name), self.tensor(name))
            && let Some(bytes) = tensor.row_range(rows)
        {
            self.file
                .release(info.range.start + bytes.start..info.range.start + bytes.end);
        }
    }
}

#[cfg(test)]
mod tests;
