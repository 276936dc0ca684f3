//! Bit-exact tests of every level with fused multiply-add against a scalar model of its arithmetic.
//!
//! The model is portable Rust and computes one row and one register of columns at a time, with `vpdpbusd` emulated. The AMX
//! kernel runs on emulated tiles (`amx/emulated.rs`), so it is tested on every machine. Kernels whose instructions this
//! machine has are also tested on the hardware.

use proptest::prelude::*;

use super::outliers::OutlierIndex;
use super::tests::{Rows, gemm, gemm_in};
use super::*;
use crate::activation_quant::{ScaleMode, TILE_ROWS};
use crate::amx::emulated::Emulated;
use crate::guarded::Guarded;
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS};
use crate::pack::quantized::{Group, load_column_scale};
use crate::pack::tests::TestTensor;
use crate::pack::{PackedMatrix, QuantLayout};
use crate::quant::DType;
use crate::simd::Fused;

const QUANTISED: [DType; 13] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q8_0,
    DType::Q5_0,
    DType::Q5_1,
    DType::IQ4NL,
    DType::IQ4XS,
    DType::MXFP4,
    DType::Q2K,
    DType::Q3K,
    DType::Q4K,
    DType::Q5K,
    DType::Q6K,
];

/// `vpdpbusd`: add to each 32-bit lane the products of four unsigned with four signed bytes; the sum wraps.
fn vpdpbusd(sums: [i32; 16], unsigned: &[u8; 64], signed: &[i8; 64]) -> [i32; 16] {
    std::array::from_fn(|lane| {
        let products = (4 * lane..4 * lane + 4)
            .map(|byte| i32::from(unsigned[byte]) * i32::from(signed[byte]));
        products.fold(sums[lane], i32::wrapping_add)
    })
}

/// `vpmaddwd`: per 32-bit lane, the sum of the products of two pairs of signed 16-bit integers.
fn vpmaddwd(a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
    let product = |a: i32, b: i32| i32::from(a as i16) * i32::from(b as i16);
    std::array::from_fn(|lane| {
        product(a[lane], b[lane]).wrapping_add(product(a[lane] >> 16, b[lane] >> 16))
    })
}

/// A pair as a 32-bit word.
fn word([low, high]: [i16; 2]) -> i32 {
    i32::from(low) & 0xffff | i32::from(high) << 16
}

/// One row's 16 results, without outliers.
fn model(layout: QuantLayout, panel: &[u8], x: &Rows, row: usize) -> [f32; PANEL_COLUMNS] {
    let mut sums = [0f32; PANEL_COLUMNS];
    for at in 0..x.inputs / GROUP {
        let group = Group::of(layout, panel, at);
        let (tile, lane) = (x.tile_group(row, at), row % TILE_ROWS);
        let register = |quad: usize| -> [u8; 64] {
            std::array::from_fn(|byte| group.code(byte / 4, 4 * quad + byte % 4))
        };
        let parts = GROUP / layout.group;
        for part in 0..parts {
            let inputs = part * layout.group..(part + 1) * layout.group;
            let row_sum: i32 = tile.codes[lane][inputs].iter().map(|&x| i32::from(x)).sum();
            let start = match layout.offset {
                Offset::Paired => 8 * row_sum * 65_536 - 8 * row_sum,
                Offset::ZeroPoint(zero) => -zero * row_sum,
                Offset::Min => 0,
            };
            let mut dots = [start; PANEL_COLUMNS];
            for quad in part * 8 / parts..(part + 1) * 8 / parts {
                let signed = std::array::from_fn(|byte| tile.codes[lane][4 * quad + byte % 4]);
                dots = vpdpbusd(dots, &register(quad), &signed);
            }
            if layout.offset == Offset::Paired {
                dots = vpmaddwd(dots, std::array::from_fn(|column| word(group.pair(column))));
            }
            for column in 0..PANEL_COLUMNS {
                let dot = dots[column] as f32;
                let value = match layout.offset {
                    Offset::Paired => dot,
                    Offset::ZeroPoint(_) => dot * group.scale(part, column),
                    Offset::Min => {
                        let scaled = dot * group.scale(part, column);
                        (row_sum as f32).mul_add(group.min(part, column), scaled)
                    }
                };
                sums[column] = value.mul_add(tile.scales[lane], sums[column]);
            }
        }
    }
    if layout.offset == Offset::Paired {
        for (column, sum) in sums.iter_mut().enumerate() {
            *sum *= load_column_scale(panel, column);
        }
    }
    sums
}

