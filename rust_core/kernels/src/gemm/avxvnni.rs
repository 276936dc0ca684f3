//! Quantised GEMM with `vpdpbusd` on 256 bits, for level `avxvnni`.
//!
//! A register holds a quad of inputs of half a panel's columns. The sixteen registers hold the dot products of a group for a
//! block of rows, and the floats that these are added to are in memory: reading and writing them once per group costs less than
//! blocks of half the size would. Codes, scales and their arithmetic are level `avx2`'s ([`super::avx2`]), except that codes are
//! whole bytes here: `vpdpbusd` does not saturate.
//!
//! Panels that are multiplied with many rows are unpacked once, as on level `avx512`.

use std::arch::asm;
use std::arch::x86_64::*;

use super::avx2::{GroupScales, HALF_COLUMNS, initial_sum, quad_codes, quads_of};
use super::avx512::{ExpandedPanels, MAX_EXPANDED_LINES};
use super::outliers::finish;
use super::{Panel, PanelGemm, by_layout};
use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::dispatch::vex_vnni;
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use crate::simd::{Avx2, Dpbusd, prefetch_line};

/// Rows of the largest block.
const MAX_ROWS: usize = 12;

/// Tiles of the largest block.
const MAX_TILES: usize = MAX_ROWS / TILE_ROWS;

/// Smallest row count for which panels are unpacked first.
const EXPAND_ROWS: usize = 24;

/// Bytes of an unpacked group.
const EXPANDED_BYTES: usize = 64 * MAX_EXPANDED_LINES;

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

/// A panel's groups, packed or unpacked.
#[derive(Clone, Copy)]
struct Weights {
    panel: Panel,
    /// Unpacked groups: the codes, one byte each, then [`GroupScales`] of both halves. Unused if `EXPANDED` is false.
    expanded: *mut u8,
}

