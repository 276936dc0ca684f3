//! Quantised panels with AVX-512 VNNI.
//!
//! One register holds a quad of inputs of all 16 columns, so `vpdpbusd` with four broadcast activation
//! bytes advances all columns by four inputs; codes are its unsigned operand, so signed activations
//! need no offset. A record's eight code registers are decoded once and stay while every row of the
//! block uses them. Each line of the next panel is prefetched meanwhile, evenly over all blocks of rows: the
//! fill buffers hold little more than a dozen lines.
//!
//! Beside its eight dot products a group costs a row three multiply-adds: times the weights' scale, times
//! the activations' scale, and the minimum. There is no conversion from integers (see [`MAGIC`]).

mod weights;

use std::arch::x86_64::*;
use std::ops::Range;

pub(super) use self::weights::ExpandedPanel;
use self::weights::{Packed, Scales, Weights, opaque};
use super::outliers::{Outliers, finish_tile};
use super::{MAGIC, Output, Panel, by_layout};
use crate::activation_quant::{QuantRows, TILE_ROWS, TileGroup};
use crate::pack::layout::{GROUP, QuantLayout};
use crate::simd::{Avx512, prefetch_line};

/// Dot products of four inputs in a group.
const QUADS: usize = GROUP / 4;

/// Rows of the largest block.
const BLOCK_ROWS: usize = 12;

/// From so many rows on a panel is expanded first.
const EXPAND_ROWS: usize = 24;

/// Four activation bytes, in every lane.
///
/// # Safety
/// Four bytes at `codes + 4 * quad`; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn quad(codes: *const i8, quad: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_set1_epi32(codes.add(4 * quad).cast::<i32>().read_unaligned()) }
}

/// Where dot products start.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn start<W: Weights>() -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        _mm512_set1_epi32(if W::HALF {
            MAGIC.to_bits().cast_signed()
        } else {
            0
        })
    }
}

/// Scale times dot product, rounded once.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn scaled<W: Weights>(dot: __m512i, scales: Scales) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe {
        if W::HALF {
            _mm512_fmadd_ps(_mm512_castsi512_ps(dot), scales.scale, scales.back)
        } else {
            _mm512_mul_ps(_mm512_cvtepi32_ps(dot), scales.scale)
        }
    }
}

/// What is fetched into the cache while a block of rows computes: lines from `line` to `end`.
#[derive(Clone, Copy)]
struct Ahead {
    line: *const u8,
    end: *const u8,
    /// Lines a group.
    lines_each: usize,
}

impl Ahead {
    /// A group's share.
    #[inline(always)]
    fn fetch(&mut self) {
        for _ in 0..self.lines_each {
            if self.line >= self.end {
                return;
            }
            prefetch_line(self.line);
            self.line = self.line.wrapping_add(64);
        }
    }
}

/// Ask for a line of the residual stream that will be added to soon: another core may have it.
#[inline(always)]
fn fetch_sum(line: *mut f32) {
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_ET0>(line.cast_const().cast()) };
}

/// `ROWS` rows, from a tile's first on, against the whole panel; the first `rows` of them are stored.
///
/// # Safety
/// `weights` and the tiles have so many groups; the tiles are whole ones; as [`super::Products::panel`] for `rows` rows
/// of the output.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn block<W: Weights, const ROWS: usize>(
    mut weights: W,
    groups: usize,
    mut ahead: Ahead,
    tiles: *const TileGroup,
    rows: usize,
    outliers: Outliers,
    output: Output,
) {
    let mut sums = [_mm512_setzero_ps(); ROWS];
    // SAFETY: weights and tile groups of `groups` groups are inside what the caller vouches for.
    unsafe {
        let mut here: [_; 3] = std::array::from_fn(|at| {
            // A block of few rows has no more tiles, and nothing reads this pointer.
            tiles.wrapping_add(at * groups)
        });
        for _ in 0..groups {
            ahead.fetch();
            let tile = |row: usize| &*here[row / TILE_ROWS];
            // Exact sums of the group's two halves of inputs, or of all of it.
            let mut dots = [start::<W>(); ROWS];
            let mut high_dots = dots;
            for q in 0..QUADS {
                let codes = weights.codes(q);
                let dots = if W::SPLIT && q >= QUADS / 2 {
                    &mut high_dots
                } else {
                    &mut dots
                };
                for (row, dot) in dots.iter_mut().enumerate() {
                    let x = tile(row).codes[row % TILE_ROWS].as_ptr();
                    *dot = _mm512_dpbusd_epi32(*dot, codes, quad(x, q));
                }
            }
            let scales = weights.scales(0);
            for (row, (sum, dot)) in sums.iter_mut().zip(dots).enumerate() {
                let (tile, lane) = (tile(row), row % TILE_ROWS);
                let row_scale = _mm512_set1_ps(tile.scales[lane]);
                let row_sum = if W::SPLIT {
                    tile.low_scaled_sums[lane]
                } else {
                    tile.scaled_sums[lane]
                };
                *sum = _mm512_fmadd_ps(scaled::<W>(dot, scales), row_scale, *sum);
                *sum = _mm512_fmadd_ps(scales.min, _mm512_set1_ps(row_sum), *sum);
            }
            if W::SPLIT {
                let scales = weights.scales(1);
                for (row, (sum, dot)) in sums.iter_mut().zip(high_dots).enumerate() {
                    let (tile, lane) = (tile(row), row % TILE_ROWS);
                    let row_scale = _mm512_set1_ps(tile.scales[lane]);
                    let row_sum = tile.scaled_sums[lane] - tile.low_scaled_sums[lane];
                    *sum = _mm512_fmadd_ps(scaled::<W>(dot, scales), row_scale, *sum);
                    *sum = _mm512_fmadd_ps(scales.min, _mm512_set1_ps(row_sum), *sum);
                }
            }
            weights = weights.next();
            for tile in &mut here {
                *tile = opaque(tile.wrapping_add(1));
            }
        }
        // Spelt out: sums in an indexed array would stand in memory.
        macro_rules! finish {
            ($($at:literal)*) => {$(
                if $at * TILE_ROWS < ROWS {
                    let sum = |lane| {
                        let row: usize = $at * TILE_ROWS + lane;
                        Avx512(if row < ROWS { sums[row] } else { _mm512_setzero_ps() })
                    };
                    let tile = [sum(0), sum(1), sum(2), sum(3)];
                    let rows = rows.saturating_sub($at * TILE_ROWS);
                    finish_tile(tile, $at, rows, outliers, output);
                }
            )*};
        }
        finish!(0 1 2);
    }
}

