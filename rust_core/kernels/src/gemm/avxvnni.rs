//! Quantised GEMM with `vpdpbusd` on 256 bits, for level `avxvnni`.
//!
//! A register holds a quad of inputs of half a panel's columns. The sixteen registers hold the dot products of a group for a
//! block of rows, and the floats that these are added to are in memory: reading and writing them once per group costs less than
//! blocks of half the size would. Codes, scales and their arithmetic are level `avx2`'s ([`super::avx2`]), except that codes are
//! whole bytes here: `vpdpbusd` does not saturate.
//!
//! Panels that are multiplied with more than a few rows are unpacked once, so that the larger blocks are compiled for one layout
//! of each kind of arithmetic ([`unpacked_layout`]) instead of for all.

use std::arch::asm;
use std::arch::x86_64::*;

use super::avx2::{GroupScales, HALF_COLUMNS, initial_sum, quad_codes, quads_of};
use super::avx512::{ExpandedPanels, MAX_EXPANDED_LINES};
use super::outliers::finish;
use super::{Panel, PanelGemm, by_layout};
use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use crate::simd::{Avx2, Dpbusd, prefetch_line};

/// Rows of the largest block.
const MAX_ROWS: usize = 12;

/// Tiles of the largest block.
const MAX_TILES: usize = MAX_ROWS / TILE_ROWS;

/// Largest row count for which panels are multiplied as they are packed.
const PACKED_ROWS: usize = TILE_ROWS;

/// Bytes of an unpacked group.
const UNPACKED_BYTES: usize = 64 * MAX_EXPANDED_LINES;

/// A block's sums, one cache line per row.
#[repr(align(64))]
struct Sums([[[f32; PANEL_COLUMNS]; TILE_ROWS]; MAX_TILES]);

/// The same pointer, opaque to the compiler. Otherwise it keeps the sums in registers, which it lacks, and spills dot products.
#[inline(always)]
#[allow(
    clippy::pointers_in_nomem_asm_block,
    reason = "nothing is read through it"
)]
fn opaque<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: no instruction: the pointer passes through unchanged.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(nomem, nostack, preserves_flags, pure));
    }
    pointer
}

/// Index of the layout whose arithmetic the unpacked codes and scales of a layout take.
const fn unpacked_layout(layout: QuantLayout) -> usize {
    match (layout.offset, layout.group) {
        (Offset::Paired, _) => QuantLayout::Q4_1.index(),
        (Offset::ZeroPoint(_), GROUP) => QuantLayout::Q8_0.index(),
        (Offset::ZeroPoint(_), _) => QuantLayout::Q6_K.index(),
        (Offset::Min, GROUP) => QuantLayout::Q5_1.index(),
        (Offset::Min, _) => QuantLayout::Q2_K.index(),
    }
}

/// Added to a layout's codes when they are unpacked: the difference between the zero points.
const fn code_offset(layout: QuantLayout) -> i8 {
    let unpacked = QuantLayout::ALL[unpacked_layout(layout)];
    match (unpacked.offset, layout.offset) {
        (Offset::ZeroPoint(to), Offset::ZeroPoint(from)) => (to - from) as i8,
        _ => 0,
    }
}

/// A panel's groups, packed or unpacked. The layout of the methods' const parameter is the packed panel's, or the one from
/// [`unpacked_layout`].
#[derive(Clone, Copy)]
struct Weights {
    panel: Panel,
    /// Unpacked groups: the codes, one byte each, then [`GroupScales`] of both halves. Unused if `UNPACKED` is false.
    unpacked: *mut u8,
}

