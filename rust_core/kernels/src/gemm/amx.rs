//! Quantised GEMM with AMX tiles, for more than a few rows.
//!
//! One tile multiplication computes the dot products of 16 rows with 16 columns over one group of inputs: exact integers,
//! which are stored, read back and scaled with the same operations as in the AVX-512 kernel, so the two agree bit for bit.
//! The next group's tile multiplication runs concurrently. The sums of 16 rows stay in registers from the first group to the
//! last. Two panels or 32 rows would not fit, and sums in memory would cost more than reusing a loaded operand saves.
//!
//! Codes of 4 bits are expanded to bytes once per panel. Layouts that take more than that to unpack, or have a scale for half a
//! group, are left to the AVX-512 kernel ([`has_kernel`]).

use std::mem::MaybeUninit;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx512::{ExpandedPanels, MAX_EXPANDED_LINES};
use super::outliers::finish;
use super::{Panel, PanelGemm};
use crate::activation_quant::{ScaleMode, TILE_ROWS, TileGroup};
use crate::amx::row_tiles::{ROWS as ROW_TILE_ROWS, RowTile};
use crate::amx::tiles::{CodeTile, Dots, Tiles};
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout, Scales};
use crate::simd::{Lanes, prefetch_line};

/// A block's sums, one cache line per row.
#[repr(align(64))]
struct Sums([[[f32; PANEL_COLUMNS]; TILE_ROWS]; MAX_TILES]);

/// Largest number of rows, alone or left over after full row tiles, for which the AVX-512 kernel is faster.
const MAX_AVX512_ROWS: usize = 4;

/// Four-row tiles in a row tile.
const MAX_TILES: usize = ROW_TILE_ROWS / TILE_ROWS;

/// Whether panels of the layout are multiplied with tiles.
///
/// Not those of K-quants and other formats that are slow to unpack. On a Xeon with AMX, two threads, a 1B shape, tiles took 4.3 ms
/// for the gate and up projections of 16 rows in Q4_K and AVX-512 2.9 ms, as long as each other with 64 and 512 rows; for the LM
/// head of 16 and 64 rows in Q6_K 30 and 93 ms, and AVX-512 15 and 53 ms.
pub(super) const fn has_kernel(layout: QuantLayout) -> bool {
    let one_group = matches!(layout.scales, Scales::Pairs | Scales::Integers);
    layout.bits == 8 || layout.bits == 4 && one_group
}

/// How many of `rows` rows, counted from the first, are computed with AMX. The rest goes to the AVX-512 kernel.
pub(super) fn tiled_rows(rows: usize) -> usize {
    let rest = rows % ROW_TILE_ROWS;
    if rest <= MAX_AVX512_ROWS {
        rows - rest
    } else {
        rows
    }
}

/// A panel's codes as tiles and its scales: address of the first group's, and stride between groups.
#[derive(Clone, Copy)]
struct Weights {
    codes: *const u8,
    scales: *const u8,
    stride: usize,
}

/// Bytes of an expanded group.
pub(super) const EXPANDED_BYTES: usize = size_of::<ExpandedGroup>();

/// A group's codes, one byte each, and its scale-offset pairs.
#[repr(C, align(64))]
struct ExpandedGroup {
    codes: CodeTile,
    pairs: [i32; PANEL_COLUMNS],
}

/// Expand the codes of a panel to bytes.
///
/// # Safety
/// A whole panel of the layout, which has 4 bits; `expanded` has room for as many groups.
#[inline(always)]
unsafe fn expand(layout: QuantLayout, panel: Panel, expanded: *mut u8) -> Weights {
    let expanded: *mut ExpandedGroup = expanded.cast();
    for group in 0..panel.inputs / GROUP {
        // SAFETY: a group of the panel and its place in `expanded`, by contract.
        unsafe {
            let registers = &*panel.codes(layout, group).cast::<[[u8; 64]; 4]>();
            let to = &mut *expanded.add(group);
            for (quad, codes) in to.codes.iter_mut().enumerate() {
                *codes = registers[quad % 4].map(|byte| byte >> (quad / 4 * 4) & 15);
            }
            let scales = panel.scales(layout, group);
            to.pairs = if layout.scales == Scales::Pairs {
                scales.cast::<[i32; PANEL_COLUMNS]>().read_unaligned()
            } else {
                let scales = scales.cast::<[u16; PANEL_COLUMNS]>().read_unaligned();
                scales.map(i32::from) // offset 0
            };
        }
    }
    let first = expanded.cast_const().cast::<u8>();
    Weights {
        codes: first,
        scales: first.wrapping_add(std::mem::offset_of!(ExpandedGroup, pairs)),
        stride: EXPANDED_BYTES,
    }
}

/// Dot products with the codes of a group and the scales that dequantise them.
#[derive(Clone, Copy)]
struct GroupDots<L> {
    /// f16 scales, or scale-offset pairs.
    scales: *const u8,
    /// The f16 scales.
    scale: L,
    dots: *const Dots,
}

