//! What activations that stand apart add to a panel's results: `value * weight`, in float, after the codes.

use std::mem::MaybeUninit;

use super::{Output, Panel};
use crate::activation_quant::QuantRows;
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use crate::simd::{Lanes, by_level};

/// The weights of all 16 columns for input `input`.
///
/// # Safety
/// A whole panel; the level's instructions enabled.
#[inline(always)]
unsafe fn weights<L: Lanes>(layout: QuantLayout, panel: *const u8, input: usize) -> L {
    let (group, input) = (input / GROUP, input % GROUP);
    let (register, shift, mask) = if layout.bits == 4 {
        (input % 16 / 4, 8 * (input % 4) + 4 * (input / 16), 15)
    } else {
        (input / 4, 8 * (input % 4), 255)
    };
    let part = input / layout.group * PANEL_COLUMNS * if layout.half_scales { 2 } else { 4 };
    // SAFETY: inside the record of the input's group.
    unsafe {
        let record = panel.add(group * layout.record_bytes());
        let load = |values: *const u8| -> L {
            if layout.half_scales {
                L::load_f16(values.cast())
            } else {
                L::load(values.cast())
            }
        };
        let scales = record.add(layout.code_bytes());
        let scale = load(scales.add(part));
        let code = L::load_bits(record.add(64 * register).cast(), shift as u32, mask);
        match layout.offset {
            Offset::Min => code.mul_add(scale, load(scales.add(layout.scale_bytes() + part))),
            Offset::Zero(zero) => code.sub(L::splat(zero as f32)).mul(scale),
        }
    }
}

/// Decoded weights kept for other rows: outliers of different tokens are mostly the same channels.
const KEPT: usize = 64;

/// # Safety
/// As [`super::multiply_panel`], with the level's instructions enabled.
#[inline(always)]
unsafe fn add_body<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    x: QuantRows,
    rows: usize,
    output: Output,
) {
    // Whose weights stand in a slot; an input has one slot only.
    let mut owners = [u32::MAX; KEPT];
    let mut kept = [const { MaybeUninit::<L>::uninit() }; KEPT];
    for row in 0..rows {
        // SAFETY: `rows` rows of activations and of output, a whole panel: the caller's promise.
        unsafe {
            let count = *x.outlier_counts.add(row) as usize;
            if count == 0 {
                continue;
            }
            let outliers = x.outliers.add(row * (x.inputs / GROUP));
            let out = output.out.add(row * output.stride);
            let mut sum = L::load(out);
            for outlier in std::slice::from_raw_parts(outliers, count) {
                let slot = outlier.input as usize % KEPT;
                if owners[slot] != outlier.input {
                    owners[slot] = outlier.input;
                    kept[slot].write(weights(layout, panel.data, outlier.input as usize));
                }
                // A slot with an owner was written.
                sum = L::splat(outlier.value).mul_add(kept[slot].assume_init(), sum);
            }
            sum.store(out);
        }
    }
}

by_level! {
    /// Add the outliers' products to `rows` rows of results.
    ///
    /// # Safety
    /// As [`super::multiply_panel`].
    pub(super) unsafe fn add(layout: QuantLayout, panel: Panel, x: QuantRows, rows: usize, output: Output) = add_body;
}
