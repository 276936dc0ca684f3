use proptest::prelude::*;

use super::*;
use crate::activation_quant::tests::{Outlier, outliers_of};
use crate::activation_quant::{
    NO_OUTLIER, OutlierPositions, ScaleMode, TILE_ROWS, TileGroup, quantize_row,
};
use crate::amx::row_tiles::{self, RowTile, copy_row};
use crate::arena::Buffer;
use crate::guarded::{Guarded, on_both_sides};
use crate::pack::layout::GROUP;
use crate::pack::pairs;
use crate::pack::quantized::{Group, load_column_scale};
use crate::pack::tests::{Random, TestTensor};
use crate::pack::{Offset, PANEL_COLUMNS, PanelKind};
use crate::quant::DType;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.available())
}

/// Rows of activations in f32 and quantised.
pub(super) struct Rows {
    float: Guarded<f32>,
    tiles: Guarded<TileGroup>,
    outlier_positions: Guarded<OutlierPositions>,
    row_tiles: Guarded<RowTile>,
    scale_mode: ScaleMode,
    pub inputs: usize,
}

impl Rows {
    pub fn random(rows: usize, inputs: usize, quantized: bool, seed: u64) -> Self {
        let mut random = Random(seed ^ 0xABCD);
        let mut float: Vec<f32> = (0..rows * inputs).map(|_| random.unit()).collect();
        // Some rows have outliers, some of them in the same channel.
        for at in (5..float.len()).step_by(71) {
            float[at] *= 40.0;
        }
        for at in (inputs / 2..float.len()).step_by(3 * inputs) {
            float[at] = 30.0;
        }
        let scale_mode = if seed.is_multiple_of(2) {
            ScaleMode::MaxAbs
        } else {
            ScaleMode::PowerOfTwo
        };
        Self::of(&float, inputs, quantized, scale_mode)
    }

    pub fn of(float: &[f32], inputs: usize, quantized: bool, scale_mode: ScaleMode) -> Self {
        let rows = float.len() / inputs;
        let groups = if quantized { inputs / GROUP } else { 0 };
        // Lanes without a row hold values that must not affect results.
        let padding = TileGroup {
            codes: [[77; GROUP]; TILE_ROWS],
            scales: [f32::NAN; TILE_ROWS],
            ..TileGroup::default()
        };
        let mut tiles = Guarded::filled(padding, rows.div_ceil(TILE_ROWS) * groups);
        // So do their outlier positions.
        let mut outlier_positions =
            Guarded::filled([3; TILE_ROWS], rows.div_ceil(TILE_ROWS) * groups);
        let padding = RowTile {
            codes: [[77; GROUP]; row_tiles::ROWS],
        };
        let mut row_tiles = Guarded::filled(padding, rows.div_ceil(row_tiles::ROWS) * groups);
        for row in 0..if quantized { rows } else { 0 } {
            // SAFETY: portable always runs.
            unsafe {
                quantize_row(
                    Level::Portable,
                    &float[row * inputs..][..inputs],
                    None,
                    scale_mode,
                    row % TILE_ROWS,
                    &mut tiles[row / TILE_ROWS * groups..][..groups],
                    Some(&mut outlier_positions[row / TILE_ROWS * groups..][..groups]),
                );
            }
            let tile = &tiles[row / TILE_ROWS * groups..][..groups];
            // SAFETY: the destination holds every row.
            unsafe { copy_row(row, tile, row_tiles.as_mut_ptr(), groups) };
        }
        Self {
            float: float.into(),
            tiles,
            outlier_positions,
            row_tiles,
            scale_mode,
            inputs,
        }
    }

    /// One of the rows, alone.
    fn row(&self, row: usize) -> Self {
        let float = &self.float[row * self.inputs..][..self.inputs];
        Self::of(float, self.inputs, !self.tiles.is_empty(), self.scale_mode)
    }

    pub fn activations(&self) -> Activations {
        Activations {
            quant: (!self.tiles.is_empty()).then_some(QuantRows {
                tiles: self.tiles.as_ptr(),
                outlier_positions: self.outlier_positions.as_ptr(),
                row_tiles: self.row_tiles.as_ptr(),
                inputs: self.inputs,
            }),
            scale_mode: self.scale_mode,
            float: self.float.as_ptr(),
            float_stride: self.inputs,
        }
    }

