//! Scales and minima of K-quants, kept as the file's small integers with one f16 factor for each block of 256 inputs.
//!
//! *All but 4 bits*: `scale = factor * integer`, and `min = min_factor * integer` with the negated factor of the file. An f16 has 11
//! bits and an integer at most 8, so both are exact in f32: no weight changes. The scales of Q3_K are stored as they are in the
//! file, as 6-bit numbers from which 32 is subtracted.
//!
//! *4 bits*: weights are multiplied through pairs ([`super::pairs`]), which kernels compute from these numbers:
//!
//! ```text
//! scale  = factor * integer                     rounded to an integer
//! offset = factor * integer - min_factor * twice the minimum
//! ```
//!
//! where `factor` is the file's over the column scale and `min_factor` a sixteenth of the file's over the column scale. The
//! column scale is a power of two, so these factors are the file's bits unless one is below 2^-14, and then it contributes
//! less than a hundredth of a pair's unit. Products are exact and the difference is rounded once, so a level with fused
//! multiply-add computes the same pairs as one without.

use half::f16;

use super::layout::{
    BLOCK_FACTOR_BYTES, BLOCK_GROUPS, BLOCK_SCALE_BYTES, Offset, PANEL_COLUMNS, QuantLayout,
    SIX_BIT_HIGH_OFFSET, SIX_BIT_LOW_BYTES, Scales,
};
use super::pairs;
use crate::quant::BlockScales;

/// The file's minimum factor over that of a pair's offset: an offset is an eighth of a weight, and minima are stored doubled
/// to keep the factor within f16.
const MIN_FACTOR_DIVISOR: f32 = 16.0;

/// Most bytes of a block's header. Every block of a layout with factors is longer.
pub const MAX_HEADER_BYTES: usize = BLOCK_FACTOR_BYTES + BLOCK_GROUPS * BLOCK_SCALE_BYTES;

/// What is subtracted from a 6-bit scale.
pub const SIX_BIT_ZERO: i8 = 32;

/// One group's scales in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupScales<'a> {
    pub layout: QuantLayout,
    /// The header; if it is shorter, some codes follow.
    pub header: &'a [u8; MAX_HEADER_BYTES],
    /// Index in the block.
    pub group: usize,
}

impl GroupScales<'_> {
    /// The integers of the scales of part `part`, by column.
    #[inline(always)]
    pub fn scale_integers(self, part: usize) -> [i8; PANEL_COLUMNS] {
        let array = self.array(part);
        let low = |column: usize| match self.layout.scales {
            Scales::BlockedNibbles => array[column] & 15,
            _ => array[column],
        };
        if self.layout.scales != Scales::BlockedSixBits {
            return std::array::from_fn(|column| low(column).cast_signed());
        }
        let nibbles = self.sixteen(BLOCK_FACTOR_BYTES + self.group * SIX_BIT_LOW_BYTES);
        let high = self.sixteen(SIX_BIT_HIGH_OFFSET + self.group / 2 * PANEL_COLUMNS);
        let shift = 4 * (self.group % 2) + 2 * part;
        std::array::from_fn(|column| {
            let low = nibbles[column] >> (4 * part) & 15;
            (low | (high[column] >> shift & 3) << 4).cast_signed() - SIX_BIT_ZERO
        })
    }

    /// The integers of the minima of part `part`, by column.
    #[inline(always)]
    pub fn min_integers(self, part: usize) -> [i8; PANEL_COLUMNS] {
        match self.layout.scales {
            Scales::BlockedNibbles => self.array(part).map(|byte| (byte >> 4).cast_signed()),
            _ => self.array(1).map(u8::cast_signed),
        }
    }

    /// The first or second array of the group.
    #[inline(always)]
    fn array(self, at: usize) -> [u8; PANEL_COLUMNS] {
        let group = BLOCK_FACTOR_BYTES + self.group * self.layout.scale_bytes();
        self.sixteen(group + at * PANEL_COLUMNS)
    }

    #[inline(always)]
    fn sixteen(self, at: usize) -> [u8; PANEL_COLUMNS] {
        self.header[at..at + PANEL_COLUMNS]
            .try_into()
            .expect("sixteen bytes")
    }

    fn factor(self, at: usize) -> f32 {
        f16::from_le_bytes([self.header[2 * at], self.header[2 * at + 1]]).to_f32()
    }

    /// The scale of `column` in part `part` of the group.
    pub fn scale(self, part: usize, column: usize) -> f32 {
        self.factor(column) * f32::from(self.scale_integers(part)[column])
    }

    /// The minimum of `column` in part `part` of the group.
    pub fn min(self, part: usize, column: usize) -> f32 {
        self.factor(PANEL_COLUMNS + column) * f32::from(self.min_integers(part)[column])
    }

    /// The scale-offset pair of `column`.
    pub fn pair(self, column: usize) -> [i16; 2] {
        let scale = self.scale(0, column);
        // Within 16 bits by the choice of the column scale.
        [scale, scale - self.min(0, column)].map(|number| number.round_ties_even() as i16)
    }
}

