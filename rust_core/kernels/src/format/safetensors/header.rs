//! Parsing of the JSON header of a safetensors file from a byte slice, without I/O, so that fuzz tests can call it.
//!
//! Layout: header length (u64, little-endian), JSON object, data. Offsets are relative to the start of the data,
//! and the tensors must cover the data without gaps, as the reference reader requires.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::super::Problem;
use super::super::error::quoted;
use crate::quant::DType;

/// The limit of the reference reader.
const MAX_HEADER_BYTES: usize = 100_000_000;
const MAX_DIMS: usize = 8;

/// One tensor of a safetensors file.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    pub name: String,
    /// Row-major, slowest dimension first; empty for a scalar.
    pub shape: Vec<usize>,
    pub element: ElementType,
    /// Byte range in the file, half-open.
    pub range: Range<usize>,
}

/// A tensor's element type. Files may contain tensors that no executor reads (integer buffers), so an unsupported type is an
/// error only when its tensor is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementType {
    Supported(DType),
    /// Signed integers of 32 or 64 bits, of which quantised checkpoints are made.
    Integers(usize),
    /// Unsigned bytes, likewise.
    Bytes,
    /// An unsupported type: its name in the file, quoted, and its size in bytes if known.
    Other(String, Option<usize>),
}

impl ElementType {
    fn from_name(name: &str) -> Self {
        match name {
            "F32" => Self::Supported(DType::F32),
            "F16" => Self::Supported(DType::F16),
            "BF16" => Self::Supported(DType::BF16),
            "U8" => Self::Bytes,
            "BOOL" | "I8" | "F8_E4M3" | "F8_E5M2" => Self::Other(quoted(name), Some(1)),
            "U16" | "I16" => Self::Other(quoted(name), Some(2)),
            "I32" => Self::Integers(4),
            "I64" => Self::Integers(8),
            "U32" => Self::Other(quoted(name), Some(4)),
            "U64" | "F64" => Self::Other(quoted(name), Some(8)),
            _ => Self::Other(quoted(name), None),
        }
    }

    fn bytes(&self) -> Option<usize> {
        match self {
            Self::Supported(dtype) => Some(dtype.block_bytes()),
            Self::Integers(bytes) => Some(*bytes),
            Self::Bytes => Some(1),
            Self::Other(_, bytes) => *bytes,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supported(dtype) => out.write_str(dtype.name()),
            Self::Integers(bytes) => write!(out, "\"I{}\"", 8 * bytes),
            Self::Bytes => out.write_str("\"U8\""),
            Self::Other(name, _) => out.write_str(name),
        }
    }
}

/// The header, with every offset checked against the file's length.
#[derive(Debug)]
pub struct Header {
    /// Sorted by byte range.
    pub tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
}

impl Header {
    /// Parses `file`, the bytes of a whole safetensors file.
    pub fn parse(file: &[u8]) -> Result<Self, Problem> {
        let truncated = || Problem::Truncated("the safetensors header".to_owned());
        let (prefix, rest) = file.split_first_chunk::<8>().ok_or_else(truncated)?;
        // If this is not a JSON object, the file is of another type, whatever the length field contains.
        if rest.first().is_some_and(|&first| first != b'{') {
            return Err(Problem::UnknownFormat);
        }
        let length = u64::from_le_bytes(*prefix);
        if length > MAX_HEADER_BYTES as u64 {
            return Err(Problem::HeaderTooLarge(MAX_HEADER_BYTES));
        }
        let json = rest.get(..length as usize).ok_or_else(truncated)?;
        let data_start = 8 + json.len();
        let RawHeader(raw) = parse_json(json)?;
        let mut tensors = raw
            .into_iter()
            .map(|(name, raw)| raw.locate(name, data_start, file.len()))
            .collect::<Result<Vec<_>, _>>()?;
        // An empty tensor has the same start as the next one: sort shorter ranges first.
        tensors.sort_by_key(|tensor| (tensor.range.start, tensor.range.end));
        check_covers(&tensors, data_start, file.len())?;
        let mut index = HashMap::with_capacity(tensors.len());
        for (at, tensor) in tensors.iter().enumerate() {
            if index.insert(tensor.name.clone(), at).is_some() {
                return Err(Problem::Duplicate {
                    what: "tensor",
                    name: quoted(&tensor.name),
                });
            }
        }
        Ok(Self { tensors, index })
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&at| &self.tensors[at])
    }
}

/// Deserialises JSON; the error message includes the parser's reason.
pub(super) fn parse_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    serde_json::from_slice(json).map_err(|error| {
        // The parser's message may quote text from the file: escape it.
        Problem::BadJson(
            error
                .to_string()
                .chars()
                .flat_map(char::escape_debug)
                .take(160)
                .collect(),
        )
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl RawTensor {
    fn locate(
        self,
        name: String,
        data_start: usize,
        file_len: usize,
    ) -> Result<TensorInfo, Problem> {
        if self.shape.len() > MAX_DIMS {
            let count = self.shape.len() as u64;
            return Err(Problem::Dimensions {
                name: quoted(&name),
                count,
                limit: MAX_DIMS,
            });
        }
        let element = ElementType::from_name(&self.dtype);
        let shape = self
            .shape
            .iter()
            .map(|&extent| usize::try_from(extent).ok())
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Problem::BadShape(quoted(&name)))?;
        let [begin, end] = self.data_offsets.map(|offset| {
            usize::try_from(offset)
                .ok()
                .and_then(|offset| data_start.checked_add(offset))
        });
        let range = match (begin, end) {
            (Some(begin), Some(end)) if begin <= end && end <= file_len => begin..end,
            _ => return Err(Problem::OutOfRange(quoted(&name))),
        };
        let elements = shape
            .iter()
            .try_fold(1usize, |product, &extent| product.checked_mul(extent))
            .ok_or_else(|| Problem::BadShape(quoted(&name)))?;
        if let Some(size) = element.bytes()
            && elements.checked_mul(size) != Some(range.len())
        {
            return Err(Problem::SizeMismatch(quoted(&name)));
        }
        Ok(TensorInfo {
            name,
            shape,
            element,
            range,
        })
    }
}

/// Pairs of name and description. A map would silently drop duplicate names.
struct RawHeader(Vec<(String, RawTensor)>);

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = RawHeader;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(RawHeader(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

fn check_covers(tensors: &[TensorInfo], data_start: usize, file_len: usize) -> Result<(), Problem> {
    let mut covered = data_start;
    let mut previous = "";
    for tensor in tensors {
        if tensor.range.start < covered {
            return Err(Problem::Overlap(quoted(previous), quoted(&tensor.name)));
        }
        if tensor.range.start > covered {
            return Err(Problem::UnusedBytes(format!(
                "before {}",
                quoted(&tensor.name)
            )));
        }
        covered = tensor.range.end;
        previous = &tensor.name;
    }
    if covered == file_len {
        Ok(())
    } else {
        Err(Problem::UnusedBytes("at its end".to_owned()))
    }
}
