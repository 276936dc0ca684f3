//! Sixteen lanes as two 256-bit registers, for levels `avx2` and `avxvnni`.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::Lanes;
use super::int8_dot::{Dpbusd, Widened};

/// See [`Lanes`]. `D` is the arithmetic of int8 dot products, which is all that differs between the levels.
#[derive(Clone, Copy)]
pub(crate) struct Ymm<D>(
    pub(crate) __m256,
    pub(crate) __m256,
    pub(super) PhantomData<D>,
);

/// Level `avx2`.
pub(crate) type Avx2 = Ymm<Widened>;

/// Level `avxvnni`.
pub(crate) type AvxVnni = Ymm<Dpbusd>;

/// Sum of eight lanes by pairwise halving.
///
/// # Safety
/// AVX enabled by the caller.
#[inline(always)]
pub(super) unsafe fn sum_of_eight(x: __m256) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
}

/// Apply one intrinsic to both halves.
macro_rules! both {
    ($op:ident($($x:expr),*)) => {
        // SAFETY: the trait's contract: the caller's function enables AVX2, FMA and F16C.
        unsafe { Self($op($($x.0),*), $op($($x.1),*), PhantomData) }
    };
}

// SAFETY: instructions and pointers are the callers' promise.
unsafe impl<D: Copy> Lanes for Ymm<D> {
    const WIDE: bool = false;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: enabled by the caller.
        unsafe { Self(_mm256_set1_ps(value), _mm256_set1_ps(value), PhantomData) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            Self(
                _mm256_loadu_ps(from),
                _mm256_loadu_ps(from.add(8)),
                PhantomData,
            )
        }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            Self(
                _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from.add(8).cast())),
                PhantomData,
            )
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let widen = |at: *const u16| {
                let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
            };
            Self(widen(from), widen(from.add(8)), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let widen = |at: *const i8| {
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast())))
            };
            Self(widen(from), widen(from.add(8)), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn load_i16(from: *const i16) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let widen = |at: *const i16| {
                _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128(at.cast())))
            };
            Self(widen(from), widen(from.add(8)), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn load_from_table(from: *const u32, shift: u32, table: &[f32; 16]) -> Self {
        // SAFETY: sixteen elements by contract; indices below 16.
        unsafe {
            let count = _mm_cvtsi32_si128(shift as i32);
            let half = |at: *const u32| {
                let shifted = _mm256_srl_epi32(_mm256_loadu_si256(at.cast()), count);
                let indices = _mm256_and_si256(shifted, _mm256_set1_epi32(15));
                _mm256_i32gather_ps::<4>(table.as_ptr(), indices)
            };
            Self(half(from), half(from.add(8)), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn load_i32_plus(from: *const i32, addend: i32) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let widen = |at: *const i32| {
                let words = _mm256_loadu_si256(at.cast());
                _mm256_cvtepi32_ps(_mm256_add_epi32(words, _mm256_set1_epi32(addend)))
            };
            Self(widen(from), widen(from.add(8)), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn load_dequantized_dots(dots: *const i32, start: i32, pairs: *const i32) -> Self {
        // SAFETY: sixteen elements each by contract.
        unsafe {
            let value = |at: usize| {
                let dots = _mm256_loadu_si256(dots.add(at).cast());
                let dots = _mm256_add_epi32(dots, _mm256_set1_epi32(start));
                let pairs = _mm256_loadu_si256(pairs.add(at).cast());
                _mm256_cvtepi32_ps(_mm256_madd_epi16(dots, pairs))
            };
            Self(value(0), value(8), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: sixteen elements by contract.
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
        }
    }

    #[inline(always)]
    unsafe fn load_bits(from: *const u32, shift: u32, mask: u32) -> Self {
        // SAFETY: sixteen elements by contract.
        unsafe {
            let count = _mm_cvtsi32_si128(shift as i32);
            let half = |at: *const u32| {
                let shifted = _mm256_srl_epi32(_mm256_loadu_si256(at.cast()), count);
                _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(mask as i32)))
            };
            Self(half(from), half(from.add(8)), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        both!(_mm256_add_ps(self, other))
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        both!(_mm256_sub_ps(self, other))
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        both!(_mm256_mul_ps(self, other))
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        both!(_mm256_div_ps(self, other))
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        both!(_mm256_fmadd_ps(self, factor, addend))
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        both!(_mm256_max_ps(self, other))
    }

    #[inline(always)]
    unsafe fn select_less(self, limit: Self, yes: Self, no: Self) -> Self {
        // SAFETY: enabled by the caller.
        unsafe {
            Self(
                _mm256_blendv_ps(no.0, yes.0, _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, limit.0)),
                _mm256_blendv_ps(no.1, yes.1, _mm256_cmp_ps::<_CMP_LT_OQ>(self.1, limit.1)),
                PhantomData,
            )
        }
    }

    #[inline(always)]
    unsafe fn clamp(self, limit: f32) -> Self {
        // SAFETY: enabled by the caller.
        unsafe {
            let half = |x: __m256| {
                let below = _mm256_min_ps(x, _mm256_set1_ps(limit));
                _mm256_max_ps(below, _mm256_set1_ps(-limit))
            };
            Self(half(self.0), half(self.1), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn mask_less(self, limit: Self) -> u32 {
        // SAFETY: enabled by the caller.
        unsafe {
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, limit.0));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(self.1, limit.1));
            (low | high << 8).cast_unsigned()
        }
    }

    #[inline(always)]
    unsafe fn pow2_of_rounded(self) -> Self {
        // SAFETY: enabled by the caller.
        unsafe {
            let half =
                |x: __m256| _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(x)));
            Self(half(self.0), half(self.1), PhantomData)
        }
    }

    #[inline(always)]
    unsafe fn two_largest_magnitudes(self, other: Self) -> (f32, f32) {
        // SAFETY: enabled by the caller.
        unsafe {
            let magnitude = |x: __m256| {
                _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fff_ffff))
            };
            let merge = |(first, second): (__m256i, __m256i), (a, b): (__m256i, __m256i)| {
                let others = _mm256_max_epu32(second, b);
                let smaller = _mm256_min_epu32(first, a);
                (
                    _mm256_max_epu32(first, a),
                    _mm256_max_epu32(others, smaller),
                )
            };
            let pair = |a: __m256i, b: __m256i| (_mm256_max_epu32(a, b), _mm256_min_epu32(a, b));
            let mut both = merge(
                pair(magnitude(self.0), magnitude(self.1)),
                pair(magnitude(other.0), magnitude(other.1)),
            );
            let swap = |x: __m256i| _mm256_permute2x128_si256::<1>(x, x);
            both = merge(both, (swap(both.0), swap(both.1)));
            let swap = |x: __m256i| _mm256_shuffle_epi32::<0b01_00_11_10>(x);
            both = merge(both, (swap(both.0), swap(both.1)));
            let swap = |x: __m256i| _mm256_shuffle_epi32::<0b10_11_00_01>(x);
            both = merge(both, (swap(both.0), swap(both.1)));
            let lowest = |x: __m256i| f32::from_bits(_mm256_cvtsi256_si32(x).cast_unsigned());
            (lowest(both.0), lowest(both.1))
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: enabled by the caller.
        unsafe { sum_of_eight(_mm256_add_ps(self.0, self.1)) }
    }

    #[inline(always)]
    unsafe fn store_codes(self, to: *mut i8) -> i32 {
        // SAFETY: sixteen bytes by contract; the rounding mode is the default one, to nearest even.
        unsafe {
            let (low, high) = (_mm256_cvtps_epi32(self.0), _mm256_cvtps_epi32(self.1));
            let words = |x: __m256i| {
                _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x))
            };
            _mm_storeu_si128(to.cast(), _mm_packs_epi16(words(low), words(high)));
            let sums = _mm256_add_epi32(low, high);
            let sums = _mm_add_epi32(
                _mm256_castsi256_si128(sums),
                _mm256_extracti128_si256::<1>(sums),
            );
            let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b01_00_11_10>(sums));
            _mm_cvtsi128_si32(_mm_add_epi32(
                sums,
                _mm_shuffle_epi32::<0b10_11_00_01>(sums),
            ))
        }
    }
}
