//! Quantised rows of activations for the GEMM benchmarks.

use pravaha_kernels::activation_quant::{
    OutlierPositions, QuantRows, ScaleMode, TILE_ROWS, TileGroup, quantize_row,
};
use pravaha_kernels::arena::Buffer;
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::gemm::Activations;
use pravaha_kernels::pack::layout::GROUP;

/// Rows of one width.
pub struct Rows {
    inputs: usize,
    scale_mode: ScaleMode,
    tiles: Buffer<TileGroup>,
    outlier_positions: Buffer<OutlierPositions>,
}

impl Rows {
    /// `rows` rows of `inputs` inputs. With `outlier_every`, one of so many inputs is an outlier.
    pub fn new(
        level: Level,
        rows: usize,
        inputs: usize,
        scale_mode: ScaleMode,
        outlier_every: Option<usize>,
    ) -> Self {
        let groups = inputs / GROUP;
        let tiles = rows.div_ceil(TILE_ROWS);
        let made = Self {
            inputs,
            scale_mode,
            tiles: Buffer::new(tiles * groups).expect("memory"),
            outlier_positions: Buffer::new(tiles * groups).expect("memory"),
        };
        for at in 0..rows {
            let mut row: Vec<f32> = (0..inputs)
                .map(|i| ((i + 17 * at) as f32 * 0.7).sin())
                .collect();
            if let Some(every) = outlier_every {
                for outlier in (at % 7..inputs).step_by(every) {
                    row[outlier] = 20.0;
                }
            }
            let first = at / TILE_ROWS * groups;
            // SAFETY: not shared; the level was chosen for this machine.
            unsafe {
                let tile = made.tiles.slice_mut(first, groups);
                let outlier_positions = made.outlier_positions.slice_mut(first, groups);
                let lane = at % TILE_ROWS;
                quantize_row(
                    level,
                    &row,
                    None,
                    scale_mode,
                    lane,
                    tile,
                    Some(outlier_positions),
                );
            }
        }
        made
    }

    pub fn activations(&self) -> Activations {
        Activations {
            quant: Some(QuantRows {
                tiles: self.tiles.ptr(),
                outlier_positions: self.outlier_positions.ptr(),
                row_tiles: std::ptr::null(),
                inputs: self.inputs,
            }),
            scale_mode: self.scale_mode,
            float: std::ptr::null(),
            float_stride: 0,
        }
    }
}