/// One row's 16 results, outliers included.
fn model_with_outliers(
    layout: QuantLayout,
    panel: &[u8],
    x: &Rows,
    row: usize,
) -> [f32; PANEL_COLUMNS] {
    let mut sums = model(layout, panel, x, row);
    for outlier in x.row_outliers(row) {
        let (group, input) = (
            outlier.input as usize / GROUP,
            outlier.input as usize % GROUP,
        );
        let of_panel = Group::of(layout, panel, group);
        for (column, sum) in sums.iter_mut().enumerate() {
            let scale = || of_panel.scale(input / layout.group, column);
            let code = i32::from(of_panel.code(column, input));
            let weight = match layout.offset {
                Offset::Min => {
                    let min = of_panel.min(input / layout.group, column);
                    (code as f32).mul_add(scale(), min)
                }
                Offset::ZeroPoint(zero) => (code as f32 - zero as f32) * scale(),
                Offset::Paired => {
                    let [scale, offset] = of_panel.pair(column).map(i32::from);
                    let number = (code - 8) * scale + 8 * offset;
                    number as f32 * load_column_scale(panel, column)
                }
            };
            *sum = outlier.value.mul_add(weight, *sum);
        }
    }
    sums
}

fn layout_of(matrix: &PackedMatrix) -> QuantLayout {
    match matrix.kind {
        PanelKind::Quant(layout) => layout,
        _ => unreachable!("quantised formats"),
    }
}

/// Panel `panel` computed by the AMX kernel on emulated tiles: `[tiled rows, 16]`.
fn over_emulated_tiles(matrix: &PackedMatrix, panel: usize, x: &Rows, rows: usize) -> Vec<f32> {
    let mut out = Guarded::filled(f32::NAN, rows * PANEL_COLUMNS);
    let data = matrix.panel(panel);
    let mut expanded = Guarded::filled(0xee, matrix.inputs / GROUP * amx::EXPANDED_BYTES);
    let panel = Panel {
        data,
        next: data,
        inputs: matrix.inputs,
        bytes: matrix.panel_bytes(),
    };
    let output = Output {
        out: out.as_mut_ptr(),
        stride: PANEL_COLUMNS,
        accumulate: false,
        bias: std::ptr::null(),
    };
    let quant = x.activations().quant.expect("quantised rows");
    let mut index = OutlierIndex::new(rows, matrix.inputs).unwrap();
    // SAFETY: matching shapes, own memory; lanes and tiles are emulated.
    unsafe {
        index.list(quant, rows);
        let layout = layout_of(matrix);
        let gemm = PanelGemm {
            panel,
            x: quant,
            rows,
            outliers: index.dequantize_channels(Level::Portable, layout, panel, 0),
            output,
        };
        amx::dispatch::<Fused, Emulated>(layout, gemm, expanded.as_mut_ptr());
    }
    out[..amx::tiled_rows(rows) * PANEL_COLUMNS].to_vec()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn amx_tiles_equal_the_scalar_model_bit_for_bit(
        seed: u64, rows in 1usize..70, outputs in 1usize..34, blocks in 1usize..3,
    ) {
        for dtype in QUANTISED {
            let inputs = blocks * dtype.block_len();
            let tensor = TestTensor::random(dtype, outputs, inputs, seed);
            let (matrix, _memory) = tensor.pack();
            if !amx::has_kernel(layout_of(&matrix)) {
                continue;
            }
            let x = Rows::random(rows, inputs, true, seed);
            for panel in 0..matrix.panels() {
                let out = over_emulated_tiles(&matrix, panel, &x, rows);
                for (row, out) in out.chunks_exact(PANEL_COLUMNS).enumerate() {
                    let panel = matrix.panel_slice(panel);
                    let expected = model_with_outliers(layout_of(&matrix), panel, &x, row);
                    prop_assert_eq!(bits(out), bits(&expected), "{:?} row {}", dtype, row);
                }
            }
        }
    }

    #[test]
    fn fma_levels_equal_the_scalar_model_bit_for_bit(
        seed: u64, rows in 1usize..40, blocks in 1usize..3,
    ) {
        for dtype in QUANTISED {
            let inputs = blocks * dtype.block_len();
            let tensor = TestTensor::random(dtype, 48, inputs, seed);
            let (matrix, _memory) = tensor.pack();
            let x = Rows::random(rows, inputs, true, seed);
            for level in [Level::Amx, Level::Avx512, Level::AvxVnni, Level::Avx2] {
                if !level.available() {
                    continue;
                }
                let out = gemm(level, &matrix, x.activations(), rows, None, None);
                for (row, out) in out.chunks_exact(48).enumerate() {
                    for (panel, out) in out.chunks_exact(PANEL_COLUMNS).enumerate() {
                        let panel = matrix.panel_slice(panel);
                        let expected = model_with_outliers(layout_of(&matrix), panel, &x, row);
                        prop_assert_eq!(bits(out), bits(&expected), "{:?} {:?} row {}", level, dtype, row);
                    }
                }
            }
        }
    }
}

