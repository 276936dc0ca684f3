//! Quantised GEMM with AVX-512 VNNI.
//!
//! One register holds a quad of inputs of all 16 columns, so `vpdpbusd` with four broadcast activation
//! bytes advances all columns by four inputs. Codes are its unsigned operand, so signed activations
//! need no offset. A group's eight code registers are decoded once and reused by every row of the
//! block. The cache lines of the next panels are prefetched evenly over all blocks of rows, because the line fill buffers
//! hold little more than a dozen lines.
//!
//! Per row, a group of 4-bit codes costs eight dot products, one `vpmaddwd` with the scale-offset pairs
//! ([`crate::pack::pairs`]), a conversion, and a multiply-add with the activation scale. The multiply-add is replaced by an
//! exponent addition and a float addition where scales are powers of two and additions have separate pipes. Above
//! [`single_panel_rows`], two panels are processed together: each broadcast activation is used twice, so two loads per
//! cycle keep up with two dot products.

mod weights;

use std::arch::x86_64::*;
use std::ptr;

use self::weights::{
    Blocked, Bytes, EXPANDED_ZERO_POINT, Expanded, Floats, Format, Iq4Nl, Iq4Xs, Mxfp4, Nibbles,
    Paired, Q4_0, Q5_0, Q5_1, Weights, expand, opaque,
};
pub(super) use self::weights::{ExpandedPanels, MAX_EXPANDED_LINES};
use super::PanelGemm;
use super::outliers::finish_tile;
use crate::activation_quant::{ScaleMode, TILE_ROWS};
use crate::pack::layout::{GROUP, Offset, QuantLayout};
use crate::simd::{Avx512, prefetch_for_writing, prefetch_line, prefetch_line_l2};

/// Dot products of four inputs in a group.
const QUADS: usize = GROUP / 4;

/// Rows of the largest block of a single panel whose codes are bytes: registers hold its dot products and its sums.
const BYTES_ROWS: usize = 8;

/// Rows of the largest block of a single panel whose codes are unpacked. Registers hold its dot products alone; the sums, which
/// are read and written once for a group, are in memory. Two blocks of half as many rows would unpack every group twice:
/// K-quants took 8 % longer with 16 rows and 11 % with 12.
const UNPACKED_ROWS: usize = 16;

/// Largest row count for which panels of the layout are processed one at a time, and unpacked for each block of rows: in one
/// block, or in two of eight rows where the layout has minima ([`Format::UNPACKED_ROWS`]).
///
/// Two panels at a time have blocks of six rows, for which they are expanded to bytes first; this pays with more rows only.
pub(super) const fn single_panel_rows(layout: QuantLayout) -> usize {
    if layout.bits == 8 {
        BYTES_ROWS
    } else {
        UNPACKED_ROWS
    }
}

/// Rows of the largest block when two panels are processed together.
const DUAL_PANEL_ROWS: usize = 6;

/// Four activation bytes, in every lane.
///
/// # Safety
/// Four bytes at `codes + 4 * quad`; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn quad(codes: *const i8, quad: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_set1_epi32(codes.add(4 * quad).cast::<i32>().read_unaligned()) }
}

/// How far ahead of the prefetched lines one more line is requested, so that the address of its page is translated in time: four
/// pages. In a virtual machine a huge page can consist of small ones, each with a translation of its own, and all lines of a
/// page wait for it.
const PAGE_DISTANCE: usize = 4 * 4096;

/// From this number of bytes on, a single panel is prefetched into the second-level cache. Two shorter ones fit the first-level
/// cache, and one row of the demo model took 3 % longer when its short panels were prefetched into the second.
const STREAMED_BYTES: usize = 12 << 10;

/// [`Format::tile_sums`] of a group, for three tiles and two parts. A few operations on 128-bit registers compute those of four rows,
/// and loads that fill a register with one of them cost nothing.
#[derive(Default)]
#[repr(align(64))]
struct ComputedSums([[[i32; TILE_ROWS]; 2]; 4]);

/// Cache lines to prefetch while a block of rows is computed: from `line` to `end`.
#[derive(Clone, Copy)]
struct Prefetch {
    line: *const u8,
    end: *const u8,
    /// Lines issued per group.
    lines_per_group: usize,
}

impl Prefetch {
    /// Prefetch one group's share.
    #[inline(always)]
    fn issue(&mut self) {
        for _ in 0..self.lines_per_group {
            if self.line >= self.end {
                return;
            }
            prefetch_line(self.line);
            self.line = self.line.wrapping_add(64);
        }
    }

