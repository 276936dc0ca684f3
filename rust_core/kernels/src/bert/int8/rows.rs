//! Activations as bytes.

use super::dots::{ByteDots, QUAD};
use super::{MULTIPLE, PADDING};
use crate::arena::{Buffer, Plain};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::simd::{LANES, by_level};

/// The largest code.
const MAX_CODE: f32 = 255.0;

/// The largest signed code.
const MAX_SIGNED_CODE: f32 = 127.0;

/// The code of zero in symmetric ranges.
const ZERO_CODE: u8 = 128;

/// How a row's codes are scaled: a value is `step * code + low`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::bert) struct RowScale {
    pub step: f32,
    pub low: f32,
}

// SAFETY: plain numbers.
unsafe impl Plain for RowScale {}

/// Which values the codes of a row span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bert) enum Range {
    /// From the least to the largest value.
    Whole,
    /// As far below zero as above: codes minus 128 are then signed codes without a low end.
    Symmetric,
}

/// A worker's rows: room for the largest group and the widest matrix.
pub(in crate::bert) struct ByteRows {
    level: Level,
    /// `[rows, inputs padded]`. What is in the padding is multiplied with zero.
    codes: Buffer<u8>,
    scales: Buffer<RowScale>,
    rows: usize,
    inputs: usize,
}

impl ByteRows {
    pub fn new(level: Level, rows: usize, inputs: usize) -> Result<Self, KernelError> {
        Ok(Self {
            level,
            codes: Buffer::new(rows * inputs.next_multiple_of(PADDING))?,
            scales: Buffer::new(rows)?,
            rows: 0,
            inputs: 0,
        })
    }

    /// Quantise `values`, rows of `inputs` values. Replaces all rows.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn fill(&mut self, values: &[f32], inputs: usize, range: Range) {
        self.inputs = inputs;
        self.rows = values.len() / inputs;
        let stride = self.stride();
        let codes = self.codes.as_mut_slice().chunks_exact_mut(stride);
        let rows = values.chunks_exact(inputs).zip(codes);
        for ((row, codes), scale) in rows.zip(self.scales.as_mut_slice()) {
            // SAFETY: the level is the caller's promise.
            *scale = unsafe { quantize(self.level, row, range, codes) };
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bytes between consecutive rows of codes.
    pub fn stride(&self) -> usize {
        self.inputs.next_multiple_of(PADDING)
    }

    pub fn codes(&self) -> *const u8 {
        self.codes.ptr()
    }

    /// Some codes of a row with a symmetric range as signed bytes, by four.
    ///
    /// # Panics
    /// The row or the codes do not exist.
    #[inline(always)]
    pub fn signed_codes(
        &self,
        row: usize,
        inputs: std::ops::Range<usize>,
    ) -> impl Iterator<Item = [u8; QUAD]> {
        assert!(row < self.rows && inputs.end <= self.stride());
        // SAFETY: written by `fill` only, which borrows exclusively.
        let codes = unsafe {
            self.codes
                .slice(row * self.stride() + inputs.start, inputs.len())
        };
        codes.as_chunks::<QUAD>().0.iter().map(|quad| {
            (u32::from_ne_bytes(*quad) ^ u32::from_ne_bytes([ZERO_CODE; QUAD])).to_ne_bytes()
        })
    }

    pub fn scales(&self) -> &[RowScale] {
        // SAFETY: written by `fill` only, which borrows exclusively.
        unsafe { self.scales.slice(0, self.rows) }
    }
}

/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn quantize_body<L: ByteDots>(row: &[f32], range: Range, codes: &mut [u8]) -> RowScale {
    let inputs = row.len();
    assert!(codes.len() >= inputs && inputs.is_multiple_of(MULTIPLE) && inputs > 0);
    // SAFETY: the instructions are the caller's promise; sixteen values from every multiple of LANES.
    unsafe {
        let zero = L::splat(0.0);
        let load = row.as_ptr();
        // Two maxima, because each waits for the one before it.
        let mut most = [L::load(load), L::load(load.add(LANES))];
        let mut least = [zero.sub(most[0]), zero.sub(most[1])];
        for at in (MULTIPLE..inputs).step_by(MULTIPLE) {
            for part in 0..2 {
                let value = L::load(load.add(at + part * LANES));
                most[part] = value.max(most[part]);
                least[part] = zero.sub(value).max(least[part]);
            }
        }
        let high = most[0].max(most[1]).largest();
        let low = -least[0].max(least[1]).largest();
        let (step, low) = match range {
            Range::Whole => ((high - low) / MAX_CODE, low),
            Range::Symmetric => {
                let step = high.max(-low) / MAX_SIGNED_CODE;
                (step, -f32::from(ZERO_CODE) * step)
            }
        };
        // The reciprocal of a tiny step is infinite: all values are then the low end.
        let inverse = 1.0 / step;
        let inverse = if inverse.is_finite() { inverse } else { 0.0 };
        for at in (0..inputs).step_by(LANES) {
            let code = L::load(load.add(at))
                .sub(L::splat(low))
                .mul(L::splat(inverse));
            code.store_bytes(codes.as_mut_ptr().add(at));
        }
        RowScale { step, low }
    }
}

by_level! {
    /// Quantise a row, a multiple of [`MULTIPLE`] long.
    ///
    /// # Safety
    /// The machine has the level.
    unsafe fn quantize(row: &[f32], range: Range, codes: &mut [u8]) -> RowScale = quantize_body;
}
