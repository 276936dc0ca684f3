//! Exact dot products of unsigned bytes with 16-bit integers.

use super::query::Queries;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512, AvxVnni, Dpbusd};
use crate::simd::{Lanes, Portable};

/// Dot products of rows of codes with queries, modulo 2^32.
///
/// # Safety
/// As [`Lanes`].
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(super) unsafe trait ByteDots: Lanes {
    /// `ROWS` rows of `queries.padded` codes with queries `first..first + QUERIES`, which exist.
    unsafe fn byte_dots<const ROWS: usize, const QUERIES: usize>(
        rows: [*const u8; ROWS],
        queries: &Queries,
        first: usize,
    ) -> [[i32; QUERIES]; ROWS];
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl ByteDots for Portable {
    #[inline(always)]
    unsafe fn byte_dots<const ROWS: usize, const QUERIES: usize>(
        rows: [*const u8; ROWS],
        queries: &Queries,
        first: usize,
    ) -> [[i32; QUERIES]; ROWS] {
        rows.map(|row| {
            std::array::from_fn(|query| {
                let integers = &queries.integers[(first + query) * queries.padded..];
                let integers = integers[..queries.padded].iter();
                integers.enumerate().fold(0i32, |sum, (at, &integer)| {
                    // SAFETY: a row has that many codes by contract.
                    let code = unsafe { *row.add(at) };
                    sum.wrapping_add(i32::from(code) * i32::from(integer))
                })
            })
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Avx2, Avx512, AvxVnni, ByteDots, Dpbusd, Queries};

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl ByteDots for Avx512 {
        #[inline(always)]
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over arrays of registers put them into memory"
        )]
        unsafe fn byte_dots<const ROWS: usize, const QUERIES: usize>(
            rows: [*const u8; ROWS],
            queries: &Queries,
            first: usize,
        ) -> [[i32; QUERIES]; ROWS] {
            let padded = queries.padded;
            // SAFETY: enabled by the caller; a multiple of 64 codes in each row and query.
            unsafe {
                let high = queries.high.as_ptr().add(first * padded);
                let low = queries.low.as_ptr().add(first * padded);
                let zero = _mm512_setzero_si512();
                let (mut highs, mut lows) = ([[zero; QUERIES]; ROWS], [[zero; QUERIES]; ROWS]);
                for at in (0..padded).step_by(64) {
                    let mut codes = [zero; ROWS];
                    for row in 0..ROWS {
                        codes[row] = _mm512_loadu_si512(rows[row].add(at).cast());
                    }
                    for query in 0..QUERIES {
                        let high = _mm512_loadu_si512(high.add(query * padded + at).cast());
                        let low = _mm512_loadu_si512(low.add(query * padded + at).cast());
                        for row in 0..ROWS {
                            let sums = &mut highs[row][query];
                            *sums = _mm512_dpbusd_epi32(*sums, codes[row], high);
                            let sums = &mut lows[row][query];
                            *sums = _mm512_dpbusd_epi32(*sums, codes[row], low);
                        }
                    }
                }
                // Through memory, as the sums of floats.
                let mut lanes = [[[0; 16]; QUERIES]; ROWS];
                for row in 0..ROWS {
                    for query in 0..QUERIES {
                        let high = _mm512_slli_epi32::<8>(highs[row][query]);
                        let sums = _mm512_add_epi32(high, lows[row][query]);
                        _mm512_storeu_si512(lanes[row][query].as_mut_ptr().cast(), sums);
                    }
                }
                let mut dots = [[0; QUERIES]; ROWS];
                for row in 0..ROWS {
                    for query in 0..QUERIES {
                        let sums: &[i32; 16] = &lanes[row][query];
                        dots[row][query] =
                            _mm512_reduce_add_epi32(_mm512_loadu_si512(sums.as_ptr().cast()));
                    }
                }
                dots
            }
        }
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl ByteDots for Avx2 {
        #[inline(always)]
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over arrays of registers put them into memory"
        )]
        unsafe fn byte_dots<const ROWS: usize, const QUERIES: usize>(
            rows: [*const u8; ROWS],
            queries: &Queries,
            first: usize,
        ) -> [[i32; QUERIES]; ROWS] {
            let padded = queries.padded;
            // SAFETY: enabled by the caller; a multiple of 16 codes in each row and query.
            unsafe {
                let integers = queries.integers.as_ptr().add(first * padded);
                let mut sums = [[_mm256_setzero_si256(); QUERIES]; ROWS];
                for at in (0..padded).step_by(16) {
                    for query in 0..QUERIES {
                        let from = integers.add(query * padded + at);
                        let integers = _mm256_loadu_si256(from.cast());
                        for row in 0..ROWS {
                            let codes = _mm_loadu_si128(rows[row].add(at).cast());
                            let pairs = _mm256_madd_epi16(_mm256_cvtepu8_epi16(codes), integers);
                            sums[row][query] = _mm256_add_epi32(sums[row][query], pairs);
                        }
                    }
                }
                let mut dots = [[0; QUERIES]; ROWS];
                for row in 0..ROWS {
                    for query in 0..QUERIES {
                        dots[row][query] = sum_of_eight(sums[row][query]);
                    }
                }
                dots
            }
        }
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl ByteDots for AvxVnni {
        #[inline(always)]
        #[allow(
            clippy::needless_range_loop,
            reason = "iterators over arrays of registers put them into memory"
        )]
        unsafe fn byte_dots<const ROWS: usize, const QUERIES: usize>(
            rows: [*const u8; ROWS],
            queries: &Queries,
            first: usize,
        ) -> [[i32; QUERIES]; ROWS] {
            let padded = queries.padded;
            // SAFETY: enabled by the caller; a multiple of 64 codes in each row and query.
            unsafe {
                let zero = _mm256_setzero_si256();
                let mut dots = [[0; QUERIES]; ROWS];
                for query in 0..QUERIES {
                    let high = queries.high.as_ptr().add((first + query) * padded);
                    let low = queries.low.as_ptr().add((first + query) * padded);
                    let (mut highs, mut lows) = ([zero; ROWS], [zero; ROWS]);
                    for at in (0..padded).step_by(32) {
                        let high = _mm256_loadu_si256(high.add(at).cast());
                        let low = _mm256_loadu_si256(low.add(at).cast());
                        for row in 0..ROWS {
                            let codes = _mm256_loadu_si256(rows[row].add(at).cast());
                            highs[row] = Dpbusd::dpbusd(highs[row], codes, high);
                            lows[row] = Dpbusd::dpbusd(lows[row], codes, low);
                        }
                    }
                    for row in 0..ROWS {
                        let high = _mm256_slli_epi32::<8>(highs[row]);
                        dots[row][query] = sum_of_eight(_mm256_add_epi32(high, lows[row]));
                    }
                }
                dots
            }
        }
    }

    /// Sum of eight integers, modulo 2^32.
    ///
    /// # Safety
    /// AVX2 enabled by the caller.
    #[inline(always)]
    unsafe fn sum_of_eight(sums: __m256i) -> i32 {
        // SAFETY: the caller's promise.
        unsafe {
            let high = _mm256_extracti128_si256::<1>(sums);
            let four = _mm_add_epi32(_mm256_castsi256_si128(sums), high);
            let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
            _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
        }
    }
}
