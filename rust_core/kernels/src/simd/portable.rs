//! Sixteen lanes as an array, vectorised by the compiler, without fused multiply-add.

use super::{LANES, Lanes};
use crate::pack::pairs;

/// See [`Lanes`].
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; LANES]);

/// Convert f16 to f32 without a branch, so that the conversion of sixteen vectorises.
#[inline(always)]
pub(crate) fn widen_f16(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // The exponent biases differ by 112; the multiplication is exact, subnormals included.
    let finite = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    // Infinities and NaN have all exponent bits set in both types.
    let special = f32::from_bits(magnitude | 0xff << 23);
    let value = if magnitude < 0x7c00 << 13 {
        finite
    } else {
        special
    };
    f32::from_bits(value.to_bits() | u32::from(bits & 0x8000) << 16)
}

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| op(self.0[i], other.0[i])))
    }
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl Lanes for Portable {
    const WIDE: bool = false;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: sixteen elements by contract.
        Self(unsafe { from.cast::<[f32; LANES]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        let bits = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Self(bits.map(widen_f16))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        let bits = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Self(bits.map(|bits| f32::from_bits(u32::from(bits) << 16)))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        // SAFETY: sixteen elements by contract.
        let bytes = unsafe { from.cast::<[i8; LANES]>().read_unaligned() };
        Self(bytes.map(f32::from))
    }

    #[inline(always)]
    unsafe fn load_i16(from: *const i16) -> Self {
        // SAFETY: sixteen elements by contract.
        let integers = unsafe { from.cast::<[i16; LANES]>().read_unaligned() };
        Self(integers.map(f32::from))
    }

    #[inline(always)]
    unsafe fn load_from_table(from: *const u32, shift: u32, table: &[f32; 16]) -> Self {
        // SAFETY: sixteen elements by contract.
        let words = unsafe { from.cast::<[u32; LANES]>().read_unaligned() };
        Self(words.map(|word| table[(word >> shift & 15) as usize]))
    }

    #[inline(always)]
    unsafe fn load_i32_plus(from: *const i32, addend: i32) -> Self {
        // SAFETY: sixteen elements by contract.
        let words = unsafe { from.cast::<[i32; LANES]>().read_unaligned() };
        Self(words.map(|word| word.wrapping_add(addend) as f32))
    }

    #[inline(always)]
    unsafe fn load_dequantized_dots(dots: *const i32, start: i32, pairs: *const i32) -> Self {
        // SAFETY: sixteen elements each by contract.
        let (dots, pairs) = unsafe {
            (
                dots.cast::<[i32; LANES]>().read_unaligned(),
                pairs.cast::<[[i16; 2]; LANES]>().read_unaligned(),
            )
        };
        Self(std::array::from_fn(|lane| {
            pairs::dequantize_dot(dots[lane].wrapping_add(start), pairs[lane]) as f32
        }))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: sixteen elements by contract.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn load_bits(from: *const u32, shift: u32, mask: u32) -> Self {
        // SAFETY: sixteen elements by contract.
        let words = unsafe { from.cast::<[u32; LANES]>().read_unaligned() };
        Self(words.map(|word| (word >> shift & mask) as f32))
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        Self(std::array::from_fn(|i| {
            self.0[i] * factor.0[i] + addend.0[i]
        }))
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn select_less(self, limit: Self, yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(|i| {
            if self.0[i] < limit.0[i] {
                yes.0[i]
            } else {
                no.0[i]
            }
        }))
    }

    #[inline(always)]
    unsafe fn clamp(self, limit: f32) -> Self {
        Self(self.0.map(|x| {
            if x.abs() < limit {
                x
            } else {
                limit.copysign(x)
            }
        }))
    }

    #[inline(always)]
    unsafe fn mask_less(self, limit: Self) -> u32 {
        let pairs = self.0.iter().zip(&limit.0).enumerate();
        pairs.fold(0, |mask, (i, (x, limit))| mask | u32::from(x < limit) << i)
    }

    #[inline(always)]
    unsafe fn pow2_of_rounded(self) -> Self {
        Self(self.0.map(|x| f32::from_bits(x.to_bits() << 23)))
    }
}
