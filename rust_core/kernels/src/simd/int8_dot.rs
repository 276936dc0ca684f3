//! Exact int8 dot products (VNNI): 16 lanes, four inputs per instruction.
//!
//! One operand is unsigned codes, the other an integer of two signed bytes, `256 * high + low`. Two bytes are
//! as precise as a float for a few dozen terms, at two integer instructions per four inputs.

use super::{LANES, Lanes, ROUND};

/// Codes in a register: four per lane.
pub(crate) const REGISTER_CODES: usize = 4 * LANES;

/// The largest magnitude used for integers of one signed byte.
pub(crate) const MAX_INT8: f32 = 127.0;

/// The largest magnitude of `256 * high + low` with both bytes in [-127, 127].
pub(crate) const MAX_INT8_PAIR: f32 = MAX_INT8 * 257.0;

/// [`Lanes`] with int8 dot products.
///
/// # Safety
/// As [`Lanes`].
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(crate) unsafe trait Int8Dot: Lanes {
    /// Whether the registers hold six [`Self::Dots`] and their operands.
    const SIX_DOTS: bool;
    /// Sixteen 32-bit accumulators.
    type Dots: Copy;
    /// [`REGISTER_CODES`] unsigned bytes.
    type Codes: Copy;
    /// Four signed bytes, broadcast to all lanes.
    type Quad: Copy;

    unsafe fn zero_dots() -> Self::Dots;
    /// 64 bytes, may be unaligned.
    unsafe fn load_codes(from: *const u8) -> Self::Codes;
    /// Four bytes, may be unaligned.
    unsafe fn splat_quad(from: *const i8) -> Self::Quad;
    /// Add the sum of each lane's four products.
    unsafe fn accumulate_dots(sums: Self::Dots, codes: Self::Codes, quad: Self::Quad)
    -> Self::Dots;
    /// `256 * high + low - offset`, of magnitude below 2^31, converted to float.
    unsafe fn combine_dots(high: Self::Dots, low: Self::Dots, offset: i32) -> Self;

    /// The Walsh–Hadamard transform of the lanes: butterflies at distances 8, 4, 2 and 1, in that order, with the sum in the
    /// lower lane and the difference in the upper lane.
    unsafe fn hadamard(self) -> Self;

    /// The larger of two non-negative floats per lane; NaN counts as larger than every number.
    unsafe fn larger_or_nan(self, other: Self) -> Self;
    /// The largest of all lanes, which are non-negative; NaN counts as larger than every number.
    unsafe fn largest_or_nan(self) -> f32;

    /// Round `values * factor`, which are in [-127, 127], to the nearest integers (ties to even), add 128 and store them as
    /// bytes.
    #[inline(always)]
    unsafe fn quantize_to_u8(
        values: &[f32; REGISTER_CODES],
        factor: Self,
        codes: &mut [u8; REGISTER_CODES],
    ) {
        let vectors = values.as_chunks::<LANES>().0.iter();
        for (x, codes) in vectors.zip(codes.as_chunks_mut::<LANES>().0) {
            // SAFETY: sixteen elements each; the instructions are the caller's promise.
            unsafe {
                Self::load(x.as_ptr())
                    .mul(factor)
                    .store_codes(codes.as_mut_ptr().cast())
            };
            for code in codes {
                *code = code.wrapping_add(128);
            }
        }
    }

    /// Store four tokens' codes in the key layout: for each quad of dimensions the quads of the four tokens together, quads
    /// [`REGISTER_CODES`] bytes apart.
    #[inline(always)]
    unsafe fn store_keys(codes: [&[u8; REGISTER_CODES]; 4], to: *mut u8) {
        for quad in 0..LANES {
            for (token, codes) in codes.iter().enumerate() {
                let four = codes.as_chunks::<4>().0[quad];
                // SAFETY: room by contract.
                unsafe { *to.add(quad * REGISTER_CODES + 4 * token).cast() = four };
            }
        }
    }

    /// Store four tokens' codes in the value layout: for each dimension the codes of the four tokens together.
    #[inline(always)]
    unsafe fn store_values(codes: [&[u8; REGISTER_CODES]; 4], to: *mut [u8; 4]) {
        for dim in 0..REGISTER_CODES {
            // SAFETY: room by contract.
            unsafe { *to.add(dim) = codes.map(|codes| codes[dim]) };
        }
    }

    /// Round the elementwise products of up to [`REGISTER_CODES`] values and factors, of magnitude up to [`MAX_INT8_PAIR`], to
    /// the nearest integers (ties to even), store their high and low bytes and return their sum.
    ///
    /// Writes [`REGISTER_CODES`] bytes at both pointers, zeros beyond the given values.
    #[inline(always)]
    unsafe fn quantize_to_int8_pairs(
        values: &[[f32; LANES]],
        factors: &[[f32; LANES]],
        high: *mut i8,
        low: *mut i8,
    ) -> i32 {
        let mut sum = 0;
        // SAFETY: the caller's promise; lengths by contract.
        unsafe {
            high.write_bytes(0, REGISTER_CODES);
            low.write_bytes(0, REGISTER_CODES);
            for (number, (values, factors)) in values.iter().zip(factors).enumerate() {
                let x = Self::load(values.as_ptr()).mul(Self::load(factors.as_ptr()));
                let shifted = x.add(Self::splat(ROUND)).to_array();
                for (i, shifted) in shifted.into_iter().enumerate() {
                    let integer = shifted.to_bits().wrapping_sub(ROUND.to_bits());
                    let integer = integer.cast_signed();
                    *high.add(number * LANES + i) = (integer.wrapping_add(128) >> 8) as i8;
                    *low.add(number * LANES + i) = integer as i8;
                    sum += i32::from(integer as i16);
                }
            }
        }
        sum
    }
}