impl Weights {
    /// The codes of quad `quad` of group `group` in half `half` of the columns.
    ///
    /// # Safety
    /// The group exists; AVX2 enabled by the caller.
    #[inline(always)]
    unsafe fn codes<const LAYOUT: usize, const UNPACKED: bool>(
        self,
        group: usize,
        half: usize,
        quad: usize,
    ) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            if UNPACKED {
                _mm256_load_si256(self.unpacked_codes(group, half, quad).cast())
            } else {
                let codes = self.panel.codes(const { QuantLayout::ALL[LAYOUT] }, group);
                quad_codes::<LAYOUT>(codes, half, quad)
            }
        }
    }

    /// The scales of part `part` of the same.
    ///
    /// # Safety
    /// As [`Self::codes`]; FMA and F16C enabled, too.
    #[inline(always)]
    unsafe fn scales<const LAYOUT: usize, const UNPACKED: bool>(
        self,
        group: usize,
        half: usize,
        part: usize,
    ) -> GroupScales {
        // SAFETY: the caller's promise.
        unsafe {
            if !UNPACKED {
                return GroupScales::load::<LAYOUT>(self.panel, group, half, part);
            }
            let scale = self.unpacked_scales(group, half, 2 * part);
            GroupScales {
                scale: _mm256_load_ps(scale.cast()),
                min: _mm256_load_ps(self.unpacked_scales(group, half, 2 * part + 1).cast()),
                pairs: _mm256_load_si256(scale.cast()),
            }
        }
    }

    /// The codes of quad `quad` of an unpacked group, in half `half` of the columns.
    ///
    /// # Safety
    /// The group exists.
    #[inline(always)]
    unsafe fn unpacked_codes(self, group: usize, half: usize, quad: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            self.unpacked
                .add(group * UNPACKED_BYTES + 64 * quad + 32 * half)
        }
    }

    /// Array `at` of an unpacked group's scales, from half `half` of the columns on: scales or pairs (0) and minima (1) of the first
    /// part, scales (2) and minima (3) of the second.
    ///
    /// # Safety
    /// The group exists.
    #[inline(always)]
    unsafe fn unpacked_scales(self, group: usize, half: usize, at: usize) -> *mut u8 {
        let scales = group * UNPACKED_BYTES + PANEL_COLUMNS * GROUP;
        // SAFETY: the caller's promise.
        unsafe { self.unpacked.add(scales + 64 * at + 32 * half) }
    }

    /// Unpack all groups of a panel of layout `LAYOUT`.
    ///
    /// # Safety
    /// `groups` groups in the panel and [`UNPACKED_BYTES`] for each at `unpacked`; the machine has the level.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn unpack<const LAYOUT: usize>(self, groups: usize) {
        let layout = const { QuantLayout::ALL[LAYOUT] };
        let offset = _mm256_set1_epi8(const { code_offset(QuantLayout::ALL[LAYOUT]) });
        for group in 0..groups {
            for half in 0..2 {
                // SAFETY: the caller's promise.
                unsafe {
                    for quad in 0..GROUP / 4 {
                        let codes = self.codes::<LAYOUT, false>(group, half, quad);
                        let to = self.unpacked_codes(group, half, quad);
                        _mm256_store_si256(to.cast(), _mm256_add_epi8(codes, offset));
                    }
                    for part in 0..GROUP / layout.group {
                        let scales = self.scales::<LAYOUT, false>(group, half, part);
                        let scale = self.unpacked_scales(group, half, 2 * part);
                        match layout.offset {
                            Offset::Paired => _mm256_store_si256(scale.cast(), scales.pairs),
                            Offset::ZeroPoint(_) => _mm256_store_ps(scale.cast(), scales.scale),
                            Offset::Min => {
                                let min = self.unpacked_scales(group, half, 2 * part + 1);
                                _mm256_store_ps(scale.cast(), scales.scale);
                                _mm256_store_ps(min.cast(), scales.min);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One group of a panel's weights and of a block's rows.
#[derive(Clone, Copy)]
struct GroupProduct {
    weights: Weights,
    group: usize,
    tiles: *const TileGroup,
    groups: usize,
    /// The block's sums, `[rows, 16]`.
    sums: *mut f32,
}

impl GroupProduct {
    /// Multiply part `part` of the group with `ROWS` rows for `HALVES` halves of the columns, from half `first` on, and add the
    /// results to the sums.
    ///
    /// # Safety
    /// The group and `ROWS` rows exist; the machine has the level; AVX2, FMA and F16C enabled by the caller.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn add<
        const LAYOUT: usize,
        const UNPACKED: bool,
        const ROWS: usize,
        const HALVES: usize,
    >(
        self,
        part: usize,
        first: usize,
    ) {
        let layout = const { QuantLayout::ALL[LAYOUT] };
        let (weights, group, quads) = (self.weights, self.group, quads_of(layout, part));
        // SAFETY: the caller's promise.
        unsafe {
            let tile = |row: usize| &*self.tiles.add(row / TILE_ROWS * self.groups + group);
            let mut dots = [[_mm256_setzero_si256(); HALVES]; ROWS];
            for row in 0..ROWS {
                let start = initial_sum::<LAYOUT>(part, tile(row), row % TILE_ROWS);
                for half in 0..HALVES {
                    dots[row][half] = start;
                }
            }
            // A macro, because an unrolled loop makes every quad a constant.
            macro_rules! accumulate {
                ($($quad:literal)*) => {$(
                    if quads.contains(&$quad) {
                        let mut codes = [_mm256_setzero_si256(); HALVES];
                        for half in 0..HALVES {
                            codes[half] =
                                weights.codes::<LAYOUT, UNPACKED>(group, first + half, $quad);
                        }
                        for row in 0..ROWS {
                            let x = tile(row).codes[row % TILE_ROWS].as_ptr().add(4 * $quad);
                            let x = _mm256_set1_epi32(x.cast::<i32>().read_unaligned());
                            for half in 0..HALVES {
                                let dot = &mut dots[row][half];
                                *dot = Dpbusd::dpbusd(*dot, codes[half], x);
                            }
                        }
                    }
                )*};
            }
            accumulate!(0 1 2 3 4 5 6 7);
            for half in 0..HALVES {
                let scales = weights.scales::<LAYOUT, UNPACKED>(group, first + half, part);
                for row in 0..ROWS {
                    let (tile, lane) = (tile(row), row % TILE_ROWS);
                    let value = scales.dequantize::<LAYOUT>(dots[row][half], part, tile, lane);
                    let to = PANEL_COLUMNS * row + HALF_COLUMNS * (first + half);
                    let (to, scale) = (self.sums.add(to), _mm256_set1_ps(tile.scales[lane]));
                    _mm256_store_ps(to, _mm256_fmadd_ps(value, scale, _mm256_load_ps(to)));
                }
            }
        }
    }
}

/// Multiply the first `ROWS` rows with the panel, `HALVES` halves of its columns at a time.
///
/// # Safety
/// As [`super::Gemm::panels`], for `ROWS` rows; the machine has the level.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn block<
    const LAYOUT: usize,
    const UNPACKED: bool,
    const ROWS: usize,
    const HALVES: usize,
>(
    weights: Weights,
    tiles: *const TileGroup,
    groups: usize,
    (mut line, lines_per_group): (*const u8, usize),
    sums: &mut Sums,
) {
    let layout = const { QuantLayout::ALL[LAYOUT] };
    let mut sums = sums.0.as_mut_ptr().cast::<f32>();
    // SAFETY: codes, scales and tile groups of `groups` groups are in bounds by contract.
    unsafe {
        for group in 0..groups {
            for _ in 0..lines_per_group {
                prefetch_line(line);
                line = line.wrapping_add(64);
            }
            sums = opaque(sums);
            let product = GroupProduct {
                weights,
                group,
                tiles,
                groups,
                sums,
            };
            macro_rules! add {
                ($part:literal) => {
                    product.add::<LAYOUT, UNPACKED, ROWS, HALVES>($part, 0);
                    if HALVES == 1 {
                        product.add::<LAYOUT, UNPACKED, ROWS, HALVES>($part, 1);
                    }
                };
            }
            add!(0);
            if layout.group < GROUP {
                add!(1);
            }
        }
        if layout.offset == Offset::Paired {
            for row in 0..ROWS {
                for half in 0..2 {
                    let column_scales = weights.panel.column_scales().add(HALF_COLUMNS * half);
                    let to = sums.add(PANEL_COLUMNS * row + HALF_COLUMNS * half);
                    let sum = _mm256_mul_ps(_mm256_load_ps(to), _mm256_loadu_ps(column_scales));
                    _mm256_store_ps(to, sum);
                }
            }
        }
    }
}

/// All rows, in blocks.
///
/// # Safety
/// As [`super::Gemm::panels`]; the machine has the level; unless `UNPACKED` is false, the panel was unpacked.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn blocks<const LAYOUT: usize, const UNPACKED: bool>(gemm: PanelGemm, weights: Weights) {
    let groups = gemm.groups();
    let count = gemm.rows.div_ceil(MAX_ROWS);
    let lines = gemm.panel.bytes.div_ceil(64);
    // Spread evenly over the blocks of rows.
    let lines_per_group = lines.div_ceil(count * groups);
    let mut line = gemm.panel.next;
    let mut row = 0;
    while row < gemm.rows {
        let left = gemm.rows - row;
        // SAFETY: `row` is in bounds by contract and begins a tile.
        unsafe {
            let gemm = gemm.skip(row);
            let mut sums = Sums([[[0.0; PANEL_COLUMNS]; TILE_ROWS]; MAX_TILES]);
            macro_rules! run {
                ($rows:literal, $halves:literal) => {{
                    let ahead = (line, lines_per_group);
                    let tiles = gemm.x.tiles;
                    block::<LAYOUT, UNPACKED, $rows, $halves>(
                        weights, tiles, groups, ahead, &mut sums,
                    );
                    $rows
                }};
            }
            // Constants in the conditions, so that blocks which never run are not compiled.
            let rows = match left {
                1 if const { !UNPACKED } => run!(1, 2),
                2 if const { !UNPACKED } => run!(2, 2),
                ..=4 => run!(4, 2),
                5..=8 if const { UNPACKED || QuantLayout::ALL[LAYOUT].bits == 8 } => run!(8, 1),
                _ if const { UNPACKED || QuantLayout::ALL[LAYOUT].bits == 8 } => run!(12, 1),
                _ => unreachable!("more rows of a packed panel"),
            };
            line = line.wrapping_add(64 * lines_per_group * groups);
            let tiles = left.min(rows).div_ceil(TILE_ROWS);
            finish::<Avx2>(&sums.0[..tiles], gemm);
            row += rows.next_multiple_of(TILE_ROWS);
        }
    }
}

/// One panel of a layout.
///
/// # Safety
/// As [`multiply`].
unsafe fn rows_of<const LAYOUT: usize>(gemm: PanelGemm, scratch: &mut ExpandedPanels) {
    let layout = const { QuantLayout::ALL[LAYOUT] };
    let groups = gemm.groups();
    let weights = Weights {
        panel: gemm.panel,
        unpacked: scratch.panel(groups, 0),
    };
    // SAFETY: the caller's promise; room for the panel's groups.
    unsafe {
        if layout.bits == 8 || gemm.rows <= PACKED_ROWS {
            return blocks::<LAYOUT, false>(gemm, weights);
        }
        weights.unpack::<LAYOUT>(groups);
        macro_rules! run {
            ($layout:ident) => {
                blocks::<{ QuantLayout::$layout.index() }, true>(gemm, weights)
            };
        }
        match QuantLayout::ALL[const { unpacked_layout(QuantLayout::ALL[LAYOUT]) }] {
            QuantLayout::Q4_1 => run!(Q4_1),
            QuantLayout::Q6_K => run!(Q6_K),
            QuantLayout::Q5_1 => run!(Q5_1),
            QuantLayout::Q2_K => run!(Q2_K),
            _ => run!(Q8_0),
        }
    }
}

/// See [`super::Gemm::panels`].
///
/// # Safety
/// As there; the machine has level `avxvnni`.
pub(super) unsafe fn multiply(layout: QuantLayout, gemm: PanelGemm, scratch: &mut ExpandedPanels) {
    // SAFETY: the caller's promise.
    unsafe {
        macro_rules! run {
            ($layout:ident) => {
                rows_of::<{ QuantLayout::$layout.index() }>(gemm, scratch)
            };
        }
        by_layout!(layout, run)
    }
}
