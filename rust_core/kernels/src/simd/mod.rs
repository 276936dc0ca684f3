//! Vectors of 16 f32 lanes, with one implementation per dispatch level.
//!
//! Kernels that compute in floats over contiguous data (norms, activations, attention, float
//! GEMM) are generic over [`Lanes`]. [`by_level!`](crate::simd::by_level) instantiates such a
//! body inside a function that enables the level's instructions, so that everything is inlined into it.
//! Lane order and the order of reductions are the same on every level. Fused multiply-add is used
//! where the level has it, so levels with and without it agree within rounding and not bit for bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod fused;
mod hadamard;
mod int8_dot;
mod portable;
mod tanh;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::{Avx2, AvxVnni};
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(test)]
pub(crate) use fused::Fused;
#[cfg(test)]
pub(crate) use hadamard::naive_hadamard;
pub(crate) use hadamard::{hadamard, hadamard_size};
#[cfg(target_arch = "x86_64")]
pub(crate) use int8_dot::Dpbusd;
pub(crate) use int8_dot::{
    Int8Dot, MAX_INT8, MAX_INT8_PAIR, REGISTER_CODES, max_abs, symmetric_scale, symmetric_scale_of,
};
pub(crate) use portable::{Portable, widen_f16};
pub(crate) use tanh::tanh;

use crate::pack::pairs;

/// Lanes of a vector, the same on every level.
pub(crate) const LANES: usize = 16;

/// Magic number for rounding: adding it to a float of magnitude below 2^22 rounds the float to the nearest integer (ties to
/// even), which is then in the low bits of the sum.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// [`ROUND`] plus the exponent bias, for rounding `n` before computing 2^n ([`Lanes::pow2_of_rounded`]).
pub(crate) const ROUND_TO_EXPONENT: f32 = ROUND + 127.0;