/// Results at level `avx512` of rows whose scales are powers of two: multiplied with the scales, and with their exponents
/// added. None, with the reason printed, if this machine lacks the level.
#[cfg(target_arch = "x86_64")]
fn with_and_without_separate_add_pipes(
    matrix: &PackedMatrix,
    x: &Rows,
    rows: usize,
) -> Option<[Vec<f32>; 2]> {
    if let Some(why) = Level::Avx512.obstacle() {
        eprintln!("skipped: {why}");
        return None;
    }
    assert_eq!(x.activations().scale_mode, ScaleMode::PowerOfTwo);
    let mut scratch = PanelScratch::new(rows, matrix.inputs).unwrap();
    Some([false, true].map(|separate_add_pipes| {
        scratch.expanded.separate_add_pipes = separate_add_pipes;
        let (level, x) = (Level::Avx512, x.activations());
        gemm_in(&mut scratch, level, matrix, x, rows, None, None)
    }))
}

#[cfg(target_arch = "x86_64")]
#[test]
fn adding_exponents_equals_multiplying_bit_for_bit() {
    // One panel alone and two processed together; `Rows` with an odd seed have power-of-two scales.
    for (dtype, rows) in [DType::Q4_0, DType::Q4_1]
        .into_iter()
        .flat_map(|dtype| [24, 25, 31, 60].map(|rows| (dtype, rows)))
    {
        let tensor = TestTensor::random(dtype, 48, 96, 3);
        let (matrix, _memory) = tensor.pack();
        let x = Rows::random(rows, 96, true, 2 * rows as u64 + 1);
        for out in with_and_without_separate_add_pipes(&matrix, &x, rows)
            .iter()
            .flatten()
        {
            for (row, out) in out.chunks_exact(48).enumerate() {
                for (panel, out) in out.chunks_exact(PANEL_COLUMNS).enumerate() {
                    let panel = matrix.panel_slice(panel);
                    let expected = model_with_outliers(layout_of(&matrix), panel, &x, row);
                    assert_eq!(bits(out), bits(&expected), "{dtype:?} row {row} of {rows}");
                }
            }
        }
    }
}

/// A row with a non-finite group stays NaN when exponents are added.
#[cfg(target_arch = "x86_64")]
#[test]
fn adding_exponents_propagates_nan() {
    let tensor = TestTensor::random(DType::Q4_1, 32, 64, 5);
    let (matrix, _memory) = tensor.pack();
    let mut float = vec![0.5; 30 * 64];
    (float[7 * 64 + 3], float[11 * 64 + 40]) = (f32::NAN, f32::INFINITY);
    float[20 * 64..21 * 64].fill(0.0);
    let x = Rows::of(&float, 64, true, ScaleMode::PowerOfTwo);
    for out in with_and_without_separate_add_pipes(&matrix, &x, 30)
        .iter()
        .flatten()
    {
        for (row, out) in out.chunks_exact(32).enumerate() {
            let (bad, zero) = (matches!(row, 7 | 11), row == 20);
            assert!(out.iter().all(|x| x.is_nan() == bad), "row {row}");
            assert!(!zero || out.iter().all(|&x| x == 0.0), "row {row}");
        }
    }
}

#[test]
fn few_rows_are_left_to_the_avx512_kernel() {
    let tiled = [0, 1, 4, 5, 15, 16, 17, 20, 21, 64, 69].map(amx::tiled_rows);
    assert_eq!(tiled, [0, 0, 0, 5, 15, 16, 16, 16, 21, 64, 69]);
}

/// Skipped where the machine lacks the instruction.
#[cfg(target_arch = "x86_64")]
#[test]
fn emulated_vpdpbusd_equals_the_hardware() {
    use std::arch::x86_64::*;

    /// # Safety
    /// The machine has AVX-512 with VNNI.
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn processors(sums: [i32; 16], unsigned: &[u8; 64], signed: &[i8; 64]) -> [i32; 16] {
        let mut out = [0; 16];
        // SAFETY: 64 bytes each.
        unsafe {
            let result = _mm512_dpbusd_epi32(
                _mm512_loadu_si512(sums.as_ptr().cast()),
                _mm512_loadu_si512(unsigned.as_ptr().cast()),
                _mm512_loadu_si512(signed.as_ptr().cast()),
            );
            _mm512_storeu_si512(out.as_mut_ptr().cast(), result);
        }
        out
    }

    if let Some(why) = Level::Avx512.obstacle() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut random = crate::pack::tests::Random(11);
    for _ in 0..1000 {
        let sums = std::array::from_fn(|_| random.bits() as i32);
        let mut byte = || match random.bits() % 4 {
            0 => 255,
            1 => 128,
            _ => random.bits() as u8,
        };
        let unsigned: [u8; 64] = std::array::from_fn(|_| byte());
        let signed: [i8; 64] = std::array::from_fn(|_| byte().cast_signed());
        // SAFETY: the machine has the level.
        let out = unsafe { processors(sums, &unsigned, &signed) };
        assert_eq!(out, vpdpbusd(sums, &unsigned, &signed));
    }
}
