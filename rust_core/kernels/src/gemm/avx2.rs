//! Quantised GEMM with AVX2.
//!
//! `vpmaddubsw` adds pairs of products in saturating 16 bits. With nibbles as its unsigned operand a
//! pair is at most 2 · 15 · 127 = 3,810 in magnitude, and the eight quads of a group together at most
//! 30,480: it cannot saturate, and one `vpmaddwd` widens the sum. 8-bit codes are therefore split
//! into nibbles, whose exact sums are combined as `low + 16 · high`.

use std::arch::x86_64::*;

use super::outliers::finish;
use super::{Panel, PanelGemm};
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

/// Dequantised dot products of a row with eight columns. Column scales of paired layouts are not applied yet.
///
/// # Safety
/// A record at `record`; AVX2, FMA and F16C enabled by the caller.
#[inline(always)]
unsafe fn value<const BITS: u32>(
    layout: QuantLayout,
    record: *const u8,
    half: usize,
    part: usize,
    tile: &TileGroup,
    lane: usize,
) -> __m256 {
    let quads = match (layout.group, part) {
        (GROUP, _) => 0..8,
        (_, 0) => 0..4,
        _ => 4..8,
    };
    let part_bytes = layout.scale_bytes() / (GROUP / layout.group);
    // SAFETY: the caller's promise.
    unsafe {
        let dots = dot::<BITS>(record, half, quads, tile.codes[lane].as_ptr());
        let scales = record.add(layout.code_bytes() + part * part_bytes);
        let scale = || load_scales(scales, layout.half_scales, half);
        match layout.offset {
            Offset::Paired => {
                let dots = _mm256_add_epi32(dots, _mm256_set1_epi32(tile.initial_sums[lane]));
                let pairs = _mm256_loadu_si256(scales.add(4 * HALF_COLUMNS * half).cast());
                _mm256_cvtepi32_ps(_mm256_madd_epi16(dots, pairs))
            }
            Offset::ZeroPoint(zero) => {
                let sum = _mm256_set1_epi32(zero * tile.sum_of_part(layout, part, lane));
                _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(dots, sum)), scale())
            }
            Offset::Min => {
                let mins = load_scales(scales.add(layout.scale_bytes()), layout.half_scales, half);
                let sum = _mm256_set1_ps(tile.sum(lane) as f32);
                let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dots), scale());
                _mm256_fmadd_ps(sum, mins, scaled)
            }
        }
    }
}

/// Multiply a tile's first `ROWS` rows with half a panel.
///
/// # Safety
/// As [`super::Gemm::panels`], for `ROWS` rows.
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
    let mut sums = [_mm256_setzero_ps(); ROWS];
    // SAFETY: records and tile groups of `groups` groups are in bounds by contract.
    unsafe {
        for group in 0..groups {
            let record = panel.records(layout).add(group * record_bytes);
            if prefetch {
                for line in 0..record_bytes.div_ceil(64) {
                    prefetch_line(panel.next.add(group * record_bytes + 64 * line));
                }
            }
            let tile = &*tile.add(group);
            for part in 0..GROUP / layout.group {
                for (lane, sums) in sums.iter_mut().enumerate() {
                    let value = value::<BITS>(layout, record, half, part, tile, lane);
                    *sums = _mm256_fmadd_ps(value, _mm256_set1_ps(tile.scales[lane]), *sums);
                }
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            let sum = if layout.offset == Offset::Paired {
                let column_scales = panel.column_scales().add(HALF_COLUMNS * half);
                _mm256_mul_ps(sum, _mm256_loadu_ps(column_scales))
            } else {
                sum
            };
            _mm256_storeu_ps(out.as_mut_ptr().add(HALF_COLUMNS * half), sum);
        }
    }
}

/// All rows, tile by tile.
///
/// # Safety
/// As [`super::Gemm::panels`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn rows_of<const BITS: u32>(layout: QuantLayout, gemm: PanelGemm) {
    for row in (0..gemm.rows).step_by(TILE_ROWS) {
        // SAFETY: `row` is in bounds by contract and begins a tile.
        unsafe {
            let gemm = gemm.skip(row);
            let (panel, tile) = (gemm.panel, gemm.x.tiles);
            let mut sums = [[0.0; PANEL_COLUMNS]; TILE_ROWS];
            for half in 0..2 {
                let prefetch = row == 0 && half == 0;
                match gemm.rows {
                    1 => block::<BITS, 1>(layout, panel, half, prefetch, tile, &mut sums),
                    2 => block::<BITS, 2>(layout, panel, half, prefetch, tile, &mut sums),
                    _ => block::<BITS, TILE_ROWS>(layout, panel, half, prefetch, tile, &mut sums),
                }
            }
            finish::<Avx2>(&[sums], gemm);
        }
    }
}

/// See [`super::Gemm::panels`].
///
/// # Safety
/// As there; the machine has AVX2, FMA and F16C.
pub(super) unsafe fn multiply(layout: QuantLayout, gemm: PanelGemm) {
    // SAFETY: the caller's promise.
    unsafe {
        if layout.bits == 4 {
            rows_of::<4>(layout, gemm);
        } else {
            rows_of::<8>(layout, gemm);
        }
    }
}