/// [`symmetric_scale`] of `values`, whose length is a multiple of [`LANES`].
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(crate) unsafe fn symmetric_scale_of<L: Int8Dot>(values: &[f32], max_code: f32) -> (f32, f32) {
    // SAFETY: the caller's promise.
    symmetric_scale(unsafe { max_abs::<L>(values) }, max_code)
}

/// The largest magnitude among `values`, whose length is a multiple of [`LANES`], or NaN if one is NaN.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(crate) unsafe fn max_abs<L: Int8Dot>(values: &[f32]) -> f32 {
    debug_assert!(values.len().is_multiple_of(LANES));
    // SAFETY: whole vectors; instructions by the caller's promise.
    unsafe {
        let zero = L::splat(0.0);
        let mut largest = zero;
        for values in values.as_chunks::<LANES>().0 {
            let x = L::load(values.as_ptr());
            largest = largest.larger_or_nan(x.max(zero.sub(x)));
        }
        largest.largest_or_nan()
    }
}

/// Scale and inverse scale of the symmetric quantisation that maps magnitudes up to `largest` to integers up to `max_code`.
///
/// The scale is NaN if `largest` is not finite. The inverse is zero then, and where `largest` is too small to invert.
#[inline(always)]
pub(crate) fn symmetric_scale(largest: f32, max_code: f32) -> (f32, f32) {
    if !largest.is_finite() {
        return (f32::NAN, 0.0);
    }
    // Below this, the inverse would overflow.
    let inverse = if largest > 1e-30 {
        max_code / largest
    } else {
        0.0
    };
    (largest / max_code, inverse)
}

