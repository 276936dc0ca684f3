//! Packing and unpacking of quantised panels.

use std::ops::Range;

use half::f16;

use super::PackScratch;
use super::blocked::{self, GroupScales, MAX_HEADER_BYTES};
use super::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout, Scales};
use super::pairs;
use crate::format::TensorView;
use crate::quant::{block_scales, unpack_row_affine};
use crate::simd::widen_f16;

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
    for (column, output) in outputs.enumerate() {
        let row = tensor.row(output);
        unpack_row_affine(
            tensor.dtype,
            row,
            inputs,
            &mut scratch.codes,
            &mut scratch.scales,
            &mut scratch.mins,
        );
        if let Some(table) = layout.table {
            for code in &mut scratch.codes {
                *code = table.nibbles()[usize::from(*code)];
            }
        }
        for (group, codes) in scratch.codes.as_chunks().0.iter().enumerate() {
            let to = &mut out[layout.code_offset(group)..][..layout.code_bytes()];
            store_codes(layout.bits, column, codes, to);
        }
        match layout.scales {
            Scales::Half => {
                let each = GROUP / layout.group;
                let mut store = |group: usize, array: usize, number: f32| {
                    let scales = &mut out[layout.scale_offset(group)..][..layout.scale_bytes()];
                    let halves = scales.as_chunks_mut().0;
                    halves[array * PANEL_COLUMNS + column] = f16::from_f32(number).to_le_bytes();
                };
                for (at, &scale) in scratch.scales.iter().enumerate() {
                    store(at / each, at % each, scale);
                }
                if layout.offset == Offset::Min {
                    for (group, &min) in scratch.mins.iter().enumerate() {
                        store(group, 1, min);
                    }
                }
            }
            Scales::Exponents => {
                for (group, &scale) in scratch.scales.iter().enumerate() {
                    // Subnormal numbers have the exponent of 0.
                    out[layout.scale_offset(group) + column] = (scale.to_bits() >> 23) as u8;
                }
            }
            Scales::Pairs | Scales::Integers => {
                let column_scale = pairs::column_scale(&scratch.scales, &scratch.mins);
                store_column_scale(out, column, column_scale);
                for (group, (&scale, &min)) in scratch.scales.iter().zip(&scratch.mins).enumerate()
                {
                    let scales = &mut out[layout.scale_offset(group)..][..layout.scale_bytes()];
                    let pair = pairs::quantize_pair(scale, min, column_scale);
                    if layout.scales == Scales::Pairs {
                        scales.as_chunks_mut::<4>().0[column] = pair_bytes(pair);
                    } else {
                        assert_eq!(pair[1], 0, "scales without offsets");
                        scales.as_chunks_mut::<2>().0[column] = pair[0].to_le_bytes();
                    }
                }
            }
            Scales::Blocked | Scales::BlockedNibbles | Scales::BlockedSixBits => {
                let blocks = row.chunks_exact(tensor.dtype.block_bytes());
                scratch.blocks.clear();
                scratch
                    .blocks
                    .extend(blocks.map(|block| block_scales(tensor.dtype, block)));
                let mut column_scale = 1.0;
                if layout.offset == Offset::Paired {
                    column_scale =
                        blocked::column_scale(&scratch.blocks, &scratch.scales, &scratch.mins);
                    store_column_scale(out, column, column_scale);
                }
                for (at, block) in scratch.blocks.iter().enumerate() {
                    let header = &mut out[layout.block_offset(at * layout.block_groups())..];
                    let header = &mut header[..layout.header_bytes()];
                    blocked::store(layout, column, block, column_scale, header);
                }
            }
        }
    }
}

/// Store one column's codes of a group.
fn store_codes(bits: u32, column: usize, codes: &[u8; GROUP], out: &mut [u8]) {
    let registers = out.as_chunks_mut::<64>().0;
    if bits == 8 {
        for (register, four) in registers.iter_mut().zip(codes.as_chunks::<4>().0) {
            register[4 * column..4 * column + 4].copy_from_slice(four);
        }
        return;
    }
    if bits < 4 {
        let (low, high) = registers.split_at_mut(2);
        store_plane(2, column, codes.map(|code| code & 3), low);
        if bits == 3 {
            store_plane(1, column, codes.map(|code| code >> 2), high);
        }
        return;
    }
    let (nibbles, high) = registers.split_at_mut(4);
    for (i, register) in nibbles.iter_mut().enumerate() {
        for j in 0..4 {
            register[4 * column + j] = codes[4 * i + j] & 15 | (codes[16 + 4 * i + j] & 15) << 4;
        }
    }
    if bits > 4 {
        store_plane(bits - 4, column, codes.map(|code| code >> 4), high);
    }
}

/// Store one column's bits of a group in a zeroed plane of one or two bits.
fn store_plane(width: u32, column: usize, bits: [u8; GROUP], plane: &mut [[u8; 64]]) {
    let inputs_per_register = GROUP / width as usize;
    for (input, bits) in bits.into_iter().enumerate() {
        let shift = width * (input % inputs_per_register / 4) as u32;
        plane[input / inputs_per_register][4 * column + input % 4] |= bits << shift;
    }
}