impl<L: Lanes> GroupDots<L> {
    /// # Safety
    /// A group's scales are at `scales`; the level's instructions are enabled.
    #[inline(always)]
    unsafe fn new(layout: QuantLayout, scales: *const u8, dots: *const Dots) -> Self {
        // SAFETY: the caller's promise.
        let scale = unsafe {
            if layout.bits == 8 {
                L::load_f16(scales.cast())
            } else {
                L::splat(0.0)
            }
        };
        Self {
            scales,
            scale,
            dots,
        }
    }

    /// Dequantise the dot products of four-row tile `at` of the row tile and accumulate them in `sums`.
    ///
    /// # Safety
    /// The level's instructions are enabled; `dots` has been stored.
    #[inline(always)]
    unsafe fn add(
        self,
        layout: QuantLayout,
        at: usize,
        tile: &TileGroup,
        sums: &mut [L; TILE_ROWS],
    ) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: row `4 · at + lane` of sixteen; the rest is the caller's promise.
            unsafe {
                let row = at * TILE_ROWS + lane;
                let dots = self.dots.cast::<i32>().add(row * PANEL_COLUMNS);
                let value = match layout.offset {
                    Offset::ZeroPoint(zero) => {
                        L::load_i32_plus(dots, -zero * tile.sum(lane)).mul(self.scale)
                    }
                    _ => {
                        L::load_dequantized_dots(dots, tile.initial_sums[lane], self.scales.cast())
                    }
                };
                *sum = value.mul_add(L::splat(tile.scales[lane]), *sum);
            }
        }
    }
}

/// Compute the dot products of group `group`.
///
/// # Safety
/// The group's row tile and codes are readable; the tiles are configured.
#[inline(always)]
unsafe fn dot_products<T: Tiles>(
    row_tiles: *const RowTile,
    weights: Weights,
    group: usize,
    dots: &mut MaybeUninit<Dots>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let rows = row_tiles.add(group);
        let weights = weights.codes.add(group * weights.stride).cast::<CodeTile>();
        if group % 2 == 1 {
            T::group::<true>(rows, weights, dots.as_mut_ptr());
        } else {
            T::group::<false>(rows, weights, dots.as_mut_ptr());
        }
    }
}

/// Multiply the first `4 · TILES` rows, or the first `rows` of them if that is fewer, with the whole panel.
///
/// # Safety
/// As [`super::Gemm::panels`], for `rows` rows; `weights` are those of the panel; the tiles are configured.
#[inline(always)]
unsafe fn block<L: Lanes, T: Tiles, const TILES: usize>(
    layout: QuantLayout,
    weights: Weights,
    prefetch: Range<*const u8>,
    rows: usize,
    gemm: PanelGemm,
) {
    let (panel, groups) = (gemm.panel, gemm.groups());
    let lines = (prefetch.end as usize - prefetch.start as usize).div_ceil(64);
    let (mut line, lines_per_group) = (prefetch.start, lines.div_ceil(groups));
    // One being computed, one being read.
    let mut dots = [const { MaybeUninit::<Dots>::uninit() }; 2];
    // SAFETY: the first row begins a row tile and a four-row tile by contract; tiles,
    // codes and scales of `groups` groups are inside the panel and the activations.
    unsafe {
        let row_tiles: *const RowTile = gemm.x.row_tiles;
        let tiles: *const TileGroup = gemm.x.tiles;
        dot_products::<T>(row_tiles, weights, 0, &mut dots[0]);
        let mut sums = [[L::splat(0.0); TILE_ROWS]; MAX_TILES];
        for group in 0..groups {
            for _ in 0..lines_per_group {
                prefetch_line(line);
                line = line.wrapping_add(64);
            }
            if group + 1 < groups {
                dot_products::<T>(row_tiles, weights, group + 1, &mut dots[(group + 1) % 2]);
            }
            let scales = weights.scales.add(group * weights.stride);
            let dots = GroupDots::<L>::new(layout, scales, dots[group % 2].as_ptr());
            // Unrolled by hand: the compiler does not unroll a loop this long, and then keeps the array of sums in memory.
            macro_rules! add {
                ($($at:literal)*) => {$(
                    if $at < TILES {
                        let tile = &*tiles.add($at * groups + group);
                        dots.add(layout, $at, tile, &mut sums[$at]);
                    }
                )*};
            }
            add!(0 1 2 3);
        }
        let mut stored = Sums([[[0.0; PANEL_COLUMNS]; TILE_ROWS]; MAX_TILES]);
        for (sum, stored) in sums.as_flattened().iter().zip(stored.0.as_flattened_mut()) {
            if layout.offset == Offset::Paired {
                sum.mul(L::load(panel.column_scales()))
                    .store(stored.as_mut_ptr());
            } else {
                sum.store(stored.as_mut_ptr());
            }
        }
        let tiles = &stored.0[..rows.div_ceil(TILE_ROWS)];
        finish::<L>(tiles, PanelGemm { rows, ..gemm });
    }
}

