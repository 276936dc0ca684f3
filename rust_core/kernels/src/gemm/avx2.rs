//! Quantised GEMM with AVX2.
//!
//! `vpmaddubsw` adds pairs of products in saturating 16 bits. With nibbles as its unsigned operand a
//! pair is at most 2 · 15 · 127 = 3,810 in magnitude, and the eight quads of a group together at most
//! 30,480: it cannot saturate, and one `vpmaddwd` widens the sum. Longer codes are therefore multiplied in two parts, their
//! low four bits and the rest, whose exact sums are combined as `low + 16 · high`. 3-bit codes are two and one bits.
//!
//! Functions take the layout as a const parameter, its index, and choose by inline constants: the code for other layouts is then
//! left out before the compiler's optimisations. As a value, it would be removed by them only after inlining and took half of the
//! crate's build time.

use std::arch::x86_64::*;
use std::ops::Range;

use super::outliers::finish;
use super::{Panel, PanelGemm, by_layout};
use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::pack::blocked::SIX_BIT_ZERO;
use crate::pack::layout::{
    BLOCK_GROUPS, GROUP, Offset, PANEL_COLUMNS, QuantLayout, SIX_BIT_HIGH_OFFSET, Scales,
};
use crate::pack::pairs;
use crate::pack::table::Table;
use crate::simd::{Avx2, prefetch_line};

/// Eight columns: half a panel.
pub(super) const HALF_COLUMNS: usize = 8;

/// The 16-bit lanes of `bytes`, shifted right by `shift`, as bytes masked with `mask`.
///
/// # Safety
/// AVX2 enabled by the caller.
#[inline(always)]
unsafe fn bits(bytes: __m256i, shift: usize, mask: i8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let shifted = _mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift as i32));
        _mm256_and_si256(shifted, _mm256_set1_epi8(mask))
    }
}

/// The codes of quad `quad` in eight columns: their low four bits (of 3-bit codes two), and the rest in layouts with longer
/// codes.
///
/// # Safety
/// A group's codes at `codes`; AVX2 enabled by the caller.
#[inline(always)]
unsafe fn split_codes<const LAYOUT: usize>(
    codes: *const u8,
    half: usize,
    quad: usize,
) -> (__m256i, Option<__m256i>) {
    // SAFETY: the caller's promise.
    unsafe {
        if const { QuantLayout::ALL[LAYOUT].table.is_some() } {
            let codes = looked_up_codes::<LAYOUT>(codes, half, quad);
            return (bits(codes, 0, 15), Some(bits(codes, 4, 15)));
        }
        let load = |register: usize| load_codes(codes, half, register);
        match const { QuantLayout::ALL[LAYOUT].bits } {
            8 => (bits(load(quad), 0, 15), Some(bits(load(quad), 4, 15))),
            6 => (
                bits(load(quad % 4), quad / 4 * 4, 15),
                Some(bits(load(4 + quad / 4), quad % 4 * 2, 3)),
            ),
            5 => (
                bits(load(quad % 4), quad / 4 * 4, 15),
                Some(bits(load(4), quad, 1)),
            ),
            4 => (bits(load(quad % 4), quad / 4 * 4, 15), None),
            3 => (
                bits(load(quad / 4), quad % 4 * 2, 3),
                Some(bits(load(2), quad, 1)),
            ),
            _ => (bits(load(quad / 4), quad % 4 * 2, 3), None),
        }
    }
}

/// The codes of quad `quad` in eight columns, one byte each, in layouts with a table.
///
/// # Safety
/// As [`split_codes`].
#[inline(always)]
unsafe fn looked_up_codes<const LAYOUT: usize>(
    codes: *const u8,
    half: usize,
    quad: usize,
) -> __m256i {
    let table = const { QuantLayout::ALL[LAYOUT].table }.expect("a layout with a table");
    // SAFETY: the caller's promise.
    unsafe {
        let nibbles = bits(load_codes(codes, half, quad % 4), quad / 4 * 4, 15);
        _mm256_shuffle_epi8(load_table(table), nibbles)
    }
}

/// The codes of the sixteen nibbles, twice.
///
/// # Safety
/// AVX2 enabled by the caller.
#[inline(always)]
unsafe fn load_table(table: Table) -> __m256i {
    // SAFETY: sixteen bytes; enabled by the caller.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(table.codes().as_ptr().cast())) }
}

/// How many bits of a code are in its lower part ([`split_codes`]).
const fn low_bits(layout: QuantLayout) -> i32 {
    if layout.bits == 3 { 2 } else { 4 }
}

/// The bytes of eight columns in a register of codes.
///
/// # Safety
/// As [`split_codes`].
#[inline(always)]
unsafe fn load_codes(codes: *const u8, half: usize, register: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(codes.add(64 * register + 32 * half).cast::<__m256i>()) }
}

