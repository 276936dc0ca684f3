//! Sixteen lanes as one AVX-512 register.

use std::arch::x86_64::*;

use super::avx2::sum_of_eight;
use super::{LANES, Lanes, largest_one_by_one};
use crate::pack::pairs;

/// Per lane the largest magnitude, and for `N` = 2 also the second largest.
type Largest<const N: usize> = [__m512i; N];

/// The largest magnitudes of a group's two halves, lane by lane.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn largest_pair<const N: usize>(group: &[f32; 2 * LANES]) -> Largest<N> {
    // SAFETY: the caller's promise; 32 elements.
    unsafe {
        let sign = _mm512_set1_epi32(i32::MIN);
        let a = _mm512_andnot_si512(sign, _mm512_loadu_si512(group.as_ptr().cast()));
        let b = _mm512_andnot_si512(sign, _mm512_loadu_si512(group[LANES..].as_ptr().cast()));
        let mut both = [_mm512_max_epu32(a, b); N];
        if N == 2 {
            both[N - 1] = _mm512_min_epu32(a, b);
        }
        both
    }
}

/// Merge two sets lane by lane.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn merge_largest<const N: usize>(a: Largest<N>, b: Largest<N>) -> Largest<N> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut both = [_mm512_max_epu32(a[0], b[0]); N];
        if N == 2 {
            let smaller = _mm512_min_epu32(a[0], b[0]);
            both[N - 1] = _mm512_max_epu32(_mm512_max_epu32(a[N - 1], b[N - 1]), smaller);
        }
        both
    }
}

/// Merge the quarters of `a` and `b` selected by shuffle `ONE` with those selected by shuffle `OTHER`.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn merge_quarters<const N: usize, const ONE: i32, const OTHER: i32>(
    a: Largest<N>,
    b: Largest<N>,
) -> Largest<N> {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut one, mut other) = (a, a);
        for i in 0..N {
            one[i] = _mm512_shuffle_i64x2::<ONE>(a[i], b[i]);
            other[i] = _mm512_shuffle_i64x2::<OTHER>(a[i], b[i]);
        }
        merge_largest(one, other)
    }
}

/// Merge the first two words of every four with the last two.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn merge_pairs<const N: usize>(a: Largest<N>, b: Largest<N>) -> Largest<N> {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut one, mut other) = (a, a);
        for i in 0..N {
            one[i] = _mm512_unpacklo_epi64(a[i], b[i]);
            other[i] = _mm512_unpackhi_epi64(a[i], b[i]);
        }
        merge_largest(one, other)
    }
}

/// Merge the even words of every four with the odd ones.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn merge_words<const N: usize>(a: Largest<N>, b: Largest<N>) -> Largest<N> {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut one, mut other) = (a, a);
        for i in 0..N {
            let (a, b) = (_mm512_castsi512_ps(a[i]), _mm512_castsi512_ps(b[i]));
            one[i] = _mm512_castps_si512(_mm512_shuffle_ps::<0b10_00_10_00>(a, b));
            other[i] = _mm512_castps_si512(_mm512_shuffle_ps::<0b11_01_11_01>(a, b));
        }
        merge_largest(one, other)
    }
}

/// A group's codes as 16-bit words, 0 for values out of range. Each quarter of the register has four codes of the first half,
/// then four of the second.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn code_words(group: &[f32; 2 * LANES], factor: f32) -> __m512i {
    // SAFETY: the caller's promise; 32 elements.
    unsafe {
        let factor = _mm512_set1_ps(factor);
        let low = _mm512_mul_ps(_mm512_loadu_ps(group.as_ptr()), factor);
        let high = _mm512_mul_ps(_mm512_loadu_ps(group[LANES..].as_ptr()), factor);
        let words = _mm512_packs_epi32(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high));
        let shifted = _mm512_add_epi16(words, _mm512_set1_epi16(127));
        let codes = _mm512_cmple_epu16_mask(shifted, _mm512_set1_epi16(254));
        _mm512_maskz_mov_epi16(codes, words)
    }
}

/// The codes of two groups as bytes, in order.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn code_bytes(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, _mm512_packs_epi16(a, b))
    }
}

/// Sums of four groups' first halves in words 0 to 3 and of their second halves in words 4 to 7. Each argument holds two groups.
///
/// # Safety
/// AVX-512 with VNNI enabled by the caller.
#[inline(always)]
unsafe fn sums_of_halves(first: __m512i, second: __m512i) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let (zero, ones) = (_mm512_setzero_si512(), _mm512_set1_epi8(1));
        let a = _mm512_dpbusd_epi32(zero, ones, first);
        let b = _mm512_dpbusd_epi32(zero, ones, second);
        // Each quarter of the register alternates partial sums of `a` and `b`, two of each.
        let sums = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32::<0b01_00_11_10>(sums));
        let order = _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 0, 8, 1, 9, 4, 12, 5, 13);
        _mm512_permutexvar_epi32(order, sums)
    }
}

