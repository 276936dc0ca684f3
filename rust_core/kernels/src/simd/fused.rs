//! Sixteen lanes as an array, with fused multiply-add: bit-exact emulation of AVX-512 arithmetic on any machine.
//!
//! For tests only: without the instruction, a fused multiply-add is a slow library call.

use super::{LANES, Lanes, Portable};

/// See [`Lanes`].
#[derive(Clone, Copy)]
pub(crate) struct Fused(Portable);

/// Delegate constructors to [`Portable`].
macro_rules! portable {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $ty),*) -> Self {
                // SAFETY: the same contract.
                Self(unsafe { Portable::$name($($arg),*) })
            }
        )*
    };
}

/// Delegate binary operations to [`Portable`].
macro_rules! portable_pairs {
    ($($name:ident)*) => {
        $(
            #[inline(always)]
            unsafe fn $name(self, other: Self) -> Self {
                // SAFETY: the same contract.
                Self(unsafe { self.0.$name(other.0) })
            }
        )*
    };
}

// SAFETY: executes no special instructions; pointers are the callers' promise.
unsafe impl Lanes for Fused {
    const WIDE: bool = false;

    portable! {
        splat(value: f32);
        load(from: *const f32);
        load_f16(from: *const u16);
        load_bf16(from: *const u16);
        load_i8(from: *const i8);
        load_i16(from: *const i16);
        load_from_table(from: *const u32, shift: u32, table: &[f32; 16]);
        load_i32_plus(from: *const i32, addend: i32);
        load_dequantized_dots(dots: *const i32, start: i32, pairs: *const i32);
        load_bits(from: *const u32, shift: u32, mask: u32);
    }

    portable_pairs! { add sub mul div max }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: arrays of sixteen, no special instructions.
        unsafe {
            let (a, b, c) = (self.to_array(), factor.to_array(), addend.to_array());
            let fused: [f32; LANES] = std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]));
            Self::load(fused.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the same contract.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn select_less(self, limit: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the same contract.
        Self(unsafe { self.0.select_less(limit.0, yes.0, no.0) })
    }

    #[inline(always)]
    unsafe fn clamp(self, limit: f32) -> Self {
        // SAFETY: the same contract.
        Self(unsafe { self.0.clamp(limit) })
    }

    #[inline(always)]
    unsafe fn mask_less(self, limit: Self) -> u32 {
        // SAFETY: the same contract.
        unsafe { self.0.mask_less(limit.0) }
    }

    #[inline(always)]
    unsafe fn pow2_of_rounded(self) -> Self {
        // SAFETY: the same contract.
        Self(unsafe { self.0.pow2_of_rounded() })
    }
}
