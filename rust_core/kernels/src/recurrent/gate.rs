//! Gates of the recurrent mixers: decays, strengths and gated outputs of heads.

use crate::activation::sigmoid;
use crate::norm::silu_gate;
use crate::simd::{LANES, Lanes, by_level};

/// `ln(1 + e^x)`; `x` itself where they are equal in f32.
pub fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn gate_with_silu_body<L: Lanes>(x: &mut [f32], z: &[f32]) {
    let n = x.len();
    assert!(z.len() == n);
    let whole = n / LANES * LANES;
    // SAFETY: instructions by the caller's promise; every access is below `whole` ≤ n.
    unsafe {
        for at in (0..whole).step_by(LANES) {
            let [gated] = silu_gate::<L, 1>(z.as_ptr().add(at), x.as_ptr().add(at));
            gated.store(x.as_mut_ptr().add(at));
        }
    }
    for i in whole..n {
        x[i] *= z[i] * sigmoid(z[i]);
    }
}

by_level! {
    /// `x = x * silu(z)`, in place.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn gate_with_silu(x: &mut [f32], z: &[f32]) = gate_with_silu_body;
}