    /// Prefetch one group's share, `bytes_per_group`, where little is computed meanwhile: into the second-level cache, which waits
    /// for several times as many lines as the first, evenly up to the last group, and with pages translated ahead.
    #[inline(always)]
    fn stream(&mut self, bytes_per_group: usize) {
        prefetch_line_l2(self.line.wrapping_add(PAGE_DISTANCE));
        for at in 0..self.lines_per_group {
            prefetch_line_l2(self.line.wrapping_add(64 * at));
        }
        self.line = self.line.wrapping_add(bytes_per_group);
    }
}

/// Multiply rows `FIRST..FIRST + ROWS`, or as many of them as exist, with one or two whole panels.
///
/// # Safety
/// `weights` are those of the panels; all `gemms` have the same rows; otherwise as [`super::Gemm::panels`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn block<W: Weights, const PANELS: usize, const FIRST: usize, const ROWS: usize>(
    mut weights: [W; PANELS],
    mut prefetch: Prefetch,
    gemms: &[PanelGemm; PANELS],
) {
    let (groups, tiles) = (gemms[0].groups(), gemms[0].x.tiles);
    for gemm in gemms {
        if gemm.output.accumulate {
            for row in FIRST..gemm.rows.min(FIRST + ROWS) {
                // SAFETY: one of the output's rows.
                prefetch_for_writing(unsafe { gemm.output.skip(row) }.out.cast());
            }
        }
    }
    // Not in `Prefetch`, which blocks of two panels copy. `opaque` as for its `lines_per_group`.
    let bytes = prefetch.end.addr().wrapping_sub(prefetch.line.addr());
    let bytes_per_group = opaque((bytes / groups.max(1)) as *const u8) as usize;
    let mut sums = [[_mm512_setzero_ps(); ROWS]; PANELS];
    let parts = if W::Format::SPLIT { 2 } else { 1 };
    let mut computed = ComputedSums::default();
    // `opaque`, so that the sums are in fact stored: the compiler would move each from a register with a shuffle, and shuffles
    // share a port with dot products.
    let stored_sums = &raw mut computed.0;
    let computed_sums = opaque(stored_sums.cast_const());
    // SAFETY: weights and tile groups of `groups` groups are in bounds by contract.
    unsafe {
        let mut here: [_; 4] = std::array::from_fn(|at| {
            // May be beyond the last tile for a block of few rows; then it is never read.
            tiles.wrapping_add(at * groups)
        });
        for _ in 0..groups {
            if PANELS == 1 && bytes >= STREAMED_BYTES {
                prefetch.stream(bytes_per_group);
            } else {
                prefetch.issue();
            }
            let tile = |row: usize| &*here[(FIRST + row) / TILE_ROWS];
            let lane = |row: usize| (FIRST + row) % TILE_ROWS;
            if W::Format::COMPUTED_SUMS {
                for at in FIRST / TILE_ROWS..(FIRST + ROWS).div_ceil(TILE_ROWS) {
                    for part in 0..parts {
                        let sums = W::Format::tile_sums(&*here[at], part);
                        _mm_store_si128((&raw mut (*stored_sums)[at][part]).cast(), sums);
                    }
                }
            }
            macro_rules! row_sum {
                ($row:expr, $part:literal) => {{
                    let row = FIRST + $row;
                    _mm512_set1_epi32(if W::Format::COMPUTED_SUMS {
                        (*computed_sums)[row / TILE_ROWS][$part][row % TILE_ROWS]
                    } else {
                        (*here[row / TILE_ROWS]).initial_sums[row % TILE_ROWS]
                    })
                }};
            }
            // Parts one after the other: the dot products of both halves and the sums would not fit the registers. The compiler
            // overlaps them a little and spills a few sums, which is faster than keeping them apart. A macro, because an
            // unrolled loop makes every `quad` a constant.
            macro_rules! accumulate {
                ($part:literal of $parts:literal) => {{
                    let mut dots = [[_mm512_setzero_si512(); ROWS]; PANELS];
                    for row in 0..ROWS {
                        let start = W::Format::initial_sum(row_sum!(row, $part));
                        for panel in 0..PANELS {
                            dots[panel][row] = start;
                        }
                    }
                    for q in $part * QUADS / $parts..($part + 1) * QUADS / $parts {
                        let mut codes = [_mm512_setzero_si512(); PANELS];
                        for panel in 0..PANELS {
                            codes[panel] = weights[panel].codes(q);
                        }
                        for row in 0..ROWS {
                            let x = quad(tile(row).codes[lane(row)].as_ptr(), q);
                            for panel in 0..PANELS {
                                let dot = &mut dots[panel][row];
                                *dot = _mm512_dpbusd_epi32(*dot, codes[panel], x);
                            }
                        }
                    }
                    for panel in 0..PANELS {
                        let scales = weights[panel].scales($part);
                        for row in 0..ROWS {
                            let (tile, lane) = (tile(row), lane(row));
                            let dots = dots[panel][row];
                            let value = W::Format::value(dots, scales, row_sum!(row, $part));
                            let sum = &mut sums[panel][row];
                            *sum = W::Format::add(*sum, value, tile, lane);
                        }
                    }
                }};
            }
            if W::Format::SPLIT {
                accumulate!(0 of 2);
                accumulate!(1 of 2);
            } else {
                accumulate!(0 of 1);
            }
            for panel in 0..PANELS {
                weights[panel] = weights[panel].next();
            }
            for tile in &mut here {
                *tile = opaque(tile.wrapping_add(1));
            }
        }
        // Epilogue of tile `at` for both panels. Unrolled by hand: a dynamically indexed array of sums would be kept in memory.
        macro_rules! finish {
            ($($at:literal)*) => {$(
                let sum = |panel: usize, lane: usize| {
                    let row = ($at * TILE_ROWS + lane).wrapping_sub(FIRST);
                    Avx512(if row >= ROWS {
                        _mm512_setzero_ps()
                    } else if W::Format::COLUMN_SCALED {
                        let column_scales = _mm512_loadu_ps(gemms[panel].panel.column_scales());
                        _mm512_mul_ps(sums[panel][row], column_scales)
                    } else {
                        sums[panel][row]
                    })
                };
                let from = FIRST.max($at * TILE_ROWS);
                let to = (FIRST + ROWS).min(($at + 1) * TILE_ROWS);
                if from < to {
                    match (from % TILE_ROWS, to - from) {
                        (0, 2) => finish_tile(each!(sum, 0 1), $at, 0, gemms),
                        (2, 2) => finish_tile(each!(sum, 2 3), $at, 2, gemms),
                        _ => finish_tile(each!(sum, 0 1 2 3), $at, 0, gemms),
                    }
                }
            )*};
        }
        macro_rules! each {
            ($sum:ident, $($lane:literal)*) => {{
                let mut all = [[$($sum(0, $lane)),*]; PANELS];
                if PANELS == 2 {
                    all[PANELS - 1] = [$($sum(PANELS - 1, $lane)),*];
                }
                all
            }};
        }
        finish!(0 1 2 3);
    }
}