/// Dequantise one column of a panel.
pub(super) fn unpack(panel: &[u8], layout: QuantLayout, column: usize, weights: &mut [f32]) {
    let column_scale = match layout.offset {
        Offset::Paired => load_column_scale(panel, column),
        Offset::Min | Offset::ZeroPoint(_) => 1.0,
    };
    for (at, weights) in weights.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        let group = Group::of(layout, panel, at);
        let code = |input: usize| group.code(column, input);
        match layout.offset {
            Offset::Paired => {
                let pair = group.pair(column);
                for (input, weight) in weights.iter_mut().enumerate() {
                    *weight = column_scale * pairs::dequantize_code(code(input), pair) as f32;
                }
            }
            Offset::ZeroPoint(zero) => {
                let last_part = GROUP / layout.group - 1;
                let scales = [0, last_part].map(|part| group.scale(part, column));
                for (input, weight) in weights.iter_mut().enumerate() {
                    let scale = scales[input / layout.group];
                    *weight = scale * (i32::from(code(input)) - zero) as f32;
                }
            }
            Offset::Min => {
                let last_part = GROUP / layout.group - 1;
                let scales = [0, last_part].map(|part| group.scale(part, column));
                let mins = [0, last_part].map(|part| group.min(part, column));
                for (input, weight) in weights.iter_mut().enumerate() {
                    let part = input / layout.group;
                    *weight = scales[part] * f32::from(code(input)) + mins[part];
                }
            }
        }
    }
}

/// One group of a panel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    layout: QuantLayout,
    codes: &'a [u8],
    scales: &'a [u8],
    /// The panel from the group's block on.
    block: &'a [u8],
    /// Index in the block.
    in_block: usize,
}

impl<'a> Group<'a> {
    /// Group `group` of `panel`.
    pub fn of(layout: QuantLayout, panel: &'a [u8], group: usize) -> Self {
        Self {
            layout,
            codes: &panel[layout.code_offset(group)..][..layout.code_bytes()],
            scales: &panel[layout.scale_offset(group)..][..layout.scale_bytes()],
            block: &panel[layout.block_offset(group)..],
            in_block: group % layout.block_groups(),
        }
    }

    /// The registers of codes.
    pub fn registers(&self) -> &'a [[u8; 64]] {
        self.codes.as_chunks().0
    }

    /// The code of `column` for input `input` of the group.
    pub fn code(&self, column: usize, input: usize) -> u8 {
        let (registers, byte) = (self.registers(), 4 * column + input % 4);
        if self.layout.bits == 8 {
            return registers[input / 4][byte];
        }
        if self.layout.bits < 4 {
            let low = registers[input / 16][byte] >> (2 * (input % 16 / 4)) & 3;
            let high = match self.layout.bits {
                3 => registers[2][byte] >> (input / 4) & 1,
                _ => 0,
            };
            return low | high << 2;
        }
        let nibble = registers[input % 16 / 4][byte] >> (4 * (input / 16)) & 15;
        let high = match self.layout.bits {
            5 => registers[4][byte] >> (input / 4) & 1,
            6 => registers[4 + input / 16][byte] >> (2 * (input % 16 / 4)) & 3,
            _ => 0,
        };
        match self.layout.table {
            Some(table) => table.codes()[usize::from(nibble)],
            None => nibble | high << 4,
        }
    }

    fn blocked(&self) -> GroupScales<'a> {
        GroupScales {
            layout: self.layout,
            header: self.block[..MAX_HEADER_BYTES]
                .try_into()
                .expect("a block's header"),
            group: self.in_block,
        }
    }

    fn half(&self, slot: usize) -> f32 {
        widen_f16(u16::from_le_bytes(self.scales.as_chunks().0[slot]))
    }

    /// The scale of `column` in part `part` of the group.
    pub fn scale(&self, part: usize, column: usize) -> f32 {
        match self.layout.scales {
            Scales::Half => self.half(part * PANEL_COLUMNS + column),
            Scales::Exponents => f32::from_bits(u32::from(self.scales[column]) << 23),
            Scales::Blocked | Scales::BlockedNibbles | Scales::BlockedSixBits => {
                self.blocked().scale(part, column)
            }
            Scales::Pairs | Scales::Integers => {
                unreachable!("weights with pairs have no other scales")
            }
        }
    }

    /// The minimum of `column` in part `part` of the group.
    pub fn min(&self, part: usize, column: usize) -> f32 {
        assert_eq!(self.layout.offset, Offset::Min);
        match self.layout.scales {
            Scales::Half => self.half(PANEL_COLUMNS + column),
            _ => self.blocked().min(part, column),
        }
    }

    /// The scale-offset pair of `column`.
    pub fn pair(&self, column: usize) -> [i16; 2] {
        match self.layout.scales {
            Scales::Pairs => {
                let [a, b, c, d] = self.scales.as_chunks::<4>().0[column];
                [i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d])]
            }
            Scales::Integers => [i16::from_le_bytes(self.scales.as_chunks().0[column]), 0],
            Scales::Blocked => self.blocked().pair(column),
            _ => unreachable!("float scales are no pairs"),
        }
    }
}

fn store_column_scale(panel: &mut [u8], column: usize, column_scale: f32) {
    panel.as_chunks_mut::<4>().0[column] = column_scale.to_le_bytes();
}

/// The column scale of `column`, in layouts that have them.
pub(crate) fn load_column_scale(panel: &[u8], column: usize) -> f32 {
    f32::from_le_bytes(panel.as_chunks::<4>().0[column])
}

fn pair_bytes([scale, offset]: [i16; 2]) -> [u8; 4] {
    let ([a, b], [c, d]) = (scale.to_le_bytes(), offset.to_le_bytes());
    [a, b, c, d]
}
