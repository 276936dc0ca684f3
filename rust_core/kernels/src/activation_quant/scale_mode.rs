//! Choice of the scale of a group of quantised activations.

/// How the scale of a group is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleMode {
    /// `max|x| / 127`: the largest activation is code 127.
    MaxAbs,
    /// The next power of two above that. Codes are 1.4 times as coarse on average (mean KL 0.0020 instead of 0.0013 on the
    /// demo model with int8 keys and values), but scaling is an exponent addition, which some processors execute in
    /// parallel with multiplications.
    PowerOfTwo,
}

/// The smallest power of two not below `x ≥ 0`. For subnormal `x` it may be the smallest normal number.
#[inline(always)]
pub(super) fn next_power_of_two(x: f32) -> f32 {
    const MANTISSA: u32 = 0x007f_ffff;
    f32::from_bits((x.to_bits() + MANTISSA) & !MANTISSA)
}
