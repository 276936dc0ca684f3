//! Errors of model files. Each message is one sentence: what is wrong, where, and what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A model file that cannot be used: its path and the problem.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct FormatError {
    pub path: PathBuf,
    pub problem: Problem,
}

impl FormatError {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self {
            path: path.to_owned(),
            problem,
        }
    }
}

/// The reason. Names taken from a file are escaped and shortened by `quoted` before they get here.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Problem {
    #[error("cannot be read: {0}")]
    Io(String),
    #[error("is not a regular file; give the path of a model file")]
    NotAFile,
    #[error("is neither a GGUF nor a safetensors file; give the path of a model file")]
    UnknownFormat,
    #[error("is not a GGUF file (it does not start with GGUF); give the path of a GGUF model")]
    NotGguf,
    #[error("is GGUF version {0}, and versions 2 and 3 are supported; convert the model again")]
    GgufVersion(u32),
    #[error("is a big-endian GGUF file; convert it for little-endian machines")]
    BigEndian,
    #[error("has metadata {0} that is not the number it should be; it is damaged")]
    BadSplit(&'static str),
    #[error(
        "is part {number} of {count} of a model whose other parts were not given; \
         keep all parts in one folder, named NAME-00001-of-{count:05}.gguf and so on"
    )]
    LonePart { number: usize, count: usize },
    #[error("is a whole model and not a part of one, as its place among the files says")]
    NotSplit,
    #[error(
        "is part {number} of {count} of a model where part {wanted} of {parts} belongs; \
         a file was renamed, or belongs to another model"
    )]
    WrongPart {
        number: usize,
        count: usize,
        wanted: usize,
        parts: usize,
    },
    #[error(
        "belongs to another model than the first part, whose metadata {key} differs; \
         fetch the model again"
    )]
    OtherModel { key: String },
    #[error(
        "is the first of {count} files that have {tensors} tensors together instead of {expected}; \
         one belongs to another model, fetch the model again"
    )]
    PartTensors {
        tensors: usize,
        count: usize,
        expected: u64,
    },
    #[error("has tensor {0}, which an earlier part of the model has too; fetch the model again")]
    InAnotherPart(String),
    #[error("ends inside {0}; the download may be incomplete, fetch it again")]
    Truncated(String),
    #[error("has a header of more than {0} bytes; it is damaged or hostile")]
    HeaderTooLarge(usize),
    #[error("claims {count} {what}, and at most {limit} can be there; it is damaged or hostile")]
    TooMany {
        what: &'static str,
        count: u64,
        limit: u64,
    },
    #[error("has text that is not UTF-8 in {0}; it is damaged")]
    NotUtf8(String),
    #[error("names the {what} {name} twice; it is damaged")]
    Duplicate { what: &'static str, name: String },
    #[error("has metadata {key} of type {kind}, which GGUF does not define; it is damaged")]
    MetadataType { key: String, kind: u32 },
    #[error(
        "has an array of arrays in metadata {0}, which is not supported; convert the model again"
    )]
    NestedArray(String),
    #[error("has a boolean that is neither 0 nor 1 in metadata {0}; it is damaged")]
    BadBool(String),
    #[error(
        "has metadata general.alignment that is not a power of two from 8 to 65536; it is damaged"
    )]
    BadAlignment,
    #[error(
        "has tensor {name} with {count} dimensions, and 1 to {limit} are supported; it is damaged"
    )]
    Dimensions {
        name: String,
        count: u64,
        limit: usize,
    },
    #[error(
        "has tensor {0} with a shape that is empty or too large for this machine; it is damaged"
    )]
    BadShape(String),
    #[error(
        "has tensor {name} of type {kind}, which is not supported; \
         use F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K or Q6_K weights"
    )]
    UnsupportedType { name: String, kind: String },
    #[error(
        "has tensor {name} with rows of {cols} values, which {dtype} blocks of {block} do not divide; \
         it is damaged"
    )]
    PartialBlock {
        name: String,
        cols: usize,
        dtype: &'static str,
        block: usize,
    },
    #[error("has tensor {0} at an unaligned offset; it is damaged")]
    Misaligned(String),
    #[error("has tensor {0} outside the file; the download may be incomplete, fetch it again")]
    OutOfRange(String),
    #[error("has tensors {0} and {1} in overlapping bytes; it is damaged")]
    Overlap(String, String),
    #[error("has bytes that belong to no tensor {0}; it is damaged")]
    UnusedBytes(String),
    #[error("has tensor {0} whose byte count does not fit its shape; it is damaged")]
    SizeMismatch(String),
    #[error("has a header that is not valid safetensors JSON ({0}); it is damaged")]
    BadJson(String),
    #[error("names the weight file {0}, which is not a plain .safetensors name in its directory")]
    BadShardName(String),
    #[error(
        "holds neither model.safetensors nor model.safetensors.index.json; give a model directory"
    )]
    NoSafetensors,
    #[error("has no tensor {name} in {shard}, where its index puts it; fetch the model again")]
    MissingFromShard { name: String, shard: String },
    #[error("has a quantised matrix {name} {reason}; it is damaged")]
    BadGroups { name: String, reason: String },
    #[error("holds no tensor {0}; it is not a complete model of this architecture")]
    NoTensor(String),
}

/// `name` for a message: quoted, control characters escaped, shortened to 80 characters.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 80;
    if name.chars().nth(LONGEST).is_none() {
        return format!("{name:?}");
    }
    let head: String = name.chars().take(LONGEST).collect();
    format!("{head:?}…")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_in_messages_are_escaped_and_short() {
        assert_eq!(quoted("a\n\x1b[2J"), r#""a\n\u{1b}[2J""#);
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 83);
    }
}
