//! The hyperbolic tangent.

use super::{Lanes, ROUND_TO_EXPONENT};

/// `tanh(x)` with a relative error below 5e-7, so accurate near zero too; NaN stays NaN.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(crate) unsafe fn tanh<L: Lanes>(x: L) -> L {
    // tanh(x) = m / (m + 2) with m = 2^t - 1, t = 2 x log2(e).
    // SAFETY: the caller's promise, for the whole body.
    unsafe {
        let (zero, lowest) = (L::splat(0.0), L::splat(-40.0));
        let t = x.mul(L::splat(2.0 * std::f32::consts::LOG2_E));
        // Beyond, the result is 1 or -1. `max` with the NaN on its right keeps it.
        let t = lowest.max(zero.sub(lowest.max(zero.sub(t))));
        let round = L::splat(ROUND_TO_EXPONENT);
        let rounded = t.add(round);
        let r = t.sub(rounded.sub(round));
        // The polynomial of [`Lanes::exp2`], of 2^r - 1.
        let mut p = L::splat(1.535_336_2e-4);
        for coefficient in [
            1.339_887_4e-3,
            9.618_437e-3,
            5.550_332_5e-2,
            0.240_226_48,
            std::f32::consts::LN_2,
        ] {
            p = p.mul_add(r, L::splat(coefficient));
        }
        let power = rounded.pow2_of_rounded();
        let m = p.mul(r).mul_add(power, power.sub(L::splat(1.0)));
        m.div(m.add(L::splat(2.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::simd::{LANES, by_level};

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn tanh_body<L: Lanes>(x: &[f32; LANES]) -> [f32; LANES] {
        // SAFETY: by_level enables the instructions.
        unsafe { tanh(L::load(x.as_ptr())).to_array() }
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn tanh_on_level(x: &[f32; LANES]) -> [f32; LANES] = tanh_body;
    }

    #[test]
    fn tanh_is_accurate_for_every_magnitude() {
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for step in 0..20_000 {
                // From 1e-10 to 1e3.
                let x = 10f32.powf(step as f32 / 20_000.0 * 13.0 - 10.0);
                let xs: [f32; LANES] = std::array::from_fn(|i| if i % 2 == 0 { x } else { -x });
                // SAFETY: the level is available.
                for (x, y) in xs.iter().zip(unsafe { tanh_on_level(level, &xs) }) {
                    let exact = f64::from(*x).tanh();
                    let error = (f64::from(y) - exact).abs() / exact.abs();
                    assert!(error < 5e-7, "{level:?} {x}: {y}, {exact}");
                    assert!(y.abs() <= 1.0);
                }
            }
            let mut special = [0.0; LANES];
            special[..4].copy_from_slice(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0]);
            // SAFETY: the level is available.
            let [inf, negative, nan, zero, ..] = unsafe { tanh_on_level(level, &special) };
            assert!(inf == 1.0 && negative == -1.0 && nan.is_nan() && zero == 0.0);
        }
    }
}
