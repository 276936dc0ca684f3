//! Quantisation of weights to int8.

use half::f16;

use crate::pack::layout::GROUP;

/// The largest code.
const MAX_CODE: f32 = 127.0;

/// Weights as blocks of Q8_0: an f16 scale and 32 codes, which are the nearest for the scale as it is stored.
///
/// `weights` is a multiple of [`GROUP`] long.
pub(super) fn quantize(weights: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(weights.len() / GROUP * (2 + GROUP));
    for group in weights.as_chunks::<GROUP>().0 {
        let largest = group.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let scale = f16::from_f32(largest / MAX_CODE);
        bytes.extend(scale.to_le_bytes());
        let scale = scale.to_f32();
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        bytes.extend(group.iter().map(|x| {
            let code = (x * inverse).round_ties_even().clamp(-MAX_CODE, MAX_CODE);
            (code as i8).cast_unsigned()
        }));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::tests::Random;
    use crate::quant::{DType, dequantize_row};

    #[test]
    fn weights_are_within_half_a_step() {
        let mut random = Random(5);
        for size in [1.0, 1e-3, 1e-9, 0.0] {
            let weights: Vec<f32> = (0..4 * GROUP).map(|_| size * random.unit()).collect();
            let bytes = quantize(&weights);
            let mut held = vec![1.0; weights.len()];
            dequantize_row(DType::Q8_0, &bytes, &mut held);
            for (x, y) in weights.iter().zip(&held) {
                // Half a step, the rounding of the scale to f16 (2^-11 of it, 127 codes), and its smallest value.
                assert!((x - y).abs() <= size / 127.0 * 0.57 + 4e-6, "{x} {y}");
            }
        }
    }
}
