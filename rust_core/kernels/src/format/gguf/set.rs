//! A model in one GGUF file, or in the several files it was split into.
//!
//! The first file has the model's metadata, each file its own tensors. Files are only combined if they agree: they number
//! themselves `0..count`, name the same counts, have no tensor in common and no metadata that contradicts the first file's.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::super::error::quoted;
use super::super::{FormatError, MappedFile, Problem, TensorSource, TensorView};
use super::{GgufFile, MetadataValue, Split, TensorInfo};

/// The files of one model, in order.
#[derive(Debug)]
pub struct GgufSet {
    /// At least one.
    parts: Vec<GgufFile>,
    /// Tensor name → position in `parts`.
    part_of: HashMap<String, usize>,
}

impl GgufSet {
    /// Opens the given files as one model: a whole file, or all parts of a split model in order.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn open_files(paths: &[impl AsRef<Path>]) -> Result<Self, FormatError> {
        let parts = paths.iter().map(|path| GgufFile::open(path.as_ref()));
        Self::of(parts.collect::<Result<_, _>>()?)
    }

    /// The same for one file that is already mapped.
    pub fn from_mapped(file: MappedFile) -> Result<Self, FormatError> {
        Self::of(vec![GgufFile::from_mapped(file)?])
    }

    fn of(parts: Vec<GgufFile>) -> Result<Self, FormatError> {
        check_parts(&parts)?;
        let mut part_of = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            for tensor in part.tensors() {
                if part_of.insert(tensor.name.clone(), at).is_some() {
                    let name = quoted(&tensor.name);
                    return Err(FormatError::new(part.path(), Problem::InAnotherPart(name)));
                }
            }
        }
        Ok(Self { parts, part_of })
    }

    /// Format version of the first file, 2 or 3.
    pub fn version(&self) -> u32 {
        self.parts[0].version()
    }

    /// Every tensor of every file, in order. Byte ranges are those in the tensor's own file.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> {
        self.parts.iter().flat_map(|part| part.tensors())
    }

    /// Every metadata key and value of the first file, in its order.
    pub fn metadata_entries(&self) -> impl Iterator<Item = (&str, MetadataValue<'_>)> {
        self.parts[0].metadata_entries()
    }

    fn part(&self, name: &str) -> Option<&GgufFile> {
        self.part_of.get(name).map(|&at| &self.parts[at])
    }
}

/// Refuses files that are not all the parts of one model, in order.
fn check_parts(parts: &[GgufFile]) -> Result<(), FormatError> {
    let first = &parts[0];
    let Some(model) = first.split() else {
        return match parts.get(1) {
            Some(_) => Err(FormatError::new(first.path(), Problem::NotSplit)),
            None => Ok(()),
        };
    };
    let count = model.count;
    for (at, part) in parts.iter().enumerate() {
        let problem = match part.split() {
            None => Problem::NotSplit,
            Some(split) if (split.index, split.count) != (at, parts.len()) => {
                let (number, count) = (split.number(), split.count);
                if parts.len() == 1 {
                    Problem::LonePart { number, count }
                } else {
                    Problem::WrongPart {
                        number,
                        count,
                        wanted: at + 1,
                        parts: parts.len(),
                    }
                }
            }
            Some(split) if split.tensors != model.tensors => Problem::OtherModel {
                key: "\"split.tensors.count\"".to_owned(),
            },
            Some(_) => match contradiction(first, part) {
                Some(key) => Problem::OtherModel { key },
                None => continue,
            },
        };
        return Err(FormatError::new(part.path(), problem));
    }
    let tensors: usize = parts.iter().map(|part| part.tensors().len()).sum();
    if tensors as u64 != model.tensors {
        let problem = Problem::PartTensors {
            tensors,
            count,
            expected: model.tensors,
        };
        return Err(FormatError::new(first.path(), problem));
    }
    Ok(())
}

/// A metadata key of which `part` has another value than `first`. Keys about the file itself are not compared.
fn contradiction(first: &GgufFile, part: &GgufFile) -> Option<String> {
    part.metadata_entries()
        .filter(|(key, _)| !key.starts_with("split.") && *key != "general.alignment")
        .find(|(key, value)| {
            first
                .metadata(key)
                .is_some_and(|of_model| of_model != *value)
        })
        .map(|(key, _)| quoted(key))
}

impl TensorSource for GgufSet {
    fn names(&self) -> Vec<&str> {
        self.tensors().map(|tensor| tensor.name.as_str()).collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        match self.part(name) {
            Some(part) => part.tensor(name),
            None => Err(FormatError::new(
                self.parts[0].path(),
                Problem::NoTensor(quoted(name)),
            )),
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.part_of.contains_key(name)
    }

    fn release(&self, name: &str) {
        if let Some(part) = self.part(name) {
            part.release(name);
        }
    }

    fn release_rows(&self, name: &str, rows: Range<usize>) {
        if let Some(part) = self.part(name) {
            part.release_rows(name, rows);
        }
    }
}

/// The place of the file at `path` in a split model; None if it is a whole model. Reads the header only.
pub fn split_of(path: &Path) -> Result<Option<Split>, FormatError> {
    Ok(GgufFile::open(path)?.split())
}
