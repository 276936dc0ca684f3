//! The tensors of one quantised matrix, checked against each other.

use super::super::error::quoted;
use super::super::safetensors::{ElementType, TensorInfo};
use super::super::{Problem, SafetensorsSet};
use super::scheme::Scheme;
use crate::pack::layout::GROUP;
use crate::quant::DType;

/// Code widths.
const WIDTHS: [u32; 2] = [4, 8];

/// Group indices of a module that has none yet, in `pack-quantized`.
const NO_GROUP: i64 = -1;

/// A matrix whose tensors have shapes that fit each other.
#[derive(Debug)]
pub(super) struct Matrix {
    /// `[outputs, inputs]`
    pub shape: [usize; 2],
    /// What its rows are unpacked to.
    pub dtype: DType,
    /// Bits of a code: 4 or 8.
    pub bits: u32,
    pub num_groups: usize,
    pub groups: Groups,
    /// Type of the scales.
    pub scale_type: DType,
    /// Names of its tensors.
    pub codes: String,
    pub zeros: Option<String>,
    pub scales: String,
}

/// To which group inputs belong; every index is below the number of groups.
#[derive(Debug)]
pub(super) enum Groups {
    /// The group of each 32 consecutive inputs.
    Runs(Vec<u32>),
    /// The group of each input.
    Inputs(Vec<u32>),
}

impl Matrix {
    /// The matrix of the module `stem`, after all checks that unpacking relies on.
    pub fn check(files: &SafetensorsSet, scheme: Scheme, stem: &str) -> Result<Self, Problem> {
        let parts = Parts {
            files,
            scheme,
            stem,
        };
        let (codes, scales) = (parts.words(0)?, parts.scales()?);
        let zeros = parts.optional_words(1)?;
        let indices = parts.group_indices()?;
        let (rows, columns) = (codes.shape[0], codes.shape[1]);
        let stated = match scheme {
            Scheme::PackQuantized => Some(parts.stated_shape()?),
            _ => None,
        };
        let fits = |bits: u32| -> Option<([usize; 2], usize)> {
            let per = 32 / bits as usize;
            let [outer, inner] = scales.shape;
            let ([outputs, inputs], num_groups, zero_shape) = match scheme {
                Scheme::Gptq | Scheme::GptqV2 => {
                    let inputs = indices.as_ref().map_or(rows * per, Vec::len);
                    let fits = rows == inputs.div_ceil(per) && columns == inner;
                    fits.then_some(([inner, inputs], outer, [outer, inner.div_ceil(per)]))?
                }
                Scheme::Awq => {
                    let fits = bits == 4 && columns * per == inner;
                    fits.then_some(([inner, rows], outer, [outer, columns]))?
                }
                Scheme::PackQuantized => {
                    let [outputs, inputs] = stated?;
                    let fits = outputs == rows && outer == rows && columns == inputs.div_ceil(per);
                    fits.then_some(([outputs, inputs], inner, [rows.div_ceil(per), inner]))?
                }
            };
            let zeros_fit = match &zeros {
                Some(zeros) => zeros.shape == zero_shape,
                None => scheme == Scheme::PackQuantized,
            };
            let whole = outputs > 0 && (1..=inputs).contains(&num_groups);
            (zeros_fit && whole).then_some(([outputs, inputs], num_groups))
        };
        // The width follows from the shapes if there are more than four outputs; otherwise it is 4 bits.
        let found = WIDTHS
            .into_iter()
            .find_map(|bits| Some((bits, fits(bits)?)));
        let Some((bits, (shape, num_groups))) = found else {
            return Err(
                parts.bad("whose codes, scales and zero points have shapes that do not fit")
            );
        };
        let groups = match indices {
            Some(indices) => parts.checked(indices, shape[1], num_groups)?,
            None if shape[1].is_multiple_of(num_groups) => Groups::even(shape[1], num_groups),
            None => return Err(parts.bad("whose inputs are not whole groups")),
        };
        let symmetric = zeros.as_ref().is_none_or(|zeros| {
            let mut words = zeros.bytes.as_chunks().0.iter();
            words.all(|&word| zero_word(scheme, bits, word) == symmetric_word(bits))
        });
        Ok(Self {
            shape,
            dtype: unpacked_type(bits, &groups, shape[1], symmetric, scales.dtype),
            bits,
            num_groups,
            groups,
            scale_type: scales.dtype,
            codes: parts.name(0),
            zeros: zeros.map(|_| parts.name(1)),
            scales: parts.name(2),
        })
    }

    /// The names of the tensors that hold weights.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let zeros = self.zeros.as_deref();
        [self.codes.as_str(), &self.scales].into_iter().chain(zeros)
    }
}

impl Groups {
    /// Groups of the same size, in order.
    fn even(inputs: usize, num_groups: usize) -> Self {
        let size = inputs / num_groups;
        let group_of = |input: usize| (input / size) as u32;
        if size.is_multiple_of(GROUP) {
            Self::Runs((0..inputs).step_by(GROUP).map(group_of).collect())
        } else {
            Self::Inputs((0..inputs).map(group_of).collect())
        }
    }
}

/// A word of zero points as they are used.
pub(super) fn zero_word(scheme: Scheme, bits: u32, word: [u8; 4]) -> u32 {
    let word = u32::from_le_bytes(word);
    match scheme {
        Scheme::Gptq => word.wrapping_add(symmetric_word(bits) >> (bits - 1)),
        _ => word,
    }
}

/// A word of zero points in the middle of the range.
fn symmetric_word(bits: u32) -> u32 {
    match bits {
        4 => 0x8888_8888,
        _ => 0x8080_8080,
    }
}