#[cfg(target_arch = "x86_64")]
pub(crate) use self::x86::{Dpbusd, Widened};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;
    use std::marker::PhantomData;

    use super::{Int8Dot, LANES};
    use crate::simd::Avx512;
    use crate::simd::avx2::Ymm;

    /// Store the four quarters of a register, `STRIDE` bytes apart.
    ///
    /// # Safety
    /// AVX-512 enabled by the caller; each destination is valid for 16 bytes.
    #[inline(always)]
    unsafe fn store_quarters<const STRIDE: usize>(x: __m512i, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(x));
            _mm_storeu_si128(to.add(STRIDE).cast(), _mm512_extracti32x4_epi32::<1>(x));
            _mm_storeu_si128(to.add(2 * STRIDE).cast(), _mm512_extracti32x4_epi32::<2>(x));
            _mm_storeu_si128(to.add(3 * STRIDE).cast(), _mm512_extracti32x4_epi32::<3>(x));
        }
    }

    /// Products of values and factors of vector `at`, rounded to integers; zeros beyond the last vector.
    ///
    /// # Safety
    /// AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn nearest(values: &[[f32; LANES]], factors: &[[f32; LANES]], at: usize) -> __m512i {
        // SAFETY: enabled by the caller; sixteen elements. The rounding mode is the default one, to nearest even.
        unsafe {
            let (Some(values), Some(factors)) = (values.get(at), factors.get(at)) else {
                return _mm512_setzero_si512();
            };
            let values = _mm512_loadu_ps(values.as_ptr());
            _mm512_cvtps_epi32(_mm512_mul_ps(values, _mm512_loadu_ps(factors.as_ptr())))
        }
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl Int8Dot for Avx512 {
        const SIX_DOTS: bool = true;
        type Dots = __m512i;
        type Codes = __m512i;
        type Quad = __m512i;

        #[inline(always)]
        unsafe fn zero_dots() -> __m512i {
            // SAFETY: enabled by the caller.
            unsafe { _mm512_setzero_si512() }
        }

        #[inline(always)]
        unsafe fn load_codes(from: *const u8) -> __m512i {
            // SAFETY: 64 bytes by contract.
            unsafe { _mm512_loadu_si512(from.cast()) }
        }

        #[inline(always)]
        unsafe fn splat_quad(from: *const i8) -> __m512i {
            // SAFETY: four bytes by contract.
            unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
        }

        #[inline(always)]
        unsafe fn accumulate_dots(sums: __m512i, codes: __m512i, quad: __m512i) -> __m512i {
            // SAFETY: enabled by the caller.
            unsafe { _mm512_dpbusd_epi32(sums, codes, quad) }
        }

        #[inline(always)]
        unsafe fn combine_dots(high: __m512i, low: __m512i, offset: i32) -> Self {
            // SAFETY: enabled by the caller.
            unsafe {
                let low = _mm512_sub_epi32(low, _mm512_set1_epi32(offset));
                let sums = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low);
                Self(_mm512_cvtepi32_ps(sums))
            }
        }

        #[inline(always)]
        unsafe fn hadamard(self) -> Self {
            // SAFETY: enabled by the caller.
            unsafe {
                // `other + x` in the lower lanes, `other - x` in the lanes of the mask. The product by ±1 is exact, so there
                // is one rounding.
                let butterfly = |x: __m512, other: __m512, upper: __mmask16| {
                    let one = _mm512_set1_ps(1.0);
                    let sign = _mm512_mask_blend_ps(upper, one, _mm512_set1_ps(-1.0));
                    _mm512_fmadd_ps(x, sign, other)
                };
                let x = self.0;
                let x = butterfly(x, _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x), 0xff00);
                let x = butterfly(x, _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x), 0xf0f0);
                let x = butterfly(x, _mm512_permute_ps::<0b01_00_11_10>(x), 0xcccc);
                Self(butterfly(x, _mm512_permute_ps::<0b10_11_00_01>(x), 0xaaaa))
            }
        }

        #[inline(always)]
        unsafe fn larger_or_nan(self, other: Self) -> Self {
            // SAFETY: enabled by the caller. Bits of non-negative floats compare as integers, with NaN above all numbers.
            unsafe {
                let (a, b) = (_mm512_castps_si512(self.0), _mm512_castps_si512(other.0));
                Self(_mm512_castsi512_ps(_mm512_max_epu32(a, b)))
            }
        }

        #[inline(always)]
        unsafe fn largest_or_nan(self) -> f32 {
            // SAFETY: enabled by the caller.
            f32::from_bits(unsafe { _mm512_reduce_max_epu32(_mm512_castps_si512(self.0)) })
        }

        #[inline(always)]
        unsafe fn quantize_to_u8(values: &[f32; 64], factor: Self, codes: &mut [u8; 64]) {
            // SAFETY: 64 elements each; the rounding mode is the default one, to nearest even.
            unsafe {
                let x = values.as_ptr();
                let words = |at: usize| {
                    let low = _mm512_mul_ps(_mm512_loadu_ps(x.add(at)), factor.0);
                    let high = _mm512_mul_ps(_mm512_loadu_ps(x.add(at + 16)), factor.0);
                    _mm512_packs_epi32(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high))
                };
                let bytes = _mm512_packs_epi16(words(0), words(32));
                let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
                let bytes = _mm512_permutexvar_epi32(order, bytes);
                let bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8(i8::MIN));
                _mm512_storeu_si512(codes.as_mut_ptr().cast(), bytes);
            }
        }

        #[inline(always)]
        unsafe fn store_keys(codes: [&[u8; 64]; 4], to: *mut u8) {
            // SAFETY: 64 bytes each, room for as many by contract.
            unsafe {
                let load = |token: usize| _mm512_loadu_si512(codes[token].as_ptr().cast());
                let (a, b, c, d) = (load(0), load(1), load(2), load(3));
                let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
                // Quarter `i` of this register holds quad `4 i` of all four tokens, the next register quad `4 i + 1`, etc.
                store_quarters::<256>(_mm512_unpacklo_epi64(ab, cd), to);
                store_quarters::<256>(_mm512_unpackhi_epi64(ab, cd), to.add(64));
                let (ab, cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
                store_quarters::<256>(_mm512_unpacklo_epi64(ab, cd), to.add(128));
                store_quarters::<256>(_mm512_unpackhi_epi64(ab, cd), to.add(192));
            }
        }

        #[inline(always)]
        unsafe fn store_values(codes: [&[u8; 64]; 4], to: *mut [u8; 4]) {
            // SAFETY: 64 bytes each, room for as many by contract.
            unsafe {
                let (to, load) = (to.cast::<u8>(), |token: usize| {
                    _mm512_loadu_si512(codes[token].as_ptr().cast())
                });
                let (a, b, c, d) = (load(0), load(1), load(2), load(3));
                let (ab, cd) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
                // Quarter `i` of this register holds dimensions `16 i..16 i + 4` of all four tokens, the next one the
                // following four, etc.
                store_quarters::<64>(_mm512_unpacklo_epi16(ab, cd), to);
                store_quarters::<64>(_mm512_unpackhi_epi16(ab, cd), to.add(16));
                let (ab, cd) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
                store_quarters::<64>(_mm512_unpacklo_epi16(ab, cd), to.add(32));
                store_quarters::<64>(_mm512_unpackhi_epi16(ab, cd), to.add(48));
            }
        }

        #[inline(always)]
        unsafe fn quantize_to_int8_pairs(
            values: &[[f32; LANES]],
            factors: &[[f32; LANES]],
            high: *mut i8,
            low: *mut i8,
        ) -> i32 {
            // SAFETY: lengths by contract; instructions by the caller's promise.
            unsafe {
                // `packs` interleaves: each quarter has four words of one vector and four of the next; bytes likewise.
                let a =
                    _mm512_packs_epi32(nearest(values, factors, 0), nearest(values, factors, 1));
                let b =
                    _mm512_packs_epi32(nearest(values, factors, 2), nearest(values, factors, 3));
                let half = _mm512_set1_epi16(128);
                let highs = _mm512_packs_epi16(
                    _mm512_srai_epi16::<8>(_mm512_add_epi16(a, half)),
                    _mm512_srai_epi16::<8>(_mm512_add_epi16(b, half)),
                );
                let byte = _mm512_set1_epi16(255);
                let lows =
                    _mm512_packus_epi16(_mm512_and_si512(a, byte), _mm512_and_si512(b, byte));
                let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
                _mm512_storeu_si512(high.cast(), _mm512_permutexvar_epi32(order, highs));
                _mm512_storeu_si512(low.cast(), _mm512_permutexvar_epi32(order, lows));
                let one = _mm512_set1_epi16(1);
                let sums = _mm512_madd_epi16(a, one);
                _mm512_reduce_add_epi32(_mm512_add_epi32(sums, _mm512_madd_epi16(b, one)))
            }
        }
    }

    /// [`Int8Dot`] for vectors of two 256-bit registers.
    ///
    /// # Safety
    /// As [`Int8Dot`].
    #[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
    pub(crate) unsafe trait YmmDot: Copy {
        const SIX_DOTS: bool;
        type Dots: Copy;
        type Codes: Copy;

        unsafe fn zero_dots() -> Self::Dots;
        unsafe fn load_codes(from: *const u8) -> Self::Codes;
        unsafe fn splat_quad(from: *const i8) -> __m256i;
        unsafe fn accumulate_dots(
            sums: Self::Dots,
            codes: Self::Codes,
            quad: __m256i,
        ) -> Self::Dots;
        /// `256 * high + low` of the lower and of the upper eight lanes.
        unsafe fn combine_dots(high: Self::Dots, low: Self::Dots) -> [__m256i; 2];
    }

    /// Bytes are widened to 16 bits, because `vpmaddubsw` would saturate. A lane's four products are kept as two sums of two
    /// until `combine_dots`.
    #[derive(Clone, Copy)]
    pub(crate) struct Widened;

    /// Apply `part` to all four parts of a register's codes.
    #[inline(always)]
    fn four<T>(part: impl Fn(usize) -> T) -> [T; 4] {
        std::array::from_fn(part)
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl YmmDot for Widened {
        const SIX_DOTS: bool = false;
        type Dots = [__m256i; 4];
        type Codes = [__m256i; 4];

        #[inline(always)]
        unsafe fn zero_dots() -> [__m256i; 4] {
            // SAFETY: enabled by the caller.
            [unsafe { _mm256_setzero_si256() }; 4]
        }

        #[inline(always)]
        unsafe fn load_codes(from: *const u8) -> [__m256i; 4] {
            // SAFETY: 64 bytes by contract.
            four(|part| unsafe {
                _mm256_cvtepu8_epi16(_mm_loadu_si128(from.add(16 * part).cast()))
            })
        }

        #[inline(always)]
        unsafe fn splat_quad(from: *const i8) -> __m256i {
            // SAFETY: four bytes by contract.
            unsafe {
                let four = _mm_set1_epi32(from.cast::<i32>().read_unaligned());
                _mm256_cvtepi8_epi16(four)
            }
        }

        #[inline(always)]
        unsafe fn accumulate_dots(
            sums: [__m256i; 4],
            codes: [__m256i; 4],
            quad: __m256i,
        ) -> [__m256i; 4] {
            // SAFETY: enabled by the caller.
            four(|part| unsafe {
                _mm256_add_epi32(sums[part], _mm256_madd_epi16(codes[part], quad))
            })
        }

        #[inline(always)]
        unsafe fn combine_dots(high: [__m256i; 4], low: [__m256i; 4]) -> [__m256i; 2] {
            // SAFETY: enabled by the caller.
            unsafe {
                let sums =
                    four(|part| _mm256_add_epi32(_mm256_slli_epi32::<8>(high[part]), low[part]));
                [0, 2].map(|part| {
                    // Lanes 0 1 4 5 2 3 6 7, then in order.
                    let pairs = _mm256_hadd_epi32(sums[part], sums[part + 1]);
                    _mm256_permute4x64_epi64::<0b11_01_10_00>(pairs)
                })
            }
        }
    }

    /// `vpdpbusd` on 256 bits, in its VEX form (AVX-VNNI).
    ///
    /// The instruction is inline assembly, so that functions need no target feature beyond level `avx2`'s: sixteen registers,
    /// nothing of AVX-512. This crate's tests run its EVEX form (AVX-512 VNNI with VL) where the processor lacks the VEX form, so
    /// that the level's kernels, the same but for this encoding, are tested on more machines.
    #[derive(Clone, Copy)]
    pub(crate) struct Dpbusd;

    impl Dpbusd {
        /// Add to each 32-bit lane of `sums` the products of its four unsigned bytes with its four signed bytes.
        ///
        /// # Safety
        /// The machine has level `avxvnni`.
        #[inline]
        #[target_feature(enable = "avx2")]
        pub(crate) unsafe fn dpbusd(
            mut sums: __m256i,
            unsigned: __m256i,
            signed: __m256i,
        ) -> __m256i {
            #[cfg(test)]
            if !crate::dispatch::vex_vnni() {
                // SAFETY: registers only; the machine has one of the forms by contract.
                unsafe {
                    asm!("{{evex}} vpdpbusd {0}, {1}, {2}", inout(ymm_reg) sums, in(ymm_reg) unsigned,
                        in(ymm_reg) signed, options(pure, nomem, nostack, preserves_flags));
                }
                return sums;
            }
            // SAFETY: registers only; the machine has the instruction by contract.
            unsafe {
                asm!("{{vex}} vpdpbusd {0}, {1}, {2}", inout(ymm_reg) sums, in(ymm_reg) unsigned,
                    in(ymm_reg) signed, options(pure, nomem, nostack, preserves_flags));
            }
            sums
        }
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl YmmDot for Dpbusd {
        const SIX_DOTS: bool = true;
        type Dots = [__m256i; 2];
        type Codes = [__m256i; 2];

        #[inline(always)]
        unsafe fn zero_dots() -> [__m256i; 2] {
            // SAFETY: enabled by the caller.
            [unsafe { _mm256_setzero_si256() }; 2]
        }

        #[inline(always)]
        unsafe fn load_codes(from: *const u8) -> [__m256i; 2] {
            // SAFETY: 64 bytes by contract.
            unsafe {
                [
                    _mm256_loadu_si256(from.cast()),
                    _mm256_loadu_si256(from.add(32).cast()),
                ]
            }
        }

        #[inline(always)]
        unsafe fn splat_quad(from: *const i8) -> __m256i {
            // SAFETY: four bytes by contract.
            unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
        }

        #[inline(always)]
        unsafe fn accumulate_dots(
            sums: [__m256i; 2],
            codes: [__m256i; 2],
            quad: __m256i,
        ) -> [__m256i; 2] {
            // SAFETY: enabled by the caller.
            unsafe {
                [
                    Self::dpbusd(sums[0], codes[0], quad),
                    Self::dpbusd(sums[1], codes[1], quad),
                ]
            }
        }

        #[inline(always)]
        unsafe fn combine_dots(high: [__m256i; 2], low: [__m256i; 2]) -> [__m256i; 2] {
            // SAFETY: enabled by the caller.
            unsafe {
                [
                    _mm256_add_epi32(_mm256_slli_epi32::<8>(high[0]), low[0]),
                    _mm256_add_epi32(_mm256_slli_epi32::<8>(high[1]), low[1]),
                ]
            }
        }
    }

    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl<D: YmmDot> Int8Dot for Ymm<D> {
        const SIX_DOTS: bool = D::SIX_DOTS;
        type Dots = D::Dots;
        type Codes = D::Codes;
        type Quad = __m256i;

        #[inline(always)]
        unsafe fn zero_dots() -> D::Dots {
            // SAFETY: the same contract.
            unsafe { D::zero_dots() }
        }

        #[inline(always)]
        unsafe fn load_codes(from: *const u8) -> D::Codes {
            // SAFETY: the same contract.
            unsafe { D::load_codes(from) }
        }

        #[inline(always)]
        unsafe fn splat_quad(from: *const i8) -> __m256i {
            // SAFETY: the same contract.
            unsafe { D::splat_quad(from) }
        }

        #[inline(always)]
        unsafe fn accumulate_dots(sums: D::Dots, codes: D::Codes, quad: __m256i) -> D::Dots {
            // SAFETY: the same contract.
            unsafe { D::accumulate_dots(sums, codes, quad) }
        }

        #[inline(always)]
        unsafe fn combine_dots(high: D::Dots, low: D::Dots, offset: i32) -> Self {
            // SAFETY: the same contract.
            unsafe {
                let ([low, high], offset) = (D::combine_dots(high, low), _mm256_set1_epi32(offset));
                Self(
                    _mm256_cvtepi32_ps(_mm256_sub_epi32(low, offset)),
                    _mm256_cvtepi32_ps(_mm256_sub_epi32(high, offset)),
                    PhantomData,
                )
            }
        }

        #[inline(always)]
        unsafe fn hadamard(self) -> Self {
            // SAFETY: enabled by the caller.
            unsafe {
                // Signs of the lower and upper lanes at distances 4, 2 and 1.
                let (four, two, one) = (
                    _mm256_setr_ps(1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0),
                    _mm256_setr_ps(1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0),
                    _mm256_setr_ps(1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0),
                );
                let half = |x: __m256| {
                    let x = _mm256_fmadd_ps(x, four, _mm256_permute2f128_ps::<1>(x, x));
                    let x = _mm256_fmadd_ps(x, two, _mm256_permute_ps::<0b01_00_11_10>(x));
                    _mm256_fmadd_ps(x, one, _mm256_permute_ps::<0b10_11_00_01>(x))
                };
                Self(
                    half(_mm256_add_ps(self.0, self.1)),
                    half(_mm256_sub_ps(self.0, self.1)),
                    PhantomData,
                )
            }
        }

        #[inline(always)]
        unsafe fn larger_or_nan(self, other: Self) -> Self {
            // SAFETY: enabled by the caller. Bits of non-negative floats compare as integers, with NaN above all numbers.
            let larger = |a: __m256, b: __m256| unsafe {
                let (a, b) = (_mm256_castps_si256(a), _mm256_castps_si256(b));
                _mm256_castsi256_ps(_mm256_max_epu32(a, b))
            };
            Self(
                larger(self.0, other.0),
                larger(self.1, other.1),
                PhantomData,
            )
        }

        #[inline(always)]
        unsafe fn largest_or_nan(self) -> f32 {
            // SAFETY: enabled by the caller.
            unsafe {
                let (a, b) = (_mm256_castps_si256(self.0), _mm256_castps_si256(self.1));
                let all = _mm256_max_epu32(a, b);
                let high = _mm256_extracti128_si256::<1>(all);
                let four = _mm_max_epu32(_mm256_castsi256_si128(all), high);
                let two = _mm_max_epu32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
                let one = _mm_max_epu32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
                f32::from_bits(_mm_cvtsi128_si32(one).cast_unsigned())
            }
        }

        #[inline(always)]
        unsafe fn quantize_to_u8(values: &[f32; 64], factor: Self, codes: &mut [u8; 64]) {
            let halves = values.as_chunks::<32>().0.iter();
            for (values, codes) in halves.zip(codes.as_chunks_mut::<32>().0) {
                // SAFETY: 32 elements each; the rounding mode is the default one, to nearest even.
                unsafe {
                    let x = values.as_ptr();
                    let bytes = _mm256_packs_epi16(
                        scaled_words(x, factor.0, factor.1),
                        scaled_words(x.add(16), factor.0, factor.1),
                    );
                    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                    let bytes = _mm256_permutevar8x32_epi32(bytes, order);
                    let bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(i8::MIN));
                    _mm256_storeu_si256(codes.as_mut_ptr().cast(), bytes);
                }
            }
        }

        #[inline(always)]
        unsafe fn quantize_to_int8_pairs(
            values: &[[f32; LANES]],
            factors: &[[f32; LANES]],
            high: *mut i8,
            low: *mut i8,
        ) -> i32 {
            // SAFETY: lengths by contract; instructions by the caller's promise.
            unsafe {
                let (half, byte) = (_mm256_set1_epi16(128), _mm256_set1_epi16(255));
                let mut sums = _mm256_setzero_si256();
                for at in [0, 2] {
                    // Each lane of 128 bits has four integers of the first eight and four of the next.
                    let a = nearest_words(values, factors, at);
                    let b = nearest_words(values, factors, at + 1);
                    let highs = _mm256_packs_epi16(
                        _mm256_srai_epi16::<8>(_mm256_add_epi16(a, half)),
                        _mm256_srai_epi16::<8>(_mm256_add_epi16(b, half)),
                    );
                    let lows =
                        _mm256_packus_epi16(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte));
                    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                    let highs = _mm256_permutevar8x32_epi32(highs, order);
                    let lows = _mm256_permutevar8x32_epi32(lows, order);
                    _mm256_storeu_si256(high.add(at * LANES).cast(), highs);
                    _mm256_storeu_si256(low.add(at * LANES).cast(), lows);
                    let one = _mm256_set1_epi16(1);
                    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(a, one));
                    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(b, one));
                }
                let high = _mm256_extracti128_si256::<1>(sums);
                let four = _mm_add_epi32(_mm256_castsi256_si128(sums), high);
                let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
                _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
            }
        }
    }

    /// Products of values and factors of vector `at`, rounded to integers of 16 bits; zeros beyond the last vector. Each half has
    /// integers of both eights.
    ///
    /// # Safety
    /// AVX2 enabled by the caller.
    #[inline(always)]
    unsafe fn nearest_words(
        values: &[[f32; LANES]],
        factors: &[[f32; LANES]],
        at: usize,
    ) -> __m256i {
        let (Some(values), Some(factors)) = (values.get(at), factors.get(at)) else {
            // SAFETY: the caller's promise.
            return unsafe { _mm256_setzero_si256() };
        };
        // SAFETY: sixteen elements each; enabled by the caller.
        unsafe {
            let factor = factors.as_ptr();
            let (low, high) = (_mm256_loadu_ps(factor), _mm256_loadu_ps(factor.add(8)));
            scaled_words(values.as_ptr(), low, high)
        }
    }

    /// Products of sixteen values and factors, rounded to integers of 16 bits. Each half has integers of both eights.
    ///
    /// # Safety
    /// Sixteen floats at `x`; AVX2 enabled by the caller.
    #[inline(always)]
    unsafe fn scaled_words(x: *const f32, low: __m256, high: __m256) -> __m256i {
        // SAFETY: the caller's promise. The rounding mode is the default one, to nearest even.
        unsafe {
            let low = _mm256_mul_ps(_mm256_loadu_ps(x), low);
            let high = _mm256_mul_ps(_mm256_loadu_ps(x.add(8)), high);
            _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high))
        }
    }
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl Int8Dot for super::Portable {
    const SIX_DOTS: bool = false;
    type Dots = [i32; LANES];
    type Codes = [[u8; 4]; LANES];
    type Quad = [i8; 4];

    #[inline(always)]
    unsafe fn zero_dots() -> [i32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    unsafe fn load_codes(from: *const u8) -> [[u8; 4]; LANES] {
        // SAFETY: 64 bytes by contract; arrays of bytes have no alignment.
        unsafe { from.cast::<[[u8; 4]; LANES]>().read() }
    }

    #[inline(always)]
    unsafe fn splat_quad(from: *const i8) -> [i8; 4] {
        // SAFETY: four bytes by contract.
        unsafe { from.cast::<[i8; 4]>().read() }
    }

    #[inline(always)]
    unsafe fn accumulate_dots(
        mut sums: [i32; LANES],
        codes: [[u8; 4]; LANES],
        quad: [i8; 4],
    ) -> [i32; LANES] {
        for (sum, codes) in sums.iter_mut().zip(codes) {
            for (code, x) in codes.into_iter().zip(quad) {
                *sum += i32::from(code) * i32::from(x);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn combine_dots(high: [i32; LANES], low: [i32; LANES], offset: i32) -> Self {
        let sums: [f32; LANES] = std::array::from_fn(|lane| {
            let sum = (high[lane] << 8).wrapping_add(low[lane]);
            sum.wrapping_sub(offset) as f32
        });
        // SAFETY: sixteen elements.
        unsafe { Self::load(sums.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn hadamard(self) -> Self {
        // SAFETY: no special instructions; sixteen elements.
        unsafe {
            let mut x = self.to_array();
            for distance in [8, 4, 2, 1] {
                x = std::array::from_fn(|i| {
                    let other = x[i ^ distance];
                    if i & distance == 0 {
                        other + x[i]
                    } else {
                        other - x[i]
                    }
                });
            }
            Self::load(x.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn larger_or_nan(self, other: Self) -> Self {
        // SAFETY: no special instructions; sixteen elements.
        unsafe {
            let (a, b) = (self.to_array(), other.to_array());
            let larger: [f32; LANES] =
                std::array::from_fn(|i| f32::from_bits(a[i].to_bits().max(b[i].to_bits())));
            Self::load(larger.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn largest_or_nan(self) -> f32 {
        // SAFETY: no special instructions.
        let lanes = unsafe { self.to_array() };
        f32::from_bits(lanes.iter().fold(0, |most, x| most.max(x.to_bits())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;
    use crate::simd::by_level;

    /// # Safety
    /// The level's instructions are enabled; as many codes as numbers.
    #[inline(always)]
    unsafe fn joined_body<L: Int8Dot>(
        codes: &[u8],
        high: &[i8],
        low: &[i8],
        offset: i32,
    ) -> [f32; LANES] {
        assert!(codes.len() == high.len() * LANES && low.len() == high.len());
        // SAFETY: by_level enables the instructions; lengths were checked.
        unsafe {
            let (mut highs, mut lows) = (L::zero_dots(), L::zero_dots());
            for quad in 0..high.len() / 4 {
                let codes = L::load_codes(codes.as_ptr().add(quad * REGISTER_CODES));
                highs =
                    L::accumulate_dots(highs, codes, L::splat_quad(high.as_ptr().add(4 * quad)));
                lows = L::accumulate_dots(lows, codes, L::splat_quad(low.as_ptr().add(4 * quad)));
            }
            L::combine_dots(highs, lows, offset).to_array()
        }
    }

    by_level! {
        /// Sixteen dot products of codes with integers of two bytes.
        ///
        /// # Safety
        /// The machine has the level.
        unsafe fn joined(codes: &[u8], high: &[i8], low: &[i8], offset: i32) -> [f32; LANES] = joined_body with AvxVnni;
    }

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn split_body<L: Int8Dot>(
        values: &[[f32; LANES]],
    ) -> ([i8; REGISTER_CODES], [i8; REGISTER_CODES], i32) {
        let (mut high, mut low) = ([1; REGISTER_CODES], [1; REGISTER_CODES]);
        let factors = [[0.5; LANES]; REGISTER_CODES / LANES];
        // SAFETY: by_level enables the instructions; arrays of the required length.
        let sum = unsafe {
            L::quantize_to_int8_pairs(values, &factors, high.as_mut_ptr(), low.as_mut_ptr())
        };
        (high, low, sum)
    }

    by_level! {
        /// Halve up to 64 numbers and round them to integers: their high and low bytes and their sum.
        ///
        /// # Safety
        /// The machine has the level.
        unsafe fn split(values: &[[f32; LANES]]) -> ([i8; REGISTER_CODES], [i8; REGISTER_CODES], i32) = split_body;
    }

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn largest_body<L: Int8Dot>(x: &[f32; LANES], other: &[f32; LANES]) -> f32 {
        // SAFETY: by_level enables the instructions; arrays of sixteen.
        unsafe {
            let (x, other) = (L::load(x.as_ptr()), L::load(other.as_ptr()));
            x.mul(x).larger_or_nan(other).largest_or_nan()
        }
    }

    by_level! {
        /// The largest of sixteen squares and sixteen other numbers.
        ///
        /// # Safety
        /// The machine has the level.
        unsafe fn largest(x: &[f32; LANES], other: &[f32; LANES]) -> f32 = largest_body;
    }

    fn levels() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| level.available())
    }

    /// Skipped where the kernels of level `avxvnni` are, too.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_dot_product_of_level_avxvnni_is_exact_and_does_not_saturate() {
        use std::arch::x86_64::*;

        /// # Safety
        /// The machine has the level.
        #[target_feature(enable = "avx2")]
        unsafe fn dots(sums: [i32; 8], unsigned: [u8; 32], signed: [i8; 32]) -> [i32; 8] {
            let mut out = [0; 8];
            // SAFETY: 32 bytes each; the level is the caller's promise.
            unsafe {
                let dots = Dpbusd::dpbusd(
                    _mm256_loadu_si256(sums.as_ptr().cast()),
                    _mm256_loadu_si256(unsigned.as_ptr().cast()),
                    _mm256_loadu_si256(signed.as_ptr().cast()),
                );
                _mm256_storeu_si256(out.as_mut_ptr().cast(), dots);
            }
            out
        }

        if !Level::AvxVnni.available() {
            return;
        }
        let mut random = crate::pack::tests::Random(17);
        for round in 0..1000 {
            let sums: [i32; 8] = std::array::from_fn(|_| random.bits() as i32 >> 8);
            let (mut unsigned, mut signed) = ([0u8; 32], [0i8; 32]);
            for (unsigned, signed) in unsigned.iter_mut().zip(&mut signed) {
                (*unsigned, *signed) = (random.bits() as u8, random.bits() as i8);
                if round % 4 == 0 {
                    (*unsigned, *signed) = (255, if round % 8 == 0 { -128 } else { 127 });
                }
            }
            let expected: [i32; 8] = std::array::from_fn(|lane| {
                let products = (4 * lane..4 * lane + 4)
                    .map(|at| i32::from(unsigned[at]) * i32::from(signed[at]));
                sums[lane] + products.sum::<i32>()
            });
            // SAFETY: the machine has the level.
            unsafe { assert_eq!(dots(sums, unsigned, signed), expected) };
        }
    }

    proptest! {
        #[test]
        fn sums_are_exact_on_every_level(
            numbers in prop::collection::vec(-32639i32..=32639, 1..17)
                .prop_map(|mut numbers| { numbers.resize(numbers.len().next_multiple_of(4), 0); numbers }),
            seed in any::<u32>(),
            offset in -1_000_000i32..1_000_000,
        ) {
            let codes: Vec<u8> = (0..numbers.len() * LANES)
                .map(|i| (seed.wrapping_mul(2 * i as u32 + 1) >> 24) as u8)
                .collect();
            let high: Vec<i8> = numbers.iter().map(|n| ((n + 128) >> 8) as i8).collect();
            let low: Vec<i8> = numbers.iter().map(|&n| n as i8).collect();
            for level in levels() {
                // SAFETY: the level is available.
                let sums = unsafe { joined(level, &codes, &high, &low, offset) };
                for (lane, sum) in sums.into_iter().enumerate() {
                    let exact: i32 = numbers.iter().enumerate()
                        .map(|(i, n)| n * i32::from(codes[i / 4 * REGISTER_CODES + 4 * lane + i % 4]))
                        .sum();
                    prop_assert_eq!(sum, (exact - offset) as f32, "{:?}", level);
                }
            }
        }

        #[test]
        fn int8_pairs_encode_the_nearest_integer(
            x in prop::collection::vec(prop::array::uniform16(-MAX_INT8_PAIR..=MAX_INT8_PAIR), 1..=4),
        ) {
            let mut nearest: Vec<i32> =
                x.as_flattened().iter().map(|x| x.round_ties_even() as i32).collect();
            nearest.resize(REGISTER_CODES, 0);
            let doubled: Vec<_> = x.iter().map(|x| x.map(|x| 2.0 * x)).collect();
            for level in levels() {
                // SAFETY: the level is available.
                let (high, low, sum) = unsafe { split(level, &doubled) };
                let joined: Vec<i32> = high.iter().zip(low)
                    .map(|(high, low)| 256 * i32::from(*high) + i32::from(low))
                    .collect();
                prop_assert_eq!(&joined, &nearest, "{:?}", level);
                prop_assert_eq!(sum, nearest.iter().sum::<i32>(), "{:?}", level);
            }
        }

        #[test]
        fn nan_counts_as_the_largest_value(
            x in prop::array::uniform16(-MAX_INT8_PAIR..=MAX_INT8_PAIR),
            other in prop::array::uniform16(prop_oneof![0f32..2e9, Just(f32::NAN), Just(-f32::NAN)]),
        ) {
            for level in levels() {
                // SAFETY: the level is available.
                let largest = unsafe { largest(level, &x, &other) };
                if other.iter().any(|x| x.is_nan()) {
                    prop_assert!(largest.is_nan(), "{:?}", level);
                } else {
                    let exact = x.iter().map(|x| x * x).chain(other).fold(0f32, f32::max);
                    prop_assert_eq!(largest, exact, "{:?}", level);
                }
            }
        }
    }
}
