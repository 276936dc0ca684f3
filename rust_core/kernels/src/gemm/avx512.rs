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

use std::arch::asm;
use std::arch::x86_64::*;
use std::ops::Range;

use super::float::write;
use super::{Output, Panel};
use crate::activation_quant::{QuantRows, TILE_ROWS, TileGroup};
use crate::pack::layout::{GROUP, Offset, QuantLayout};
use crate::simd::{Avx512, prefetch_line};

/// 1.5 · 2^23. Its bits plus an integer `n` of magnitude below 2^22 are the bits of the float `MAGIC + n`.
/// A dot product that starts there instead of at zero is a float at once, and
/// `(MAGIC + n) · s - MAGIC · s`, one fused operation, is `n · s` rounded once, because `MAGIC · s` is exact for
/// the eleven bits of an f16 scale.
const MAGIC: f32 = 12_582_912.0;

/// A layout as types, so that every branch on it is decided at compile time.
struct Shape<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool>;

impl<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool>
    Shape<BITS, SPLIT, HALF, MIN>
{
    const LAYOUT: QuantLayout = QuantLayout {
        bits: BITS,
        group: if SPLIT { 16 } else { 32 },
        half_scales: HALF,
        offset: if MIN { Offset::Min } else { Offset::Zero(0) },
    };
}

/// Load 16 scales or minima.
///
/// # Safety
/// 16 values at `from`; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn load_scales<const HALF: bool>(from: *const u8) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe {
        if HALF {
            _mm512_cvtph_ps(_mm256_loadu_si256(from.cast()))
        } else {
            _mm512_loadu_ps(from.cast())
        }
    }
}

/// Four activation bytes, in every lane.
///
/// # Safety
/// Four bytes at `codes + 4 * quad`; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn quad(codes: *const i8, quad: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_set1_epi32(codes.add(4 * quad).cast::<i32>().read_unaligned()) }
}

/// Codes of quads `i` and `i + 4` of a record.
///
/// # Safety
/// A whole record; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn codes<const BITS: u32>(record: *const u8, i: usize) -> (__m512i, __m512i) {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = _mm512_loadu_si512(record.add(64 * i).cast());
        if BITS == 8 {
            return (bytes, _mm512_loadu_si512(record.add(64 * (i + 4)).cast()));
        }
        let nibble = _mm512_set1_epi8(15);
        let high = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble);
        (_mm512_and_si512(bytes, nibble), high)
    }
}

/// The same pointer, of which the compiler knows nothing, so that it keeps it in a register of its own.
///
/// Otherwise it addresses all tiles by one base and an index. An instruction with an indexed memory operand
/// is two in the pipeline of Intel's cores, and this loop has a hundred of them.
#[inline(always)]
#[allow(
    clippy::pointers_in_nomem_asm_block,
    reason = "nothing is read through it"
)]
fn opaque<T>(mut pointer: *const T) -> *const T {
    // SAFETY: no instruction: the pointer passes through unchanged.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(nomem, nostack, preserves_flags, pure));
    }
    pointer
}

/// Scales of a group of weights, as a dot product is turned into a float with them.
#[derive(Clone, Copy)]
struct Scales<const HALF: bool> {
    scale: __m512,
    /// `-MAGIC * scale`.
    back: __m512,
}

impl<const HALF: bool> Scales<HALF> {
    /// # Safety
    /// 16 scales at `from`; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = load_scales::<HALF>(from);
            let back = _mm512_mul_ps(scale, _mm512_set1_ps(-MAGIC));
            Self { scale, back }
        }
    }

    /// Where dot products start.
    ///
    /// # Safety
    /// AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn start() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            _mm512_set1_epi32(if HALF {
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
    unsafe fn apply(self, dot: __m512i) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            if HALF {
                _mm512_fmadd_ps(_mm512_castsi512_ps(dot), self.scale, self.back)
            } else {
                _mm512_mul_ps(_mm512_cvtepi32_ps(dot), self.scale)
            }
        }
    }
}

/// `ROWS` rows, from a tile's first on, against the whole panel; the first `rows` of them are stored.
///
/// # Safety
/// As [`super::multiply_panel`], for `rows` rows, and whole tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn block<
    const BITS: u32,
    const SPLIT: bool,
    const HALF: bool,
    const MIN: bool,
    const ROWS: usize,
