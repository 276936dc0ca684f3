//! Activations of feed-forwards, a panel of 16 columns at a time.
//!
//! SiLU, the most common one, has kernels of its own (`norm.rs`, `activation_quant/gated.rs`).

use crate::dispatch::Level;
use crate::norm::silu_panel;
use crate::simd::{LANES, Lanes, by_level, tanh};
use crate::spec::Activation;

/// Largest gate, and largest magnitude of the other factor, of the clamped SwiGLU (gpt-oss).
const CLAMP: f32 = 7.0;
/// Factor inside the sigmoid of the clamped SwiGLU.
const CLAMPED_SLOPE: f32 = 1.702;

/// `1 / (1 + e^-x)`
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `x * sigmoid(slope * x)` where `slope_x` is `slope * x`.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn times_sigmoid<L: Lanes>(x: L, slope_x: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let (zero, one) = (L::splat(0.0), L::splat(1.0));
        // Beyond this range the sigmoid is 1 or negligible.
        let power = zero.sub(slope_x.clamp(87.0)).exp();
        x.div(one.add(power))
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn apply<L: Lanes>(kind: Activation, x: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            Activation::Silu => times_sigmoid(x, x),
            Activation::GeluTanh => {
                // tanh(u) = 2 sigmoid(2u) - 1, so x / 2 * (1 + tanh(u)) = x * sigmoid(2u).
                let slope = 2.0 * (2.0 * std::f32::consts::FRAC_1_PI).sqrt();
                let cubic = x
                    .mul(x)
                    .mul_add(L::splat(slope * 0.044_715), L::splat(slope));
                times_sigmoid(x, cubic.mul(x))
            }
            Activation::Gelu => crate::norm::gelu_lanes(x),
            Activation::Relu2 => x.max(L::splat(0.0)).mul(x),
            Activation::SwigluClamped => {
                let limit = L::splat(CLAMP);
                // NaN stays NaN.
                let gate = x.select_less(limit, x, limit).add(x.sub(x));
                times_sigmoid(gate, gate.mul(L::splat(CLAMPED_SLOPE)))
            }
        }
    }
}

/// # Safety
/// As [`activate_panel`], with the level's instructions enabled.
#[inline(always)]
unsafe fn activate_body<L: Lanes>(
    kind: Activation,
    gate: *const f32,
    up: *const f32,
    out: *mut f32,
    out_stride: usize,
    rows: usize,
) {
    for row in 0..rows {
        // SAFETY: sixteen values of each row, and the instructions, by the caller's promise.
        unsafe {
            let mut value = apply(kind, L::load(gate.add(row * LANES)));
            if !up.is_null() {
                let mut factor = L::load(up.add(row * LANES));
                if kind == Activation::SwigluClamped {
                    factor = factor.clamp(CLAMP).add(L::splat(1.0));
                }
                value = value.mul(factor);
            }
            value.store(out.add(row * out_stride));
        }
    }
}

by_level! {
    /// # Safety
    /// As [`activate_panel`].
    unsafe fn activate(kind: Activation, gate: *const f32, up: *const f32, out: *mut f32, out_stride: usize, rows: usize) = activate_body;
}