    /// Group `group` of the tile that holds row `row`.
    pub fn tile_group(&self, row: usize, group: usize) -> &TileGroup {
        &self.tiles[row / TILE_ROWS * (self.inputs / GROUP) + group]
    }

    pub fn row_outliers(&self, row: usize) -> Vec<Outlier> {
        let groups = self.inputs / GROUP;
        let tile = row / TILE_ROWS * groups..(row / TILE_ROWS + 1) * groups;
        outliers_of(
            row % TILE_ROWS,
            &self.tiles[tile.clone()],
            &self.outlier_positions[tile],
        )
    }

    /// The dequantised value of input `input`.
    fn value(&self, row: usize, input: usize) -> f64 {
        if self.tiles.is_empty() {
            return f64::from(self.float[row * self.inputs + input]);
        }
        if let Some(outlier) = self
            .row_outliers(row)
            .iter()
            .find(|o| o.input as usize == input)
        {
            return f64::from(outlier.value);
        }
        let tile = self.tile_group(row, input / GROUP);
        let lane = row % TILE_ROWS;
        f64::from(tile.scales[lane]) * f64::from(tile.codes[lane][input % GROUP])
    }
}

/// Results of one level: `[rows, padded outputs]`.
pub(super) fn gemm(
    level: Level,
    matrix: &PackedMatrix,
    activations: Activations,
    rows: usize,
    bias: Option<&[f32]>,
    initial: Option<f32>,
) -> Vec<f32> {
    let mut scratch = PanelScratch::new(rows, matrix.inputs).unwrap();
    gemm_in(
        &mut scratch,
        level,
        matrix,
        activations,
        rows,
        bias,
        initial,
    )
}

/// The same with the given scratch.
pub(super) fn gemm_in(
    scratch: &mut PanelScratch,
    level: Level,
    matrix: &PackedMatrix,
    activations: Activations,
    rows: usize,
    bias: Option<&[f32]>,
    initial: Option<f32>,
) -> Vec<f32> {
    let stride = matrix.panels() * PANEL_COLUMNS;
    // SAFETY: the level is available; `activations` hold `rows` rows.
    let mut gemm = unsafe { Gemm::new(level, &activations, rows, scratch) };
    let mut out = Guarded::filled(initial.unwrap_or(f32::NAN), rows * stride);
    let bias = bias.map(Guarded::from);
    // All but the first panel, then the first: an odd number of panels is covered even when their count is even.
    for panels in [1..matrix.panels(), 0..1] {
        let Some(last) = panels.clone().last() else {
            continue;
        };
        let first = panels.start * PANEL_COLUMNS;
        let output = Output {
            // SAFETY: the panels' columns are inside the row.
            out: unsafe { out.as_mut_ptr().add(first) },
            stride,
            accumulate: initial.is_some(),
            bias: bias
                .as_ref()
                .map_or(std::ptr::null(), |bias| bias[first..].as_ptr()),
        };
        // SAFETY: matching shapes, own memory.
        unsafe { gemm.panels(matrix, panels, matrix.panel(last), output) };
    }
    out.to_vec()
}

/// Upper bound of the borrow error of 4-bit dot products with row `row`: the low half may borrow one from the high half, so
/// a group's offset may be counted once too little ([`pairs`]).
fn borrowed(matrix: &PackedMatrix, output: usize, x: &Rows, row: usize) -> f64 {
    let PanelKind::Quant(layout) = matrix.kind else {
        return 0.0;
    };
    if layout.offset != Offset::Paired {
        return 0.0;
    }
    let panel = matrix.panel_slice(output / PANEL_COLUMNS);
    let column = output % PANEL_COLUMNS;
    let lacking = (0..matrix.inputs / GROUP).map(|group| {
        let [_, offset] = Group::of(layout, panel, group).pair(column);
        let step = x.tile_group(row, group).scales[row % TILE_ROWS];
        f64::from(offset).abs() * f64::from(step)
    });
    f64::from(load_column_scale(panel, column)) * lacking.sum::<f64>()
}

