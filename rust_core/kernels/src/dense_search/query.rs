//! Queries in the forms in which the kernels read them.

use super::layout::{RowLayout, RowType, ZERO_CODE};
use crate::error::KernelError;

/// The largest magnitude of a query's integer: both of its bytes are then in [-128, 127].
const MAX_INTEGER: f32 = 127.0 * 257.0;

/// Bound on the sum of the integers' magnitudes before rounding. With codes up to 128 and half a unit of rounding for each of
/// [`super::MAX_DIMENSIONS`] values, a dot product stays below 2^31.
const MAX_INTEGER_SUM: f32 = 16.5e6;

/// Queries of a call. Rows of floats are multiplied with floats, rows of codes with 16-bit integers, to which a query loses
/// less than 2^-15 of its largest value.
#[derive(Debug, Default)]
pub(super) struct Queries {
    count: usize,
    /// Values of a query with padding, as the rows have.
    pub padded: usize,
    /// `[count, padded]`, for rows of floats.
    pub floats: Vec<f32>,
    /// `[count, padded]`, for rows of codes.
    pub integers: Vec<i16>,
    /// `256 * high + low` is the integer. `[count, padded]` each.
    pub high: Vec<i8>,
    pub low: Vec<i8>,
    /// [`ZERO_CODE`] times the sum of the integers, modulo 2^32.
    pub offsets: Vec<i32>,
    /// Value of one unit of the integers.
    pub scales: Vec<f32>,
}

impl Queries {
    /// # Errors
    /// The values are not whole queries, or one is not finite.
    pub fn new(values: &[f32], layout: RowLayout) -> Result<Self, KernelError> {
        let dimensions = layout.dimensions;
        if !values.len().is_multiple_of(dimensions) {
            return Err(KernelError::config(format!(
                "A query must have {dimensions} dimensions, as the stored vectors have."
            )));
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Err(KernelError::config(
                "A query holds a value that is not finite.",
            ));
        }
        let mut queries = Self {
            count: values.len() / dimensions,
            padded: layout.padded(),
            ..Self::default()
        };
        for query in values.chunks_exact(dimensions) {
            match layout.row_type {
                RowType::F32 | RowType::F16 => {
                    queries.floats.extend_from_slice(query);
                    let end = queries.floats.len() + queries.padded - dimensions;
                    queries.floats.resize(end, 0.0);
                }
                RowType::Int8 => queries.push_integers(query),
            }
        }
        Ok(queries)
    }

    pub fn count(&self) -> usize {
        self.count
    }

    fn push_integers(&mut self, query: &[f32]) {
        let largest = query.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let sum: f32 = query.iter().map(|x| x.abs() / largest).sum();
        let most = MAX_INTEGER.min(MAX_INTEGER_SUM / sum);
        let mut total = 0i32;
        for at in 0..self.padded {
            // Dividing first: the reciprocal of a tiny value may overflow. A query of zeros gives NaN, which casts to 0.
            let value = query.get(at).map_or(0.0, |x| x / largest * most);
            let integer = value.round_ties_even() as i16;
            total = total.wrapping_add(i32::from(integer));
            self.integers.push(integer);
            self.high.push(((i32::from(integer) + 128) >> 8) as i8);
            self.low.push(integer as i8);
        }
        self.offsets.push(total.wrapping_mul(i32::from(ZERO_CODE)));
        self.scales
            .push(if largest > 0.0 { largest / most } else { 0.0 });
    }
}
