//! Weights packed for the kernels: panels of 16 output columns in one contiguous stream.
//!
//! A matrix `[outputs, inputs]` becomes `ceil(outputs / 16)` panels. A panel holds its 16 columns for
//! every input, so a kernel reads it once from start to end. Missing columns of the last panel are
//! zero weights. [`layout`] defines the bytes. Codes of quantised weights are those of the file: nothing is
//! requantised. Scales and minima are copied too ([`blocked`]: K-quants), except that those of 4-bit codes are rounded to 15
//! bits relative to the largest in their column ([`pairs`]).

pub mod blocked;
mod float;
pub mod layout;
pub mod pairs;
pub(crate) mod quantized;
pub mod table;

pub use layout::{Offset, PANEL_COLUMNS, PanelKind, QuantLayout, Scales};

use std::ops::Range;

use crate::error::KernelError;
use crate::format::TensorView;
use crate::quant::BlockScales;

/// A packed matrix: a typed view of bytes owned by the weight arena.
///
/// Plain data without a lifetime: the owner of the arena keeps it alive longer than the matrix (see `weights.rs`).
#[derive(Debug, Clone, Copy)]
pub struct PackedMatrix {
    pub kind: PanelKind,
    /// Output columns of the GEMM, which are rows of the stored tensor.
    pub outputs: usize,
    /// Outputs per segment. A panel never spans two segments, so attention heads whose dimension is not a multiple of 16
    /// get separate panels. Most matrices are one segment.
    pub segment: usize,
    /// Length of the dot products.
    pub inputs: usize,
    /// Computed once: every panel that is multiplied needs it.
    panel_bytes: usize,
    data: *const u8,
}

// SAFETY: read-only after packing; the arena behind it is Send and Sync.
unsafe impl Send for PackedMatrix {}
// SAFETY: as above.
unsafe impl Sync for PackedMatrix {}

impl PackedMatrix {
    /// A matrix whose panels will be written at `data`.
    ///
    /// # Safety
    /// `data` is 64-byte aligned and valid for [`Self::bytes`] bytes that outlive the value. They are not written once kernels
    /// run.
    pub unsafe fn at(
        data: *const u8,
        kind: PanelKind,
        outputs: usize,
        segment: usize,
        inputs: usize,
    ) -> Self {
        assert!(segment > 0 && outputs.is_multiple_of(segment));
        Self {
            kind,
            outputs,
            segment,
            inputs,
            panel_bytes: kind.panel_bytes(inputs),
            data,
        }
    }

    pub fn panels(&self) -> usize {
        panels_of(self.outputs, self.segment)
    }

    /// Panels of one segment.
    pub fn segment_panels(&self) -> usize {
        self.segment.div_ceil(PANEL_COLUMNS)
    }

    /// Rows of the stored tensor that panel `panel` holds.
    pub fn panel_outputs(&self, panel: usize) -> Range<usize> {
        outputs_of_panel(panel, self.segment)
    }

    /// The outputs of a segment as a matrix of their own.
    pub fn segment_matrix(&self, segment: usize) -> Self {
        assert!(segment < self.outputs / self.segment);
        let data = self.panel(segment * self.segment_panels());
        // SAFETY: the segment's panels follow one another in the matrix, and are aligned as all of its panels.
        unsafe { Self::at(data, self.kind, self.segment, self.segment, self.inputs) }
    }

    /// Bytes of one panel; a multiple of 32, and of 64 unless it is Q8_0's.
    pub fn panel_bytes(&self) -> usize {
        self.panel_bytes
    }

    pub fn bytes(&self) -> usize {
        self.panels() * self.panel_bytes()
    }

    /// The panel's first byte.
    pub fn panel(&self, panel: usize) -> *const u8 {
        assert!(panel < self.panels());
        // SAFETY: inside the matrix by the check.
        unsafe { self.data.add(panel * self.panel_bytes()) }
    }

    pub(crate) fn panel_slice(&self, panel: usize) -> &[u8] {
        // SAFETY: a whole panel is at `panel(..)` (contract of `at`).
        unsafe { std::slice::from_raw_parts(self.panel(panel), self.panel_bytes()) }
    }