/// The first [`tiled_rows`] rows.
///
/// # Safety
/// As [`super::Gemm::panels`]; `expanded` has room for the panel's groups; the tiles are configured.
#[inline(always)]
unsafe fn rows_of<L: Lanes, T: Tiles>(layout: QuantLayout, gemm: PanelGemm, expanded: *mut u8) {
    let (panel, groups) = (gemm.panel, gemm.groups());
    let tiled = tiled_rows(gemm.rows);
    if tiled == 0 {
        return;
    }
    let weights = if layout.bits == 8 {
        Weights {
            codes: panel.codes(layout, 0),
            scales: panel.scales(layout, 0),
            stride: layout.block_bytes(),
        }
    } else {
        // SAFETY: a whole panel, and room, by contract.
        unsafe { expand(layout, panel, expanded) }
    };
    let share = layout
        .panel_bytes(groups)
        .div_ceil(tiled.div_ceil(ROW_TILE_ROWS))
        .next_multiple_of(64);
    let mut ahead = panel.next;
    for row in (0..tiled).step_by(ROW_TILE_ROWS) {
        let fetched = ahead..ahead.wrapping_add(share);
        ahead = fetched.end;
        let left = (tiled - row).min(ROW_TILE_ROWS);
        // SAFETY: `row` is in bounds by contract and begins a row tile.
        unsafe {
            let gemm = gemm.skip(row);
            macro_rules! run {
                ($size:literal) => {
                    block::<L, T, $size>(layout, weights, fetched, left, gemm)
                };
            }
            match left.div_ceil(TILE_ROWS) {
                4.. => run!(4),
                3 => run!(3),
                _ => run!(2),
            }
        }
    }
}

/// The first [`tiled_rows`] rows, for a layout that [`has_kernel`].
///
/// # Safety
/// As [`rows_of`].
#[inline(always)]
pub(super) unsafe fn dispatch<L: Lanes, T: Tiles>(
    layout: QuantLayout,
    gemm: PanelGemm,
    expanded: *mut u8,
) {
    // Layouts as constants, so that every branch on them is resolved at compile time.
    // SAFETY: the caller's promise.
    unsafe {
        match layout {
            QuantLayout::Q4_0 => rows_of::<L, T>(QuantLayout::Q4_0, gemm, expanded),
            QuantLayout::Q4_1 => rows_of::<L, T>(QuantLayout::Q4_1, gemm, expanded),
            QuantLayout::Q8_0 => rows_of::<L, T>(QuantLayout::Q8_0, gemm, expanded),
            other => unreachable!("{other:?} is multiplied without tiles"),
        }
    }
}

/// See [`super::Gemm::panels`].
///
/// # Safety
/// As there; the layout [`has_kernel`], this process may use the tiles, and the activations have row tiles.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn multiply(layout: QuantLayout, gemm: PanelGemm, scratch: &mut ExpandedPanels) {
    let tiled = tiled_rows(gemm.rows);
    if tiled > 0 {
        assert!(!gemm.x.row_tiles.is_null(), "activations without row tiles");
        const { assert!(EXPANDED_BYTES <= 64 * MAX_EXPANDED_LINES) };
        let expanded = scratch.panel(gemm.groups(), 0);
        #[cfg(test)]
        let tiles_here = crate::amx::support::support().is_ok();
        #[cfg(not(test))]
        let tiles_here = true;
        // SAFETY: the caller's promise; the scratch has room for the panel and is borrowed exclusively.
        unsafe {
            if tiles_here {
                type Tiles = crate::amx::tiles::Hardware;
                crate::amx::thread_tiles::configure();
                with_instructions::<Tiles>(layout, gemm, expanded);
            } else {
                #[cfg(test)]
                with_instructions::<crate::amx::emulated::Emulated>(layout, gemm, expanded);
            }
        }
    }
    if tiled < gemm.rows {
        // SAFETY: row `tiled` begins a four-row tile.
        let mut rest = unsafe { gemm.skip(tiled) };
        if tiled > 0 {
            rest.panel.next = rest.panel.data; // fetched already
        }
        // The scale mode is irrelevant for so few rows: it only matters for expanded panels.
        // SAFETY: the caller's promise.
        unsafe { super::avx512::multiply(layout, [rest], ScaleMode::MaxAbs, scratch) };
    }
}

/// [`dispatch`] with AVX-512 enabled.
///
/// # Safety
/// As [`dispatch`]; the machine has the level.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn with_instructions<T: Tiles>(layout: QuantLayout, gemm: PanelGemm, expanded: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        dispatch::<crate::simd::Avx512, T>(layout, gemm, expanded);
    }
}
