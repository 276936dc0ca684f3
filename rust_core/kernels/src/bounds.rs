//! Out-of-bounds tests: kernels run on memory adjacent to guard pages, with random shapes. An out-of-bounds access is a
//! segmentation fault.
//!
//! Results are checked in each kernel's own tests. GEMM and attention use guarded memory there; the other kernels are
//! tested here.

use proptest::prelude::*;

use crate::activation::activate_panel;
use crate::activation_quant::{
    GroupColumn, NO_OUTLIER, QuantForm, ScaleMode, TILE_ROWS, TileGroup, quantize_gated,
    quantize_row, quantize_tile,
};
use crate::amx::row_tiles::{ROWS, RowTile, copy_row};
use crate::dispatch::Level;
use crate::guarded::{Guarded, on_both_sides};
use crate::norm::{gelu, layer_norm, rms_norm};
use crate::pack::layout::GROUP;
use crate::pack::tests::{Random, TestTensor};
use crate::quant::DType;
use crate::rope::Rope;
use crate::sampler::dry::{Breakers, MAX_BREAKER_TAIL};
use crate::sampler::{
    self, MAX_TOP_LOGPROBS, RowContext, SamplingRow, sample, score, token_id_logprobs,
};
use crate::spec::Activation;
use crate::spec::tests::tiny_rope;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.available())
}

