//! Packing and unpacking of float panels.

use std::ops::Range;

use half::{bf16, f16};

use super::layout::{PANEL_COLUMNS, PanelKind};
use crate::format::TensorView;

/// Inputs transposed at once: 16 rows of the file times this many stay in the L1 cache.
const STRIP: usize = 64;

/// Fill one zeroed panel from up to 16 rows of `tensor` by transposing whole elements.
pub(super) fn pack(
    tensor: &TensorView<'_>,
    kind: PanelKind,
    outputs: Range<usize>,
    out: &mut [u8],
) {
    match kind {
        PanelKind::F32 => transpose::<4>(tensor, outputs, out),
        PanelKind::F16 | PanelKind::Bf16 => transpose::<2>(tensor, outputs, out),
        PanelKind::Quant(_) => unreachable!("quantised panels have their own packer"),
    }
}

fn transpose<const SIZE: usize>(tensor: &TensorView<'_>, outputs: Range<usize>, out: &mut [u8]) {
    let out = out.as_chunks_mut::<SIZE>().0;
    for (strip, out) in out.chunks_mut(STRIP * PANEL_COLUMNS).enumerate() {
        for (column, output) in outputs.clone().enumerate() {
            let row = tensor.row(output).as_chunks::<SIZE>().0;
            let row = &row[strip * STRIP..][..out.len() / PANEL_COLUMNS];
            for (value, out) in row.iter().zip(out.chunks_exact_mut(PANEL_COLUMNS)) {
                out[column] = *value;
            }
        }
    }
}

/// Decode one column of a panel.
pub(super) fn unpack(panel: &[u8], kind: PanelKind, column: usize, weights: &mut [f32]) {
    let four = |at: usize| panel[4 * at..4 * at + 4].try_into().expect("four bytes");
    let two = |at: usize| [panel[2 * at], panel[2 * at + 1]];
    for (input, weight) in weights.iter_mut().enumerate() {
        let at = input * PANEL_COLUMNS + column;
        *weight = match kind {
            PanelKind::F32 => f32::from_le_bytes(four(at)),
            PanelKind::F16 => f16::from_le_bytes(two(at)).to_f32(),
            PanelKind::Bf16 => bf16::from_le_bytes(two(at)).to_f32(),
            PanelKind::Quant(_) => unreachable!("quantised panels have their own unpacker"),
        };
    }
}
