//! The place of a file in a model that is split into several GGUF files: metadata `split.no`, `split.count` and
//! `split.tensors.count`, as llama.cpp's `gguf-split` writes them.

use super::super::Problem;
use super::metadata::Metadata;

/// Most files of a model.
const MAX_PARTS: u64 = 4096;

/// A file's place in a split model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// From 0; less than `count`.
    pub index: usize,
    /// Number of files: at least 2.
    pub count: usize,
    /// Number of tensors of all files together.
    pub tensors: u64,
}

impl Split {
    /// Reads the place of a file; None if the file is a whole model.
    pub(super) fn parse(metadata: &Metadata, file: &[u8]) -> Result<Option<Self>, Problem> {
        let integer = |key: &'static str| {
            let value = metadata.get(key, file).and_then(|value| value.as_u64());
            value.ok_or(Problem::BadSplit(key))
        };
        const COUNT: &str = "split.count";
        if metadata.get(COUNT, file).is_none() {
            return Ok(None);
        }
        let count = integer(COUNT)?;
        if count <= 1 {
            return Ok(None);
        }
        if count > MAX_PARTS {
            return Err(Problem::TooMany {
                what: "files of one model",
                count,
                limit: MAX_PARTS,
            });
        }
        let index = integer("split.no")?;
        if index >= count {
            return Err(Problem::BadSplit("split.no"));
        }
        Ok(Some(Self {
            index: index as usize,
            count: count as usize,
            tensors: integer("split.tensors.count")?,
        }))
    }

    /// The file's number, from 1.
    pub fn number(self) -> usize {
        self.index + 1
    }
}
