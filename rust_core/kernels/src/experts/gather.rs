//! The rows of one expert, copied together from the activations of a phase.
//!
//! Rows are quantised once, in the order of the step; an expert's rows are lanes of many tiles. A kernel reads tiles from their
//! first lane on, so that the lanes are copied: 53 bytes for each 32 inputs of a row.

use crate::activation_quant::{QuantRows, TILE_ROWS};
use crate::amx::row_tiles::copy_row;
use crate::gemm::Activations;
use crate::pack::layout::GROUP;
use crate::scratch::ActivationBuffers;

/// Copy rows `rows` of `x`, in this order, to `to`, in the forms that `x` has; returns them as activations of as many rows.
///
/// # Safety
/// `x` holds these rows. `to` has room for as many rows of as many inputs, and no other thread accesses it.
pub unsafe fn gather(
    x: &Activations,
    rows: &[u32],
    inputs: usize,
    to: &ActivationBuffers,
) -> Activations {
    let mut gathered = *x;
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(quant) = &x.quant {
            gathered.quant = Some(gather_quantized(quant, rows, to));
        }
        if !x.float.is_null() {
            let out = to.float.slice_mut(0, rows.len() * inputs);
            for (&row, out) in rows.iter().zip(out.chunks_exact_mut(inputs)) {
                let from = x.float.add(row as usize * x.float_stride);
                out.copy_from_slice(std::slice::from_raw_parts(from, inputs));
            }
            (gathered.float, gathered.float_stride) = (to.float.ptr(), inputs);
        }
    }
    gathered
}

/// # Safety
/// As [`gather`].
unsafe fn gather_quantized(x: &QuantRows, rows: &[u32], to: &ActivationBuffers) -> QuantRows {
    let (groups, to) = (x.inputs / GROUP, &to.quant);
    for (at, tile_rows) in rows.chunks(TILE_ROWS).enumerate() {
        // SAFETY: the caller's promise; lanes beyond the rows are not written.
        unsafe {
            let tile = to.tiles.slice_mut(at * groups, groups);
            for (lane, &row) in tile_rows.iter().enumerate() {
                let (from_lane, from) = (row as usize % TILE_ROWS, x.tile(row as usize));
                for (group, tile) in tile.iter_mut().enumerate() {
                    tile.copy_lane(lane, &*from.add(group), from_lane);
                }
                if let Some(from) = x.outlier_positions(row as usize / TILE_ROWS) {
                    let positions = to.outlier_positions.slice_mut(at * groups, groups);
                    for (position, from) in positions.iter_mut().zip(from) {
                        position[lane] = from[from_lane];
                    }
                }
                if !x.row_tiles.is_null() {
                    copy_row(at * TILE_ROWS + lane, tile, to.row_tiles.ptr(), groups);
                }
            }
        }
    }
    QuantRows {
        tiles: to.tiles.ptr(),
        outlier_positions: if x.outlier_positions.is_null() {
            std::ptr::null()
        } else {
            to.outlier_positions.ptr()
        },
        row_tiles: if x.row_tiles.is_null() {
            std::ptr::null()
        } else {
            to.row_tiles.ptr()
        },
        inputs: x.inputs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation_quant::{ScaleMode, TileGroup, quantize_row};
    use crate::dispatch::Level;
    use crate::pack::tests::Random;

    #[test]
    fn gathered_rows_are_those_quantized_in_their_place() {
        let (inputs, count) = (96, 11);
        let groups = inputs / GROUP;
        let mut random = Random(4);
        let values: Vec<f32> = (0..count * inputs)
            .map(|_| {
                random.unit()
                    * if random.bits().is_multiple_of(40) {
                        50.0
                    } else {
                        1.0
                    }
            })
            .collect();
        let quantize = |rows: &[u32], to: &ActivationBuffers| {
            for (at, &row) in rows.iter().enumerate() {
                let row = &values[row as usize * inputs..][..inputs];
                // SAFETY: the buffers are ours alone; the level is available everywhere.
                unsafe {
                    let first = at / TILE_ROWS * groups;
                    let tile = to.quant.tiles.slice_mut(first, groups);
                    let positions = to.quant.outlier_positions.slice_mut(first, groups);
                    let (mode, lane) = (ScaleMode::MaxAbs, at % TILE_ROWS);
                    quantize_row(
                        Level::Portable,
                        row,
                        None,
                        mode,
                        lane,
                        tile,
                        Some(positions),
                    );
                    copy_row(at, tile, to.quant.row_tiles.ptr(), groups);
                }
            }
        };
        let buffers = || ActivationBuffers::new(count, inputs).unwrap();
        let (all, wanted, gathered) = (buffers(), buffers(), buffers());
        quantize(&(0..count as u32).collect::<Vec<_>>(), &all);
        let rows = [10, 0, 3, 4, 9, 1];
        quantize(&rows, &wanted);
        let x = Activations {
            quant: Some(QuantRows {
                tiles: all.quant.tiles.ptr(),
                outlier_positions: all.quant.outlier_positions.ptr(),
                row_tiles: all.quant.row_tiles.ptr(),
                inputs,
            }),
            scale_mode: ScaleMode::MaxAbs,
            float: values.as_ptr(),
            float_stride: inputs,
        };
        // SAFETY: the buffers are ours alone and large enough.
        unsafe {
            let result = gather(&x, &rows, inputs, &gathered);
            let tiles = rows.len().div_ceil(TILE_ROWS) * groups;
            let equal: (&[TileGroup], &[TileGroup]) = (
                gathered.quant.tiles.slice(0, tiles),
                wanted.quant.tiles.slice(0, tiles),
            );
            assert_eq!(equal.0, equal.1);
            assert_eq!(
                gathered.quant.outlier_positions.slice(0, tiles),
                wanted.quant.outlier_positions.slice(0, tiles)
            );
            for (one, other) in gathered
                .quant
                .row_tiles
                .slice(0, groups)
                .iter()
                .zip(wanted.quant.row_tiles.slice(0, groups))
            {
                assert_eq!(one.codes[..rows.len()], other.codes[..rows.len()]);
            }
            for (at, &row) in rows.iter().enumerate() {
                let float =
                    std::slice::from_raw_parts(result.float.add(at * result.float_stride), inputs);
                assert_eq!(float, &values[row as usize * inputs..][..inputs]);
            }
        }
    }
}