/// See [`Lanes`].
#[derive(Clone, Copy)]
pub(crate) struct Avx512(pub(crate) __m512);

// SAFETY: instructions and pointers are the callers' promise.
unsafe impl Lanes for Avx512 {
    const WIDE: bool = true;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: sixteen elements by contract.
        Self(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        Self(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)))
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let words = _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()));
            Self(_mm512_cvtepi32_ps(words))
        }
    }

    #[inline(always)]
    unsafe fn load_i16(from: *const i16) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let words = _mm512_cvtepi16_epi32(_mm256_loadu_si256(from.cast()));
            Self(_mm512_cvtepi32_ps(words))
        }
    }

    #[inline(always)]
    unsafe fn load_from_table(from: *const u32, shift: u32, table: &[f32; 16]) -> Self {
        // SAFETY: sixteen elements by contract. The permutation ignores all but the low four bits of an index.
        unsafe {
            let count = _mm_cvtsi32_si128(shift as i32);
            let indices = _mm512_srl_epi32(_mm512_loadu_si512(from.cast()), count);
            Self(_mm512_permutexvar_ps(
                indices,
                _mm512_loadu_ps(table.as_ptr()),
            ))
        }
    }

    #[inline(always)]
    unsafe fn load_i32_plus(from: *const i32, addend: i32) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let words = _mm512_loadu_si512(from.cast());
            Self(_mm512_cvtepi32_ps(_mm512_add_epi32(
                words,
                _mm512_set1_epi32(addend),
            )))
        }
    }

    #[inline(always)]
    unsafe fn load_dequantized_dots(dots: *const i32, start: i32, pairs: *const i32) -> Self {
        // SAFETY: sixteen elements each by contract.
        unsafe {
            let dots = _mm512_add_epi32(_mm512_loadu_si512(dots.cast()), _mm512_set1_epi32(start));
            let values = _mm512_madd_epi16(dots, _mm512_loadu_si512(pairs.cast()));
            Self(_mm512_cvtepi32_ps(values))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: sixteen elements by contract.
        unsafe { _mm512_storeu_ps(to, self.0) };
    }

    #[inline(always)]
    unsafe fn load_bits(from: *const u32, shift: u32, mask: u32) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let count = _mm_cvtsi32_si128(shift as i32);
            let shifted = _mm512_srl_epi32(_mm512_loadu_si512(from.cast()), count);
            Self(_mm512_cvtepi32_ps(_mm512_and_si512(
                shifted,
                _mm512_set1_epi32(mask as i32),
            )))
        }
    }

    #[inline(always)]
    unsafe fn load_dequantized_codes(codes: *const u32, shift: u32, pairs: *const u32) -> Self {
        // SAFETY: sixteen elements each by contract.
        unsafe {
            let count = _mm_cvtsi32_si128(shift as i32);
            let codes = _mm512_srl_epi32(_mm512_loadu_si512(codes.cast()), count);
            let codes = _mm512_and_si512(codes, _mm512_set1_epi32(15));
            // Code minus zero point in the low half, the zero point in the high half.
            let zero = _mm512_set1_epi16(pairs::ZERO_POINT as i16);
            let halves = _mm512_mask_sub_epi16(zero, 0x5555_5555, codes, zero);
            let weights = _mm512_madd_epi16(halves, _mm512_loadu_si512(pairs.cast()));
            Self(_mm512_cvtepi32_ps(weights))
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_div_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn select_less(self, limit: Self, yes: Self, no: Self) -> Self {
        // SAFETY: enabled by the caller.
        unsafe {
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, limit.0);
            Self(_mm512_mask_blend_ps(less, no.0, yes.0))
        }
    }

    #[inline(always)]
    unsafe fn clamp(self, limit: f32) -> Self {
        // `range` with imm8 0b0010: the smaller magnitude, with the sign of the first operand.
        // SAFETY: enabled by the caller.
        Self(unsafe { _mm512_range_ps::<0b0010>(self.0, _mm512_set1_ps(limit)) })
    }

    #[inline(always)]
    unsafe fn mask_less(self, limit: Self) -> u32 {
        // SAFETY: enabled by the caller.
        u32::from(unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, limit.0) })
    }

    #[inline(always)]
    unsafe fn pow2_of_rounded(self) -> Self {
        // SAFETY: enabled by the caller.
        unsafe {
            let shifted = _mm512_slli_epi32::<23>(_mm512_castps_si512(self.0));
            Self(_mm512_castsi512_ps(shifted))
        }
    }

    #[inline(always)]
    unsafe fn two_largest_magnitudes(self, other: Self) -> (f32, f32) {
        // SAFETY: enabled by the caller.
        unsafe {
            let magnitude = |x: __m512| {
                _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fff_ffff))
            };
            let (a, b) = (magnitude(self.0), magnitude(other.0));
            let (mut first, mut second) = (_mm512_max_epu32(a, b), _mm512_min_epu32(a, b));
            macro_rules! fold {
                ($shuffle:expr) => {
                    let (a, b) = ($shuffle(first), $shuffle(second));
                    second = _mm512_max_epu32(second, b);
                    second = _mm512_max_epu32(second, _mm512_min_epu32(first, a));
                    first = _mm512_max_epu32(first, a);
                };
            }
            fold!(|x| _mm512_shuffle_i64x2::<0b01_00_11_10>(x, x));
            fold!(|x| _mm512_shuffle_i64x2::<0b10_11_00_01>(x, x));
            fold!(|x| _mm512_shuffle_epi32::<0b01_00_11_10>(x));
            fold!(|x| _mm512_shuffle_epi32::<0b10_11_00_01>(x));
            let lowest = |x: __m512i| f32::from_bits(_mm512_cvtsi512_si32(x).cast_unsigned());
            (lowest(first), lowest(second))
        }
    }

    #[inline(always)]
    unsafe fn store_codes(self, to: *mut i8) -> i32 {
        // SAFETY: sixteen bytes by contract; the rounding mode is the default one, to nearest even.
        unsafe {
            let codes = _mm512_cvtps_epi32(self.0);
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(codes));
            _mm512_reduce_add_epi32(codes)
        }
    }

    #[inline(always)]
    unsafe fn largest_of_groups<const TOP: usize>(
        groups: &[[f32; 2 * LANES]; LANES],
        count: usize,
    ) -> [Self; TOP] {
        if count <= 4 {
            // SAFETY: the caller's promise.
            return unsafe { largest_one_by_one::<Self, TOP>(groups, count) };
        }
        // SAFETY: enabled by the caller.
        unsafe {
            // Groups `at`, `at + 4`, `at + 8` and `at + 12`, one quarter of the lanes each.
            macro_rules! four {
                ($at:literal) => {{
                    let halves = |at: usize| largest_pair::<TOP>(&groups[at]);
                    let (a, b) = (halves($at), halves($at + 4));
                    let low = merge_quarters::<TOP, 0b01_00_01_00, 0b11_10_11_10>(a, b);
                    let (a, b) = (halves($at + 8), halves($at + 12));
                    let high = merge_quarters::<TOP, 0b01_00_01_00, 0b11_10_11_10>(a, b);
                    merge_quarters::<TOP, 0b10_00_10_00, 0b11_01_11_01>(low, high)
                }};
            }
            let (low, high) = (
                merge_pairs(four!(0), four!(1)),
                merge_pairs(four!(2), four!(3)),
            );
            let all = merge_words(low, high);
            let mut largest = [Self(_mm512_setzero_ps()); TOP];
            for i in 0..TOP {
                largest[i] = Self(_mm512_castsi512_ps(all[i]));
            }
            largest
        }
    }

    #[inline(always)]
    unsafe fn round_four_groups(
        groups: &[[f32; 2 * LANES]; 4],
        factors: &[f32; 4],
        codes: &mut [[i8; 2 * LANES]; 4],
        low_sums: &mut [i32; 4],
        high_sums: &mut [i32; 4],
    ) {
        let [a, b, c, d] = groups;
        // SAFETY: enabled by the caller; 32 elements a group, 64 bytes for the codes of two.
        unsafe {
            let first = code_bytes(code_words(a, factors[0]), code_words(b, factors[1]));
            let second = code_bytes(code_words(c, factors[2]), code_words(d, factors[3]));
            _mm512_storeu_si512(codes.as_mut_ptr().cast(), first);
            _mm512_storeu_si512(codes[2..].as_mut_ptr().cast(), second);
            let sums = sums_of_halves(first, second);
            _mm_storeu_si128(low_sums.as_mut_ptr().cast(), _mm512_castsi512_si128(sums));
            let high = _mm512_extracti32x4_epi32::<1>(sums);
            _mm_storeu_si128(high_sums.as_mut_ptr().cast(), high);
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: enabled by the caller.
        unsafe {
            let high = _mm512_extractf32x8_ps::<1>(self.0);
            sum_of_eight(_mm256_add_ps(_mm512_castps512_ps256(self.0), high))
        }
    }

    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        // SAFETY: enabled by the caller.
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
}
