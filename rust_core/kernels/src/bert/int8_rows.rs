//! A worker's rows quantised to int8, the left operand of int8 GEMMs.

use crate::activation_quant::{
    QuantRows, ScaleMode, TILE_ROWS, TileGroup, quantize_row, quantize_tile,
};
use crate::amx::row_tiles::{ROWS, RowTile, copy_row};
use crate::arena::Buffer;
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::pack::layout::GROUP;

/// Buffers for the largest number of rows and inputs.
pub(super) struct Int8Rows {
    level: Level,
    tiles: Buffer<TileGroup>,
    /// Empty on levels other than `amx`.
    row_tiles: Buffer<RowTile>,
}

impl Int8Rows {
    pub fn new(level: Level, rows: usize, inputs: usize) -> Result<Self, KernelError> {
        let groups = inputs.div_ceil(GROUP);
        let row_tiles = if level == Level::Amx {
            rows.div_ceil(ROWS) * groups
        } else {
            0
        };
        Ok(Self {
            level,
            tiles: Buffer::new(rows.div_ceil(TILE_ROWS) * groups)?,
            row_tiles: Buffer::new(row_tiles)?,
        })
    }

    /// Quantise `values`, rows of `inputs` values. The result is valid until the next call.
    ///
    /// # Safety
    /// The machine has the level.
    pub unsafe fn fill(&mut self, values: &[f32], inputs: usize) -> QuantRows {
        let groups = inputs / GROUP;
        let row_tiles = self.row_tiles.ptr();
        let tiles = self.tiles.as_mut_slice().chunks_exact_mut(groups);
        for (number, (rows, tile)) in values.chunks(TILE_ROWS * inputs).zip(tiles).enumerate() {
            let count = rows.len() / inputs;
            // SAFETY: the level is the caller's promise; the row tiles have room for every row by `new`.
            unsafe {
                if count == TILE_ROWS {
                    let rows = std::array::from_fn(|lane| &rows[lane * inputs..][..inputs]);
                    quantize_tile(self.level, rows, None, ScaleMode::MaxAbs, tile, None);
                } else {
                    for (lane, row) in rows.chunks_exact(inputs).enumerate() {
                        quantize_row(self.level, row, None, ScaleMode::MaxAbs, lane, tile, None);
                    }
                }
                if self.level == Level::Amx {
                    for lane in 0..count {
                        copy_row(number * TILE_ROWS + lane, tile, row_tiles, groups);
                    }
                }
            }
        }
        QuantRows {
            tiles: self.tiles.ptr(),
            outlier_positions: std::ptr::null(),
            row_tiles: if self.level == Level::Amx {
                row_tiles
            } else {
                std::ptr::null()
            },
            inputs,
        }
    }
}