/// All rows, in blocks of as many as [`Weights::SINGLE_PANEL_ROWS`] with one panel, and [`DUAL_PANEL_ROWS`] with two.
///
/// # Safety
/// As [`super::Gemm::panels`]; `weights` are those of the panels; all `gemms` have the same rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn blocks<W: Weights, const PANELS: usize>(
    weights: [W; PANELS],
    mut gemms: [PanelGemm; PANELS],
) {
    let groups = gemms[0].groups();
    let bytes = PANELS * gemms[0].panel.bytes;
    let mut line = gemms[0].panel.next;
    let last = line.wrapping_add(bytes);
    let mut left = gemms[0].rows;
    let max_rows = if PANELS == 1 {
        W::SINGLE_PANEL_ROWS
    } else {
        2 * DUAL_PANEL_ROWS
    };
    let share = bytes.div_ceil(left.div_ceil(max_rows)).next_multiple_of(64);
    // `opaque` keeps the compiler from repeating the division in every iteration over groups.
    let lines_per_group = opaque((share / 64).div_ceil(groups.max(1)) as *const u8) as usize;
    loop {
        let block_rows = max_rows.min(left.next_multiple_of(TILE_ROWS));
        let end = line.wrapping_add(share).min(last);
        let prefetch = Prefetch {
            line,
            end,
            lines_per_group,
        };
        let no_prefetch = Prefetch {
            line: end,
            ..prefetch
        };
        line = end;
        // SAFETY: these rows are in bounds by contract and begin a tile.
        unsafe {
            // Constants in the conditions, so that blocks which never run are not compiled.
            if const { PANELS == 1 } {
                match (block_rows, left) {
                    (16, _) if const { W::SINGLE_PANEL_ROWS >= 16 } => {
                        block::<W, PANELS, 0, 16>(weights, prefetch, &gemms);
                    }
                    (12, _) if const { W::SINGLE_PANEL_ROWS >= 12 } => {
                        block::<W, PANELS, 0, 12>(weights, prefetch, &gemms);
                    }
                    (8, _) => block::<W, PANELS, 0, 8>(weights, prefetch, &gemms),
                    (_, 1) if const { W::FEW_ROWS } => {
                        block::<W, PANELS, 0, 1>(weights, prefetch, &gemms);
                    }
                    (_, 2) if const { W::FEW_ROWS } => {
                        block::<W, PANELS, 0, 2>(weights, prefetch, &gemms);
                    }
                    _ => block::<W, PANELS, 0, TILE_ROWS>(weights, prefetch, &gemms),
                }
            } else if block_rows == 2 * DUAL_PANEL_ROWS {
                block::<W, PANELS, 0, DUAL_PANEL_ROWS>(weights, prefetch, &gemms);
                block::<W, PANELS, DUAL_PANEL_ROWS, DUAL_PANEL_ROWS>(weights, no_prefetch, &gemms);
            } else {
                block::<W, PANELS, 0, TILE_ROWS>(weights, prefetch, &gemms);
                if block_rows > TILE_ROWS {
                    let rest = gemms.map(|gemm| gemm.skip(TILE_ROWS));
                    block::<W, PANELS, 0, TILE_ROWS>(weights, no_prefetch, &rest);
                }
            }
            if block_rows >= left {
                return;
            }
            left -= block_rows;
            for gemm in &mut gemms {
                gemm.advance(block_rows);
            }
        }
    }
}