/// The codes of quad `quad` in eight columns, one byte each.
///
/// # Safety
/// As [`split_codes`].
#[inline(always)]
pub(super) unsafe fn quad_codes<const LAYOUT: usize>(
    codes: *const u8,
    half: usize,
    quad: usize,
) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        if const { QuantLayout::ALL[LAYOUT].bits == 8 } {
            return load_codes(codes, half, quad);
        }
        if const { QuantLayout::ALL[LAYOUT].table.is_some() } {
            return looked_up_codes::<LAYOUT>(codes, half, quad);
        }
        let (low, high) = split_codes::<LAYOUT>(codes, half, quad);
        if let Some(high) = high {
            let shift = const { low_bits(QuantLayout::ALL[LAYOUT]) };
            let high = _mm256_sll_epi16(high, _mm_cvtsi32_si128(shift));
            return _mm256_or_si256(low, high);
        }
        low
    }
}

/// Exact sums of `codes · activations` over quads `quads` (at most eight) of eight columns.
///
/// # Safety
/// A group's codes at `codes`, its activations at `x`; AVX2 enabled by the caller.
#[inline(always)]
unsafe fn dot<const LAYOUT: usize>(
    codes: *const u8,
    half: usize,
    quads: Range<usize>,
    x: *const i8,
) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for quad in quads {
            let four = _mm256_set1_epi32(x.add(4 * quad).cast::<i32>().read_unaligned());
            let (low_bits, high_bits) = split_codes::<LAYOUT>(codes, half, quad);
            low = _mm256_add_epi16(low, _mm256_maddubs_epi16(low_bits, four));
            if let Some(high_bits) = high_bits {
                high = _mm256_add_epi16(high, _mm256_maddubs_epi16(high_bits, four));
            }
        }
        let sum = _mm256_madd_epi16(low, _mm256_set1_epi16(1));
        let layout = const { QuantLayout::ALL[LAYOUT] };
        if matches!(layout.bits, 2 | 4) && layout.table.is_none() {
            return sum;
        }
        let high_weight = 1 << low_bits(layout);
        _mm256_add_epi32(sum, _mm256_madd_epi16(high, _mm256_set1_epi16(high_weight)))
    }
}

/// In every lane, the signed low half of `of` times `by`.
///
/// # Safety
/// AVX2 enabled by the caller.
#[inline(always)]
unsafe fn low_half_times(of: i32, by: i32) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_madd_epi16(_mm256_set1_epi32(of), _mm256_set1_epi32(by & 0xffff)) }
}

/// Initial value of a row's dot products with part `part` of a group, in every lane: see [`GroupScales::dequantize`].
///
/// # Safety
/// AVX2 enabled by the caller.
#[inline(always)]
pub(super) unsafe fn initial_sum<const LAYOUT: usize>(
    part: usize,
    tile: &TileGroup,
    lane: usize,
) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let layout = const { QuantLayout::ALL[LAYOUT] };
        if const { matches!(QuantLayout::ALL[LAYOUT].offset, Offset::Paired) } {
            return _mm256_set1_epi32(tile.initial_sums[lane]);
        }
        if const { matches!(QuantLayout::ALL[LAYOUT].offset, Offset::Min) } {
            return _mm256_setzero_si256();
        }
        let Offset::ZeroPoint(zero) = layout.offset else {
            unreachable!("other offsets have returned");
        };
        // The low half of an initial sum is the code sum times -8.
        let all = if zero == pairs::ZERO_POINT / 2 {
            _mm256_srai_epi32::<1>(low_half_times(tile.initial_sums[lane], 1))
        } else {
            low_half_times(tile.initial_sums[lane], zero / pairs::ZERO_POINT)
        };
        if const { QuantLayout::ALL[LAYOUT].group == GROUP } {
            return all;
        }
        let low = low_half_times(tile.low_sums[lane], -zero);
        if part == 0 {
            low
        } else {
            _mm256_sub_epi32(all, low)
        }
    }
}

/// The scales of a group, or of half of one, for eight columns: scale and minimum, or scale-offset pairs.
#[derive(Clone, Copy)]
pub(super) struct GroupScales {
    pub scale: __m256,
    /// An eighth of the minimum, because code sums are stored times eight.
    pub min: __m256,
    pub pairs: __m256i,
}

