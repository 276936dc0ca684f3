//! Sixteen lanes as one AVX-512 register.

use std::arch::x86_64::*;

use super::avx2::sum_of_eight;
use super::{LANES, Lanes};

/// Largest magnitudes, and the largest of the others, of the same lanes.
type Largest = (__m512i, __m512i);

/// Those of a group's two halves, lane by lane; zero behind the last group.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn largest_pair(groups: &[[f32; 2 * LANES]], at: usize) -> Largest {
    // SAFETY: the caller's promise; 32 elements.
    unsafe {
        let Some(group) = groups.get(at) else {
            return (_mm512_setzero_si512(), _mm512_setzero_si512());
        };
        let sign = _mm512_set1_epi32(i32::MIN);
        let a = _mm512_andnot_si512(sign, _mm512_loadu_si512(group.as_ptr().cast()));
        let b = _mm512_andnot_si512(sign, _mm512_loadu_si512(group[LANES..].as_ptr().cast()));
        (_mm512_max_epu32(a, b), _mm512_min_epu32(a, b))
    }
}

/// Those of both.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn join_largest(a: Largest, b: Largest) -> Largest {
    // SAFETY: the caller's promise.
    unsafe {
        let smaller = _mm512_min_epu32(a.0, b.0);
        let others = _mm512_max_epu32(a.1, b.1);
        (
            _mm512_max_epu32(a.0, b.0),
            _mm512_max_epu32(others, smaller),
        )
    }
}

/// Two quarters of `a`, then two of `b`, as `SELECT` says.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn select<const SELECT: i32>(a: Largest, b: Largest) -> Largest {
    // SAFETY: the caller's promise.
    unsafe {
        (
            _mm512_shuffle_i64x2::<SELECT>(a.0, b.0),
            _mm512_shuffle_i64x2::<SELECT>(a.1, b.1),
        )
    }
}

/// Of every four words of `a` and then of `b` the first two (0) or the last two (1).
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn unpack_pairs<const HIGH: i32>(a: Largest, b: Largest) -> Largest {
    // SAFETY: the caller's promise.
    unsafe {
        if HIGH == 0 {
            (
                _mm512_unpacklo_epi64(a.0, b.0),
                _mm512_unpacklo_epi64(a.1, b.1),
            )
        } else {
            (
                _mm512_unpackhi_epi64(a.0, b.0),
                _mm512_unpackhi_epi64(a.1, b.1),
            )
        }
    }
}

/// Of every four words of `a` two, and then of `b` two, as `SELECT` says.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn select_words<const SELECT: i32>(a: Largest, b: Largest) -> Largest {
    // SAFETY: the caller's promise.
    unsafe {
        let first = _mm512_shuffle_ps::<SELECT>(_mm512_castsi512_ps(a.0), _mm512_castsi512_ps(b.0));
        let next = _mm512_shuffle_ps::<SELECT>(_mm512_castsi512_ps(a.1), _mm512_castsi512_ps(b.1));
        (_mm512_castps_si512(first), _mm512_castps_si512(next))
    }
}

/// A group's codes as words of two bytes: in every quarter of the register four of the first half, then four
/// of the second.
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
        _mm512_packs_epi32(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high))
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