/// The factors with which a block is stored.
struct Factors {
    scale: f16,
    min: f16,
}

impl Factors {
    /// Of a 4-bit column with this column scale.
    fn paired(block: &BlockScales, column_scale: f32) -> Self {
        // A factor without integers may be out of range, and must not make zeros NaN.
        let factor = |number: f16, divisor: f32, integers: &[i8]| {
            if column_scale.is_nan() || integers.iter().all(|&integer| integer == 0) {
                f16::ZERO
            } else {
                f16::from_f32(number.to_f32() / divisor / column_scale)
            }
        };
        Self {
            scale: factor(block.scale_factor, 1.0, &block.scales),
            min: factor(block.min_factor, MIN_FACTOR_DIVISOR, &block.mins),
        }
    }
}

/// The scale of a 4-bit column with these blocks, whose scales and minima are given as floats, too. See [`pairs::column_scale`].
pub fn column_scale(blocks: &[BlockScales], scales: &[f32], mins: &[f32]) -> f32 {
    let column_scale = pairs::column_scale(scales, mins);
    let fits = |block: &BlockScales| {
        let factors = Factors::paired(block, column_scale);
        (0..BLOCK_GROUPS).all(|group| {
            let scale = factors.scale.to_f32() * f32::from(block.scales[group]);
            let min = factors.min.to_f32() * f32::from(2 * block.mins[group]);
            [scale, scale - min]
                .iter()
                .all(|number| number.round_ties_even().abs() <= f32::from(i16::MAX))
        })
    };
    // Rounded once more than the scales and minima, a number may exceed 15 bits by one.
    if blocks.iter().all(fits) {
        column_scale
    } else {
        2.0 * column_scale
    }
}

/// Store the scales of one column in the header of its block.
pub fn store(
    layout: QuantLayout,
    column: usize,
    block: &BlockScales,
    column_scale: f32,
    header: &mut [u8],
) {
    let (factors, groups) = header.split_at_mut(BLOCK_FACTOR_BYTES);
    let (stored, doubled) = match layout.offset {
        Offset::Paired => (Factors::paired(block, column_scale), 2),
        Offset::Min | Offset::ZeroPoint(_) => {
            let (scale, min) = (block.scale_factor, -block.min_factor);
            (Factors { scale, min }, 1)
        }
    };
    for (slot, factor) in [(column, stored.scale), (PANEL_COLUMNS + column, stored.min)] {
        factors[2 * slot..2 * slot + 2].copy_from_slice(&factor.to_le_bytes());
    }
    if layout.scales == Scales::BlockedSixBits {
        return store_six_bits(column, block, header);
    }
    let halves = super::layout::GROUP / layout.group;
    for (group, integers) in groups.chunks_exact_mut(layout.scale_bytes()).enumerate() {
        if layout.scales == Scales::BlockedNibbles {
            for half in 0..2 {
                let (scale, min) = (block.scales[2 * group + half], block.mins[2 * group + half]);
                integers[half * PANEL_COLUMNS + column] = (scale | min << 4).cast_unsigned();
            }
            continue;
        }
        integers[column] = block.scales[halves * group].cast_unsigned();
        if integers.len() == PANEL_COLUMNS {
            continue;
        }
        let second = if halves == 2 {
            block.scales[2 * group + 1]
        } else {
            doubled * block.mins[group]
        };
        integers[PANEL_COLUMNS + column] = second.cast_unsigned();
    }
}

