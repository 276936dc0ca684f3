//! Normalisation (RMS and layer norm), and vectors of sigmoids, gated SiLU and GELU.

use crate::activation_quant::TILE_ROWS;
use crate::simd::{LANES, Lanes, ROUND_TO_EXPONENT, by_level};

/// Sums of the squares of several rows at once, so that the rows' dependent additions overlap.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn sums_of_squares_body<L: Lanes, const ROWS: usize>(rows: [&[f32]; ROWS]) -> [f32; ROWS] {
    let n = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == n));
    let whole = n / LANES * LANES;
    // SAFETY: instructions by the caller's promise; every access is below `whole` ≤ n.
    unsafe {
        let mut squares = [L::splat(0.0); ROWS];
        for at in (0..whole).step_by(LANES) {
            for row in 0..ROWS {
                let lanes = L::load(rows[row].as_ptr().add(at));
                squares[row] = lanes.mul_add(lanes, squares[row]);
            }
        }
        let mut sums = [0.0; ROWS];
        for row in 0..ROWS {
            let tail: f32 = rows[row][whole..].iter().map(|x| x * x).sum();
            sums[row] = squares[row].sum() + tail;
        }
        sums
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn sum_of_squares_body<L: Lanes>(x: &[f32]) -> f32 {
    // SAFETY: the caller's promise.
    let [sum] = unsafe { sums_of_squares_body::<L, 1>([x]) };
    sum
}

by_level! {
    /// The sum of x².
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn sum_of_squares(x: &[f32]) -> f32 = sum_of_squares_body;
}

/// The RMS scale of `n` values from the sum of their squares: `1 / sqrt(mean(x²) + eps)`.
#[inline(always)]
pub fn scale_of_squares(sum: f32, n: usize, eps: f32) -> f32 {
    1.0 / (sum / n as f32 + eps).sqrt()
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn rms_scale_body<L: Lanes>(x: &[f32], eps: f32) -> f32 {
    // SAFETY: the caller's promise.
    let sum = unsafe { sum_of_squares_body::<L>(x) };
    scale_of_squares(sum, x.len(), eps)
}

by_level! {
    /// `1 / sqrt(mean(x²) + eps)`.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn rms_scale(x: &[f32], eps: f32) -> f32 = rms_scale_body;
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn rms_scales_of_tile_body<L: Lanes>(
    rows: [&[f32]; TILE_ROWS],
    eps: f32,
) -> [f32; TILE_ROWS] {
    // SAFETY: the caller's promise.
    let mut scales = unsafe { sums_of_squares_body::<L, TILE_ROWS>(rows) };
    for scale in &mut scales {
        *scale = scale_of_squares(*scale, rows[0].len(), eps);
    }
    scales
}

by_level! {
    /// [`rms_scale`] for a tile's rows, which have equal lengths: the same bits, faster.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn rms_scales_of_tile(rows: [&[f32]; TILE_ROWS], eps: f32) -> [f32; TILE_ROWS] = rms_scales_of_tile_body;
}

/// `out = x * scale * weight`; `out` may be `x`.
///
/// # Safety
/// The level's instructions are enabled; as many values as weights at `x` and `out`, which no other thread accesses.
#[inline(always)]
unsafe fn scale_and_weigh<L: Lanes>(x: *const f32, scale: f32, weight: &[f32], out: *mut f32) {
    let whole = weight.len() / LANES * LANES;
    // SAFETY: the caller's promise; as many values as weights are accessed.
    unsafe {
        let scales = L::splat(scale);
        for at in (0..whole).step_by(LANES) {
            let scaled = L::load(x.add(at)).mul(scales);
            let weighed = scaled.mul(L::load(weight.as_ptr().add(at)));
            weighed.store(out.add(at));
        }
        for (i, weight) in weight.iter().enumerate().skip(whole) {
            *out.add(i) = *x.add(i) * scale * weight;
        }
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn rms_norm_body<L: Lanes>(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    assert!(weight.len() == x.len() && out.len() == x.len());
    // SAFETY: the caller's promise; equal lengths (checked).
    unsafe {
        let scale = rms_scale_body::<L>(x, eps);
        scale_and_weigh::<L>(x.as_ptr(), scale, weight, out.as_mut_ptr());
    }
}

by_level! {
    /// `out = x / sqrt(mean(x²) + eps) * weight`.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) = rms_norm_body;
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn rms_norm_in_place_body<L: Lanes>(x: &mut [f32], weight: &[f32], eps: f32) {
    assert!(weight.len() == x.len());
    // SAFETY: the caller's promise; equal lengths (checked).
    unsafe {
        let scale = rms_scale_body::<L>(x, eps);
        let x = x.as_mut_ptr();
        scale_and_weigh::<L>(x, scale, weight, x);
    }
}

by_level! {
    /// [`rms_norm`] in place: the same bits.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) = rms_norm_in_place_body;
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn layer_norm_body<L: Lanes>(x: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) {
    let n = x.len();
    assert!(weight.len() == n && (bias.len() == n || bias.is_empty()));
    let (whole, at) = (n / LANES * LANES, x.as_mut_ptr());
    // SAFETY: instructions by the caller's promise; every access is below `whole` ≤ n.
    unsafe {
        let mut sum = L::splat(0.0);
        for i in (0..whole).step_by(LANES) {
            sum = sum.add(L::load(at.add(i)));
        }
        let tail: f32 = x[whole..].iter().sum();
        let mean = (sum.sum() + tail) / n as f32;
        let means = L::splat(mean);
        let mut squares = L::splat(0.0);
        for i in (0..whole).step_by(LANES) {
            let centred = L::load(at.add(i)).sub(means);
            squares = centred.mul_add(centred, squares);
        }
        let tail: f32 = x[whole..].iter().map(|x| (x - mean) * (x - mean)).sum();
        let scale = 1.0 / ((squares.sum() + tail) / n as f32 + eps).sqrt();
        let scales = L::splat(scale);
        for i in (0..whole).step_by(LANES) {
            let weighted = scales.mul(L::load(weight.as_ptr().add(i)));
            let centred = L::load(at.add(i)).sub(means);
            let bias = match bias.is_empty() {
                true => L::splat(0.0),
                false => L::load(bias.as_ptr().add(i)),
            };
            centred.mul_add(weighted, bias).store(at.add(i));
        }
        for i in whole..n {
            let bias = bias.get(i).copied().unwrap_or(0.0);
            x[i] = (x[i] - mean) * (scale * weight[i]) + bias;
        }
    }
}

by_level! {
    /// `x = (x - mean) / sqrt(variance + eps) * weight + bias`, in place; `bias` may be empty.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn layer_norm(x: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) = layer_norm_body;
}

/// `x / 2 * (1 + erf(x / √2))`
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(crate) unsafe fn gelu_lanes<L: Lanes>(x: L) -> L {
    // SAFETY: the caller's promise.
    unsafe {
        let (zero, one) = (L::splat(0.0), L::splat(1.0));
        let z = x.mul(L::splat(std::f32::consts::FRAC_1_SQRT_2));
        let size = z.max(zero.sub(z));
        // erf by formula 7.1.26 of Abramowitz and Stegun, with an error below 1.5e-7.
        let t = one.div(size.mul_add(L::splat(0.327_591_1), one));
        let mut p = L::splat(1.061_405_4);
        for coefficient in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            p = p.mul_add(t, L::splat(coefficient));
        }
        let tail = p.mul(t).mul(zero.sub(size.mul(size)).exp());
        let magnitude = one.sub(tail);
        let erf = z.select_less(zero, zero.sub(magnitude), magnitude);
        let half = x.mul(L::splat(0.5));
        half.mul_add(erf, half)
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn gelu_body<L: Lanes>(x: &mut [f32]) {
    assert!(x.len().is_multiple_of(LANES));
    for lanes in x.as_chunks_mut::<LANES>().0 {
        // SAFETY: instructions by the caller's promise; whole vectors inside the slice.
        unsafe { gelu_lanes(L::load(lanes.as_ptr())).store(lanes.as_mut_ptr()) };
    }
}

by_level! {
    /// `x = x / 2 * (1 + erf(x / √2))`, in place; x a multiple of 16 long.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn gelu(x: &mut [f32]) = gelu_body;
}

/// `1 + e^-x` of `N` vectors: the sigmoids' reciprocals, within 4 ulp. NaN becomes a number, so that it has to reach the
/// result by what is divided.
///
/// One vector is a dependency chain of twenty operations, so several are interleaved to hide the latency. The exponential is
/// inlined without the range handling of [`Lanes::exp`], which is not needed here.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
pub(crate) unsafe fn sigmoid_divisors<L: Lanes, const N: usize>(x: [L; N]) -> [L; N] {
    // SAFETY: the instructions by the caller's promise.
    unsafe {
        let (one, round) = (L::splat(1.0), L::splat(ROUND_TO_EXPONENT));
        let (mut r, mut power, mut p) = ([one; N], [one; N], [one; N]);
        for i in 0..N {
            // Beyond this range e^-x is not a normal number and the sigmoid is 1 or negligible.
            r[i] = x[i].clamp(87.0);
        }
        // Cody-Waite reduction: e^-x = 2^n e^-r, with n the integer nearest to -x / ln 2.
        for i in 0..N {
            power[i] = r[i].mul_add(L::splat(-std::f32::consts::LOG2_E), round);
        }
        for i in 0..N {
            p[i] = power[i].sub(round);
        }
        for i in 0..N {
            r[i] = p[i].mul_add(L::splat(0.693_359_4), r[i]);
        }
        for i in 0..N {
            r[i] = p[i].mul_add(L::splat(-2.121_944_4e-4), r[i]);
        }
        // Minimax polynomial of degree five for e^-r on [-ln 2 / 2, ln 2 / 2], with an error below 1e-7.
        let coefficients = [4.189_816e-2, -0.166_676_39, 0.499_991_48, -0.999_999_7, 1.0];
        for i in 0..N {
            p[i] = L::splat(-8.290_272e-3);
        }
        for at in 0..coefficients.len() {
            for i in 0..N {
                p[i] = p[i].mul_add(r[i], L::splat(coefficients[at]));
            }
        }
        for i in 0..N {
            p[i] = p[i].mul_add(power[i].pow2_of_rounded(), one);
        }
        p
    }
}

/// `silu(gate) * up` of `N` contiguous vectors: `gate / (1 + e^-gate) * up`.
///
/// # Safety
/// The level's instructions are enabled; 16 values for each vector at both pointers.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
pub(crate) unsafe fn silu_gate<L: Lanes, const N: usize>(
    gate: *const f32,
    up: *const f32,
) -> [L; N] {
    // SAFETY: sixteen elements each and the instructions by the caller's promise.
    unsafe {
        let mut values = [L::splat(0.0); N];
        for i in 0..N {
            values[i] = L::load(gate.add(i * LANES));
        }
        values = sigmoid_divisors(values);
        for i in 0..N {
            values[i] = L::load(gate.add(i * LANES)).div(values[i]);
        }
        for i in 0..N {
            values[i] = values[i].mul(L::load(up.add(i * LANES)));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::pack::tests::Random;

    #[test]
    fn norm_matches_double_precision() {
        let mut random = Random(3);
        for n in [1, 15, 16, 64, 576, 1001] {
            let x: Vec<f32> = (0..n).map(|_| random.unit()).collect();
            let weight: Vec<f32> = (0..n).map(|_| random.unit()).collect();
            let mean = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n as f64;
            let inverse = 1.0 / (mean + 1e-5).sqrt();
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut out = vec![0.0; n];
                // SAFETY: the level is available.
                unsafe { rms_norm(level, &x, &weight, 1e-5, &mut out) };
                let mut in_place = x.clone();
                // SAFETY: as above.
                unsafe { rms_norm_in_place(level, &mut in_place, &weight, 1e-5) };
                assert_eq!(in_place, out);
                for i in 0..n {
                    let exact = f64::from(x[i]) * inverse * f64::from(weight[i]);
                    assert!((f64::from(out[i]) - exact).abs() < 1e-6, "{level:?} {n}");
                }
            }
        }
    }

    #[test]
    fn layer_norm_matches_double_precision() {
        let mut random = Random(4);
        for n in [16, 64, 384] {
            let x: Vec<f32> = (0..n).map(|_| 5.0 + random.unit()).collect();
            let weight: Vec<f32> = (0..n).map(|_| random.unit()).collect();
            let bias: Vec<f32> = (0..n).map(|_| random.unit()).collect();
            let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
            let variance = x
                .iter()
                .map(|&x| (f64::from(x) - mean).powi(2))
                .sum::<f64>()
                / n as f64;
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut out = x.clone();
                // SAFETY: the level is available.
                unsafe { layer_norm(level, &mut out, &weight, &bias, 1e-12) };
                for i in 0..n {
                    let exact = (f64::from(x[i]) - mean) / (variance + 1e-12).sqrt();
                    let exact = exact * f64::from(weight[i]) + f64::from(bias[i]);
                    assert!((f64::from(out[i]) - exact).abs() < 1e-5, "{level:?} {n}");
                }
            }
        }
    }

    #[test]
    fn gelu_matches_known_values_and_limits() {
        // x, gelu(x), from the definition in forty digits.
        let known = [
            (0.0, 0.0),
            (1.0, 0.841_344_746_068_542_9),
            (-1.0, -0.158_655_253_931_457_05),
            (0.5, 0.345_731_230_670_020_4),
            (-0.5, -0.154_268_769_329_979_6),
            (2.0, 1.954_499_736_103_641_6),
            (-2.0, -0.045_500_263_896_358_42),
            (3.0, 2.995_950_305_903_041_4),
            (30.0, 30.0),
            (-30.0, 0.0),
        ];
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            for (x, exact) in known {
                let mut lanes = [x as f32; 16];
                // SAFETY: the level is available.
                unsafe { gelu(level, &mut lanes) };
                assert!(
                    (f64::from(lanes[7]) - exact).abs() < 1e-6,
                    "{level:?} {x} {lanes:?}"
                );
            }
        }
    }
}