/// Vectors of [`LANES`] floats.
///
/// # Safety
/// Methods may execute the implementor's instructions: call them only inside a function that enables
/// these (see [`by_level!`](crate::simd::by_level)). Pointers must be valid for 16 elements; they may be
/// unaligned.
#[allow(clippy::missing_safety_doc, reason = "the trait's is every method's")]
pub(crate) unsafe trait Lanes: Copy {
    /// Whether the register file holds more than 24 vectors (true for AVX-512 only).
    const WIDE: bool;
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn load_f16(from: *const u16) -> Self;
    unsafe fn load_bf16(from: *const u16) -> Self;
    unsafe fn load_i8(from: *const i8) -> Self;
    unsafe fn load_i16(from: *const i16) -> Self;
    /// `(word >> shift) & mask` of 16 words, converted to float.
    unsafe fn load_bits(from: *const u32, shift: u32, mask: u32) -> Self;
    /// `table[(word >> shift) & 15]` of 16 words.
    unsafe fn load_from_table(from: *const u32, shift: u32, table: &[f32; 16]) -> Self;
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "tiles' users' alone")
    )]
    unsafe fn load_i32_plus(from: *const i32, addend: i32) -> Self;
    /// Add `start` to 16 dot products and apply each one's scale-offset pair ([`crate::pack::pairs::dequantize_dot`]).
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "tiles' users' alone")
    )]
    unsafe fn load_dequantized_dots(dots: *const i32, start: i32, pairs: *const i32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self * factor + addend`, with a single rounding where the level has FMA.
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The larger lane; `other` if either is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// Lane by lane `self < limit ? yes : no`; `no` if either is NaN.
    unsafe fn select_less(self, limit: Self, yes: Self, no: Self) -> Self;
    /// Clamp to [-limit, limit]; NaN becomes one of the two limits.
    unsafe fn clamp(self, limit: f32) -> Self;
    /// Bit mask of lanes with `self < limit`; 0 for NaN.
    unsafe fn mask_less(self, limit: Self) -> u32;
    /// 2^n for lanes that hold n + [`ROUND_TO_EXPONENT`], n in [-126, 127]; 0 for n = -127.
    unsafe fn pow2_of_rounded(self) -> Self;

    /// Weights of 16 codes `(word >> shift) & 15`, divided by their column scales ([`pairs::dequantize_code`]).
    #[inline(always)]
    unsafe fn load_dequantized_codes(codes: *const u32, shift: u32, pairs: *const u32) -> Self {
        // Integers below 2^24: exact in f32.
        // SAFETY: the caller's promise.
        unsafe {
            // A macro, because a closure may be compiled as a function without the level's instructions.
            macro_rules! number {
                ($shift:literal) => {{
                    let bits = Self::load_bits(pairs, $shift, 0xffff);
                    let negative = bits.sub(Self::splat(65_536.0));
                    bits.select_less(Self::splat(32_768.0), bits, negative)
                }};
            }
            let (code, zero) = (
                Self::load_bits(codes, shift, 15),
                Self::splat(pairs::ZERO_POINT as f32),
            );
            code.sub(zero).mul_add(number!(0), number!(16).mul(zero))
        }
    }

    /// The largest and second-largest magnitude of 32 values. NaN counts as larger than every number.
    #[inline(always)]
    unsafe fn two_largest_magnitudes(self, other: Self) -> (f32, f32) {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (self.to_array(), other.to_array()) };
        // The bits of magnitudes compare as integers in the same order, with NaN above infinity.
        let (mut first, mut second) = ([0u32; LANES], [0u32; LANES]);
        for i in 0..LANES {
            let (a, b) = (a[i].to_bits() & 0x7fff_ffff, b[i].to_bits() & 0x7fff_ffff);
            (first[i], second[i]) = (a.max(b), a.min(b));
        }
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                let (a, b) = (first[i], first[i + half]);
                second[i] = a.min(b).max(second[i].max(second[i + half]));
                first[i] = a.max(b);
            }
        }
        (f32::from_bits(first[0]), f32::from_bits(second[0]))
    }

    /// Round lanes in [-127, 127] to the nearest integers (ties to even), store them as 16 bytes at `to` and return
    /// their sum.
    #[inline(always)]
    unsafe fn store_codes(self, to: *mut i8) -> i32 {
        // SAFETY: the caller's promise.
        let rounded = unsafe { self.add(Self::splat(ROUND)).to_array() };
        let mut sum = 0;
        for (i, rounded) in rounded.into_iter().enumerate() {
            let code = rounded.to_bits() as i8;
            sum += i32::from(code);
            // SAFETY: sixteen bytes by contract.
            unsafe { *to.add(i) = code };
        }
        sum
    }

    /// The largest (`TOP` 1) or [two largest](Lanes::two_largest_magnitudes) (`TOP` 2) magnitudes of the first `count` of 16
    /// groups of 32 values, one group per lane. Other lanes are unspecified.
    #[inline(always)]
    unsafe fn largest_of_groups<const TOP: usize>(
        groups: &[[f32; 2 * LANES]; LANES],
        count: usize,
    ) -> [Self; TOP] {
        // SAFETY: the caller's promise.
        unsafe { largest_one_by_one::<Self, TOP>(groups, count) }
    }

    /// Multiply each value with its group's factor, round to the nearest integer (ties to even), and replace results outside
    /// [-127, 127] by 0. Stores the codes and the sums of each group's first and second half.
    #[inline(always)]
    unsafe fn round_four_groups(
        groups: &[[f32; 2 * LANES]; 4],
        factors: &[f32; 4],
        codes: &mut [[i8; 2 * LANES]; 4],
        low_sums: &mut [i32; 4],
        high_sums: &mut [i32; 4],
    ) {
        for (at, group) in groups.iter().enumerate() {
            // SAFETY: 32 elements and 32 bytes; the instructions are the caller's promise.
            unsafe {
                let (codes, factor) = (codes[at].as_mut_ptr(), Self::splat(factors[at]));
                let low = Self::load(group.as_ptr()).mul(factor).zero_beyond(127.5);
                let high = Self::load(group[LANES..].as_ptr())
                    .mul(factor)
                    .zero_beyond(127.5);
                low_sums[at] = low.store_codes(codes);
                high_sums[at] = high.store_codes(codes.add(LANES));
            }
        }
    }

    /// Lanes in (-limit, limit) unchanged, others and NaN as 0.
    #[inline(always)]
    unsafe fn zero_beyond(self, limit: f32) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let zero = Self::splat(0.0);
            let magnitude = zero.sub(self).max(self);
            magnitude.select_less(Self::splat(limit), self, zero)
        }
    }

    /// The lanes as an array.
    #[inline(always)]
    unsafe fn to_array(self) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        // SAFETY: sixteen elements; the instructions are the caller's promise.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes
    }

    /// Sum of the lanes by pairwise halving, in the same order on every level.
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: the caller's promise.
        let mut lanes = unsafe { self.to_array() };
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        lanes[0]
    }

    /// Largest lane.
    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        // SAFETY: the caller's promise.
        let mut lanes = unsafe { self.to_array() };
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] = if lanes[i] > lanes[i + half] {
                    lanes[i]
                } else {
                    lanes[i + half]
                };
            }
        }
        lanes[0]
    }

    /// 2^x within 2 ulp for x ≤ 127; 0 below -127 (and for -inf); NaN stays NaN.
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        // The polynomial of Cephes' exp2f on [-0.5, 0.5].
        // SAFETY: the caller's promise, for the whole body.
        unsafe {
            let x = Self::splat(-127.0).max(self);
            let round = Self::splat(ROUND_TO_EXPONENT);
            let rounded = x.add(round);
            let r = x.sub(rounded.sub(round));
            let mut p = Self::splat(1.535_336_2e-4);
            for coefficient in [
                1.339_887_4e-3,
                9.618_437e-3,
                5.550_332_5e-2,
                0.240_226_48,
                std::f32::consts::LN_2,
                1.0,
            ] {
                p = p.mul_add(r, Self::splat(coefficient));
            }
            // At -127 the exponent is that of zero.
            p.mul(rounded.pow2_of_rounded())
        }
    }

    /// e^x within 2 ulp for x ≤ 88; 0 below -87 (and for -inf); NaN stays NaN.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        // Cody-Waite reduction and the minimax polynomial of Cephes' expf.
        // SAFETY: the caller's promise, for the whole body.
        unsafe {
            let lowest = Self::splat(-87.0);
            let x = self.select_less(lowest, lowest, self);
            let round = Self::splat(ROUND_TO_EXPONENT);
            let rounded = x.mul_add(Self::splat(std::f32::consts::LOG2_E), round);
            let n = rounded.sub(round);
            let r = n.mul_add(Self::splat(-0.693_359_4), x);
            let r = n.mul_add(Self::splat(2.121_944_4e-4), r);
            let mut p = Self::splat(1.987_569_1e-4);
            for coefficient in [
                1.398_199_9e-3,
                8.333_452e-3,
                4.166_579_6e-2,
                1.666_666_5e-1,
                0.5,
            ] {
                p = p.mul_add(r, Self::splat(coefficient));
            }
            let e = p
                .mul_add(r.mul(r), r)
                .add(Self::splat(1.0))
                .mul(rounded.pow2_of_rounded());
            self.select_less(lowest, Self::splat(0.0), e)
        }
    }
}

/// [`Lanes::largest_of_groups`], one group at a time.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn largest_one_by_one<L: Lanes, const TOP: usize>(
    groups: &[[f32; 2 * LANES]; LANES],
    count: usize,
) -> [L; TOP] {
    const { assert!(TOP == 1 || TOP == 2) };
    let mut all = [[0.0; LANES]; 2];
    for (at, group) in groups.iter().enumerate().take(count) {
        // SAFETY: 32 elements; the instructions are the caller's promise.
        unsafe {
            let (low, high) = (L::load(group.as_ptr()), L::load(group[LANES..].as_ptr()));
            (all[0][at], all[1][at]) = low.two_largest_magnitudes(high);
        }
    }
    // SAFETY: sixteen elements each; the instructions are the caller's promise.
    unsafe {
        let mut largest = [L::load(all[0].as_ptr()); TOP];
        largest[TOP - 1] = L::load(all[TOP - 1].as_ptr());
        largest
    }
}

/// Prefetch a cache line for reading.
#[inline(always)]
pub(crate) fn prefetch_line(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Prefetch a cache line into the second-level cache.
#[inline(always)]
pub(crate) fn prefetch_line_l2(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Prefetch a cache line for writing: request ownership, as another core may hold it.
#[inline(always)]
pub(crate) fn prefetch_for_writing(line: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(
            line.cast_const().cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Define a function that runs a body generic over [`Lanes`] on the level given at run time.
///
/// `fn name(args) -> ret = body;` makes `name(level, args)`. The body must be `#[inline(always)]`
/// and `unsafe`; `level` must be one this machine has, which `Level::choose` guarantees.
///
/// Level `avxvnni` runs the code of `avx2`, unless the body is given as `= body with AvxVnni;`. A body with int8 dot products
/// should be.
macro_rules! by_level {
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident;) => {
        $(#[$meta])*
        $vis unsafe fn $name(level: $crate::dispatch::Level, $($arg: $ty),*) $(-> $ret)? {
            $crate::simd::by_level!(@functions $body($($arg: $ty),*) $(-> $ret)?);
            debug_assert!(level.available());
            // SAFETY: the machine has the level (contract), the rest is the caller's promise.
            unsafe {
                match level {
                    #[cfg(target_arch = "x86_64")]
                    $crate::dispatch::Level::Amx | $crate::dispatch::Level::Avx512 => avx512($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::dispatch::Level::AvxVnni | $crate::dispatch::Level::Avx2 => avx2($($arg),*),
                    _ => $body::<$crate::simd::Portable>($($arg),*),
                }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident with AvxVnni;) => {
        $(#[$meta])*
        $vis unsafe fn $name(level: $crate::dispatch::Level, $($arg: $ty),*) $(-> $ret)? {
            $crate::simd::by_level!(@functions $body($($arg: $ty),*) $(-> $ret)?);
            $crate::simd::by_level!(@function avxvnni, "avx2,fma,f16c", AvxVnni, $body($($arg: $ty),*) $(-> $ret)?);
            debug_assert!(level.available());
            // SAFETY: the machine has the level (contract), the rest is the caller's promise.
            unsafe {
                match level {
                    #[cfg(target_arch = "x86_64")]
                    $crate::dispatch::Level::Amx | $crate::dispatch::Level::Avx512 => avx512($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::dispatch::Level::AvxVnni => avxvnni($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::dispatch::Level::Avx2 => avx2($($arg),*),
                    _ => $body::<$crate::simd::Portable>($($arg),*),
                }
            }
        }
    };
    (@functions $body:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {
        $crate::simd::by_level!(
            @function avx512, "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c", Avx512,
            $body($($arg: $ty),*) $(-> $ret)?
        );
        $crate::simd::by_level!(@function avx2, "avx2,fma,f16c", Avx2, $body($($arg: $ty),*) $(-> $ret)?);
    };
    (
        @function $name:ident, $features:literal, $lanes:ident,
        $body:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?
    ) => {
        /// # Safety
        /// As the function around it; the machine has the level.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the body's conditions are the caller's; the instructions are enabled here.
            unsafe { $body::<$crate::simd::$lanes>($($arg),*) }
        }
    };
}
pub(crate) use by_level;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn exp_body<L: Lanes>(x: &[f32; LANES]) -> [f32; LANES] {
        // SAFETY: by_level enables the instructions; arrays of sixteen.
        unsafe { L::load(x.as_ptr()).exp().to_array() }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn exp(x: &[f32; LANES]) -> [f32; LANES] = exp_body;
    }

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn exp2_body<L: Lanes>(x: &[f32; LANES]) -> [f32; LANES] {
        // SAFETY: by_level enables the instructions; arrays of sixteen.
        unsafe { L::load(x.as_ptr()).exp2().to_array() }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn exp2(x: &[f32; LANES]) -> [f32; LANES] = exp2_body;
    }

    const TABLE: [f32; 16] = [
        0.5, -3.0, 7.0, 1e9, 2.0, 4.0, -5.0, 6.0, 9.0, 8.0, 11.0, -0.0, 13.0, 3.0, -1.0, 1.0,
    ];

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn loads_body<L: Lanes>(
        halves: &[u16; LANES],
        words: &[u32; LANES],
    ) -> [[f32; LANES]; 9] {
        // SAFETY: by_level enables the instructions; arrays of sixteen.
        unsafe {
            [
                L::load_f16(halves.as_ptr()).to_array(),
                L::load_bf16(halves.as_ptr()).to_array(),
                L::load_bits(words.as_ptr(), 12, 255).to_array(),
                L::load_i32_plus(words.as_ptr().cast(), 77).to_array(),
                L::load_dequantized_dots(words.as_ptr().cast(), 77, words.as_ptr().cast())
                    .to_array(),
                L::load_dequantized_codes(words.as_ptr(), 12, words.as_ptr()).to_array(),
                L::load_i8(words.as_ptr().cast()).to_array(),
                L::load_i16(halves.as_ptr().cast()).to_array(),
                L::load_from_table(words.as_ptr(), 12, &TABLE).to_array(),
            ]
        }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn loads(halves: &[u16; LANES], words: &[u32; LANES]) -> [[f32; LANES]; 9] = loads_body;
    }

    fn levels() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| level.available())
    }

    #[test]
    fn exp_is_close_everywhere() {
        for level in levels() {
            for step in 0..4000 {
                let x: [f32; LANES] =
                    std::array::from_fn(|lane| -86.9 + 0.043 * step as f32 + 0.0021 * lane as f32);
                // SAFETY: the level is available.
                let y = unsafe { exp(level, &x) };
                for (x, y) in x.iter().zip(y).filter(|(x, _)| **x < 88.0) {
                    let exact = f64::from(*x).exp();
                    assert!(
                        (f64::from(y) - exact).abs() <= 2.5e-7 * exact,
                        "{level:?} {x} {y}"
                    );
                }
            }
        }
    }

    #[test]
    fn exp2_is_close_everywhere_and_right_at_the_extremes() {
        for level in levels() {
            for step in 0..4000 {
                let x: [f32; LANES] =
                    std::array::from_fn(|lane| -125.9 + 0.06 * step as f32 + 0.0031 * lane as f32);
                // SAFETY: the level is available.
                let y = unsafe { exp2(level, &x) };
                for (x, y) in x.iter().zip(y).filter(|(x, _)| **x < 127.0) {
                    let exact = f64::from(*x).exp2();
                    assert!(
                        (f64::from(y) - exact).abs() <= 2.5e-7 * exact,
                        "{level:?} {x} {y}"
                    );
                }
            }
            let mut x = [0.0; LANES];
            (x[0], x[1], x[2], x[4]) = (f32::NEG_INFINITY, f32::NAN, -1e30, -127.2);
            // SAFETY: the level is available.
            let y = unsafe { exp2(level, &x) };
            assert_eq!((y[0], y[2], y[3], y[4]), (0.0, 0.0, 1.0, 0.0), "{level:?}");
            assert!(y[1].is_nan(), "{level:?}");
        }
    }

    #[test]
    fn exp_of_the_extremes() {
        for level in levels() {
            let mut x = [0.0; LANES];
            (x[0], x[1], x[2]) = (f32::NEG_INFINITY, f32::NAN, -1e30);
            // SAFETY: the level is available.
            let y = unsafe { exp(level, &x) };
            assert_eq!((y[0], y[2], y[3]), (0.0, 0.0, 1.0), "{level:?}");
            assert!(y[1].is_nan(), "{level:?}");
        }
    }

    #[test]
    fn loads_widen_exactly() {
        let halves: [u16; LANES] =
            std::array::from_fn(|lane| (lane as u16).wrapping_mul(4111) & 0xfbff | lane as u16 & 1);
        let words: [u32; LANES] =
            std::array::from_fn(|lane| (lane as u32).wrapping_mul(0x9E37_79B9));
        for level in levels() {
            // SAFETY: the level is available.
            let loaded = unsafe { loads(level, &halves, &words) };
            let [
                f16s,
                bf16s,
                bits,
                sums,
                values,
                weights,
                bytes,
                integers,
                looked_up,
            ] = loaded;
            let signed = words.map(u32::to_le_bytes);
            let signed = signed.as_flattened();
            for lane in 0..LANES {
                assert_eq!(
                    f16s[lane],
                    half::f16::from_bits(halves[lane]).to_f32(),
                    "{level:?}"
                );
                assert_eq!(
                    bf16s[lane],
                    half::bf16::from_bits(halves[lane]).to_f32(),
                    "{level:?}"
                );
                assert_eq!(bits[lane], (words[lane] >> 12 & 255) as f32, "{level:?}");
                let word = words[lane].cast_signed();
                let sum = word.wrapping_add(77);
                assert_eq!(sums[lane], sum as f32, "{level:?}");
                let pair = [word as i16, (word >> 16) as i16];
                let value = pairs::dequantize_dot(sum, pair);
                assert_eq!(values[lane], value as f32, "{level:?}");
                let weight = pairs::dequantize_code((words[lane] >> 12 & 15) as u8, pair);
                assert_eq!(weights[lane], weight as f32, "{level:?}");
                let byte = f32::from(signed[lane].cast_signed());
                assert_eq!(bytes[lane], byte, "{level:?}");
                let integer = f32::from(halves[lane].cast_signed());
                assert_eq!(integers[lane], integer, "{level:?}");
                let entry = TABLE[(words[lane] >> 12 & 15) as usize];
                assert_eq!(looked_up[lane].to_bits(), entry.to_bits(), "{level:?}");
            }
        }
    }
}