impl GroupScales {
    /// Of part `part` of group `group`.
    ///
    /// # Safety
    /// The panel has the group; AVX2, FMA and F16C enabled by the caller.
    #[inline(always)]
    pub unsafe fn load<const LAYOUT: usize>(
        panel: Panel,
        group: usize,
        half: usize,
        part: usize,
    ) -> Self {
        let layout = const { QuantLayout::ALL[LAYOUT] };
        let scales = panel.scales(layout, group);
        let column = HALF_COLUMNS * half;
        // SAFETY: the caller's promise; the group's scales and the factors of its block.
        unsafe {
            // Macros, because a closure may be compiled as a function without these instructions.
            macro_rules! halves {
                ($from:expr) => {
                    _mm256_cvtph_ps(_mm_loadu_si128($from.add(2 * column).cast::<__m128i>()))
                };
            }
            macro_rules! eight {
                ($from:expr) => {
                    _mm_loadl_epi64($from.add(column).cast())
                };
            }
            let block = panel.block(layout, group);
            // A factor (0: of scales, 1: of minima) times eight signed bytes.
            macro_rules! times {
                ($factor:literal, $integers:expr) => {{
                    let factors = halves!(block.add(2 * PANEL_COLUMNS * $factor));
                    let integers = _mm256_cvtepi8_epi32($integers);
                    _mm256_mul_ps(_mm256_cvtepi32_ps(integers), factors)
                }};
            }
            // The same with an integer of the group.
            macro_rules! product {
                ($factor:literal, $array:expr) => {
                    times!($factor, eight!(scales.add(PANEL_COLUMNS * $array)))
                };
            }
            let mut loaded = Self {
                scale: _mm256_setzero_ps(),
                min: _mm256_setzero_ps(),
                pairs: _mm256_setzero_si256(),
            };
            match (layout.scales, layout.offset) {
                (Scales::Half, Offset::Min) => {
                    loaded.scale = halves!(scales);
                    loaded.min = halves!(scales.add(2 * PANEL_COLUMNS));
                }
                (Scales::Half, _) => loaded.scale = halves!(scales.add(2 * PANEL_COLUMNS * part)),
                (Scales::Exponents, _) => {
                    let exponents = _mm_loadl_epi64(scales.add(column).cast());
                    let bits = _mm256_slli_epi32::<23>(_mm256_cvtepu8_epi32(exponents));
                    loaded.scale = _mm256_castsi256_ps(bits);
                }
                (Scales::Pairs, _) => {
                    loaded.pairs = _mm256_loadu_si256(scales.add(4 * column).cast());
                }
                (Scales::Integers, _) => {
                    let scales = _mm_loadu_si128(scales.add(2 * column).cast());
                    loaded.pairs = _mm256_cvtepu16_epi32(scales); // offset 0
                }
                (Scales::Blocked, Offset::Paired) => {
                    let scale = product!(0, 0);
                    let offset = _mm256_cvtps_epi32(_mm256_sub_ps(scale, product!(1, 1)));
                    let offset = _mm256_slli_epi32::<16>(offset);
                    loaded.pairs = _mm256_blend_epi16::<0xaa>(_mm256_cvtps_epi32(scale), offset);
                }
                (Scales::Blocked, Offset::Min) => {
                    (loaded.scale, loaded.min) = (product!(0, 0), product!(1, 1));
                }
                (Scales::Blocked, Offset::ZeroPoint(_)) => loaded.scale = product!(0, part),
                (Scales::BlockedNibbles, _) => {
                    let both = eight!(scales.add(PANEL_COLUMNS * part));
                    let nibble = _mm_set1_epi8(15);
                    let high = _mm_and_si128(_mm_srli_epi16::<4>(both), nibble);
                    loaded.scale = times!(0, _mm_and_si128(both, nibble));
                    loaded.min = times!(1, high);
                }
                (Scales::BlockedSixBits, _) => {
                    let in_block = group % BLOCK_GROUPS;
                    macro_rules! shifted {
                        ($bytes:expr, $by:expr, $mask:literal) => {{
                            let by = _mm_cvtsi32_si128($by as i32);
                            _mm_and_si128(_mm_srl_epi16($bytes, by), _mm_set1_epi8($mask))
                        }};
                    }
                    let low = shifted!(eight!(scales), 4 * part, 15);
                    let high = block.add(SIX_BIT_HIGH_OFFSET + in_block / 2 * PANEL_COLUMNS);
                    let high = shifted!(eight!(high), 4 * (in_block % 2) + 2 * part, 3);
                    let integers = _mm_or_si128(low, _mm_slli_epi16::<4>(high));
                    let zero = _mm_set1_epi8(SIX_BIT_ZERO);
                    loaded.scale = times!(0, _mm_sub_epi8(integers, zero));
                }
            }
            let eighth = _mm256_set1_ps(1.0 / pairs::ZERO_POINT as f32);
            loaded.min = _mm256_mul_ps(loaded.min, eighth);
            loaded
        }
    }

