//! Quantised panels with AVX-512 VNNI.
//!
//! One register holds a quad of inputs of all 16 columns, so `vpdpbusd` with four broadcast activation
//! bytes advances all columns by four inputs; codes are its unsigned operand, so signed activations
//! need no offset. A record's eight code registers are decoded once and stay while every row of the
//! block uses them. During the first block of rows each line of the next panel is prefetched.

use std::arch::x86_64::*;

use super::float::{prefetch_line, write};
use super::{Output, Panel};
use crate::activation_quant::{GroupMeta, QuantRows};
use crate::pack::layout::{GROUP, Offset, QuantLayout};
use crate::simd::Avx512;

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

/// `ROWS` rows against the whole panel.
///
/// # Safety
/// As [`super::multiply_panel`], for `ROWS` rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
unsafe fn block<
    const BITS: u32,
    const SPLIT: bool,
    const HALF: bool,
    const MIN: bool,
    const ROWS: usize,
>(
    panel: Panel,
    prefetch: bool,
    zero: i32,
    x: QuantRows,
    output: Output,
) {
    let layout = Shape::<BITS, SPLIT, HALF, MIN>::LAYOUT;
    let record_bytes = layout.record_bytes();
    let groups = panel.inputs / GROUP;
    let mut sums = [_mm512_setzero_ps(); ROWS];
    // SAFETY: records, codes and metas of `groups` groups are inside what the caller vouches for.
    unsafe {
        for group in 0..groups {
            let record = panel.data.add(group * record_bytes);
            if prefetch {
                let next = panel.next.add(group * record_bytes);
                for line in 0..record_bytes.div_ceil(64) {
                    prefetch_line(next.add(64 * line));
                }
            }
            let activations = |row: usize| x.codes.add(row * x.inputs + group * GROUP);
            let meta = |row: usize| &*x.metas.add(row * groups + group);
            let start = |sum: i32| {
                if MIN {
                    _mm512_setzero_si512()
                } else {
                    _mm512_set1_epi32(-zero * sum)
                }
            };
            // Exact sums of the group's two halves of inputs, or of all of it. Quad by quad over all
            // rows: neighbouring instructions are independent, so their latency does not show.
            let mut dots = [_mm512_setzero_si512(); ROWS];
            let mut high_dots = [_mm512_setzero_si512(); ROWS];
            for row in 0..ROWS {
                let meta: &GroupMeta = meta(row);
                dots[row] = start(if SPLIT { meta.low_sum } else { meta.sum });
                if SPLIT {
                    high_dots[row] = start(meta.sum - meta.low_sum);
                }
            }
            for i in 0..4 {
                let (low, high) = codes::<BITS>(record, i);
                for row in 0..ROWS {
                    dots[row] = _mm512_dpbusd_epi32(dots[row], low, quad(activations(row), i));
                }
                let high_dots = if SPLIT { &mut high_dots } else { &mut dots };
                for row in 0..ROWS {
                    let four = quad(activations(row), i + 4);
                    high_dots[row] = _mm512_dpbusd_epi32(high_dots[row], high, four);
                }
            }
            let scales = record.add(layout.code_bytes());
            let scale = load_scales::<HALF>(scales);
            for row in 0..ROWS {
                let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[row]), scale);
                sums[row] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(meta(row).scale), sums[row]);
            }
            if SPLIT {
                let scale = load_scales::<HALF>(scales.add(layout.scale_bytes() / 2));
                for row in 0..ROWS {
                    let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(high_dots[row]), scale);
                    sums[row] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(meta(row).scale), sums[row]);
                }
            }
            if MIN {
                let min = load_scales::<HALF>(scales.add(layout.scale_bytes()));
                for row in 0..ROWS {
                    let scaled_sum = _mm512_set1_ps(meta(row).scaled_sum);
                    sums[row] = _mm512_fmadd_ps(min, scaled_sum, sums[row]);
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            write(Avx512(sums), output, row);
        }
    }
}

/// All rows, in the largest blocks that fit.
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
    let mut row = 0;
    while row < rows {
        // SAFETY: `row + size ≤ rows`, for which the caller vouches.
        unsafe {
            let x = x.from_row(row);
            let output = Output {
                out: output.out.add(row * output.stride),
                ..output
            };
            macro_rules! run {
                ($size:literal) => {{
                    block::<BITS, SPLIT, HALF, MIN, $size>(panel, row == 0, zero, x, output);
                    $size
                }};
            }
            row += match rows - row {
                8.. => run!(8),
                4.. => run!(4),
                2.. => run!(2),
                _ => run!(1),
            };
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
