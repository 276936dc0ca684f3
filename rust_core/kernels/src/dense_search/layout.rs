//! How a vector is stored as a row of bytes.
//!
//! * *f32*, *f16*: the values, padded with zeros to a multiple of 16.
//! * *int8*: one byte per value, `code + 128` with a code from -127 to 127, padded with code 0 to a multiple of 64; then the
//!   scale (f32). A value is `scale * code`.
//!
//! A row of zero bytes is a vector of zeros in every type. All numbers are little-endian.

use half::f16;

use crate::error::KernelError;

/// The most dimensions of a vector. 32-bit sums of products of codes stay exact below it (see `query.rs`).
pub const MAX_DIMENSIONS: usize = 16_384;

/// What [`RowType::Int8`] adds to a code.
pub(super) const ZERO_CODE: u8 = 128;

/// The largest code.
const MAX_CODE: f32 = 127.0;

/// Element type of the stored vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowType {
    F32,
    F16,
    Int8,
}

impl RowType {
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Int8];

    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
        }
    }

    /// # Errors
    /// There is no type of this name.
    pub fn parse(name: &str) -> Result<Self, KernelError> {
        Self::ALL
            .into_iter()
            .find(|one| one.name() == name)
            .ok_or_else(|| {
                KernelError::config(format!(
                    "There is no vector type {name:?}: choose f32, f16 or int8."
                ))
            })
    }
}

/// Element type and number of dimensions of stored rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    pub row_type: RowType,
    pub dimensions: usize,
}

impl RowLayout {
    /// # Errors
    /// There are no dimensions, or too many.
    pub fn new(row_type: RowType, dimensions: usize) -> Result<Self, KernelError> {
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(KernelError::config(format!(
                "A vector of {dimensions} dimensions cannot be stored: it must have from 1 to {MAX_DIMENSIONS}."
            )));
        }
        Ok(Self {
            row_type,
            dimensions,
        })
    }

    /// Values of a row with its padding.
    pub(super) fn padded(self) -> usize {
        self.dimensions.next_multiple_of(match self.row_type {
            RowType::F32 | RowType::F16 => 16,
            RowType::Int8 => 64,
        })
    }

    /// Bytes of a row.
    pub fn row_bytes(self) -> usize {
        match self.row_type {
            RowType::F32 => 4 * self.padded(),
            RowType::F16 => 2 * self.padded(),
            RowType::Int8 => self.padded() + size_of::<f32>(),
        }
    }

    /// Store vectors (`[n, dimensions]`) as rows.
    ///
    /// # Errors
    /// The arrays do not fit each other, or a value is not finite or, in f16, beyond 65,504.
    pub fn encode(self, vectors: &[f32], rows: &mut [u8]) -> Result<(), KernelError> {
        self.check_lengths(vectors.len(), rows.len())?;
        let limit = match self.row_type {
            RowType::F16 => f16::MAX.to_f32(),
            RowType::F32 | RowType::Int8 => f32::MAX,
        };
        if !vectors.iter().all(|value| value.abs() <= limit) {
            return Err(KernelError::config(format!(
                "A vector holds a value that {} cannot store.",
                self.row_type.name()
            )));
        }
        let pairs = vectors
            .chunks_exact(self.dimensions)
            .zip(rows.chunks_exact_mut(self.row_bytes()));
        for (vector, row) in pairs {
            match self.row_type {
                RowType::F32 => {
                    row.fill(0);
                    for (value, out) in vector.iter().zip(row.as_chunks_mut().0) {
                        *out = value.to_le_bytes();
                    }
                }
                RowType::F16 => {
                    row.fill(0);
                    for (value, out) in vector.iter().zip(row.as_chunks_mut().0) {
                        *out = f16::from_f32(*value).to_le_bytes();
                    }
                }
                RowType::Int8 => self.encode_codes(vector, row),
            }
        }
        Ok(())
    }

    fn encode_codes(self, vector: &[f32], row: &mut [u8]) {
        let (codes, scale) = row.split_at_mut(self.padded());
        let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let factor = MAX_CODE / largest;
        // The factor of tiny values is infinite: the row is then stored as zeros.
        let usable = factor.is_finite();
        codes.fill(ZERO_CODE);
        if usable {
            for (value, code) in vector.iter().zip(codes) {
                *code = ((value * factor).round_ties_even() as i8).wrapping_add_unsigned(ZERO_CODE)
                    as u8;
            }
        }
        let step = if usable { largest / MAX_CODE } else { 0.0 };
        scale.copy_from_slice(&step.to_le_bytes());
    }

    /// The vectors (`[n, dimensions]`) that rows hold.
    ///
    /// # Errors
    /// The arrays do not fit each other.
    pub fn decode(self, rows: &[u8], vectors: &mut [f32]) -> Result<(), KernelError> {
        self.check_lengths(vectors.len(), rows.len())?;
        let pairs = vectors
            .chunks_exact_mut(self.dimensions)
            .zip(rows.chunks_exact(self.row_bytes()));
        for (vector, row) in pairs {
            match self.row_type {
                RowType::F32 => {
                    for (value, bytes) in vector.iter_mut().zip(row.as_chunks().0) {
                        *value = f32::from_le_bytes(*bytes);
                    }
                }
                RowType::F16 => {
                    for (value, bytes) in vector.iter_mut().zip(row.as_chunks().0) {
                        *value = f16::from_le_bytes(*bytes).to_f32();
                    }
                }
                RowType::Int8 => {
                    let (codes, scale) = row.split_at(self.padded());
                    let scale = f32::from_le_bytes(scale.try_into().expect("four bytes"));
                    for (value, &code) in vector.iter_mut().zip(codes) {
                        *value = scale * (f32::from(code) - f32::from(ZERO_CODE));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_lengths(self, values: usize, bytes: usize) -> Result<(), KernelError> {
        let count = values / self.dimensions;
        if count * self.dimensions != values || count.checked_mul(self.row_bytes()) != Some(bytes) {
            return Err(KernelError::config(
                "The arrays of vectors and rows do not fit each other.",
            ));
        }
        Ok(())
    }
}
