//! Packing and unpacking of quantised panels.

use std::ops::Range;

use half::f16;

use super::PackScratch;
use super::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use super::pairs;
use crate::format::TensorView;
use crate::quant::unpack_row_affine;

/// Fill one zeroed panel from up to 16 rows of `tensor`.
pub(super) fn pack(
    tensor: &TensorView<'_>,
    layout: QuantLayout,
    outputs: Range<usize>,
    scratch: &mut PackScratch,
    out: &mut [u8],
) {
    let inputs = tensor.cols();
    let groups = inputs / layout.group;
    scratch.codes.resize(inputs, 0);
    scratch.scales.resize(groups, 0.0);
    scratch.mins.resize(groups, 0.0);
    let (column_scales, records) = out.split_at_mut(layout.column_scale_bytes());
    for (column, output) in outputs.clone().enumerate() {
        unpack_row_affine(
            tensor.dtype,
            tensor.row(output),
            inputs,
            &mut scratch.codes,
            &mut scratch.scales,
            &mut scratch.mins,
        );
        let per_record = GROUP / layout.group;
        let mut column_scale = 0.0;
        if layout.offset == Offset::Paired {
            column_scale = pairs::column_scale(&scratch.scales, &scratch.mins);
            store(column_scales, column, column_scale, false);
        }
        for (record, out) in records.chunks_exact_mut(layout.record_bytes()).enumerate() {
            let codes: &[u8; GROUP] = scratch.codes[record * GROUP..][..GROUP]
                .try_into()
                .expect("a whole group");
            let (code_bytes, rest) = out.split_at_mut(layout.code_bytes());
            if layout.bits == 4 {
                for (i, register) in code_bytes.chunks_exact_mut(64).enumerate() {
                    for j in 0..4 {
                        register[4 * column + j] = codes[4 * i + j] | codes[16 + 4 * i + j] << 4;
                    }
                }
            } else {
                for (i, register) in code_bytes.chunks_exact_mut(64).enumerate() {
                    register[4 * column..4 * column + 4].copy_from_slice(&codes[4 * i..4 * i + 4]);
                }
            }
            if layout.offset == Offset::Paired {
                let pair = pairs::quantize_pair(
                    scratch.scales[record],
                    scratch.mins[record],
                    column_scale,
                );
                let at = &mut rest.as_chunks_mut::<4>().0[column];
                *at = pair_bytes(pair);
                continue;
            }
            let (scales, mins) = rest.split_at_mut(layout.scale_bytes());
            for sub in 0..per_record {
                let slot = sub * PANEL_COLUMNS + column;
                store(
                    scales,
                    slot,
                    scratch.scales[record * per_record + sub],
                    layout.half_scales,
                );
                if layout.offset == Offset::Min {
                    store(
                        mins,
                        slot,
                        scratch.mins[record * per_record + sub],
                        layout.half_scales,
                    );
                }
            }
        }
    }
}

/// Dequantise one column of a panel.
pub(super) fn unpack(panel: &[u8], layout: QuantLayout, column: usize, weights: &mut [f32]) {
    let (column_scales, records) = panel.split_at(layout.column_scale_bytes());
    let records = records.chunks_exact(layout.record_bytes());
    for (record, weights) in records.zip(weights.as_chunks_mut::<GROUP>().0) {
        let (codes, rest) = record.split_at(layout.code_bytes());
        let codes = codes_of(codes, layout.bits, column);
        if layout.offset == Offset::Paired {
            let (column_scale, pair) =
                (load(column_scales, column, false), load_pair(rest, column));
            for (weight, code) in weights.iter_mut().zip(codes) {
                *weight = column_scale * pairs::dequantize_code(code, pair) as f32;
            }
            continue;
        }
        let (scales, mins) = rest.split_at(layout.scale_bytes());
        let subgroups = weights.chunks_exact_mut(layout.group);
        for (sub, (weights, codes)) in subgroups.zip(codes.chunks_exact(layout.group)).enumerate() {
            let slot = sub * PANEL_COLUMNS + column;
            let scale = load(scales, slot, layout.half_scales);
            match layout.offset {
                Offset::Min => {
                    let min = load(mins, slot, layout.half_scales);
                    for (weight, &code) in weights.iter_mut().zip(codes) {
                        *weight = scale * f32::from(code) + min;
                    }
                }
                Offset::ZeroPoint(zero) => {
                    for (weight, &code) in weights.iter_mut().zip(codes) {
                        *weight = scale * (i32::from(code) - zero) as f32;
                    }
                }
                Offset::Paired => unreachable!("handled above"),
            }
        }
    }
}

/// The codes of `column` in a record.
fn codes_of(code_bytes: &[u8], bits: u32, column: usize) -> [u8; GROUP] {
    let mut codes = [0; GROUP];
    for (i, register) in code_bytes.as_chunks::<64>().0.iter().enumerate() {
        let four = &register.as_chunks::<4>().0[column];
        if bits == 8 {
            codes[4 * i..4 * i + 4].copy_from_slice(four);
        } else {
            for (j, byte) in four.iter().enumerate() {
                (codes[4 * i + j], codes[16 + 4 * i + j]) = (byte & 15, byte >> 4);
            }
        }
    }
    codes
}

/// The code of `column` for input `input` of a record.
#[cfg(test)]
pub(crate) fn code_at(record: &[u8], bits: u32, column: usize, input: usize) -> i32 {
    if bits == 8 {
        return i32::from(record[input / 4 * 64 + 4 * column + input % 4]);
    }
    let low = input % 16;
    let byte = record[low / 4 * 64 + 4 * column + low % 4];
    i32::from(if input < 16 { byte & 15 } else { byte >> 4 })
}

fn store(values: &mut [u8], slot: usize, value: f32, half: bool) {
    if half {
        values[2 * slot..2 * slot + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
    } else {
        values[4 * slot..4 * slot + 4].copy_from_slice(&value.to_le_bytes());
    }
}

fn pair_bytes([scale, offset]: [i16; 2]) -> [u8; 4] {
    let ([a, b], [c, d]) = (scale.to_le_bytes(), offset.to_le_bytes());
    [a, b, c, d]
}

/// The pair of `column`.
pub(crate) fn load_pair(pairs: &[u8], column: usize) -> [i16; 2] {
    let [a, b, c, d] = pairs.as_chunks::<4>().0[column];
    [i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d])]
}

/// Entry `slot` of an array of scales, minima or column scales.
pub(crate) fn load(values: &[u8], slot: usize, half: bool) -> f32 {
    if half {
        f16::from_le_bytes([values[2 * slot], values[2 * slot + 1]]).to_f32()
    } else {
        f32::from_le_bytes(
            values[4 * slot..4 * slot + 4]
                .try_into()
                .expect("four bytes"),
        )
    }
}
