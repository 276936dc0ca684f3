//! Safetensors: one file, or a directory of shards with an index.

mod header;
mod set;

use std::ops::Range;
use std::path::Path;

pub use header::{ElementType, Header, TensorInfo};
pub use set::SafetensorsSet;

use super::error::quoted;
use super::{FormatError, MappedFile, Problem, TensorSource, TensorView};

/// An open safetensors file.
#[derive(Debug)]
pub struct SafetensorsFile {
    file: MappedFile,
    header: Header,
}

impl SafetensorsFile {
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

    /// The description and the bytes of a tensor of any element type.
    pub fn entry(&self, name: &str) -> Option<(&TensorInfo, &[u8])> {
        let info = self.header.tensor(name)?;
        Some((info, &self.file[info.range.clone()]))
    }

    /// Every tensor, sorted by byte range.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }
}

impl TensorSource for SafetensorsFile {
    fn names(&self) -> Vec<&str> {
        self.header
            .tensors
            .iter()
            .map(|tensor| tensor.name.as_str())
            .collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        let fail = |problem| FormatError::new(self.path(), problem);
        let info = self
            .header
            .tensor(name)
            .ok_or_else(|| fail(Problem::NoTensor(quoted(name))))?;
        let ElementType::Supported(dtype) = info.element else {
            let (name, kind) = (quoted(name), info.element.to_string());
            return Err(fail(Problem::UnsupportedType { name, kind }));
        };
        Ok(TensorView {
            name: &info.name,
            shape: &info.shape,
            dtype,
            bytes: &self.file[info.range.clone()],
        })
    }

    fn contains(&self, name: &str) -> bool {
        self.header.tensor(name).is_some()
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