impl Weights {
    /// The codes of quad `quad` of group `group` in half `half` of the columns.
    ///
    /// # Safety
    /// The group exists; AVX2 enabled by the caller.
    #[inline(always)]
    unsafe fn codes<const EXPANDED: bool>(
        self,
        layout: QuantLayout,
        group: usize,
        half: usize,
        quad: usize,
    ) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            if EXPANDED {
                let codes = self.expanded.add(group * EXPANDED_BYTES);
                _mm256_load_si256(codes.add(64 * quad + 32 * half).cast())
            } else {
                quad_codes(layout, self.panel.codes(layout, group), half, quad)
            }
        }
    }

    /// The scales of part `part` of the same.
    ///
    /// # Safety
    /// As [`Self::codes`]; FMA and F16C enabled, too.
    #[inline(always)]
    unsafe fn scales<const EXPANDED: bool>(
        self,
        layout: QuantLayout,
        group: usize,
        half: usize,
        part: usize,
    ) -> GroupScales {
        // SAFETY: the caller's promise.
        unsafe {
            if !EXPANDED {
                return GroupScales::load(layout, self.panel, group, half, part);
            }
            let scale = self.expanded_scales(group, half, 2 * part);
            GroupScales {
                scale: _mm256_load_ps(scale.cast()),
                min: _mm256_load_ps(self.expanded_scales(group, half, 2 * part + 1).cast()),
                pairs: _mm256_load_si256(scale.cast()),
            }
        }
    }

    /// Array `at` of an unpacked group's scales, from half `half` of the columns on: scales or pairs (0) and minima (1) of the first
    /// part, scales (2) and minima (3) of the second.
    ///
    /// # Safety
    /// The group exists.
    #[inline(always)]
    unsafe fn expanded_scales(self, group: usize, half: usize, at: usize) -> *mut u8 {
        let scales = group * EXPANDED_BYTES + PANEL_COLUMNS * GROUP;
        // SAFETY: the caller's promise.
        unsafe { self.expanded.add(scales + 64 * at + 32 * half) }
    }

    /// Unpack all groups.
    ///
    /// # Safety
    /// `groups` groups in the panel and [`EXPANDED_BYTES`] for each at `expanded`; AVX2, FMA and F16C enabled by the caller.
    #[inline(always)]
    unsafe fn expand(self, layout: QuantLayout, groups: usize) {
        for group in 0..groups {
            for half in 0..2 {
                // SAFETY: the caller's promise.
                unsafe {
                    for quad in 0..GROUP / 4 {
                        let codes = self.codes::<false>(layout, group, half, quad);
                        let to = self
                            .expanded
                            .add(group * EXPANDED_BYTES + 64 * quad + 32 * half);
                        _mm256_store_si256(to.cast(), codes);
                    }
                    for part in 0..GROUP / layout.group {
                        let scales = self.scales::<false>(layout, group, half, part);
                        let scale = self.expanded_scales(group, half, 2 * part);
                        match layout.offset {
                            Offset::Paired => _mm256_store_si256(scale.cast(), scales.pairs),
                            Offset::ZeroPoint(_) => _mm256_store_ps(scale.cast(), scales.scale),
                            Offset::Min => {
                                let min = self.expanded_scales(group, half, 2 * part + 1);
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
    /// The group and `ROWS` rows exist; the machine has the form; AVX2, FMA and F16C enabled by the caller.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn add<
        const VEX: bool,
        const LAYOUT: usize,
        const EXPANDED: bool,
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
                let start = initial_sum(layout, part, tile(row), row % TILE_ROWS);
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
                                weights.codes::<EXPANDED>(layout, group, first + half, $quad);
                        }
                        for row in 0..ROWS {
                            let x = tile(row).codes[row % TILE_ROWS].as_ptr().add(4 * $quad);
                            let x = _mm256_set1_epi32(x.cast::<i32>().read_unaligned());
                            for half in 0..HALVES {
                                let dot = &mut dots[row][half];
                                *dot = Dpbusd::<VEX>::dpbusd(*dot, codes[half], x);
                            }
                        }
                    }
                )*};
            }
            accumulate!(0 1 2 3 4 5 6 7);
            for half in 0..HALVES {
                let scales = weights.scales::<EXPANDED>(layout, group, first + half, part);
                for row in 0..ROWS {
                    let (tile, lane) = (tile(row), row % TILE_ROWS);
                    let value = scales.dequantize(layout, dots[row][half], part, tile, lane);
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
/// As [`super::Gemm::panels`], for `ROWS` rows; the machine has the form.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn block<
    const VEX: bool,
    const LAYOUT: usize,
    const EXPANDED: bool,
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
                    product.add::<VEX, LAYOUT, EXPANDED, ROWS, HALVES>($part, 0);
                    if HALVES == 1 {
                        product.add::<VEX, LAYOUT, EXPANDED, ROWS, HALVES>($part, 1);
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
/// As [`super::Gemm::panels`]; the machine has the form; unless `EXPANDED` is false, the panel was unpacked.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn blocks<const VEX: bool, const LAYOUT: usize, const EXPANDED: bool>(
    gemm: PanelGemm,
    weights: Weights,
) {
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
                    block::<VEX, LAYOUT, EXPANDED, $rows, $halves>(
                        weights, tiles, groups, ahead, &mut sums,
                    );
                    $rows
                }};
            }
            let rows = match left {
                1 => run!(1, 2),
                2 => run!(2, 2),
                3 | 4 => run!(4, 2),
                5..=8 => run!(8, 1),
                _ => run!(12, 1),
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
/// As [`multiply`]; the machine has the form.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn rows_of<const VEX: bool, const LAYOUT: usize>(
    gemm: PanelGemm,
    scratch: &mut ExpandedPanels,
) {
    let layout = const { QuantLayout::ALL[LAYOUT] };
    let groups = gemm.groups();
    let weights = Weights {
        panel: gemm.panel,
        expanded: scratch.groups(groups),
    };
    // SAFETY: the caller's promise; room for the panel's groups.
    unsafe {
        if layout.bits == 8 || gemm.rows < EXPAND_ROWS {
            blocks::<VEX, LAYOUT, false>(gemm, weights);
        } else {
            weights.expand(layout, groups);
            blocks::<VEX, LAYOUT, true>(gemm, weights);
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
            ($layout:ident) => {{
                const LAYOUT: usize = QuantLayout::$layout.index();
                if vex_vnni() {
                    rows_of::<true, LAYOUT>(gemm, scratch)
                } else {
                    rows_of::<false, LAYOUT>(gemm, scratch)
                }
            }};
        }
        by_layout!(layout, run)
    }
}
