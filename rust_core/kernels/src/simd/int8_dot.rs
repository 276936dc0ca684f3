//! Exact dot products of bytes: sixteen at once, four inputs an operation.
//!
//! Codes are unsigned, what they are multiplied with is a number of two signed bytes, `256 * high + low`: that is
//! as good as a float for a few dozen terms, and costs two integer operations for four inputs.

use super::{LANES, Lanes, ROUND};

/// Codes of a register: four for each lane.
pub(crate) const REGISTER_CODES: usize = 4 * LANES;

/// The largest magnitude of a number of one signed byte.
pub(crate) const MAX_INT8: f32 = 127.0;

/// The largest magnitude of a number of two signed bytes.
pub(crate) const MAX_INT8_PAIR: f32 = MAX_INT8 * 257.0;

/// Lanes that are dot products of bytes.
///
/// # Safety
/// As [`Lanes`].
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(crate) unsafe trait Int8Dot: Lanes {
    /// Sixteen sums.
    type Dots: Copy;
    /// [`REGISTER_CODES`] unsigned bytes.
    type Codes: Copy;
    /// Four signed bytes, for all lanes.
    type Quad: Copy;

    unsafe fn zero_dots() -> Self::Dots;
    /// 64 bytes of any alignment.
    unsafe fn load_codes(from: *const u8) -> Self::Codes;
    /// Four bytes of any alignment.
    unsafe fn splat_quad(from: *const i8) -> Self::Quad;
    /// Add each lane's four products.
    unsafe fn accumulate_dots(sums: Self::Dots, codes: Self::Codes, quad: Self::Quad)
    -> Self::Dots;
    /// `256 * high + low - offset`, which is below 2^31, as floats.
    unsafe fn combine_dots(high: Self::Dots, low: Self::Dots, offset: i32) -> Self;

    /// The Walsh–Hadamard transform of the lanes: for distances 8, 4, 2 and 1, in that order, sums in the lower and
    /// differences in the upper of two lanes so far apart.
    unsafe fn hadamard(self) -> Self;

    /// Of two floats that are not negative the larger; NaN counts as the largest of all.
    unsafe fn larger_or_nan(self, other: Self) -> Self;
    /// Of all lanes, none of them negative; NaN counts as the largest of all.
    unsafe fn largest_or_nan(self) -> f32;

    /// Round values times `factor`, which brings them into [-127, 127], to the nearest integers (ties to even), and
    /// store them, plus 128, as bytes.
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

    /// Store four tokens' codes as keys stand: by quads of dimensions, those of the tokens together, [`REGISTER_CODES`] bytes
    /// from one quad to the next.
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

    /// Store four tokens' codes as values stand: by dimensions, those of the tokens together.
    #[inline(always)]
    unsafe fn store_values(codes: [&[u8; REGISTER_CODES]; 4], to: *mut [u8; 4]) {
        for dim in 0..REGISTER_CODES {
            // SAFETY: room by contract.
            unsafe { *to.add(dim) = codes.map(|codes| codes[dim]) };
        }
    }

    /// Round the products of up to [`REGISTER_CODES`] values with a factor each, of magnitude up to [`MAX_INT8_PAIR`], to the
    /// nearest integers (ties to even), store their two bytes and return their sum.
    ///
    /// [`REGISTER_CODES`] bytes at both pointers, of which those behind the values' become zero.
    #[inline(always)]
    unsafe fn quantize_to_int8_pairs(
        values: &[[f32; LANES]],
        factors: &[[f32; LANES]],
        high: *mut i8,
        low: *mut i8,
    ) -> i32 {
        let mut sum = 0;
        // SAFETY: the caller's promise; so many bytes by contract.
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

/// What one stands for when `values`, whole vectors, become integers of magnitude up to `most`, and what to multiply them
/// with to get these: [`symmetric_scale`] of the largest.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(crate) unsafe fn symmetric_scale_of<L: Int8Dot>(values: &[f32], most: f32) -> (f32, f32) {
    // SAFETY: the caller's promise.
    symmetric_scale(unsafe { max_abs::<L>(values) }, most)
}

/// The largest magnitude among `values`, whole vectors, or NaN if one of them is that.
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

/// What one stands for when values of magnitude up to `largest` become integers of magnitude up to `most`, and what to
/// multiply them with to get these.
///
/// The step is NaN if the largest is not finite. Then, and where it is zero for every purpose, the factor is zero.
#[inline(always)]
pub(crate) fn symmetric_scale(largest: f32, most: f32) -> (f32, f32) {
    if !largest.is_finite() {
        return (f32::NAN, 0.0);
    }
    // Below this the inverse overflows.
    let inverse = if largest > 1e-30 { most / largest } else { 0.0 };
    (largest / most, inverse)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Int8Dot, LANES};
    use crate::simd::{Avx2, Avx512};

    /// Store the four quarters of a register, each `STRIDE` bytes from the one before.
    ///
    /// # Safety
    /// AVX-512 enabled by the caller; room for sixteen bytes at each place.
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

    /// The integers nearest to the products of vector `at`; zeros behind the last one.
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
                // `other + x` in the lower lanes, `other - x` in those of the mask, in one rounding of an exact product.
                let join = |x: __m512, other: __m512, upper: __mmask16| {
                    let one = _mm512_set1_ps(1.0);
                    let sign = _mm512_mask_blend_ps(upper, one, _mm512_set1_ps(-1.0));
                    _mm512_fmadd_ps(x, sign, other)
                };
                let x = self.0;
                let x = join(x, _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x), 0xff00);
                let x = join(x, _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x), 0xf0f0);
                let x = join(x, _mm512_permute_ps::<0b01_00_11_10>(x), 0xcccc);
                Self(join(x, _mm512_permute_ps::<0b10_11_00_01>(x), 0xaaaa))
            }
        }

        #[inline(always)]
        unsafe fn larger_or_nan(self, other: Self) -> Self {
            // SAFETY: enabled by the caller. As unsigned integers the bits order as the numbers do, and NaN's are above.
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
                // In quarter `i` of the register quad `4 i` of all four tokens, and so on.
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
                // In quarter `i` of the register four dimensions from `16 i` on of all four tokens, and so on.
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
            // SAFETY: so many bytes by contract; instructions by the caller's promise.
            unsafe {
                // Words, in every quarter of a register four of one vector and four of the next; then bytes likewise.
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

    /// The same of all four parts of a register's codes.
    #[inline(always)]
    fn four<T>(part: impl Fn(usize) -> T) -> [T; 4] {
        std::array::from_fn(part)
    }

    // A lane's four products stand as two sums of two until they are joined.
    //
    // SAFETY: instructions and pointers are the callers' promise.
    unsafe impl Int8Dot for Avx2 {
        type Dots = [__m256i; 4];
        type Codes = [__m256i; 4];
        type Quad = __m256i;

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
        unsafe fn combine_dots(high: [__m256i; 4], low: [__m256i; 4], offset: i32) -> Self {
            // SAFETY: enabled by the caller.
            unsafe {
                let sums =
                    four(|part| _mm256_add_epi32(_mm256_slli_epi32::<8>(high[part]), low[part]));
                let half = |a: __m256i, b: __m256i| {
                    // Lanes 0 1 4 5 2 3 6 7, then in order.
                    let pairs = _mm256_hadd_epi32(a, b);
                    let lanes = _mm256_permute4x64_epi64::<0b11_01_10_00>(pairs);
                    _mm256_cvtepi32_ps(_mm256_sub_epi32(lanes, _mm256_set1_epi32(offset)))
                };
                Self(half(sums[0], sums[1]), half(sums[2], sums[3]))
            }
        }

        #[inline(always)]
        unsafe fn hadamard(self) -> Self {
            // SAFETY: enabled by the caller.
            unsafe {
                // Signs of the lower and the upper lanes of a half.
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
                )
            }
        }

        #[inline(always)]
        unsafe fn larger_or_nan(self, other: Self) -> Self {
            // SAFETY: enabled by the caller. As unsigned integers the bits order as the numbers do, and NaN's are above.
            let larger = |a: __m256, b: __m256| unsafe {
                let (a, b) = (_mm256_castps_si256(a), _mm256_castps_si256(b));
                _mm256_castsi256_ps(_mm256_max_epu32(a, b))
            };
            Self(larger(self.0, other.0), larger(self.1, other.1))
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
    }
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl Int8Dot for super::Portable {
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
        /// Sixteen sums of codes times numbers.
        ///
        /// # Safety
        /// The machine has the level.
        unsafe fn joined(codes: &[u8], high: &[i8], low: &[i8], offset: i32) -> [f32; LANES] = joined_body;
    }

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn split_body<L: Int8Dot>(
        values: &[[f32; LANES]],
    ) -> ([i8; REGISTER_CODES], [i8; REGISTER_CODES], i32) {
        let (mut high, mut low) = ([1; REGISTER_CODES], [1; REGISTER_CODES]);
        let factors = [[0.5; LANES]; REGISTER_CODES / LANES];
        // SAFETY: by_level enables the instructions; arrays of so many.
        let sum = unsafe {
            L::quantize_to_int8_pairs(values, &factors, high.as_mut_ptr(), low.as_mut_ptr())
        };
        (high, low, sum)
    }

    by_level! {
        /// The two bytes of the halves of up to 64 numbers, and the sum of the integers that these make.
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
        /// The largest of sixteen squares and of `other`.
        ///
        /// # Safety
        /// The machine has the level.
        unsafe fn largest(x: &[f32; LANES], other: &[f32; LANES]) -> f32 = largest_body;
    }

    fn levels() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| level.available())
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
