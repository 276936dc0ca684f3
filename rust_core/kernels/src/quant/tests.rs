//! Tests of the affine view against the reference, and of the reference against hand-computed blocks. Every layout is also
//! compared with ggml's Python package (`tests/parity/test_dequantise.py`).

use half::f16;
use proptest::prelude::*;

use super::*;

fn quantized() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_quantized())
}

/// Byte offsets of the f16 fields of a block.
fn f16_fields(dtype: DType) -> &'static [usize] {
    match dtype {
        DType::Q8_0 | DType::Q4_0 | DType::Q5_0 | DType::IQ4NL | DType::IQ4XS => &[0],
        DType::Q2K => &[80, 82],
        DType::Q4_1 | DType::Q5_1 | DType::Q4K | DType::Q5K => &[0, 2],
        DType::Q3K => &[108],
        DType::Q6K => &[208],
        DType::F32 | DType::F16 | DType::BF16 | DType::MXFP4 | DType::Int4 => &[],
    }
}

/// Two blocks of random bytes whose f16 fields are finite.
fn row(dtype: DType) -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 2 * dtype.block_bytes());
    let scales = prop::collection::vec(-4.0f32..4.0, 4);
    (bytes, scales).prop_map(move |(mut bytes, scales)| {
        let mut scales = scales.into_iter();
        for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
            for &at in f16_fields(dtype) {
                let scale = f16::from_f32(scales.next().unwrap());
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
            if dtype == DType::Int4 {
                let zero = f32::from(block[4] % 17);
                block[..4].copy_from_slice(&scales.next().unwrap().to_le_bytes());
                block[4..8].copy_from_slice(&zero.to_le_bytes());
            }
            if dtype == DType::MXFP4 {
                block[0] = block[0].clamp(1, 246); // no overflow
            }
        }
        bytes
    })
}

fn any_row() -> impl Strategy<Value = (DType, Vec<u8>)> {
    prop::sample::select(quantized().collect::<Vec<_>>())
        .prop_flat_map(|dtype| row(dtype).prop_map(move |bytes| (dtype, bytes)))
}

proptest! {
    #[test]
    fn the_affine_view_equals_the_reference((dtype, bytes) in any_row()) {
        let cols = 2 * dtype.block_len();
        let groups = cols / group_size(dtype);
        let mut reference = vec![0.0; cols];
        dequantize_row(dtype, &bytes, &mut reference);
        let (mut codes, mut scales, mut mins) = (vec![0; cols], vec![0.0; groups], vec![0.0; groups]);
        unpack_row_affine(dtype, &bytes, cols, &mut codes, &mut scales, &mut mins);
        for i in 0..cols {
            let (scale, min) = (scales[i / group_size(dtype)], mins[i / group_size(dtype)]);
            let product = scale * f32::from(codes[i]);
            // At most three roundings differ: of the product, the minimum and their sum.
            let tolerance = (product.abs() + min.abs()) * 1.5 * f32::EPSILON;
            prop_assert!((product + min - reference[i]).abs() <= tolerance, "{dtype:?} at {i}");
            prop_assert!(u32::from(codes[i]) < 1 << code_bits(dtype));
        }
    }
}

fn dequantized(dtype: DType, block: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; dtype.block_len()];
    dequantize_row(dtype, block, &mut out);
    out
}

fn half(value: f32) -> [u8; 2] {
    f16::from_f32(value).to_le_bytes()
}

#[test]
fn floats_are_widened() {
    assert_eq!(dequantized(DType::F32, &1.5f32.to_le_bytes()), [1.5]);
    assert_eq!(dequantized(DType::F16, &half(-0.25)), [-0.25]);
    assert_eq!(dequantized(DType::BF16, &[0xc0, 0x3f]), [1.5]);
}

#[test]
fn q8_0_scales_signed_bytes() {
    let block = [&half(0.5)[..], &[0x80], &[3; 30], &[0x7f]].concat();
    let out = dequantized(DType::Q8_0, &block);
    assert_eq!((out[0], out[1], out[31]), (-64.0, 1.5, 63.5));
}

#[test]
fn four_bit_blocks_hold_low_halves_first() {
    let nibbles = [&[0x2f][..], &[0; 15]].concat();
    let out = dequantized(DType::Q4_0, &[&half(0.5)[..], &nibbles].concat());
    assert_eq!((out[0], out[16], out[1]), (3.5, -3.0, -4.0));
    let out = dequantized(
        DType::Q4_1,
        &[&half(0.5)[..], &half(1.0), &nibbles].concat(),
    );
    assert_eq!((out[0], out[16], out[1]), (8.5, 2.0, 1.0));
    let floats = [0.5f32.to_le_bytes(), 3f32.to_le_bytes()].concat();
    let out = dequantized(DType::Int4, &[&floats[..], &nibbles].concat());
    assert_eq!((out[0], out[16], out[1]), (6.0, -0.5, -1.5));
}

#[test]
fn five_bit_codes_take_their_fifth_bit_from_a_word() {
    let block = [&half(0.5)[..], &[0b10, 0, 0, 0x80], &[0x2f], &[0; 15]].concat();
    let out = dequantized(DType::Q5_0, &block);
    assert_eq!((out[0], out[16]), (-0.5, -7.0));
    assert_eq!((out[1], out[2], out[31]), (0.0, -8.0, 0.0));
}

