//! Model files, memory-mapped and checked before use.
//!
//! Invariants, for every reader in this module:
//! * No offset, length, count or product taken from a file is used before checked arithmetic has
//!   compared it with the file's real length.
//! * Opening a file allocates at most a small multiple of its header's real bytes, whatever the header
//!   claims, and reads no weights.
//! * A tensor's bytes lie inside the file and overlap no other tensor's.
//! * Bad input is a [`FormatError`] of one sentence; nothing in here panics on it.
//!
//! Shapes are row-major everywhere: `[rows (outputs), cols (inputs)]`, the last dimension contiguous.
//! GGUF stores dimensions the other way round (`ne[0]` is the contiguous one); its reader reverses them.

mod error;
#[cfg(test)]
mod fuzz;
pub mod gguf;
mod grouped;
mod mapped_file;
mod mxfp4;
pub mod safetensors;
mod tensor_source;

use std::path::Path;

use serde::Deserialize;

pub use error::{FormatError, Problem};
pub use gguf::GgufSet;
pub use grouped::{GroupedSource, Scheme};
pub use mapped_file::MappedFile;
pub use mxfp4::Mxfp4Source;
pub use safetensors::{SafetensorsFile, SafetensorsSet};
pub use tensor_source::{RowBuffer, TensorSource, TensorView};

/// How a checkpoint stores quantised matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Quantization {
    /// Integers in groups.
    Grouped(Scheme),
    /// Floats in blocks.
    Blocks(BlockFormat),
}

/// A format of blocks of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum BlockFormat {
    #[serde(rename = "mxfp4")]
    Mxfp4,
}

/// Opens a model's weights, of which matrices are stored as `quantization` says if it is given: [`open_weights`] for all
/// others.
///
/// Reads headers, and of groups zero points and group indices.
pub fn open_model_weights(
    paths: &[impl AsRef<Path>],
    quantization: Option<Quantization>,
) -> Result<Box<dyn TensorSource>, FormatError> {
    match quantization {
        Some(Quantization::Grouped(scheme)) => {
            Ok(Box::new(GroupedSource::open_files(paths, scheme)?))
        }
        Some(Quantization::Blocks(BlockFormat::Mxfp4)) => {
            Ok(Box::new(Mxfp4Source::open_files(paths)?))
        }
        None => open_weights(paths),
    }
}

/// Opens a model's weights: one GGUF file or all parts of a split one, one safetensors directory, or one or more safetensors
/// files.
///
/// Reads headers only.
pub fn open_weights(paths: &[impl AsRef<Path>]) -> Result<Box<dyn TensorSource>, FormatError> {
    let [path] = paths else {
        return match paths.first() {
            Some(path) if MappedFile::open(path.as_ref())?.starts_with(gguf::MAGIC) => {
                Ok(Box::new(GgufSet::open_files(paths)?))
            }
            _ => Ok(Box::new(SafetensorsSet::open_files(paths)?)),
        };
    };
    let path = path.as_ref();
    if path.is_dir() {
        return Ok(Box::new(SafetensorsSet::open_directory(path)?));
    }
    let file = MappedFile::open(path)?;
    if file.starts_with(gguf::MAGIC) {
        Ok(Box::new(GgufSet::from_mapped(file)?))
    } else {
        Ok(Box::new(SafetensorsFile::from_mapped(file)?))
    }
}