fn random(len: usize, seed: u64) -> Guarded<f32> {
    let mut random = Random(seed);
    let mut values = Guarded::filled(0.0, len);
    values.fill_with(|| random.unit());
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn norms_and_activations(seed: u64, width in 1usize..300, rows in 1usize..9, gap in 0usize..20) {
        on_both_sides(|| for level in levels() {
            let (x, weight, mut out) = (random(width, seed), random(width, seed), random(width, 1));
            // SAFETY: the level is available.
            unsafe { rms_norm(level, &x, &weight, 1e-5, &mut out) };
            let whole = width.next_multiple_of(16);
            let (mut x, weight, bias) = (random(whole, seed), random(whole, 2), random(whole, 3));
            // SAFETY: the level is available; a multiple of 16 long.
            unsafe {
                layer_norm(level, &mut x, &weight, &bias, 1e-5);
                gelu(level, &mut x);
            }
            // The last row ends with its sixteen columns.
            let stride = 16 + gap;
            let mut out = random((rows - 1) * stride + 16, seed);
            let (gate, up) = (random(rows * 16, seed), random(rows * 16, 1));
            for kind in Activation::ALL {
                for up in [up.as_ptr(), std::ptr::null()] {
                    let out = out.as_mut_ptr();
                    // SAFETY: the level is available; `rows` rows of 16 each.
                    unsafe { activate_panel(level, kind, gate.as_ptr(), up, out, stride, rows) };
                }
            }
        });
    }

    #[test]
    fn quantised_rows(seed: u64, groups in 1usize..40, rows in 1usize..20) {
        on_both_sides(|| for level in levels() {
            let tiles_count = rows.div_ceil(TILE_ROWS);
            let mut tiles = Guarded::filled(TileGroup::default(), tiles_count * groups);
            let mut outlier_positions = Guarded::filled([0; TILE_ROWS], tiles_count * groups);
            let empty = RowTile { codes: [[0; GROUP]; ROWS] };
            let mut row_tiles = Guarded::filled(empty, rows.div_ceil(ROWS) * groups);
            for row in 0..rows {
                let mut x = random(groups * GROUP, seed ^ row as u64);
                x[seed as usize % groups * GROUP] = 1000.0;
                let tile = &mut tiles[row / TILE_ROWS * groups..][..groups];
                let outlier_positions = &mut outlier_positions[row / TILE_ROWS * groups..][..groups];
                // SAFETY: the level is available; the destination holds every row.
                unsafe {
                    quantize_row(level, &x, None, ScaleMode::PowerOfTwo, row % TILE_ROWS, tile, Some(outlier_positions));
                    if row % TILE_ROWS == 0 && row + TILE_ROWS <= rows {
                        quantize_tile(level, [&*x; TILE_ROWS], None, ScaleMode::MaxAbs, tile, Some(outlier_positions));
                    }
                    copy_row(row, tile, row_tiles.as_mut_ptr(), groups);
                }
            }
        });
    }

    #[test]
    fn fused_gating_and_quantization(seed: u64, groups in 1usize..5, rows in 1usize..40) {
        on_both_sides(|| for level in levels() {
            let tiles_count = rows.div_ceil(TILE_ROWS);
            let mut tiles = Guarded::filled(TileGroup::default(), tiles_count * groups);
            let empty = RowTile { codes: [[0; GROUP]; ROWS] };
            let mut row_tiles = Guarded::filled(empty, rows.div_ceil(ROWS) * groups);
            let mut outlier_positions = Guarded::filled([NO_OUTLIER; TILE_ROWS], tiles_count * groups);
            let (gate, up) = (random(rows * GROUP, seed), random(rows * GROUP, 1));
            for (group, keep_outliers) in (0..groups).flat_map(|group| [(group, false), (group, true)]) {
                let to = GroupColumn {
                    tiles: tiles.as_mut_ptr().wrapping_add(group),
                    outlier_positions: outlier_positions.as_mut_ptr().wrapping_add(group),
                    row_tiles: row_tiles.as_mut_ptr().wrapping_add(group),
                    groups,
                };
                let form = QuantForm { scale_mode: ScaleMode::PowerOfTwo, keep_outliers };
                for kind in Activation::ALL {
                    for up in [up.as_ptr(), std::ptr::null()] {
                        // SAFETY: the level is available; the destination holds every row.
                        unsafe { quantize_gated(level, kind, gate.as_ptr(), up, rows, form, to) };
                    }
                }
            }
        });
    }

    #[test]
    fn rotated_heads(seed: u64, pairs in 1usize..65, position in 0usize..9, interleaved: bool) {
        let mut json = tiny_rope();
        json["dim"] = (2 * pairs).into();
        json["style"] = if interleaved { "interleaved" } else { "half" }.into();
        let rope = Rope::new(&serde_json::from_value(json).unwrap(), 9).unwrap();
        on_both_sides(|| for level in levels() {
            // SAFETY: the level is available.
            unsafe { rope.rotate(level, &mut random(2 * pairs, seed), position) };
        });
    }

    #[test]
    fn unpacked_weights(seed: u64, outputs in 1usize..40, blocks in 1usize..3) {
        on_both_sides(|| for dtype in DType::ALL {
            let inputs = blocks * if dtype.is_quantized() { dtype.block_len() } else { 7 };
            let tensor = TestTensor::random(dtype, outputs, inputs, seed);
            let (matrix, _memory) = tensor.pack();
            let mut row = Guarded::filled(0.0, inputs);
            (0..outputs).for_each(|output| matrix.unpack_output(output, &mut row));
        });
    }

    #[test]
    fn sampled_and_scored_rows(
        seed: u64, vocab in 1usize..700, top_k in 0i32..40, top_p in 0.1f32..1.0, masked: bool,
    ) {
        let params = SamplingRow {
            temperature: (seed % 3) as f32,
            top_p,
            min_p: 0.01,
            repetition_penalty: 1.2,
            presence_penalty: 0.1,
            frequency_penalty: 0.1,
            dry_multiplier: 0.5,
            dry_base: 1.75,
            dry_allowed_length: 1,
            dry_penalty_last_n: -1,
            first_breaker: 0,
            num_breakers: 1,
            top_k,
            num_logprobs: MAX_TOP_LOGPROBS as i32,
            seed,
        };
        on_both_sides(|| for level in levels() {
            let mut scratch = sampler::Scratch::new(vocab, 4);
            let mut ids = Guarded::filled(0, MAX_TOP_LOGPROBS);
            let mut logprobs = Guarded::filled(0.0, MAX_TOP_LOGPROBS);
            let last = vocab as i32 - 1;
            let tokens = Guarded::from(&[0, last, 0, last][..]);
            let heads = Guarded::filled(0, vocab.div_ceil(32));
            let tails = Guarded::filled(last, MAX_BREAKER_TAIL);
            let (bias_ids, bias_values) = (Guarded::from(&[last][..]), Guarded::filled(0.5, 1));
            let mask = Guarded::filled(u32::MAX, vocab.div_ceil(32));
            let row = RowContext {
                params: &params,
                tokens: &tokens,
                penalty_start: 1,
                position: 4,
                bias_ids: &bias_ids,
                bias_values: &bias_values,
                breakers: Breakers::new(&heads, &tails, heads.len()),
                mask: masked.then_some(&*mask),
            };
            let mut logits = random(vocab, seed);
            // SAFETY: the level is available.
            unsafe {
                score(level, &logits, vocab - 1, &mut scratch, &mut ids, &mut logprobs);
                token_id_logprobs(level, &logits, &[0, last], &mut scratch, &mut logprobs[..2]);
                sample(level, &mut logits, &row, &mut scratch, &mut ids, &mut logprobs);
            }
        });
    }
}
