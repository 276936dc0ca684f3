//! Matrix products of bytes that are summed exactly over all inputs.
//!
//! An activation is `step * code + low` with codes from 0 to 255 and a step and a low end for each row; a weight is
//! `scale * code` with codes from -127 to 127 and a scale for each output. A result needs no more than the dot product of both
//! rows of codes, an exact integer on every level, and two multiply-adds (`finish.rs`). There is no rescaling inside the sum,
//! which took a third of the time with a scale for each 32 inputs.
//!
//! * `rows`: activations; `weights`: quantised weights in panels of 16 outputs
//! * `dots`: the dot products; `finish`: what becomes of them; `product`: the loops around both

mod dots;
mod finish;
mod product;
mod rows;
#[cfg(test)]
mod tests;
mod weights;

pub(super) use self::dots::{ByteDots, Dots, Operands, QUAD};
pub(super) use self::finish::{Finish, Target};
pub(super) use self::product::multiply;
pub(super) use self::rows::{ByteRows, Range};
pub(super) use self::weights::{ByteMatrix, MAX_INPUTS};

/// Inputs that are padded with zero weights to a multiple of this: the bytes of a cache line and of a tile's row.
const PADDING: usize = 64;

/// What the number of inputs must be a multiple of.
pub(super) const MULTIPLE: usize = 2 * crate::simd::LANES;