/// Call macro `$run` with the weights of the layout: a cursor over a packed panel.
macro_rules! by_weights {
    ($layout:expr, $run:ident) => {
        match $layout {
            QuantLayout::Q4_0 => $run!(Q4_0),
            QuantLayout::Q4_1 => $run!(Nibbles),
            QuantLayout::Q5_0 => $run!(Q5_0),
            QuantLayout::Q5_1 => $run!(Q5_1),
            QuantLayout::Q8_0 => $run!(Bytes),
            QuantLayout::Q4_K => $run!(Blocked::<4>),
            QuantLayout::Q5_K => $run!(Blocked::<5>),
            QuantLayout::Q6_K => $run!(Blocked::<6>),
            QuantLayout::IQ4_NL => $run!(Iq4Nl),
            QuantLayout::IQ4_XS => $run!(Iq4Xs),
            QuantLayout::MXFP4 => $run!(Mxfp4),
            QuantLayout::Q2_K => $run!(Blocked::<2>),
            QuantLayout::Q3_K => $run!(Blocked::<3>),
            other => unreachable!("no format has panels of {other:?}"),
        }
    };
}

/// Multiply with one panel, which is unpacked for every block of rows.
///
/// # Safety
/// As [`multiply`].
unsafe fn packed(layout: QuantLayout, gemm: PanelGemm) {
    macro_rules! run {
        ($weights:ty) => {
            // SAFETY: the caller's promise.
            unsafe { blocks([<$weights>::new(gemm.panel)], [gemm]) }
        };
    }
    by_weights!(layout, run);
}

/// Multiply with one or two panels, whose codes are bytes: expanded ones, but in layouts of bytes.
///
/// # Safety
/// As [`multiply`].
unsafe fn expanded<const PANELS: usize>(
    layout: QuantLayout,
    gemms: [PanelGemm; PANELS],
    scale_mode: ScaleMode,
    scratch: &mut ExpandedPanels,
) {
    if layout.bits == 8 {
        // SAFETY: the caller's promise.
        return unsafe { blocks(gemms.map(|gemm| Bytes::new(gemm.panel)), gemms) };
    }
    let groups = gemms[0].groups();
    let mut panels = [ptr::null(); PANELS];
    for (at, gemm) in gemms.iter().enumerate() {
        let to = scratch.panel(groups, at);
        macro_rules! run {
            ($weights:ty) => {
                // SAFETY: the caller's promise; room for the panel's groups.
                unsafe { expand(<$weights>::new(gemm.panel), groups, to) }
            };
        }
        by_weights!(layout, run);
        panels[at] = to.cast_const();
    }
    macro_rules! multiply {
        ($format:ty) => {{
            let weights = panels.map(Expanded::<$format>::new);
            // SAFETY: the caller's promise; the panels were expanded.
            unsafe { blocks(weights, gemms) }
        }};
    }
    match (layout.offset, layout.group == GROUP) {
        (Offset::Paired, _) => {
            if scratch.separate_add_pipes && scale_mode == ScaleMode::PowerOfTwo {
                multiply!(Paired<true>)
            } else {
                multiply!(Paired<false>)
            }
        }
        (Offset::ZeroPoint(_), true) => multiply!(Floats<false, EXPANDED_ZERO_POINT>),
        (Offset::ZeroPoint(_), false) => multiply!(Floats<true, EXPANDED_ZERO_POINT>),
        (Offset::Min, true) => multiply!(Floats<false, 0>),
        (Offset::Min, false) => multiply!(Floats<true, 0>),
    }
}

/// Multiply with one or two panels of the same matrix.
///
/// # Safety
/// As [`super::Gemm::panels`]; the machine has AVX-512 with VNNI; all `gemms` have the same rows.
pub(super) unsafe fn multiply<const PANELS: usize>(
    layout: QuantLayout,
    gemms: [PanelGemm; PANELS],
    scale_mode: ScaleMode,
    scratch: &mut ExpandedPanels,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if PANELS == 1 && gemms[0].rows <= UNPACKED_ROWS {
            packed(layout, gemms[0]);
        } else {
            expanded(layout, gemms, scale_mode, scratch);
        }
    }
}
