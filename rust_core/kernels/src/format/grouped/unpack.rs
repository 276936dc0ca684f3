//! Rows of a quantised matrix as blocks of the type that they are presented in.

use std::ops::Range;

use half::f16;

use super::super::RowBuffer;
use super::GroupedSource;
use super::matrix::{Groups, Matrix, zero_word};
use super::scheme::Scheme;
use crate::pack::layout::GROUP;
use crate::quant::{DType, dequantize_row};

/// Where in a word of AWQ the eight outputs are.
const AWQ_POSITIONS: [u32; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// The largest code of [`DType::Q8_0`] that weights are rounded to.
const LARGEST_CODE: f32 = 127.0;

impl GroupedSource {
    /// Fill `buffer` with rows `rows` as a matrix of type `matrix.dtype`.
    pub(super) fn unpack(&self, matrix: &Matrix, rows: Range<usize>, buffer: &mut RowBuffer) {
        let [outputs, inputs] = matrix.shape;
        assert!(rows.start <= rows.end && rows.end <= outputs);
        buffer.shape = [rows.len(), inputs];
        buffer.codes.resize(rows.len() * inputs, 0);
        self.unpack_codes(matrix, rows.clone(), &mut buffer.codes);
        self.unpack_scales(matrix, rows.clone(), &mut buffer.scales);
        self.unpack_zeros(matrix, rows.clone(), &mut buffer.zeros);
        let row_bytes = inputs / matrix.dtype.block_len() * matrix.dtype.block_bytes();
        buffer.bytes.resize(rows.len() * row_bytes, 0);
        for row in 0..rows.len() {
            let groups = row * matrix.num_groups..(row + 1) * matrix.num_groups;
            let row = Row {
                codes: &buffer.codes[row * inputs..(row + 1) * inputs],
                scales: &buffer.scales[groups.clone()],
                zeros: &buffer.zeros[groups],
                out: &mut buffer.bytes[row * row_bytes..(row + 1) * row_bytes],
            };
            row.store(matrix);
        }
    }

    /// The codes of `rows`, `[rows][inputs]`.
    fn unpack_codes(&self, matrix: &Matrix, rows: Range<usize>, codes: &mut [u8]) {
        let ([outputs, inputs], bits) = (matrix.shape, matrix.bits);
        let per = 32 / bits as usize;
        let words: &[[u8; 4]] = self.bytes(&matrix.codes).as_chunks().0;
        match self.scheme {
            Scheme::Gptq | Scheme::GptqV2 => {
                for (at, line) in words.chunks_exact(outputs).enumerate() {
                    let inputs_of_word = at * per..inputs.min((at + 1) * per);
                    for (row, &word) in line[rows.clone()].iter().enumerate() {
                        let codes = &mut codes[row * inputs..][inputs_of_word.clone()];
                        split_word(word, bits, codes);
                    }
                }
            }
            Scheme::Awq => {
                for (input, line) in words.chunks_exact(outputs / per).enumerate() {
                    for (row, output) in rows.clone().enumerate() {
                        codes[row * inputs + input] = awq_code(line, output);
                    }
                }
            }
            Scheme::PackQuantized => {
                let lines = words.chunks_exact(inputs.div_ceil(per));
                let lines = lines.skip(rows.start).zip(codes.chunks_exact_mut(inputs));
                for (line, codes) in lines {
                    for (&word, codes) in line.iter().zip(codes.chunks_mut(per)) {
                        split_word(word, bits, codes);
                    }
                }
            }
        }
    }

    /// The scales of `rows`, `[rows][groups]`.
    fn unpack_scales(&self, matrix: &Matrix, rows: Range<usize>, scales: &mut Vec<f32>) {
        let (outputs, num_groups) = (matrix.shape[0], matrix.num_groups);
        let (bytes, size) = (self.bytes(&matrix.scales), matrix.scale_type.block_bytes());
        scales.clear();
        for output in rows {
            for group in 0..num_groups {
                let at = match self.scheme {
                    Scheme::PackQuantized => output * num_groups + group,
                    _ => group * outputs + output,
                };
                let mut scale = [0.0];
                dequantize_row(matrix.scale_type, &bytes[at * size..][..size], &mut scale);
                scales.extend(scale);
            }
        }
    }

    /// The zero points of `rows`, `[rows][groups]`.
    fn unpack_zeros(&self, matrix: &Matrix, rows: Range<usize>, zeros: &mut Vec<u8>) {
        let (bits, num_groups) = (matrix.bits, matrix.num_groups);
        zeros.clear();
        let Some(name) = &matrix.zeros else {
            zeros.resize(rows.len() * num_groups, 1 << (bits - 1));
            return;
        };
        let per = 32 / bits as usize;
        let words: &[[u8; 4]] = self.bytes(name).as_chunks().0;
        let line = matrix.shape[0].div_ceil(per);
        for output in rows {
            for group in 0..num_groups {
                zeros.push(match self.scheme {
                    Scheme::Awq => awq_code(&words[group * line..][..line], output),
                    Scheme::PackQuantized => {
                        let word = words[output / per * num_groups + group];
                        code_of(u32::from_le_bytes(word), bits, output % per)
                    }
                    scheme => {
                        let word = words[group * line + output / per];
                        code_of(zero_word(scheme, bits, word), bits, output % per)
                    }
                });
            }
        }
    }
}

/// The code at `position` of a word.
fn code_of(word: u32, bits: u32, position: usize) -> u8 {
    (word >> (bits * position as u32) & ((1 << bits) - 1)) as u8
}

/// The first codes of a word.
fn split_word(word: [u8; 4], bits: u32, codes: &mut [u8]) {
    let mut word = u32::from_le_bytes(word);
    for code in codes {
        *code = (word & ((1 << bits) - 1)) as u8;
        word >>= bits;
    }
}

/// The 4-bit code of `output` in a line of AWQ's words.
fn awq_code(line: &[[u8; 4]], output: usize) -> u8 {
    let position = AWQ_POSITIONS[output % 8] as usize;
    code_of(u32::from_le_bytes(line[output / 8]), 4, position)
}

/// One row, and where it is stored.
struct Row<'a> {
    codes: &'a [u8],
    /// One for each group, as are the zero points.
    scales: &'a [f32],
    zeros: &'a [u8],
    out: &'a mut [u8],
}