/// Store the 6-bit scales of one column in the zeroed header of its block.
fn store_six_bits(column: usize, block: &BlockScales, header: &mut [u8]) {
    for group in 0..BLOCK_GROUPS {
        for half in 0..2 {
            let scale = (block.scales[2 * group + half] + SIX_BIT_ZERO).cast_unsigned();
            header[BLOCK_FACTOR_BYTES + group * SIX_BIT_LOW_BYTES + column] |=
                (scale & 15) << (4 * half);
            header[SIX_BIT_HIGH_OFFSET + group / 2 * PANEL_COLUMNS + column] |=
                (scale >> 4) << (4 * (group % 2) + 2 * half);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(scale: f32, min: f32, scales: &[u8], mins: &[u8]) -> BlockScales {
        let integers = |values: &[u8]| {
            std::array::from_fn(|at| values.get(at).map_or(0, |&value| value.cast_signed()))
        };
        BlockScales {
            scale_factor: f16::from_f32(scale),
            min_factor: f16::from_f32(min),
            scales: integers(scales),
            mins: integers(mins),
        }
    }

    /// Scales and minima of a block's groups as floats.
    fn floats(block: &BlockScales) -> (Vec<f32>, Vec<f32>) {
        let scale = |&integer: &i8| block.scale_factor.to_f32() * f32::from(integer);
        let min = |&integer: &i8| -(block.min_factor.to_f32() * f32::from(integer));
        (
            block.scales[..BLOCK_GROUPS].iter().map(scale).collect(),
            block.mins[..BLOCK_GROUPS].iter().map(min).collect(),
        )
    }

    /// The pairs of a column that consists of this block, and its column scale.
    fn stored_pairs(block: &BlockScales) -> (Vec<[i16; 2]>, f32) {
        let (scales, mins) = floats(block);
        let column_scale = column_scale(&[*block], &scales, &mins);
        let mut header = [0; MAX_HEADER_BYTES];
        store(QuantLayout::Q4_K, 3, block, column_scale, &mut header);
        let pairs = (0..BLOCK_GROUPS).map(|group| {
            let (layout, header) = (QuantLayout::Q4_K, &header);
            GroupScales {
                layout,
                header,
                group,
            }
            .pair(3)
        });
        (pairs.collect(), column_scale)
    }

    proptest! {
        #[test]
        fn pairs_of_blocks_are_those_of_their_scales_and_minima(
            scale in -2f32..2.0, min in -2f32..2.0, power in -10i32..8,
            scales in prop::collection::vec(0u8..64, 8), mins in prop::collection::vec(0u8..64, 8),
        ) {
            let size = 2f32.powi(power);
            let block = block(scale * size, min * size, &scales, &mins);
            let (pairs, column_scale) = stored_pairs(&block);
            let (scales, mins) = floats(&block);
            for (group, [scale, offset]) in pairs.into_iter().enumerate() {
                let expected = pairs::quantize_pair(scales[group], mins[group], column_scale);
                // A sum just between two integers may be rounded to either.
                for (a, b) in [(scale, expected[0]), (offset, expected[1])] {
                    prop_assert!((i32::from(a) - i32::from(b)).abs() <= 1, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn six_bit_scales_and_nibbles_of_both_halves_are_kept() {
        let mut block = block(0.5, 0.25, &[], &[]);
        for at in 0..16i8 {
            (block.scales[at as usize], block.mins[at as usize]) = (at, 15 - at);
        }
        let mut header = [0; MAX_HEADER_BYTES];
        store(QuantLayout::Q2_K, 3, &block, 1.0, &mut header);
        let group = |layout, header, group| GroupScales {
            layout,
            header,
            group,
        };
        for at in 0..16 {
            let group = group(QuantLayout::Q2_K, &header, at / 2);
            assert_eq!(group.scale(at % 2, 3), 0.5 * at as f32);
            assert_eq!(group.min(at % 2, 3), -0.25 * (15 - at) as f32);
        }
        for at in 0..16i8 {
            block.scales[at as usize] = (-32 + 63 * i32::from(at) / 15) as i8;
        }
        let mut header = [0; MAX_HEADER_BYTES];
        store(QuantLayout::Q3_K, 3, &block, 1.0, &mut header);
        for at in 0..16 {
            let group = group(QuantLayout::Q3_K, &header, at / 2);
            assert_eq!(group.scale(at % 2, 3), 0.5 * f32::from(block.scales[at]));
        }
    }

    #[test]
    fn a_factor_without_integers_is_dropped() {
        // 60,000 over the column scale is beyond f16.
        let (pairs, _) = stored_pairs(&block(1e-3, 60_000.0, &[63; 8], &[0; 8]));
        assert!(pairs.iter().all(|pair| pair[0] > 16_000), "{pairs:?}");
        let (pairs, _) = stored_pairs(&block(60_000.0, 1e-3, &[0; 8], &[63; 8]));
        assert!(pairs.iter().all(|pair| pair[1] < -16_000), "{pairs:?}");
    }

    #[test]
    fn non_finite_columns_become_zero_pairs() {
        for bad in [f32::NAN, f32::INFINITY] {
            let (pairs, column_scale) = stored_pairs(&block(bad, 1.0, &[1; 8], &[1; 8]));
            assert!(column_scale.is_nan());
            assert_eq!(pairs, [[0, 0]; 8]);
        }
    }
}
