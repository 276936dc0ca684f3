//! Activations of feed-forwards: some vectors of any kind ([`activate`]), and panels of 16 columns.
//!
//! `activation_quant/gated.rs` quantizes what [`activate`] computes.

use crate::norm::{gelu_lanes, sigmoid_divisors};
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

/// The clamped SwiGLU's gate; NaN stays NaN.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn clamp_gate<L: Lanes>(gate: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let limit = L::splat(CLAMP);
        gate.select_less(limit, gate, limit).add(gate.sub(gate))
    }
}

/// What a kind with a sigmoid, `x * sigmoid(y)`, takes the sigmoid of.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn in_sigmoid<L: Lanes>(kind: Activation, x: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            Activation::GeluTanh => {
                // tanh(u) = 2 sigmoid(2u) - 1, so x / 2 * (1 + tanh(u)) = x * sigmoid(2u).
                let slope = 2.0 * (2.0 * std::f32::consts::FRAC_1_PI).sqrt();
                let cubic = x
                    .mul(x)
                    .mul_add(L::splat(slope * 0.044_715), L::splat(slope));
                cubic.mul(x)
            }
            Activation::SwigluClamped => clamp_gate(x).mul(L::splat(CLAMPED_SLOPE)),
            _ => x,
        }
    }
}

/// `act(gate) * up` of `N` contiguous vectors, or `act(gate)` if `up` is null; `KIND` is the index of the activation.
///
/// # Safety
/// The level's instructions are enabled; 16 values for each vector at `gate`, and at `up` unless it is null.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
pub(crate) unsafe fn activate<L: Lanes, const KIND: usize, const N: usize>(
    gate: *const f32,
    up: *const f32,
) -> [L; N] {
    let kind = const { Activation::ALL[KIND] };
    // SAFETY: the caller's promise.
    unsafe {
        let mut values = [L::splat(0.0); N];
        for i in 0..N {
            let x = L::load(gate.add(i * LANES));
            values[i] = match kind {
                Activation::Gelu => gelu_lanes(x),
                Activation::Relu2 => x.max(L::splat(0.0)).mul(x),
                _ => in_sigmoid(kind, x),
            };
        }
        if !matches!(kind, Activation::Gelu | Activation::Relu2) {
            values = sigmoid_divisors(values);
            for i in 0..N {
                let mut x = L::load(gate.add(i * LANES));
                if kind == Activation::SwigluClamped {
                    x = clamp_gate(x);
                }
                values[i] = x.div(values[i]);
            }
        }
        if !up.is_null() {
            for i in 0..N {
                let mut factor = L::load(up.add(i * LANES));
                if kind == Activation::SwigluClamped {
                    factor = factor.clamp(CLAMP).add(L::splat(1.0));
                }
                values[i] = values[i].mul(factor);
            }
        }
        values
    }
}

/// `up` from value `at` on; null stays null.
#[inline(always)]
pub(crate) fn up_from(up: *const f32, at: usize) -> *const f32 {
    if up.is_null() {
        up
    } else {
        up.wrapping_add(at)
    }
}

/// Call macro `$run` with the name of the activation, so that its kernel does not branch on it.
macro_rules! by_activation {
    ($kind:expr, $run:ident) => {
        match $kind {
            Activation::Silu => $run!(Silu),
            Activation::GeluTanh => $run!(GeluTanh),
            Activation::Gelu => $run!(Gelu),
            Activation::Relu2 => $run!(Relu2),
            Activation::SwigluClamped => $run!(SwigluClamped),
        }
    };
}
pub(crate) use by_activation;

/// # Safety
/// As [`activate_panel`], with the level's instructions enabled.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn activate_rows<L: Lanes, const KIND: usize>(
    gate: *const f32,
    up: *const f32,
    out: *mut f32,
    out_stride: usize,
    rows: usize,
) {
    const VECTORS: usize = 4;
    let whole = rows / VECTORS * VECTORS;
    // SAFETY: sixteen values of each row, and the instructions, by the caller's promise.
    unsafe {
        for row in (0..whole).step_by(VECTORS) {
            let (gate, up) = (gate.add(row * LANES), up_from(up, row * LANES));
            let values = activate::<L, KIND, VECTORS>(gate, up);
            for i in 0..VECTORS {
                values[i].store(out.add((row + i) * out_stride));
            }
        }
        for row in whole..rows {
            let (gate, up) = (gate.add(row * LANES), up_from(up, row * LANES));
            let [value] = activate::<L, KIND, 1>(gate, up);
            value.store(out.add(row * out_stride));
        }
    }
}

/// # Safety
/// As [`activate_panel`], with the level's instructions enabled.
#[inline(always)]
unsafe fn activate_panel_body<L: Lanes>(
    kind: Activation,
    gate: *const f32,
    up: *const f32,
    out: *mut f32,
    out_stride: usize,
    rows: usize,
) {
    macro_rules! run {
        ($kind:ident) => {{
            const KIND: usize = Activation::$kind.index();
            // SAFETY: the caller's promise.
            unsafe { activate_rows::<L, KIND>(gate, up, out, out_stride, rows) }
        }};
    }
    by_activation!(kind, run);
}

by_level! {
    /// `out = act(gate) * up`, or `act(gate)` if `up` is null, for a panel of 16 columns and `rows` rows. Rows of `out` are
    /// `out_stride` floats apart, rows of `gate` and `up` are contiguous.
    ///
    /// # Safety
    /// The machine has the level; all panels are valid for `rows` rows, and no other thread accesses `out`.
    pub unsafe fn activate_panel(kind: Activation, gate: *const f32, up: *const f32, out: *mut f32, out_stride: usize, rows: usize) = activate_panel_body;
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
            let [divisor] = sigmoid_divisors([L::load(gate.as_ptr().add(at))]);
            L::load(to).div(divisor).store(to);
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
    use crate::dispatch::Level;

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
        let gate: Vec<f32> = (0..48).map(|i| (i as f32 - 24.0) * 0.45).collect();
        let up: Vec<f32> = (0..48).map(|i| (i as f32 * 0.7).sin() * 9.0).collect();
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for kind in Activation::ALL {
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
    fn silu_matches_double_precision_at_every_magnitude() {
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for step in -200..200 {
                let mut gate: [f32; 16] =
                    std::array::from_fn(|lane| step as f32 + lane as f32 / 16.0);
                let (original, up) = (gate, [0.75f32; 16]);
                // SAFETY: the level is available; one row of sixteen.
                unsafe {
                    activate_panel(
                        level,
                        Activation::Silu,
                        gate.as_ptr(),
                        up.as_ptr(),
                        gate.as_mut_ptr(),
                        16,
                        1,
                    )
                };
                for (x, y) in original.iter().zip(gate) {
                    let x = f64::from(*x);
                    let exact = 0.75 * x / (1.0 + (-x).exp());
                    assert!(
                        (f64::from(y) - exact).abs() <= 1e-6 * exact.abs() + 1e-30,
                        "{x} {y}"
                    );
                }
            }
        }
    }

    #[test]
    fn silu_propagates_nan_and_infinity() {
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            let (mut gate, up) = ([1.0f32; 16], [1.0f32; 16]);
            gate[3] = f32::NAN;
            // SAFETY: the level is available; one row of sixteen.
            unsafe {
                activate_panel(
                    level,
                    Activation::Silu,
                    gate.as_ptr(),
                    up.as_ptr(),
                    gate.as_mut_ptr(),
                    16,
                    1,
                )
            };
            assert!(gate[3].is_nan() && gate[2].is_finite());
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