/// The type that rows are unpacked to; see the module's documentation.
fn unpacked_type(
    bits: u32,
    groups: &Groups,
    inputs: usize,
    symmetric: bool,
    scales: DType,
) -> DType {
    match (bits, groups) {
        _ if !inputs.is_multiple_of(GROUP) => DType::F16,
        (4, Groups::Runs(_)) if symmetric && scales != DType::F32 => DType::Q4_0,
        (4, Groups::Runs(_)) => DType::Int4,
        (4, Groups::Inputs(_)) => DType::Q8_0,
        (_, Groups::Runs(_)) if symmetric => DType::Q8_0,
        _ => DType::F16,
    }
}

/// The tensors of a module.
struct Parts<'a> {
    files: &'a SafetensorsSet,
    scheme: Scheme,
    stem: &'a str,
}

/// A tensor of a matrix, of two dimensions.
struct Part<'a> {
    shape: [usize; 2],
    dtype: DType,
    bytes: &'a [u8],
}

impl<'a> Parts<'a> {
    fn name(&self, part: usize) -> String {
        format!("{}{}", self.stem, self.scheme.parts()[part])
    }

    fn bad(&self, reason: &str) -> Problem {
        let (name, reason) = (quoted(self.stem), reason.to_owned());
        Problem::BadGroups { name, reason }
    }

    fn optional(&self, part: usize) -> Option<(&'a TensorInfo, &'a [u8])> {
        self.files.entry(&self.name(part))
    }

    fn entry(&self, part: usize) -> Result<(&'a TensorInfo, &'a [u8]), Problem> {
        let found = self.optional(part);
        found.ok_or_else(|| Problem::NoTensor(quoted(&self.name(part))))
    }

    fn part(&self, part: usize, wanted: &[ElementType]) -> Result<Part<'a>, Problem> {
        let (info, bytes) = self.entry(part)?;
        let name = self.scheme.parts()[part];
        if !wanted.contains(&info.element) {
            return Err(self.bad(&format!("whose {name} has element type {}", info.element)));
        }
        let Ok(shape) = <[usize; 2]>::try_from(info.shape.as_slice()) else {
            return Err(self.bad(&format!("whose {name} has shape {:?}", info.shape)));
        };
        let dtype = match info.element {
            ElementType::Supported(dtype) => dtype,
            _ => DType::F32, // not used: words
        };
        Ok(Part {
            shape,
            dtype,
            bytes,
        })
    }

    fn words(&self, part: usize) -> Result<Part<'a>, Problem> {
        self.part(part, &[ElementType::Integers(4)])
    }

    fn optional_words(&self, part: usize) -> Result<Option<Part<'a>>, Problem> {
        self.optional(part).map(|_| self.words(part)).transpose()
    }

    fn scales(&self) -> Result<Part<'a>, Problem> {
        let floats = [DType::F16, DType::BF16, DType::F32];
        self.part(2, &floats.map(ElementType::Supported))
    }

    /// The integers of a tensor of one dimension.
    fn integers(&self, part: usize) -> Result<Vec<i64>, Problem> {
        let (info, bytes) = self.entry(part)?;
        match (&info.element, info.shape.len()) {
            (ElementType::Integers(4), 1) => {
                let words = bytes.as_chunks().0.iter();
                Ok(words
                    .map(|&word| i64::from(i32::from_le_bytes(word)))
                    .collect())
            }
            (ElementType::Integers(_), 1) => {
                let words = bytes.as_chunks().0.iter();
                Ok(words.map(|&word| i64::from_le_bytes(word)).collect())
            }
            _ => Err(self.bad(&format!(
                "whose {} has element type {} and shape {:?}",
                self.scheme.parts()[part],
                info.element,
                info.shape
            ))),
        }
    }

    /// `[outputs, inputs]` as a tensor states them.
    fn stated_shape(&self) -> Result<[usize; 2], Problem> {
        let stated = self.integers(4)?;
        let extents = stated.iter().map(|&extent| usize::try_from(extent).ok());
        let extents: Option<Vec<usize>> = extents.collect();
        extents
            .and_then(|extents| extents.try_into().ok())
            .ok_or_else(|| self.bad("whose .weight_shape is not two sizes"))
    }

    /// The group of each input as stored; None if they are in order.
    fn group_indices(&self) -> Result<Option<Vec<i64>>, Problem> {
        if self.scheme == Scheme::Awq || self.optional(3).is_none() {
            return Ok(None);
        }
        let indices = self.integers(3)?;
        let none =
            self.scheme == Scheme::PackQuantized && indices.iter().all(|&group| group == NO_GROUP);
        Ok((!none).then_some(indices))
    }

    fn checked(
        &self,
        indices: Vec<i64>,
        inputs: usize,
        num_groups: usize,
    ) -> Result<Groups, Problem> {
        if indices.len() != inputs {
            return Err(self.bad("with another number of group indices than inputs"));
        }
        let inside = |&group: &i64| usize::try_from(group).is_ok_and(|group| group < num_groups);
        if !indices.iter().all(inside) {
            return Err(self.bad("with a group index that is no group"));
        }
        let groups: Vec<u32> = indices.iter().map(|&group| group as u32).collect();
        let runs = groups.chunks(GROUP);
        if inputs.is_multiple_of(GROUP)
            && runs
                .clone()
                .all(|run| run.iter().all(|group| *group == run[0]))
        {
            return Ok(Groups::Runs(runs.map(|run| run[0]).collect()));
        }
        Ok(Groups::Inputs(groups))
    }
}
