//! The Walsh–Hadamard transform of a head's query or key, which spreads outlier dimensions over all dimensions.
//!
//! Scores are preserved up to a constant, `(Hq)·(Hk) = n q·k`. A key quantised with one scale loses precision when a few
//! large dimensions set the scale; after the rotation all dimensions have similar magnitudes (QuaRot, Ashkboos et al. 2024).

use super::{Int8Dot, LANES};

/// Size `n` of the transform for heads of `dims` dimensions, a multiple of 16: the largest power of two that divides `dims`.
/// Dot products grow by this factor.
pub(crate) fn hadamard_size(dims: usize) -> usize {
    debug_assert!(dims.is_multiple_of(LANES));
    1 << dims.trailing_zeros()
}

/// Transform a head in place, in blocks of [`hadamard_size`] dimensions, without the factor `1 / √n`.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
pub(crate) unsafe fn hadamard<L: Int8Dot>(head: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe {
        match head.len() {
            // Lengths known at compile time are transformed in registers.
            64 => transform::<L>(&mut head[..64]),
            128 => transform::<L>(&mut head[..128]),
            _ => transform::<L>(head),
        }
    }
}

/// # Safety
/// As [`hadamard`].
#[inline(always)]
unsafe fn transform<L: Int8Dot>(head: &mut [f32]) {
    let vectors = hadamard_size(head.len()) / LANES;
    let all = head.as_chunks_mut::<LANES>().0;
    // SAFETY: sixteen elements each; instructions by the caller's promise.
    unsafe {
        for lanes in all.iter_mut() {
            L::load(lanes.as_ptr()).hadamard().store(lanes.as_mut_ptr());
        }
        for group in all.chunks_exact_mut(vectors) {
            let mut distance = 1;
            while distance < vectors {
                for pair in group.chunks_exact_mut(2 * distance) {
                    let (low, high) = pair.split_at_mut(distance);
                    for (low, high) in low.iter_mut().zip(high) {
                        let (a, b) = (L::load(low.as_ptr()), L::load(high.as_ptr()));
                        a.add(b).store(low.as_mut_ptr());
                        a.sub(b).store(high.as_mut_ptr());
                    }
                }
                distance *= 2;
            }
        }
    }
}

/// The definition of the transform, in f64.
#[cfg(test)]
pub(crate) fn naive_hadamard(head: &[f32]) -> Vec<f64> {
    let size = hadamard_size(head.len());
    (0..head.len())
        .map(|to| {
            let first = to / size * size;
            (0..size)
                .map(|from| {
                    let even = (from & (to - first)).count_ones().is_multiple_of(2);
                    let sign = if even { 1.0 } else { -1.0 };
                    sign * f64::from(head[first + from])
                })
                .sum()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dispatch::Level;
    use crate::simd::by_level;

    /// # Safety
    /// The level's instructions are enabled.
    #[inline(always)]
    unsafe fn transform_body<L: Int8Dot>(head: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe { hadamard::<L>(head) };
    }

    by_level! {
        /// # Safety
        /// The machine has the level.
        unsafe fn transform_on_level(head: &mut [f32]) = transform_body;
    }

    proptest! {
        #[test]
        fn levels_agree_with_the_definition_and_one_another(
            head in (1usize..=32).prop_flat_map(|n| prop::collection::vec(-1f32..1.0, n * LANES)),
        ) {
            let exact = naive_hadamard(&head);
            let mut first = None;
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                let mut ours = head.clone();
                // SAFETY: the level is available.
                unsafe { transform_on_level(level, &mut ours) };
                for (ours, exact) in ours.iter().zip(&exact) {
                    prop_assert!((f64::from(*ours) - exact).abs() < 1e-4, "{:?}", level);
                }
                let first = first.get_or_insert_with(|| ours.clone());
                prop_assert_eq!(&ours, first, "{:?}", level);
            }
        }
    }
}