fn check(dtype: DType, rows: usize, outputs: usize, inputs: usize, seed: u64) {
    let tensor = TestTensor::random(dtype, outputs, inputs, seed);
    let (matrix, _memory): (PackedMatrix, Buffer<u8>) = tensor.pack();
    let x = Rows::random(rows, inputs, matrix.kind.is_quantized(), seed);
    let stride = matrix.panels() * PANEL_COLUMNS;
    // Weights as packed; packing has its own test.
    let mut weights = vec![0.0; outputs * inputs];
    for (output, weights) in weights.chunks_exact_mut(inputs).enumerate() {
        matrix.unpack_output(output, weights);
    }
    for level in levels() {
        let out = gemm(level, &matrix, x.activations(), rows, None, None);
        for row in 0..rows {
            for output in 0..stride {
                let (mut exact, mut magnitude, mut lacking) = (0.0, 0.0, 0.0);
                if output < outputs {
                    for input in 0..inputs {
                        let weight = f64::from(weights[output * inputs + input]);
                        exact += weight * x.value(row, input);
                        magnitude += (weight * x.value(row, input)).abs();
                    }
                    lacking = borrowed(&matrix, output, &x, row);
                }
                let error = (f64::from(out[row * stride + output]) - exact).abs();
                assert!(
                    error <= 3e-6 * magnitude + 1e-6 + lacking,
                    "{level:?} {dtype:?} row {row} output {output}: off by {error}"
                );
            }
        }
        // Batch invariance: a row computed alone has the same bits.
        for row in 0..rows {
            let alone = gemm(level, &matrix, x.row(row).activations(), 1, None, None);
            assert_eq!(
                alone,
                out[row * stride..][..stride],
                "{level:?} {dtype:?} row {row}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_format_matches_a_naive_gemm(
        seed: u64, rows in 1usize..71, outputs in 1usize..50, blocks in 1usize..3,
    ) {
        for dtype in DType::ALL {
            let inputs = if dtype.is_quantized() { blocks * dtype.block_len() } else { blocks * 37 };
            on_both_sides(|| check(dtype, rows, outputs, inputs, seed));
        }
    }
}

#[test]
fn extreme_codes_do_not_saturate() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_quantized()) {
        let mut tensor = TestTensor::random(dtype, 16, 256, 5);
        // The largest codes, where they are all bits but the signed ones' sign, at the end of a block.
        let largest = match dtype {
            DType::Q8_0 => Some((32, 0x7f)),
            DType::Q4_0 | DType::Q4_1 | DType::IQ4NL => Some((16, 0xff)),
            DType::Q5_0 | DType::Q5_1 => Some((20, 0xff)),
            _ => None,
        };
        if let Some((len, byte)) = largest {
            for block in tensor.bytes.chunks_exact_mut(dtype.block_bytes()) {
                let codes = block.len() - len;
                block[codes..].fill(byte);
            }
            crate::quant::dequantize_row(dtype, &tensor.bytes, &mut tensor.values);
        }
        let (matrix, _memory) = tensor.pack();
        let x = Rows {
            float: Guarded::filled(1.0, 256),
            tiles: Guarded::filled(
                TileGroup {
                    codes: [[127; GROUP]; TILE_ROWS],
                    scales: [1.0; TILE_ROWS],
                    initial_sums: [pairs::initial_sum(127 * 32); TILE_ROWS],
                    low_sums: [127 * 16; TILE_ROWS],
                    outliers: [7.0; TILE_ROWS],
                },
                8,
            ),
            outlier_positions: Guarded::filled([NO_OUTLIER; TILE_ROWS], 8),
            row_tiles: Guarded::from(&[][..]), // one row needs none
            scale_mode: ScaleMode::PowerOfTwo,
            inputs: 256,
        };
        let reference = gemm(Level::Portable, &matrix, x.activations(), 1, None, None);
        for level in levels() {
            let out = gemm(level, &matrix, x.activations(), 1, None, None);
            for (a, b) in out.iter().zip(&reference) {
                assert!(
                    // Offsets of up to 128 are subtracted in floats.
                    (a - b).abs() <= 1e-4 * b.abs().max(1.0),
                    "{level:?} {dtype:?} {a} {b}"
                );
            }
        }
    }
}