    /// Dequantise dot products that were accumulated onto [`initial_sum`]. Column scales of paired layouts are not applied yet.
    ///
    /// # Safety
    /// AVX2 and FMA enabled by the caller.
    #[inline(always)]
    pub unsafe fn dequantize<const LAYOUT: usize>(
        self,
        dots: __m256i,
        part: usize,
        tile: &TileGroup,
        lane: usize,
    ) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            if const { matches!(QuantLayout::ALL[LAYOUT].offset, Offset::Paired) } {
                return _mm256_cvtepi32_ps(_mm256_madd_epi16(dots, self.pairs));
            }
            let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dots), self.scale);
            if const { !matches!(QuantLayout::ALL[LAYOUT].offset, Offset::Min) } {
                return scaled;
            }
            // Eight times the code sums.
            let all = low_half_times(tile.initial_sums[lane], -1);
            let low = low_half_times(tile.low_sums[lane], pairs::ZERO_POINT);
            let sum = match (const { QuantLayout::ALL[LAYOUT].group }, part) {
                (GROUP, _) => all,
                (_, 0) => low,
                _ => _mm256_sub_epi32(all, low),
            };
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), self.min, scaled)
        }
    }
}

/// The quads of part `part` of a group.
#[inline(always)]
pub(super) const fn quads_of(layout: QuantLayout, part: usize) -> Range<usize> {
    let quads = layout.group / 4;
    quads * part..quads * (part + 1)
}

/// Dequantised dot products of a row with eight columns.
///
/// # Safety
/// A group's codes at `codes`; AVX2, FMA and F16C enabled by the caller.
#[inline(always)]
unsafe fn value<const LAYOUT: usize>(
    codes: *const u8,
    scales: GroupScales,
    half: usize,
    part: usize,
    tile: &TileGroup,
    lane: usize,
) -> __m256 {
    let quads = quads_of(const { QuantLayout::ALL[LAYOUT] }, part);
    let x = tile.codes[lane].as_ptr();
    // SAFETY: the caller's promise.
    unsafe {
        let dots = dot::<LAYOUT>(codes, half, quads, x);
        let dots = _mm256_add_epi32(dots, initial_sum::<LAYOUT>(part, tile, lane));
        scales.dequantize::<LAYOUT>(dots, part, tile, lane)
    }
}

/// Multiply a tile's first `ROWS` rows with half a panel.
///
/// # Safety
/// As [`super::Gemm::panels`], for `ROWS` rows.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn block<const LAYOUT: usize, const ROWS: usize>(
    panel: Panel,
    half: usize,
    prefetch: bool,
    tile: *const TileGroup,
    out: &mut [[f32; PANEL_COLUMNS]; TILE_ROWS],
) {
    let layout = const { QuantLayout::ALL[LAYOUT] };
    let groups = panel.inputs / GROUP;
    let lines_per_group = layout.block_bytes().div_ceil(64 * layout.block_groups());
    let mut next = panel.next;
    let mut sums = [_mm256_setzero_ps(); ROWS];
    // SAFETY: codes, scales and tile groups of `groups` groups are in bounds by contract.
    unsafe {
        for group in 0..groups {
            if prefetch {
                for _ in 0..lines_per_group {
                    prefetch_line(next);
                    next = next.wrapping_add(64);
                }
            }
            let (tile, codes) = (&*tile.add(group), panel.codes(layout, group));
            for part in 0..GROUP / layout.group {
                let scales = GroupScales::load::<LAYOUT>(panel, group, half, part);
                for (lane, sums) in sums.iter_mut().enumerate() {
                    let value = value::<LAYOUT>(codes, scales, half, part, tile, lane);
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
unsafe fn rows_of<const LAYOUT: usize>(gemm: PanelGemm) {
    for row in (0..gemm.rows).step_by(TILE_ROWS) {
        // SAFETY: `row` is in bounds by contract and begins a tile.
        unsafe {
            let gemm = gemm.skip(row);
            let (panel, tile) = (gemm.panel, gemm.x.tiles);
            let mut sums = [[0.0; PANEL_COLUMNS]; TILE_ROWS];
            for half in 0..2 {
                let prefetch = row == 0 && half == 0;
                match gemm.rows {
                    1 => block::<LAYOUT, 1>(panel, half, prefetch, tile, &mut sums),
                    2 => block::<LAYOUT, 2>(panel, half, prefetch, tile, &mut sums),
                    _ => block::<LAYOUT, TILE_ROWS>(panel, half, prefetch, tile, &mut sums),
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
        macro_rules! run {
            ($layout:ident) => {
                rows_of::<{ QuantLayout::$layout.index() }>(gemm)
            };
        }
        by_layout!(layout, run)
    }
}