#[test]
fn nibbles_of_iq4_nl_index_a_table() {
    let block = [&half(2.0)[..], &[0xf0], &[0x78; 15]].concat();
    let out = dequantized(DType::IQ4NL, &block);
    assert_eq!(
        (out[0], out[16], out[1], out[17]),
        (-254.0, 226.0, 2.0, -20.0)
    );
}

#[test]
fn five_bit_codes_with_a_minimum_take_their_fifth_bit_from_a_word() {
    let block = [
        &half(0.5)[..],
        &half(-3.0),
        &[0b10, 0, 0, 0x80],
        &[0x2f],
        &[0; 15],
    ]
    .concat();
    let out = dequantized(DType::Q5_1, &block);
    assert_eq!((out[0], out[16]), (4.5, -2.0));
    assert_eq!((out[1], out[2], out[31]), (5.0, -3.0, 5.0));
}

#[test]
fn four_bit_floats_are_scaled_by_a_power_of_two() {
    let block = [&[129][..], &[0xf7], &[0x1a; 15]].concat();
    let out = dequantized(DType::MXFP4, &block);
    assert_eq!((out[0], out[16], out[1], out[17]), (24.0, -24.0, -4.0, 2.0));
    for (exponent, one) in [(0, -128), (1, -127), (2, -126), (128, 0), (254, 126)] {
        let out = dequantized(DType::MXFP4, &[&[exponent][..], &[0x11; 16]].concat());
        assert_eq!(f64::from(out[0]), 2f64.powi(one), "{exponent}");
    }
}

#[test]
fn nibbles_of_iq4_xs_have_six_bit_scales() {
    let mut block = [0u8; 136];
    block[..2].copy_from_slice(&half(0.5));
    block[3] = 0b01_00_10_00; // high bits of scales 5 (2) and 7 (1)
    block[4 + 2] = 0x30; // low bits of scale 5
    block[4 + 3] = 0x0f; // low bits of scale 6
    block[8 + 5 * 16] = 0x8f; // weights 160 and 176
    let out = dequantized(DType::IQ4XS, &block);
    // Scales 5, 6 and 7 are 35, 15 and 16, less 32; other nibbles are 0.
    assert_eq!((out[160], out[176]), (1.5 * 113.0, 1.5));
    assert_eq!((out[192], out[224]), (-8.5 * -127.0, -8.0 * -127.0));
}

#[test]
fn two_bit_codes_have_four_bit_scales_and_minima() {
    let mut block = [0u8; 84];
    block[9] = 0x52; // scale 2 and minimum 5 of weights 144 to 159
    block[16 + 32 + 17] = 0b10_00_11_00; // weights 177 and 241
    block[16 + 32 + 3] = 0b01; // weight 131
    block[16 + 32 + 16] = 0b01; // weight 144
    block[80..82].copy_from_slice(&half(0.5));
    block[82..].copy_from_slice(&half(0.25));
    block[11] = 0x01;
    block[15] = 0x13;
    let out = dequantized(DType::Q2K, &block);
    assert_eq!(out[131], 0.0); // scale 0
    assert_eq!((out[144], out[145]), (1.0 - 1.25, -1.25));
    assert_eq!((out[177], out[241]), (1.5, 2.0 * 1.5 - 0.25));
}

#[test]
fn three_bit_codes_take_their_third_bit_from_a_plane() {
    let mut block = [0u8; 110];
    block[108..].copy_from_slice(&half(0.5));
    block[3] = 0b1000_0001; // the third bits of weights 3 and 227
    block[32 + 3] = 0b01_00_00_10; // low bits of weights 3 and 99
    block[96] = 0x21; // low bits of scales 0 (1) and 8 (2)
    block[96 + 8] = 0b11_00_00_10; // high bits of scales 0 (2) and 12 (3)
    let out = dequantized(DType::Q3K, &block);
    // Scales 0, 6, 8 and 12 are 33, 0, 2 and 48, less 32.
    assert_eq!(out[3], 0.5 * 1.0 * (6.0 - 4.0));
    assert_eq!(out[99], 0.5 * -32.0 * (1.0 - 4.0));
    assert_eq!(out[128], 0.5 * -30.0 * -4.0);
    assert_eq!(out[195], 0.5 * 16.0 * -4.0);
}

#[test]
fn six_bit_scales_are_split_over_three_fields() {
    let mut packed = [0u8; 12];
    packed[1] = 0b01_000101; // scale 1 = 5; top bits of scale 5 = 1
    packed[5] = 0b10_000011; // min 1 = 3; top bits of min 5 = 2
    packed[9] = 0x4_7; // low bits of min 5 = 4 and of scale 5 = 7
    assert_eq!(super::six_bit_scales::scale_and_min(&packed, 1), (5, 3));
    assert_eq!(
        super::six_bit_scales::scale_and_min(&packed, 5),
        (0x17, 0x24)
    );
}

#[test]
#[should_panic(expected = "rows hold whole Q4_0 blocks")]
fn a_row_of_a_partial_block_panics() {
    dequantize_row(DType::Q4_0, &[0; 18], &mut [0.0; 31]);
}