/// `out = act(gate) * up`, or `act(gate)` if `up` is null, for a panel of 16 columns and `rows` rows. Rows of `out` are
/// `out_stride` floats apart, rows of `gate` and `up` are contiguous.
///
/// # Safety
/// The machine has the level; all panels are valid for `rows` rows, and no other thread accesses `out`.
pub unsafe fn activate_panel(
    level: Level,
    kind: Activation,
    gate: *const f32,
    up: *const f32,
    out: *mut f32,
    out_stride: usize,
    rows: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if kind == Activation::Silu && !up.is_null() {
            silu_panel(level, gate, up, out, out_stride, rows);
        } else {
            activate(level, kind, gate, up, out, out_stride, rows);
        }
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn sigmoid_gate_body<L: Lanes>(x: &mut [f32], gate: &[f32]) {
    let whole = x.len() / LANES * LANES;
    assert!(gate.len() == x.len());
    // SAFETY: whole vectors inside both slices; the instructions are the caller's promise.
    unsafe {
        for at in (0..whole).step_by(LANES) {
            let to = x.as_mut_ptr().add(at);
            times_sigmoid(L::load(to), L::load(gate.as_ptr().add(at))).store(to);
        }
    }
    for (x, gate) in x[whole..].iter_mut().zip(&gate[whole..]) {
        *x /= 1.0 + (-gate).exp();
    }
}

by_level! {
    /// `x = x * sigmoid(gate)`.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn sigmoid_gate(x: &mut [f32], gate: &[f32]) = sigmoid_gate_body;
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn softcap_body<L: Lanes>(x: &mut [f32], factor: f32, cap: f32) {
    let whole = x.len() / LANES * LANES;
    // SAFETY: whole vectors inside the slice; the instructions are the caller's promise.
    unsafe {
        for at in (0..whole).step_by(LANES) {
            let to = x.as_mut_ptr().add(at);
            let mut value = L::load(to).mul(L::splat(factor));
            if cap > 0.0 {
                value = tanh(value.mul(L::splat(1.0 / cap))).mul(L::splat(cap));
            }
            value.store(to);
        }
    }
    for x in &mut x[whole..] {
        let value = *x * factor;
        *x = if cap > 0.0 {
            cap * (value / cap).tanh()
        } else {
            value
        };
    }
}

by_level! {
    /// `x = x * factor`, and if `cap` is above 0 then `cap * tanh(x / cap)` of it.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn softcap(x: &mut [f32], factor: f32, cap: f32) = softcap_body;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(kind: Activation, x: f64, up: f64) -> f64 {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        match kind {
            Activation::Silu => x * sigmoid(x) * up,
            Activation::GeluTanh => {
                let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
                x / 2.0 * (1.0 + u.tanh()) * up
            }
            // By the trapezoidal rule.
            Activation::Gelu => {
                let steps = 20_000;
                let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
                let (low, width) = (-12.0, x + 12.0);
                let at = |i: usize| density(low + width * i as f64 / steps as f64);
                let sum: f64 = (1..steps).map(at).sum::<f64>() + (at(0) + at(steps)) / 2.0;
                x * sum * width / steps as f64 * up
            }
            Activation::Relu2 => x.max(0.0).powi(2) * up,
            Activation::SwigluClamped => {
                let gate = x.min(7.0);
                gate * sigmoid(1.702 * gate) * (up.clamp(-7.0, 7.0) + 1.0)
            }
        }
    }

    #[test]
    fn activations_match_double_precision_at_every_level() {
        let kinds = [
            Activation::Silu,
            Activation::GeluTanh,
            Activation::Gelu,
            Activation::Relu2,
            Activation::SwigluClamped,
        ];
        let gate: Vec<f32> = (0..48).map(|i| (i as f32 - 24.0) * 0.45).collect();
        let up: Vec<f32> = (0..48).map(|i| (i as f32 * 0.7).sin() * 9.0).collect();
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for kind in kinds {
                let mut out = vec![0.0; 48];
                // SAFETY: the level is available; three rows of sixteen.
                unsafe {
                    let out = out.as_mut_ptr();
                    activate_panel(level, kind, gate.as_ptr(), up.as_ptr(), out, LANES, 3);
                }
                for i in 0..48 {
                    let expected = exact(kind, f64::from(gate[i]), f64::from(up[i]));
                    let error = (f64::from(out[i]) - expected).abs();
                    let allowed = 4e-5 + 1e-6 * expected.abs();
                    assert!(error < allowed, "{level:?} {kind:?} {} {error}", gate[i]);
                }
            }
        }
    }

    #[test]
    fn capped_values_match_double_precision() {
        let x: Vec<f32> = (0..21).map(|i| (i as f32 - 10.0) * 13.0).collect();
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for (factor, cap) in [(0.5, 30.0), (2.0, 0.0)] {
                let mut capped = x.clone();
                // SAFETY: the level is available.
                unsafe { softcap(level, &mut capped, factor, cap) };
                for (x, capped) in x.iter().zip(&capped) {
                    let value = f64::from(x * factor);
                    let cap = f64::from(cap);
                    let expected = if cap > 0.0 {
                        cap * (value / cap).tanh()
                    } else {
                        value
                    };
                    assert!(
                        (f64::from(*capped) - expected).abs() < 1e-6 * 30.0,
                        "{level:?}"
                    );
                }
            }
        }
    }
}