    /// Dequantise one output's weights (a row of the stored tensor), for embedding look-up.
    pub fn unpack_output(&self, output: usize, weights: &mut [f32]) {
        assert!(output < self.outputs && weights.len() == self.inputs);
        let (segment, part) = (output / self.segment, output % self.segment);
        let panel = segment * self.segment_panels() + part / PANEL_COLUMNS;
        let panel = self.panel_slice(panel);
        let column = part % PANEL_COLUMNS;
        match self.kind {
            PanelKind::Quant(layout) => quantized::unpack(panel, layout, column, weights),
            _ => float::unpack(panel, self.kind, column, weights),
        }
    }
}

/// Number of panels of a matrix whose outputs are divided into segments.
pub fn panels_of(outputs: usize, segment: usize) -> usize {
    outputs / segment * segment.div_ceil(PANEL_COLUMNS)
}

/// The outputs that panel `panel` of a matrix holds whose outputs are divided into segments.
pub fn outputs_of_panel(panel: usize, segment: usize) -> Range<usize> {
    let each = segment.div_ceil(PANEL_COLUMNS);
    let (start, part) = (panel / each * segment, panel % each);
    start + part * PANEL_COLUMNS..start + segment.min((part + 1) * PANEL_COLUMNS)
}

/// Reject a tensor whose shape is not `[outputs, inputs]`.
pub fn check_shape(
    tensor: &TensorView<'_>,
    outputs: usize,
    inputs: usize,
) -> Result<(), KernelError> {
    if tensor.shape != [outputs, inputs] {
        return Err(KernelError::model(format!(
            "Tensor {} has shape {:?}, but this model needs [{outputs}, {inputs}].",
            tensor.name, tensor.shape
        )));
    }
    Ok(())
}

/// Scratch memory of one packing worker, reused for all its panels.
#[derive(Default)]
pub struct PackScratch {
    codes: Vec<u8>,
    scales: Vec<f32>,
    mins: Vec<f32>,
    blocks: Vec<BlockScales>,
}

