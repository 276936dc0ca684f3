//! Sixteen lanes as one AVX-512 register.

use std::arch::x86_64::*;

use super::Lanes;

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
            let codes = _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()));
            Self(_mm512_cvtepi32_ps(codes))
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
    unsafe fn largest(self) -> f32 {
        // SAFETY: enabled by the caller.
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
}
