//! Quantised panels in plain Rust: the reference of the other levels, and what ARM runs for now.

use half::f16;

use super::{Output, Panel};
use crate::activation_quant::QuantRows;
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};

type Columns<T> = [T; PANEL_COLUMNS];

/// One record, decoded: `[input][column]` codes, and scales and minima for each half.
struct Record {
    codes: [Columns<i16>; GROUP],
    scales: [Columns<f32>; 2],
    mins: [Columns<f32>; 2],
}

impl Record {
    fn decode(&mut self, layout: QuantLayout, bytes: &[u8]) {
        let (codes, rest) = bytes.split_at(layout.code_bytes());
        for (register, bytes) in codes.chunks_exact(64).enumerate() {
            for (at, byte) in bytes.iter().enumerate() {
                let (column, input) = (at / 4, 4 * register + at % 4);
                if layout.bits == 4 {
                    self.codes[input][column] = i16::from(byte & 15);
                    self.codes[input + 16][column] = i16::from(byte >> 4);
                } else {
                    self.codes[input][column] = i16::from(*byte);
                }
            }
        }
        let (scales, mins) = rest.split_at(layout.scale_bytes());
        for half in 0..GROUP / layout.group {
            self.scales[half] = decode_columns(scales, half, layout.half_scales);
            if layout.offset == Offset::Min {
                self.mins[half] = decode_columns(mins, half, layout.half_scales);
            }
        }
    }
}

fn decode_columns(values: &[u8], half: usize, f16_values: bool) -> Columns<f32> {
    std::array::from_fn(|column| {
        let slot = half * PANEL_COLUMNS + column;
        if f16_values {
            f16::from_le_bytes([values[2 * slot], values[2 * slot + 1]]).to_f32()
        } else {
            f32::from_le_bytes(
                values[4 * slot..4 * slot + 4]
                    .try_into()
                    .expect("four bytes"),
            )
        }
    })
}

/// Rows that share one decoding of the panel.
const ROWS: usize = 16;

/// See [`super::multiply_panel`].
///
/// # Safety
/// As there.
pub(super) unsafe fn multiply(
    layout: QuantLayout,
    panel: Panel,
    x: QuantRows,
    rows: usize,
    output: Output,
) {
    let groups = panel.inputs / GROUP;
    // SAFETY: a whole panel, `rows` rows of activations: the caller's promise.
    let (bytes, codes, metas) = unsafe {
        (
            std::slice::from_raw_parts(panel.data, groups * layout.record_bytes()),
            std::slice::from_raw_parts(x.codes, rows * x.inputs),
            std::slice::from_raw_parts(x.metas, rows * groups),
        )
    };
    let mut record = Record {
        codes: [[0; 16]; GROUP],
        scales: [[0.0; 16]; 2],
        mins: [[0.0; 16]; 2],
    };
    for first in (0..rows).step_by(ROWS) {
        let block = ROWS.min(rows - first);
        let mut sums = [[0f32; PANEL_COLUMNS]; ROWS];
        for (group, bytes) in bytes.chunks_exact(layout.record_bytes()).enumerate() {
            record.decode(layout, bytes);
            for (row, sums) in sums[..block].iter_mut().enumerate() {
                let row = first + row;
                let codes = &codes[row * x.inputs + group * GROUP..][..GROUP];
                let meta = &metas[row * groups + group];
                add_group(&record, layout, codes, meta, sums);
            }
        }
        for (row, sums) in sums[..block].iter().enumerate() {
            // SAFETY: `rows` rows of 16 at `output`, and 16 biases: the caller's promise.
            unsafe {
                let out = output.out.add((first + row) * output.stride);
                for (column, sum) in sums.iter().enumerate() {
                    let bias = if output.bias.is_null() {
                        0.0
                    } else {
                        *output.bias.add(column)
                    };
                    let old = if output.accumulate {
                        *out.add(column)
                    } else {
                        0.0
                    };
                    *out.add(column) = old + (sum + bias);
                }
            }
        }
    }
}

#[inline]
fn add_group(
    record: &Record,
    layout: QuantLayout,
    codes: &[i8],
    meta: &crate::activation_quant::GroupMeta,
    sums: &mut Columns<f32>,
) {
    for half in 0..GROUP / layout.group {
        let mut dots = [0i32; PANEL_COLUMNS];
        let inputs = half * layout.group..(half + 1) * layout.group;
        for (weights, &code) in record.codes[inputs.clone()].iter().zip(&codes[inputs]) {
            for (dot, &weight) in dots.iter_mut().zip(weights) {
                *dot += i32::from(weight) * i32::from(code);
            }
        }
        if let Offset::Zero(zero) = layout.offset {
            let sum = match (layout.group, half) {
                (GROUP, _) => meta.sum,
                (_, 0) => meta.low_sum,
                _ => meta.sum - meta.low_sum,
            };
            dots.iter_mut().for_each(|dot| *dot -= zero * sum);
        }
        for column in 0..PANEL_COLUMNS {
            let scaled = dots[column] as f32 * record.scales[half][column];
            sums[column] += scaled * meta.scale;
            if layout.offset == Offset::Min {
                sums[column] += record.mins[half][column] * meta.scaled_sum;
            }
        }
    }
}
