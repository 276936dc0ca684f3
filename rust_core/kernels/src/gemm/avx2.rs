//! Quantised panels with AVX2.
//!
//! `vpmaddubsw` adds pairs of products in saturating 16 bits. With nibbles as its unsigned operand a
//! pair is at most 2 · 15 · 127 = 3,810 in magnitude, and the eight quads of a group together at most
//! 30,480: it cannot saturate, and one `vpmaddwd` widens the sum. Codes of 8 bits are therefore split
//! into their nibbles, whose exact sums join as `low + 16 · high`.

use std::arch::x86_64::*;

use super::outliers::finish;
use super::{Panel, PanelProduct};
use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use crate::simd::{Avx2, prefetch_line};

/// Eight columns: half a panel.
const HALF_COLUMNS: usize = 8;

/// Load 8 scales or minima, from column `8 * half` on.
///
/// # Safety
/// 16 values at `from`; AVX2 and F16C enabled by the caller.
#[inline(always)]
unsafe fn load_scales(from: *const u8, half_scales: bool, half: usize) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        if half_scales {
            _mm256_cvtph_ps(_mm_loadu_si128(from.add(2 * HALF_COLUMNS * half).cast()))
        } else {
            _mm256_loadu_ps(from.add(4 * HALF_COLUMNS * half).cast())
        }
    }
}

/// Exact sums of `codes · activations` over quads `quads` (at most eight) of eight columns.
///
/// # Safety
/// A record at `record`, a group of activations at `x`; AVX2 enabled by the caller.
#[inline(always)]
unsafe fn dot<const BITS: u32>(
    record: *const u8,
    half: usize,
    quads: std::ops::Range<usize>,
    x: *const i8,
) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let nibble = _mm256_set1_epi8(15);
        let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for quad in quads {
            let four = _mm256_set1_epi32(x.add(4 * quad).cast::<i32>().read_unaligned());
            let register = if BITS == 4 { quad % 4 } else { quad };
            let bytes = _mm256_loadu_si256(record.add(64 * register + 32 * half).cast());
            let shifted = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
            if BITS == 4 {
                let codes = if quad < 4 {
                    _mm256_and_si256(bytes, nibble)
                } else {
                    shifted
                };
                low = _mm256_add_epi16(low, _mm256_maddubs_epi16(codes, four));
            } else {
                let codes = _mm256_and_si256(bytes, nibble);
                low = _mm256_add_epi16(low, _mm256_maddubs_epi16(codes, four));
                high = _mm256_add_epi16(high, _mm256_maddubs_epi16(shifted, four));
            }
        }
        let sum = _mm256_madd_epi16(low, _mm256_set1_epi16(1));
        if BITS == 4 {
            return sum;
        }
        _mm256_add_epi32(sum, _mm256_madd_epi16(high, _mm256_set1_epi16(16)))
    }
}

/// Sums of a tile's first `ROWS` rows with half a panel.
///
/// # Safety
/// As [`super::Products::panel`], for `ROWS` rows.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn block<const BITS: u32, const ROWS: usize>(
    layout: QuantLayout,
    panel: Panel,
    half: usize,
    prefetch: bool,
    tile: *const TileGroup,
    out: &mut [[f32; PANEL_COLUMNS]; TILE_ROWS],
) {
    let record_bytes = layout.record_bytes();
    let groups = panel.inputs / GROUP;
    let parts = GROUP / layout.group;
    let mut sums = [_mm256_setzero_ps(); ROWS];
    // SAFETY: records and tile groups of `groups` groups are inside what the caller vouches for.
    unsafe {
        for group in 0..groups {
            let record = panel.data.add(group * record_bytes);
            if prefetch {
                for line in 0..record_bytes.div_ceil(64) {
                    prefetch_line(panel.next.add(group * record_bytes + 64 * line));
                }
            }
            let scales = record.add(layout.code_bytes());
            let part_bytes = layout.scale_bytes() / parts;
            for part in 0..parts {
                let scale = load_scales(scales.add(part * part_bytes), layout.half_scales, half);
                let min = match layout.offset {
                    Offset::Min => {
                        let mins = scales.add(layout.scale_bytes());
                        load_scales(mins, layout.half_scales, half)
                    }
                    Offset::Zero(zero) => _mm256_mul_ps(scale, _mm256_set1_ps(-zero as f32)),
                };
                let quads = part * 8 / parts..(part + 1) * 8 / parts;
                for (lane, sums) in sums.iter_mut().enumerate() {
                    let tile = &*tile.add(group);
                    let row_sum = match (parts, part) {
                        (1, _) => tile.scaled_sums[lane],
                        (_, 0) => tile.low_scaled_sums[lane],
                        _ => tile.scaled_sums[lane] - tile.low_scaled_sums[lane],
                    };
                    let activations = tile.codes[lane].as_ptr();
                    let dot = dot::<BITS>(record, half, quads.clone(), activations);
                    let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dot), scale);
                    *sums = _mm256_fmadd_ps(scaled, _mm256_set1_ps(tile.scales[lane]), *sums);
                    *sums = _mm256_fmadd_ps(min, _mm256_set1_ps(row_sum), *sums);
                }
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            _mm256_storeu_ps(out.as_mut_ptr().add(HALF_COLUMNS * half), sum);
        }
    }
}

/// All rows, tile by tile.
///
/// # Safety
/// As [`super::Products::panel`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn rows_of<const BITS: u32>(layout: QuantLayout, product: PanelProduct) {
    for row in (0..product.rows).step_by(TILE_ROWS) {
        // SAFETY: `row` is one of the rows, for which the caller vouches, and begins a tile.
        unsafe {
            let PanelProduct {
                panel,
                x,
                rows,
                outliers,
                output,
            } = product.skip(row);
            let (tile, left) = (x.tiles, rows.min(TILE_ROWS));
            let mut sums = [[0.0; PANEL_COLUMNS]; TILE_ROWS];
            for half in 0..2 {
                let prefetch = row == 0 && half == 0;
                match left {
                    1 => block::<BITS, 1>(layout, panel, half, prefetch, tile, &mut sums),
                    2 => block::<BITS, 2>(layout, panel, half, prefetch, tile, &mut sums),
                    _ => block::<BITS, TILE_ROWS>(layout, panel, half, prefetch, tile, &mut sums),
                }
            }
            finish::<Avx2>(&[sums], left, outliers, output);
        }
    }
}

/// See [`super::Products::panel`].
///
/// # Safety
/// As there; the machine has AVX2, FMA and F16C.
pub(super) unsafe fn multiply(layout: QuantLayout, product: PanelProduct) {
    // SAFETY: the caller's promise.
    unsafe {
        if layout.bits == 4 {
            rows_of::<4>(layout, product);
        } else {
            rows_of::<8>(layout, product);
        }
    }
}
