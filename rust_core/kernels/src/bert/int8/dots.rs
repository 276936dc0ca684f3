//! Exact dot products of rows of unsigned bytes with panels of signed bytes.
//!
//! Hot path: nothing but loads and multiplications. A block's sums stay in registers over all inputs.

use crate::pack::layout::PANEL_COLUMNS;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512, AvxVnni, Dpbusd};
use crate::simd::{LANES, Lanes, Portable, ROUND};

/// Inputs whose codes are adjacent for each output of a panel.
pub(in crate::bert) const QUAD: usize = 4;

/// Dot products of a row with a panel.
pub(in crate::bert) type Dots = [i32; PANEL_COLUMNS];

/// Rows of codes and panels of codes, both from their first input on.
#[derive(Debug, Clone, Copy)]
pub(in crate::bert) struct Operands {
    pub rows: *const u8,
    /// Bytes between rows.
    pub row_stride: usize,
    pub panels: *const i8,
    /// Bytes between panels.
    pub panel_stride: usize,
    /// Inputs by four.
    pub quads: usize,
}

/// Byte arithmetic of a level.
///
/// # Safety
/// As [`Lanes`].
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(in crate::bert) unsafe trait ByteDots: Lanes {
    /// Rows of the largest block.
    const MAX_ROWS: usize;
    /// Panels of the largest block.
    const MAX_PANELS: usize;

    /// Dot products of `ROWS` rows with `PANELS` panels, `[ROWS][PANELS]` at `out`.
    unsafe fn dots<const ROWS: usize, const PANELS: usize>(operands: Operands, out: *mut Dots);

    /// Round lanes in [0, 255] to the nearest integers (ties to even) and store them as 16 bytes at `to`.
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        let rounded = unsafe { self.add(Self::splat(ROUND)).to_array() };
        for (i, rounded) in rounded.into_iter().enumerate() {
            // SAFETY: sixteen bytes by contract.
            unsafe { *to.add(i) = rounded.to_bits() as u8 };
        }
    }
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl ByteDots for Portable {
    const MAX_ROWS: usize = 4;
    const MAX_PANELS: usize = 1;

    #[inline(always)]
    unsafe fn dots<const ROWS: usize, const PANELS: usize>(operands: Operands, out: *mut Dots) {
        for row in 0..ROWS {
            for panel in 0..PANELS {
                let mut sums = [0i32; LANES];
                for quad in 0..operands.quads {
                    // SAFETY: the operands have that many quads by contract.
                    let (x, w) = unsafe {
                        let x = operands.rows.add(row * operands.row_stride + QUAD * quad);
                        let w = operands.panels.add(panel * operands.panel_stride);
                        let w = w.add(quad * QUAD * PANEL_COLUMNS);
                        (&*x.cast::<[u8; QUAD]>(), &*w.cast::<[[i8; QUAD]; LANES]>())
                    };
                    for (sum, w) in sums.iter_mut().zip(w) {
                        for (&x, &w) in x.iter().zip(w) {
                            *sum += i32::from(x) * i32::from(w);
                        }
                    }
                }
                // SAFETY: room for each pair by contract.
                unsafe { *out.add(row * PANELS + panel) = sums };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::{Avx2, Avx512, AvxVnni, ByteDots, Dots, Dpbusd, Operands, QUAD};
    use crate::pack::layout::PANEL_COLUMNS;

    /// Rows that are addressed from one register.
    const ROWS_PER_BASE: usize = 4;

    /// Bases of the largest block.
    const BASES: usize = 3;

    /// `pointer`, without the compiler knowing. Otherwise it makes a register of each row's address, and has too few.
    #[inline(always)]
    #[allow(
        clippy::pointers_in_nomem_asm_block,
        reason = "nothing is read through it"
    )]
    fn opaque(mut pointer: *const u8) -> *const u8 {
        // SAFETY: no instruction: the pointer passes through unchanged.
        unsafe {
            asm!("/* {0} */", inout(reg) pointer, options(nomem, nostack, preserves_flags, pure));
        }
        pointer
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl ByteDots for Avx512 {
        const MAX_ROWS: usize = 12;
        const MAX_PANELS: usize = 2;

        #[inline(always)]
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over arrays of registers put them into memory"
        )]
        unsafe fn dots<const ROWS: usize, const PANELS: usize>(operands: Operands, out: *mut Dots) {
            const { assert!(ROWS <= ROWS_PER_BASE * BASES) };
            // SAFETY: enabled by the caller; the operands have that many quads by contract.
            unsafe {
                let mut sums = [[_mm512_setzero_si512(); PANELS]; ROWS];
                let stride = operands.row_stride;
                let mut bases: [_; BASES] = std::array::from_fn(|base| {
                    // May be beyond the rows of a smaller block; then it is never read.
                    operands.rows.wrapping_add(base * ROWS_PER_BASE * stride)
                });
                let mut here = operands.panels;
                for _ in 0..operands.quads {
                    let mut weights = [_mm512_setzero_si512(); PANELS];
                    for panel in 0..PANELS {
                        let from = here.add(panel * operands.panel_stride);
                        weights[panel] = _mm512_loadu_si512(from.cast());
                    }
                    for row in 0..ROWS {
                        let x = bases[row / ROWS_PER_BASE].add(row % ROWS_PER_BASE * stride);
                        let x = _mm512_set1_epi32(x.cast::<i32>().read_unaligned());
                        for panel in 0..PANELS {
                            let sum = &mut sums[row][panel];
                            *sum = _mm512_dpbusd_epi32(*sum, x, weights[panel]);
                        }
                    }
                    here = here.add(QUAD * PANEL_COLUMNS);
                    for base in &mut bases {
                        *base = opaque(base.wrapping_add(QUAD));
                    }
                }
                for row in 0..ROWS {
                    for panel in 0..PANELS {
                        _mm512_storeu_si512(out.add(row * PANELS + panel).cast(), sums[row][panel]);
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, to: *mut u8) {
            // SAFETY: sixteen bytes by contract; the rounding mode is the default one, to nearest even.
            unsafe {
                let codes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(self.0));
                _mm_storeu_si128(to.cast(), codes);
            }
        }
    }

    /// Sums of a row and a panel: each register has four outputs, each as two sums of pairs.
    type PairSums = [__m256i; 4];

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl ByteDots for Avx2 {
        const MAX_ROWS: usize = 2;
        const MAX_PANELS: usize = 1;

        #[inline(always)]
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over arrays of registers put them into memory"
        )]
        unsafe fn dots<const ROWS: usize, const PANELS: usize>(operands: Operands, out: *mut Dots) {
            // `vpmaddubsw` would saturate, so bytes are widened: `vpmaddwd` sums pairs of products exactly.
            // SAFETY: enabled by the caller; the operands have that many quads by contract.
            unsafe {
                for panel in 0..PANELS {
                    let mut sums: [PairSums; ROWS] = [[_mm256_setzero_si256(); 4]; ROWS];
                    let weights = operands.panels.add(panel * operands.panel_stride);
                    for quad in 0..operands.quads {
                        let mut pairs = [_mm256_setzero_si256(); ROWS];
                        for row in 0..ROWS {
                            let x = operands.rows.add(row * operands.row_stride + QUAD * quad);
                            let x = _mm_set1_epi32(x.cast::<i32>().read_unaligned());
                            pairs[row] = _mm256_cvtepu8_epi16(x);
                        }
                        for part in 0..4 {
                            let from = weights.add(quad * QUAD * PANEL_COLUMNS + 16 * part);
                            let four = _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast()));
                            for row in 0..ROWS {
                                let sum = &mut sums[row][part];
                                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(four, pairs[row]));
                            }
                        }
                    }
                    for row in 0..ROWS {
                        let out = out.add(row * PANELS + panel).cast::<__m256i>();
                        for half in 0..2 {
                            let [low, high] = [sums[row][2 * half], sums[row][2 * half + 1]];
                            // The quarters come out as low, high, low, high.
                            let eight = _mm256_hadd_epi32(low, high);
                            let eight = _mm256_permute4x64_epi64::<0b11_01_10_00>(eight);
                            _mm256_storeu_si256(out.add(half), eight);
                        }
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, to: *mut u8) {
            // SAFETY: the same contract.
            unsafe { store_bytes(self.0, self.1, to) }
        }
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl ByteDots for AvxVnni {
        const MAX_ROWS: usize = 6;
        const MAX_PANELS: usize = 1;

        #[inline(always)]
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over arrays of registers put them into memory"
        )]
        unsafe fn dots<const ROWS: usize, const PANELS: usize>(operands: Operands, out: *mut Dots) {
            // SAFETY: enabled by the caller; the operands have that many quads by contract.
            unsafe {
                for panel in 0..PANELS {
                    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
                    let mut here = operands.panels.add(panel * operands.panel_stride);
                    let mut rows = operands.rows;
                    for _ in 0..operands.quads {
                        let load = |half: usize| _mm256_loadu_si256(here.add(32 * half).cast());
                        let weights = [load(0), load(1)];
                        for row in 0..ROWS {
                            let x = rows.add(row * operands.row_stride);
                            let x = _mm256_set1_epi32(x.cast::<i32>().read_unaligned());
                            for half in 0..2 {
                                let sum = &mut sums[row][half];
                                *sum = Dpbusd::dpbusd(*sum, x, weights[half]);
                            }
                        }
                        here = here.add(QUAD * PANEL_COLUMNS);
                        rows = rows.add(QUAD);
                    }
                    for row in 0..ROWS {
                        let out = out.add(row * PANELS + panel).cast::<__m256i>();
                        _mm256_storeu_si256(out, sums[row][0]);
                        _mm256_storeu_si256(out.add(1), sums[row][1]);
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn store_bytes(self, to: *mut u8) {
            // SAFETY: the same contract.
            unsafe { store_bytes(self.0, self.1, to) }
        }
    }

    /// [`ByteDots::store_bytes`] of two registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn store_bytes(low: __m256, high: __m256, to: *mut u8) {
        // SAFETY: sixteen bytes by contract; the rounding mode is the default one, to nearest even.
        unsafe {
            let (low, high) = (_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high));
            let bytes = _mm_packus_epi16(
                _mm256_castsi256_si128(words),
                _mm256_extracti128_si256::<1>(words),
            );
            _mm_storeu_si128(to.cast(), bytes);
        }
    }
}