>(
    panel: Panel,
    ahead: Range<*const u8>,
    zero: f32,
    tiles: *const TileGroup,
    rows: usize,
    output: Output,
) {
    let layout = Shape::<BITS, SPLIT, HALF, MIN>::LAYOUT;
    let record_bytes = layout.record_bytes();
    let groups = panel.inputs / GROUP;
    let mut sums = [_mm512_setzero_ps(); ROWS];
    let lines = (ahead.end as usize - ahead.start as usize).div_ceil(64);
    let (mut line, lines_each) = (ahead.start, lines.div_ceil(groups));
    let mut here = [tiles; 3];
    // SAFETY: records and tile groups of `groups` groups are inside what the caller vouches for.
    unsafe {
        for group in 0..groups {
            let record = panel.data.add(group * record_bytes);
            for _ in 0..lines_each {
                prefetch_line(line);
                line = line.wrapping_add(64);
            }
            for (at, tile) in here.iter_mut().enumerate().take(ROWS.div_ceil(TILE_ROWS)) {
                *tile = opaque(tiles.add(at * groups + group));
            }
            let tile = |row: usize| &*here[row / TILE_ROWS];
            // Exact sums of the group's two halves of inputs, or of all of it.
            let mut dots = [Scales::<HALF>::start(); ROWS];
            let mut high_dots = dots;
            for i in 0..4 {
                let (low, high) = codes::<BITS>(record, i);
                for (row, dot) in dots.iter_mut().enumerate() {
                    let codes = tile(row).codes[row % TILE_ROWS].as_ptr();
                    *dot = _mm512_dpbusd_epi32(*dot, low, quad(codes, i));
                }
                let high_dots = if SPLIT { &mut high_dots } else { &mut dots };
                for (row, dot) in high_dots.iter_mut().enumerate() {
                    let codes = tile(row).codes[row % TILE_ROWS].as_ptr();
                    *dot = _mm512_dpbusd_epi32(*dot, high, quad(codes, i + 4));
                }
            }
            let from = record.add(layout.code_bytes());
            let scales = Scales::<HALF>::load(from);
            let min = |scales: Scales<HALF>| {
                if MIN {
                    load_scales::<HALF>(from.add(layout.scale_bytes()))
                } else {
                    _mm512_mul_ps(scales.scale, _mm512_set1_ps(-zero))
                }
            };
            let mins = min(scales);
            for (row, (sum, dot)) in sums.iter_mut().zip(dots).enumerate() {
                let (tile, lane) = (tile(row), row % TILE_ROWS);
                let row_scale = _mm512_set1_ps(tile.scales[lane]);
                let row_sum = if SPLIT {
                    tile.low_scaled_sums[lane]
                } else {
                    tile.scaled_sums[lane]
                };
                *sum = _mm512_fmadd_ps(scales.apply(dot), row_scale, *sum);
                *sum = _mm512_fmadd_ps(mins, _mm512_set1_ps(row_sum), *sum);
            }
            if SPLIT {
                let scales = Scales::<HALF>::load(from.add(layout.scale_bytes() / 2));
                let mins = min(scales);
                for (row, (sum, dot)) in sums.iter_mut().zip(high_dots).enumerate() {
                    let (tile, lane) = (tile(row), row % TILE_ROWS);
                    let row_scale = _mm512_set1_ps(tile.scales[lane]);
                    let row_sum = tile.scaled_sums[lane] - tile.low_scaled_sums[lane];
                    *sum = _mm512_fmadd_ps(scales.apply(dot), row_scale, *sum);
                    *sum = _mm512_fmadd_ps(mins, _mm512_set1_ps(row_sum), *sum);
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate().take(rows) {
            write(Avx512(sums), output, row);
        }
    }
}

/// All rows, in blocks of at most twelve (24 of the 32 registers are sums), as even as tiles allow.
///
/// # Safety
/// As [`super::multiply_panel`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn rows_of<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool>(
    panel: Panel,
    zero: i32,
    x: QuantRows,
    rows: usize,
    output: Output,
) {
    const {
        assert!(
            !(SPLIT && MIN),
            "no format has minima for halves of a group"
        )
    };
    let zero = zero as f32;
    let (mut row, mut blocks) = (0, rows.div_ceil(12));
    let bytes = panel.inputs / GROUP * Shape::<BITS, SPLIT, HALF, MIN>::LAYOUT.record_bytes();
    let share = bytes.div_ceil(blocks).next_multiple_of(64);
    let mut ahead = panel.next;
    while row < rows {
        // SAFETY: `row` is below `rows`, for which the caller vouches, and begins a tile.
        unsafe {
            let tiles = x.tile(row);
            let output = Output {
                out: output.out.add(row * output.stride),
                ..output
            };
            let left = rows - row;
            let fetched = ahead..ahead.wrapping_add(share);
            ahead = fetched.end;
            macro_rules! run {
                ($size:literal) => {{
                    let rows = left.min($size);
                    block::<BITS, SPLIT, HALF, MIN, $size>(
                        panel, fetched, zero, tiles, rows, output,
                    );
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

/// See [`super::multiply_panel`].
///
/// # Safety
/// As there; the machine has AVX-512 with VNNI.
pub(super) unsafe fn multiply(
    layout: QuantLayout,
    panel: Panel,
    x: QuantRows,
    rows: usize,
    output: Output,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (layout.bits, layout.group, layout.half_scales, layout.offset) {
            (4, 32, true, Offset::Min) => {
                rows_of::<4, false, true, true>(panel, 0, x, rows, output)
            }
            (4, 32, false, Offset::Min) => {
                rows_of::<4, false, false, true>(panel, 0, x, rows, output)
            }
            (8, 32, false, Offset::Min) => {
                rows_of::<8, false, false, true>(panel, 0, x, rows, output)
            }
            (4, 32, true, Offset::Zero(zero)) => {
                rows_of::<4, false, true, false>(panel, zero, x, rows, output);
            }
            (8, 32, true, Offset::Zero(zero)) => {
                rows_of::<8, false, true, false>(panel, zero, x, rows, output);
            }
            (8, 16, false, Offset::Zero(zero)) => {
                rows_of::<8, true, false, false>(panel, zero, x, rows, output);
            }
            _ => super::portable::multiply(layout, panel, x, rows, output),
        }
    }
}