/// Pack rows `outputs` (at most 16) of `tensor` into `out` (exactly one panel, zeroed).
pub fn pack_panel(
    tensor: &TensorView<'_>,
    kind: PanelKind,
    outputs: Range<usize>,
    scratch: &mut PackScratch,
    out: &mut [u8],
) {
    assert!(outputs.len() <= PANEL_COLUMNS);
    assert_eq!(out.len(), kind.panel_bytes(tensor.cols()));
    match kind {
        PanelKind::Quant(layout) => quantized::pack(tensor, layout, outputs, scratch, out),
        _ => float::pack(tensor, kind, outputs, out),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::arena::Buffer;
    use crate::quant::{DType, dequantize_row};
    use proptest::prelude::*;

    /// Random weights of moderate size in the format's own bytes, and their dequantised values.
    pub(crate) struct TestTensor {
        pub dtype: DType,
        pub shape: [usize; 2],
        pub bytes: Vec<u8>,
        pub values: Vec<f32>,
    }

    /// A small deterministic generator for test data (splitmix64).
    pub(crate) struct Random(pub u64);

    impl Random {
        pub fn bits(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }

        pub fn unit(&mut self) -> f32 {
            (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        }
    }

    impl TestTensor {
        pub fn random(dtype: DType, outputs: usize, inputs: usize, seed: u64) -> Self {
            let mut random = Random(seed);
            let blocks = outputs * inputs / dtype.block_len();
            let mut bytes = Vec::new();
            for _ in 0..blocks {
                let start = bytes.len();
                bytes.extend((0..dtype.block_bytes()).map(|_| random.bits() as u8));
                let half_at = |bytes: &mut Vec<u8>, at: usize, value: f32| {
                    bytes[start + at..start + at + 2]
                        .copy_from_slice(&half::f16::from_f32(value).to_le_bytes());
                };
                let small = 0.01 + 0.01 * random.unit().abs();
                match dtype {
                    DType::F32 => {
                        bytes.truncate(start);
                        bytes.extend(random.unit().to_le_bytes());
                    }
                    DType::F16 => half_at(&mut bytes, 0, random.unit()),
                    DType::BF16 => {
                        bytes.truncate(start);
                        bytes.extend(half::bf16::from_f32(random.unit()).to_le_bytes());
                    }
                    DType::MXFP4 => bytes[start] = 118 + (random.bits() % 4) as u8,
                    DType::Q2K => {
                        half_at(&mut bytes, 80, small);
                        half_at(&mut bytes, 82, small * random.unit());
                    }
                    DType::Q3K => half_at(&mut bytes, 108, small),
                    DType::Q6K => half_at(&mut bytes, 208, small),
                    DType::Q8_0 | DType::Q4_0 | DType::Q5_0 | DType::IQ4NL | DType::IQ4XS => {
                        half_at(&mut bytes, 0, small)
                    }
                    DType::Int4 => {
                        bytes[start..start + 4].copy_from_slice(&small.to_le_bytes());
                        let zero = (random.bits() % 17) as f32;
                        bytes[start + 4..start + 8].copy_from_slice(&zero.to_le_bytes());
                    }
                    DType::Q4_1 | DType::Q5_1 | DType::Q4K | DType::Q5K => {
                        half_at(&mut bytes, 0, small);
                        half_at(&mut bytes, 2, small * random.unit());
                    }
                }
            }
            let mut values = vec![0.0; outputs * inputs];
            dequantize_row(dtype, &bytes, &mut values);
            Self {
                dtype,
                shape: [outputs, inputs],
                bytes,
                values,
            }
        }

        pub fn view(&self) -> TensorView<'_> {
            TensorView {
                name: "test",
                shape: &self.shape,
                dtype: self.dtype,
                bytes: &self.bytes,
            }
        }

        /// The packed matrix and the memory that holds it.
        pub fn pack(&self) -> (PackedMatrix, Buffer<u8>) {
            self.pack_segments(self.shape[0])
        }

        /// The same with outputs in segments.
        pub fn pack_segments(&self, segment: usize) -> (PackedMatrix, Buffer<u8>) {
            let [outputs, inputs] = self.shape;
            let kind = PanelKind::of(self.dtype);
            let size = kind.panel_bytes(inputs);
            let buffer = Buffer::<u8>::new(panels_of(outputs, segment) * size).unwrap();
            // SAFETY: the buffer is returned beside the matrix, aligned and of the right size.
            let matrix = unsafe { PackedMatrix::at(buffer.ptr(), kind, outputs, segment, inputs) };
            let mut scratch = PackScratch::default();
            for panel in 0..matrix.panels() {
                // SAFETY: the buffer is not shared.
                let out = unsafe { buffer.slice_mut(panel * size, size) };
                pack_panel(
                    &self.view(),
                    kind,
                    matrix.panel_outputs(panel),
                    &mut scratch,
                    out,
                );
            }
            (matrix, buffer)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn packing_keeps_every_weight(seed: u64, outputs in 1usize..40, blocks in 1usize..4) {
            for dtype in DType::ALL {
                let inputs = blocks * dtype.block_len() * if dtype.is_quantized() { 1 } else { 7 };
                let segment = 1 + seed as usize % 40;
                let outputs = outputs.next_multiple_of(segment);
                let tensor = TestTensor::random(dtype, outputs, inputs, seed);
                let (matrix, _buffer) = tensor.pack_segments(segment);
                let mut row = vec![0.0; inputs];
                for output in 0..outputs {
                    matrix.unpack_output(output, &mut row);
                    let values = &tensor.values[output * inputs..][..inputs];
                    // Pairs are rounded relative to their column's scale ([`pairs`]).
                    let largest = values.iter().fold(1.0, |most: f32, x| most.max(x.abs()));
                    let paired = matches!(
                        matrix.kind,
                        PanelKind::Quant(layout) if layout.offset == Offset::Paired
                    );
                    let rounding = if paired { 5e-5 * largest } else { 0.0 };
                    for (unpacked, original) in row.iter().zip(values) {
                        let tolerance = 2e-6 * original.abs().max(1.0) + rounding;
                        prop_assert!((unpacked - original).abs() <= tolerance, "{dtype:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_wrong_shape_is_refused_with_both_shapes() {
        let tensor = TestTensor::random(DType::F32, 3, 5, 1);
        let message = check_shape(&tensor.view(), 5, 3).unwrap_err().to_string();
        assert!(
            message.contains("[3, 5]") && message.contains("[5, 3]"),
            "{message}"
        );
    }

    #[test]
    fn groups_take_the_files_bytes() {
        let bytes = |dtype, inputs| PanelKind::of(dtype).panel_bytes(inputs);
        assert_eq!(bytes(DType::Q4_1, 32), 64 + 320);
        assert_eq!(bytes(DType::Q4_1, 64), 64 + 2 * 320);
        assert_eq!(bytes(DType::Q8_0, 32), 544);
        assert_eq!(bytes(DType::Q4_0, 64), 64 + 2 * 288);
        // A block of two groups, of which one is missing.
        assert_eq!(bytes(DType::Q4_0, 96), 64 + 2 * 288 + 64 + 256);
        assert_eq!(bytes(DType::Q5_0, 64), 2 * 352);
        assert_eq!(bytes(DType::IQ4NL, 64), 2 * 288);
        assert_eq!(bytes(DType::Q5_1, 32), 384);
        assert_eq!(bytes(DType::MXFP4, 128), 4 * 272);
        assert_eq!(bytes(DType::MXFP4, 64), 64 + 2 * 256);
        assert_eq!(bytes(DType::IQ4XS, 256), 64 + 128 + 8 * 256);
    }

    /// All exponents of MXFP4 are kept, but the two smallest, whose scales are subnormal, are 0.
    #[test]
    fn powers_of_two_are_exact() {
        let mut tensor = TestTensor::random(DType::MXFP4, 256, 32, 7);
        for (exponent, block) in tensor.bytes.chunks_exact_mut(17).enumerate() {
            block[0] = exponent as u8;
        }
        dequantize_row(DType::MXFP4, &tensor.bytes, &mut tensor.values);
        let (matrix, _buffer) = tensor.pack();
        let mut row = [0.0; 32];
        for (exponent, values) in tensor.values.chunks_exact(32).enumerate() {
            matrix.unpack_output(exponent, &mut row);
            if exponent < 2 {
                assert_eq!(row, [0.0; 32]);
            } else {
                assert_eq!(row, values, "{exponent}");
            }
        }
    }

    /// Packed weights take at most 3 % more than in the file, apart from the 64 bytes of a panel's column scales.
    #[test]
    fn packed_weights_take_what_the_file_does() {
        let (inputs, groups) = (2048, 2048 / layout::GROUP);
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_quantized()) {
            let PanelKind::Quant(layout) = PanelKind::of(dtype) else {
                panic!("{dtype:?} is not packed");
            };
            let in_file = PANEL_COLUMNS * inputs / dtype.block_len() * dtype.block_bytes();
            let packed = layout.panel_bytes(groups) - layout.column_scale_bytes();
            assert!(
                packed * 100 <= 103 * in_file,
                "{dtype:?}: {packed} of {in_file}"
            );
            // All codes are on cache lines but those of Q8_0, which alternate with its scales.
            if dtype != DType::Q8_0 {
                let mut codes = (0..groups).map(|group| layout.code_offset(group));
                assert!(codes.all(|offset| offset.is_multiple_of(64)), "{dtype:?}");
            }
        }
    }

    /// Every layout's place in its list is its own, and so are the bytes of its groups.
    #[test]
    fn groups_of_every_layout_are_disjoint() {
        for (index, layout) in QuantLayout::ALL.into_iter().enumerate() {
            assert_eq!(layout.index(), index, "{layout:?}");
            let groups = 19;
            let mut taken = vec![false; layout.panel_bytes(groups)];
            taken[..layout.column_scale_bytes()].fill(true);
            for group in 0..groups {
                let codes =
                    layout.code_offset(group)..layout.code_offset(group) + layout.code_bytes();
                let scales =
                    layout.scale_offset(group)..layout.scale_offset(group) + layout.scale_bytes();
                for at in codes.chain(scales) {
                    assert!(!std::mem::replace(&mut taken[at], true), "{layout:?} {at}");
                }
            }
        }
    }
}
