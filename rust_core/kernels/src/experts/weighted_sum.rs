//! Sums of the experts' outputs, weighted.

use crate::simd::{LANES, Lanes, by_level};

/// An output of an expert for a row: its row in the experts' outputs, and its weight.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WeightedRow {
    pub row: u32,
    pub weight: f32,
}

/// # Safety
/// As [`add_weighted_sum`], with the level's instructions enabled.
#[inline(always)]
unsafe fn add_weighted_sum_body<L: Lanes>(
    outputs: *const f32,
    stride: usize,
    terms: &[WeightedRow],
    to: &mut [f32],
) {
    for (at, to) in to.chunks_exact_mut(LANES).enumerate() {
        // SAFETY: whole vectors by contract; instructions by the caller's promise.
        unsafe {
            let mut sum = L::splat(0.0);
            for term in terms {
                let output = outputs.add(term.row as usize * stride + at * LANES);
                sum = L::splat(term.weight).mul_add(L::load(output), sum);
            }
            let to = to.as_mut_ptr();
            L::load(to).add(sum).store(to);
        }
    }
}

by_level! {
    /// Add the weighted sum of some rows of `outputs`, which are `stride` floats apart, to `to`, a multiple of 16 floats. Terms
    /// are summed in their order.
    ///
    /// # Safety
    /// The machine has the level. `outputs` holds these rows, of at least `to.len()` floats.
    pub unsafe fn add_weighted_sum(outputs: *const f32, stride: usize, terms: &[WeightedRow], to: &mut [f32]) = add_weighted_sum_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::pack::tests::Random;

    #[test]
    fn sums_match_double_precision() {
        let (rows, width) = (7, 48);
        let mut random = Random(9);
        let outputs: Vec<f32> = (0..rows * width).map(|_| random.unit()).collect();
        let residual: Vec<f32> = (0..width).map(|_| random.unit()).collect();
        let terms = [(6, 0.5), (0, 0.25), (3, -1.5)];
        let terms = terms.map(|(row, weight)| WeightedRow { row, weight });
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            let mut to = residual.clone();
            // SAFETY: the level is available; the rows are in `outputs`.
            unsafe { add_weighted_sum(level, outputs.as_ptr(), width, &terms, &mut to) };
            for (column, sum) in to.iter().enumerate() {
                let exact: f64 = terms
                    .iter()
                    .map(|term| {
                        let output = outputs[term.row as usize * width + column];
                        f64::from(term.weight) * f64::from(output)
                    })
                    .sum();
                let exact = f64::from(residual[column]) + exact;
                assert!((f64::from(*sum) - exact).abs() < 1e-6, "{level:?}");
            }
        }
    }
}
