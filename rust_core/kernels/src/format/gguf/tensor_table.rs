//! The tensor table: name, shape, element type and byte range of each tensor.

use std::collections::HashSet;
use std::ops::Range;

use super::super::Problem;
use super::super::error::quoted;
use super::cursor::Cursor;
use crate::quant::DType;

/// Limits of the GGUF specification.
const MAX_NAME_BYTES: u64 = 65535;
const MAX_DIMS: usize = 4;
/// Name length, dimension count, one dimension, type, offset.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 8 + 4 + 8;

/// One tensor of a GGUF file.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    pub name: String,
    /// Row-major, slowest dimension first (the reverse of the file's `ne`).
    pub shape: Vec<usize>,
    pub dtype: DType,
    /// Byte range in the file, half-open.
    pub range: Range<usize>,
}

/// Reads `count` entries; the data section starts at the next multiple of `alignment` after them.
pub(super) fn parse(
    cursor: &mut Cursor<'_>,
    count: u64,
    alignment: u64,
    file_len: usize,
) -> Result<Vec<TensorInfo>, Problem> {
    let limit = cursor.remaining() / MIN_ENTRY_BYTES;
    if count > limit {
        return Err(Problem::TooMany {
            what: "tensors",
            count,
            limit,
        });
    }
    let mut entries = Vec::new();
    let mut seen = HashSet::new();
    for _ in 0..count {
        let entry = Entry::parse(cursor)?;
        if !seen.insert(entry.name) {
            return Err(Problem::Duplicate {
                what: "tensor",
                name: quoted(entry.name),
            });
        }
        entries.push(entry);
    }
    let data_start = (cursor.position() as u64).next_multiple_of(alignment);
    let tensors = entries
        .into_iter()
        .map(|entry| entry.locate(data_start, alignment, file_len))
        .collect::<Result<Vec<_>, _>>()?;
    check_disjoint(&tensors)?;
    Ok(tensors)
}

/// A table entry whose byte range has not been computed yet.
struct Entry<'a> {
    name: &'a str,
    shape: Vec<usize>,
    dtype: DType,
    bytes: usize,
    offset: u64,
}

impl<'a> Entry<'a> {
    fn parse(cursor: &mut Cursor<'a>) -> Result<Self, Problem> {
        let name = cursor.name(MAX_NAME_BYTES, "bytes of a tensor name")?;
        let location = format!("the table entry of tensor {}", quoted(name));
        let count = cursor.u32(&location)?;
        if count == 0 || count as usize > MAX_DIMS {
            let (name, count) = (quoted(name), u64::from(count));
            return Err(Problem::Dimensions {
                name,
                count,
                limit: MAX_DIMS,
            });
        }
        let mut shape = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let extent = cursor.u64(&location)?;
            shape.push(usize::try_from(extent).map_err(|_| Problem::BadShape(quoted(name)))?);
        }
        shape.reverse();
        let code = cursor.u32(&location)?;
        let dtype = DType::from_ggml(code).ok_or_else(|| Problem::UnsupportedType {
            name: quoted(name),
            kind: ggml_type_name(code),
        })?;
        let offset = cursor.u64(&location)?;
        let bytes = byte_count(name, &shape, dtype)?;
        Ok(Self {
            name,
            shape,
            dtype,
            bytes,
            offset,
        })
    }

    fn locate(
        self,
        data_start: u64,
        alignment: u64,
        file_len: usize,
    ) -> Result<TensorInfo, Problem> {
        if !self.offset.is_multiple_of(alignment) {
            return Err(Problem::Misaligned(quoted(self.name)));
        }
        let range = data_start
            .checked_add(self.offset)
            .and_then(|start| usize::try_from(start).ok())
            .and_then(|start| Some(start..start.checked_add(self.bytes)?))
            .filter(|range| range.end <= file_len)
            .ok_or_else(|| Problem::OutOfRange(quoted(self.name)))?;
        Ok(TensorInfo {
            name: self.name.to_owned(),
            shape: self.shape,
            dtype: self.dtype,
            range,
        })
    }
}

/// Bytes of a tensor. Its rows must hold whole blocks, and the byte count must fit `isize`.
fn byte_count(name: &str, shape: &[usize], dtype: DType) -> Result<usize, Problem> {
    let cols = *shape.last().expect("at least one dimension");
    if !cols.is_multiple_of(dtype.block_len()) {
        let (name, dtype, block) = (quoted(name), dtype.name(), dtype.block_len());
        return Err(Problem::PartialBlock {
            name,
            cols,
            dtype,
            block,
        });
    }
    shape[..shape.len() - 1]
        .iter()
        .try_fold(cols, |product, &extent| product.checked_mul(extent))
        .and_then(|elements| (elements / dtype.block_len()).checked_mul(dtype.block_bytes()))
        // An index into the tensor, in elements or bytes, must fit isize as any allocation does.
        .filter(|&bytes| bytes > 0 && bytes <= isize::MAX as usize / 8)
        .ok_or_else(|| Problem::BadShape(quoted(name)))
}

fn check_disjoint(tensors: &[TensorInfo]) -> Result<(), Problem> {
    let mut by_start: Vec<&TensorInfo> = tensors.iter().collect();
    by_start.sort_unstable_by_key(|tensor| tensor.range.start);
    for pair in by_start.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            return Err(Problem::Overlap(
                quoted(&pair[0].name),
                quoted(&pair[1].name),
            ));
        }
    }
    Ok(())
}

/// The usual name of a ggml type that is not supported here, else its number.
fn ggml_type_name(code: u32) -> String {
    let name = match code {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        21 => "IQ3_S",
        22 => "IQ2_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        40 => "NVFP4",
        41 => "Q1_0",
        42 => "Q2_0",
        _ => return format!("number {code}"),
    };
    name.to_owned()
}