/// The sum of every sixteen bytes, as words 0, 4, 8 and 12.
///
/// # Safety
/// AVX-512 with VNNI enabled by the caller.
#[inline(always)]
unsafe fn sums_of_quarters(codes: __m512i) -> [i32; LANES] {
    // SAFETY: the caller's promise.
    unsafe {
        let dots = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), codes);
        let dots = _mm512_add_epi32(dots, _mm512_shuffle_epi32::<0b10_11_00_01>(dots));
        let dots = _mm512_add_epi32(dots, _mm512_shuffle_epi32::<0b01_00_11_10>(dots));
        let mut sums = [0; LANES];
        _mm512_storeu_si512(sums.as_mut_ptr().cast(), dots);
        sums
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
    unsafe fn load_i32(from: *const i32) -> Self {
        // SAFETY: sixteen elements by contract.
        Self(unsafe { _mm512_cvtepi32_ps(_mm512_loadu_si512(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bits_plus(from: *const i32, addend: i32) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let sums = _mm512_add_epi32(_mm512_loadu_si512(from.cast()), _mm512_set1_epi32(addend));
            Self(_mm512_castsi512_ps(sums))
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
    unsafe fn pow2_of_rounded(self) -> Self {
        // SAFETY: enabled by the caller.
        unsafe {
            let biased = _mm512_add_epi32(_mm512_castps_si512(self.0), _mm512_set1_epi32(127));
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased)))
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
    unsafe fn two_largest_of_groups(
        groups: &[[f32; 2 * LANES]],
        largest: &mut [f32; LANES],
        next: &mut [f32; LANES],
    ) {
        if groups.len() <= 4 {
            for (at, group) in groups.iter().enumerate() {
                // SAFETY: enabled by the caller; 32 elements.
                unsafe {
                    let low = Self::load(group.as_ptr());
                    let high = Self::load(group[LANES..].as_ptr());
                    (largest[at], next[at]) = low.two_largest_magnitudes(high);
                }
            }
            return;
        }
        // SAFETY: enabled by the caller; 32 elements a group, sixteen of the results.
        unsafe {
            // Groups `at`, `at + 4`, `at + 8` and `at + 12`, a quarter of the lanes each.
            macro_rules! four {
                ($at:expr) => {{
                    let (a, b) = (largest_pair(groups, $at), largest_pair(groups, $at + 4));
                    let low =
                        join_largest(select::<0b01_00_01_00>(a, b), select::<0b11_10_11_10>(a, b));
                    let (a, b) = (
                        largest_pair(groups, $at + 8),
                        largest_pair(groups, $at + 12),
                    );
                    let high =
                        join_largest(select::<0b01_00_01_00>(a, b), select::<0b11_10_11_10>(a, b));
                    let (a, b) = (low, high);
                    join_largest(select::<0b10_00_10_00>(a, b), select::<0b11_01_11_01>(a, b))
                }};
            }
            let (a, b) = (four!(0), four!(1));
            let low = join_largest(unpack_pairs::<0>(a, b), unpack_pairs::<1>(a, b));
            let (a, b) = (four!(2), four!(3));
            let high = join_largest(unpack_pairs::<0>(a, b), unpack_pairs::<1>(a, b));
            let (a, b) = (low, high);
            let all = join_largest(
                select_words::<0b10_00_10_00>(a, b),
                select_words::<0b11_01_11_01>(a, b),
            );
            _mm512_storeu_si512(largest.as_mut_ptr().cast(), all.0);
            _mm512_storeu_si512(next.as_mut_ptr().cast(), all.1);
        }
    }

    #[inline(always)]
    unsafe fn store_groups(
        groups: &[[f32; 2 * LANES]],
        factors: &[f32; LANES],
        codes: *mut i8,
        stride: usize,
        low_sums: &mut [i32; LANES],
        high_sums: &mut [i32; LANES],
    ) {
        let (pairs, rest) = groups.as_chunks::<2>();
        // SAFETY: enabled by the caller; 32 elements and 32 bytes a group by contract.
        unsafe {
            for (number, [a, b]) in pairs.iter().enumerate() {
                let at = 2 * number;
                let both = code_bytes(code_words(a, factors[at]), code_words(b, factors[at + 1]));
                let to = codes.add(at * stride);
                _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(both));
                _mm256_storeu_si256(to.add(stride).cast(), _mm512_extracti64x4_epi64::<1>(both));
                let sums = sums_of_quarters(both);
                (low_sums[at], high_sums[at]) = (sums[0], sums[4]);
                (low_sums[at + 1], high_sums[at + 1]) = (sums[8], sums[12]);
            }
            if let [group] = rest {
                let at = groups.len() - 1;
                let words = code_words(group, factors[at]);
                let one = code_bytes(words, words);
                let to = codes.add(at * stride);
                _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(one));
                let sums = sums_of_quarters(one);
                (low_sums[at], high_sums[at]) = (sums[0], sums[4]);
            }
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
