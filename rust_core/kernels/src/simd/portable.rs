//! Sixteen lanes as an array: any compiler's vectors, no fused multiply-add.

use half::{bf16, f16};

use super::{LANES, Lanes};

/// See [`Lanes`].
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; LANES]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| op(self.0[i], other.0[i])))
    }
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl Lanes for Portable {
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
        Self(bits.map(|bits| f16::from_bits(bits).to_f32()))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: sixteen elements by contract.
        let bits = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Self(bits.map(|bits| bf16::from_bits(bits).to_f32()))
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
    unsafe fn pow2_of_rounded(self) -> Self {
        Self(
            self.0
                .map(|x| f32::from_bits(x.to_bits().wrapping_add(127) << 23)),
        )
    }
}