impl Row<'_> {
    fn store(self, matrix: &Matrix) {
        match (&matrix.groups, matrix.dtype) {
            (Groups::Runs(groups), dtype) if dtype.is_quantized() => self.store_runs(dtype, groups),
            (groups, dtype) => {
                let weight = |input: usize, code: u8| {
                    let group = match groups {
                        Groups::Runs(groups) => groups[input / GROUP],
                        Groups::Inputs(groups) => groups[input],
                    } as usize;
                    self.scales[group] * (f32::from(code) - f32::from(self.zeros[group]))
                };
                let weights = self.codes.iter().enumerate();
                let mut weights = weights.map(|(input, &code)| weight(input, code));
                if dtype == DType::F16 {
                    for (weight, out) in weights.zip(self.out.as_chunks_mut::<2>().0) {
                        *out = f16::from_f32(weight).to_le_bytes();
                    }
                    return;
                }
                for block in self.out.chunks_exact_mut(DType::Q8_0.block_bytes()) {
                    let run = std::array::from_fn(|_| weights.next().expect("whole runs"));
                    round_to_q8_0(&run, block);
                }
            }
        }
    }

    /// Store codes as they are.
    fn store_runs(self, dtype: DType, groups: &[u32]) {
        let runs = self.codes.as_chunks::<GROUP>().0.iter().zip(groups);
        let blocks = self.out.chunks_exact_mut(dtype.block_bytes());
        for ((codes, &group), block) in runs.zip(blocks) {
            let (scale, zero) = (self.scales[group as usize], self.zeros[group as usize]);
            let half = f16::from_f32(scale).to_le_bytes();
            match dtype {
                DType::Q4_0 => {
                    block[..2].copy_from_slice(&half);
                    store_nibbles(codes, &mut block[2..]);
                }
                DType::Q8_0 => {
                    block[..2].copy_from_slice(&half);
                    for (out, code) in block[2..].iter_mut().zip(codes) {
                        *out = code ^ 0x80; // code - 128
                    }
                }
                _ => {
                    block[..4].copy_from_slice(&scale.to_le_bytes());
                    block[4..8].copy_from_slice(&f32::from(zero).to_le_bytes());
                    store_nibbles(codes, &mut block[8..]);
                }
            }
        }
    }
}

/// Low halves of the bytes first.
fn store_nibbles(codes: &[u8; GROUP], out: &mut [u8]) {
    let (low, high) = codes.split_at(GROUP / 2);
    for (byte, (low, high)) in out.iter_mut().zip(low.iter().zip(high)) {
        *byte = low | high << 4;
    }
}

/// Round weights to a block of [`DType::Q8_0`]; its scale is NaN if one is not finite.
fn round_to_q8_0(weights: &[f32; GROUP], block: &mut [u8]) {
    let finite = weights.iter().all(|weight| weight.is_finite());
    let largest = weights
        .iter()
        .fold(0f32, |most, weight| most.max(weight.abs()));
    let scale = if finite {
        f16::from_f32(largest / LARGEST_CODE)
    } else {
        f16::NAN
    };
    block[..2].copy_from_slice(&scale.to_le_bytes());
    let scale = scale.to_f32();
    for (out, &weight) in block[2..].iter_mut().zip(weights) {
        let code = if scale == 0.0 { 0.0 } else { weight / scale };
        // A NaN becomes 0.
        let code = code.round_ties_even().clamp(-LARGEST_CODE, LARGEST_CODE) as i8;
        *out = code.cast_unsigned();
    }
}
