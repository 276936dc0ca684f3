//! How a group of activations is scaled.

/// What scale a group gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleMode {
    /// With which the largest activation is code 127.
    MaxAbs,
    /// The next power of two. Its codes are 1.4 times as coarse on average (a mean KL of 0.0020 instead of 0.0013, the demo
    /// model with int8 keys and values), and a product with it is a change of an exponent, which some processors do while
    /// they multiply something else.
    PowerOfTwo,
}

/// The least power of two at or above `x`, which is not negative; below the least normal number it may be that.
#[inline(always)]
pub(super) fn next_power_of_two(x: f32) -> f32 {
    const MANTISSA: u32 = 0x007f_ffff;
    f32::from_bits((x.to_bits() + MANTISSA) & !MANTISSA)
}