/// All rows, in blocks of at most twelve (24 of the 32 registers are sums), as even as tiles allow.
///
/// # Safety
/// As [`super::Products::panel`]; `weights` are the panel's.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn blocks<W: Weights>(
    weights: W,
    groups: usize,
    next: Range<*const u8>,
    x: QuantRows,
    rows: usize,
    outliers: Outliers,
    output: Output,
) {
    let (mut row, mut blocks) = (0, rows.div_ceil(BLOCK_ROWS));
    let bytes = next.end as usize - next.start as usize;
    let share = bytes.div_ceil(blocks).next_multiple_of(64);
    // The compiler would divide again in every turn of the loop over groups.
    let lines_each = opaque((share / 64).div_ceil(groups.max(1)) as *const u8) as usize;
    let mut line = next.start;
    while row < rows {
        // SAFETY: `row` is below `rows`, for which the caller vouches, and begins a tile.
        unsafe {
            let tiles = x.tile(row);
            let (output, outliers) = (output.skip(row), outliers.skip(row));
            let left = rows - row;
            let end = line.wrapping_add(share).min(next.end);
            let ahead = Ahead {
                line,
                end,
                lines_each,
            };
            line = end;
            macro_rules! run {
                ($size:literal) => {{
                    let rows = left.min($size);
                    if output.accumulate {
                        for row in 0..rows {
                            fetch_sum(output.skip(row).out);
                        }
                    }
                    block::<W, $size>(weights, groups, ahead, tiles, rows, outliers, output);
                    $size
                }};
            }
            row += match left.div_ceil(TILE_ROWS).div_ceil(blocks) {
                3.. => run!(12),
                2 => run!(8),
                _ => match left {
                    1 => run!(1),
                    2 => run!(2),
                    _ => run!(4),
                },
            };
            blocks -= 1;
        }
    }
}

/// A panel of one layout.
///
/// # Safety
/// As [`super::Products::panel`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn rows_of<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool>(
    panel: Panel,
    zero: i32,
    x: QuantRows,
    rows: usize,
    outliers: Outliers,
    output: Output,
    scratch: &mut ExpandedPanel,
) {
    const {
        assert!(
            !(SPLIT && MIN),
            "no format has minima for halves of a group"
        )
    };
    let groups = panel.inputs / GROUP;
    let bytes = groups * Packed::<BITS, SPLIT, HALF, MIN>::LAYOUT.record_bytes();
    let next = panel.next..panel.next.wrapping_add(bytes);
    let weights = Packed::<BITS, SPLIT, HALF, MIN>::new(panel, zero);
    // SAFETY: the caller's promise.
    unsafe {
        if rows < EXPAND_ROWS {
            blocks(weights, groups, next, x, rows, outliers, output);
        } else {
            let weights = weights.expand(groups, scratch);
            blocks(weights, groups, next, x, rows, outliers, output);
        }
    }
}

/// See [`super::Products::panel`].
///
/// # Safety
/// As there; the machine has AVX-512 with VNNI.
pub(super) unsafe fn multiply(
    layout: QuantLayout,
    panel: Panel,
    x: QuantRows,
    rows: usize,
    outliers: Outliers,
    output: Output,
    scratch: &mut ExpandedPanel,
) {
    // SAFETY: the caller's promise.
    unsafe {
        macro_rules! run {
            ($bits:literal, $split:literal, $half:literal, $min:literal, $zero:expr) => {
                rows_of::<$bits, $split, $half, $min>(
                    panel, $zero, x, rows, outliers, output, scratch,
                )
            };
        }
        by_layout!(layout, run)
    }
}