#[test]
fn bias_and_residual_are_added_once() {
    for dtype in [DType::F32, DType::Q4_1] {
        let tensor = TestTensor::random(dtype, 20, 64, 9);
        let (matrix, _memory) = tensor.pack();
        let x = Rows::random(9, 64, matrix.kind.is_quantized(), 4);
        let bias: Vec<f32> = (0..32).map(|i| i as f32).collect();
        for level in levels() {
            let plain = gemm(level, &matrix, x.activations(), 9, None, None);
            let both = gemm(level, &matrix, x.activations(), 9, Some(&bias), Some(100.0));
            for (i, (plain, both)) in plain.iter().zip(both).enumerate() {
                let expected = 100.0 + (plain + bias[i % 32]);
                assert!((both - expected).abs() <= 1e-4, "{level:?} {dtype:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn row_slices_equal_the_full_gemm_bit_for_bit(
        seed: u64, rows in 1usize..90, tiles in 0usize..6, blocks in 1usize..3,
    ) {
        let start = (16 * tiles).min(rows / 16 * 16);
        for dtype in DType::ALL {
            let inputs = blocks * if dtype.is_quantized() { dtype.block_len() } else { 37 };
            let tensor = TestTensor::random(dtype, 16, inputs, seed);
            let (matrix, _memory) = tensor.pack();
            let x = Rows::random(rows, inputs, matrix.kind.is_quantized(), seed);
            on_both_sides(|| for level in levels() {
                let whole = gemm(level, &matrix, x.activations(), rows, None, None);
                let mut scratch = PanelScratch::new(rows, inputs).unwrap();
                let activations = x.activations();
                let mut out = Guarded::filled(7.0, rows * PANEL_COLUMNS);
                for slice in [start..rows, 0..start] {
                    let output = Output {
                        out: out.as_mut_ptr(),
                        stride: PANEL_COLUMNS,
                        accumulate: false,
                        bias: std::ptr::null(),
                    };
                    // Rows before the slice must not have been written.
                    assert!(out[..slice.start * PANEL_COLUMNS].iter().all(|&x| x == 7.0));
                    // SAFETY: available level, matching shapes, own memory.
                    unsafe {
                        let mut gemm = Gemm::new(level, &activations, rows, &mut scratch);
                        gemm.panels_of_rows(&matrix, 0..1, slice, matrix.panel(0), output);
                    }
                }
                assert_eq!(*out, *whole, "{level:?} {dtype:?}");
            });
        }
    }
}

#[test]
fn rows_without_positions_have_no_outliers() {
    let tensor = TestTensor::random(DType::Q4_1, 20, 64, 3);
    let (matrix, _memory) = tensor.pack();
    let mut x = Rows::random(30, 64, true, 8);
    let mut scratch = PanelScratch::new(30, 64).unwrap();
    for level in levels() {
        let mut results = |x: &Rows, outlier_positions: bool| {
            let mut activations = x.activations();
            if let Some(quant) = activations.quant.as_mut().filter(|_| !outlier_positions) {
                quant.outlier_positions = std::ptr::null();
            }
            gemm_in(&mut scratch, level, &matrix, activations, 30, None, None)
        };
        let with_outliers = results(&x, true);
        let without = results(&x, false);
        assert_ne!(with_outliers, without, "{level:?}");
        let before = x.outlier_positions.to_vec();
        x.outlier_positions.fill([NO_OUTLIER; TILE_ROWS]);
        assert_eq!(results(&x, true), without, "{level:?}");
        x.outlier_positions.copy_from_slice(&before);
    }
}

#[test]
fn reused_scratch_does_not_change_results() {
    let mut scratch = PanelScratch::new(40, 256).unwrap();
    for (seed, (inputs, rows)) in [(256, 40), (64, 9), (128, 40), (256, 3), (32, 25)]
        .into_iter()
        .enumerate()
    {
        let tensor = TestTensor::random(DType::Q4_1, 32, inputs, 3);
        let (matrix, _memory) = tensor.pack();
        let x = Rows::random(rows, inputs, true, seed as u64);
        for level in levels() {
            let scratch = &mut scratch;
            let again = gemm_in(scratch, level, &matrix, x.activations(), rows, None, None);
            let fresh = gemm(level, &matrix, x.activations(), rows, None, None);
            assert_eq!(again, fresh, "{level:?}");
        }
    }
}
