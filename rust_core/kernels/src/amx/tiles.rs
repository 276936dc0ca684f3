//! The tile instructions, as inline assembly (the intrinsics are not stable).
//!
//! Each multiplication is one assembly block from loads to stores, so no tile data lives across blocks, only the tile
//! configuration. The compiler itself never uses tiles. The text of a block is a macro, which the emulation used in
//! tests interprets (`emulated.rs`).
//!
//! Two sets of tiles (even and odd names) alternate, so that a multiplication can begin while the previous result is being
//! stored.

use super::row_tiles::RowTile;
use crate::pack::layout::{GROUP, PANEL_COLUMNS};

/// Weight codes of a group in the layout that a tile register loads: eight rows, each a quad of inputs of all 16 columns.
/// Panels of 8-bit codes have this layout; 4-bit codes are expanded to it.
pub(crate) type CodeTile = [[u8; 4 * PANEL_COLUMNS]; GROUP / 4];

/// Dot products of 16 rows with 16 columns.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dots(pub [[i32; PANEL_COLUMNS]; super::row_tiles::ROWS]);

/// Operand of `ldtilecfg`: number of rows and bytes per row of each tile.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileConfig {
    pub palette: u8,
    pub start_row: u8,
    pub reserved: [u8; 14],
    pub row_bytes: [u16; 16],
    pub rows: [u8; 16],
}

/// Shapes of the tiles. Tiles 0 and 1 are dot products, 2 and 3 activation rows, 4 and 5 weights.
pub(crate) static CONFIG: TileConfig = {
    let mut config = TileConfig {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        row_bytes: [0; 16],
        rows: [0; 16],
    };
    let shapes: [(u8, u16); 6] = [
        (16, 64),
        (16, 64),
        (16, GROUP as u16),
        (16, GROUP as u16),
        (8, 64),
        (8, 64),
    ];
    let mut tile = 0;
    while tile < shapes.len() {
        (config.rows[tile], config.row_bytes[tile]) = shapes[tile];
        tile += 1;
    }
    config
};

/// `dots = activations · weights` over a group. `tdpbsud` takes a signed first and an unsigned second operand.
macro_rules! group_text {
    ($dots:literal, $rows:literal, $weights:literal) => {
        concat!(
            "tilezero tmm",
            $dots,
            "\n",
            "tileloadd tmm",
            $rows,
            ", [{rows} + {row_stride}*1]\n",
            "tileloadd tmm",
            $weights,
            ", [{weights} + {line}*1]\n",
            "tdpbsud tmm",
            $dots,
            ", tmm",
            $rows,
            ", tmm",
            $weights,
            "\n",
            "tilestored [{dots} + {line}*1], tmm",
            $dots,
            "\n",
        )
    };
}

#[cfg(test)]
pub(crate) const EVEN_TEXT: &str = group_text!(0, 2, 4);
#[cfg(test)]
pub(crate) const ODD_TEXT: &str = group_text!(1, 3, 5);

/// Bytes between rows of a [`RowTile`].
pub(crate) const ROW_STRIDE: usize = GROUP;

/// Bytes between rows of a [`CodeTile`] and of [`Dots`].
pub(crate) const LINE: usize = 64;

/// Tile multiplication, in hardware or emulated.
///
/// # Safety
/// Implementors write exactly what the methods document.
pub(crate) unsafe trait Tiles {
    /// Dot products over a group of inputs. Calls with `ODD` true and false use different registers.
    ///
    /// # Safety
    /// The tiles are configured (see `thread_tiles.rs`); all pointers are valid, `dots` for writing.
    unsafe fn group<const ODD: bool>(
        rows: *const RowTile,
        weights: *const CodeTile,
        dots: *mut Dots,
    );
}

/// The processor's tiles.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Hardware;

#[cfg(target_arch = "x86_64")]
// SAFETY: executes the instructions of the texts above.
unsafe impl Tiles for Hardware {
    #[inline(always)]
    unsafe fn group<const ODD: bool>(
        rows: *const RowTile,
        weights: *const CodeTile,
        dots: *mut Dots,
    ) {
        // SAFETY: tiles and pointers by contract; each load and store covers the type it points to (see
        // `CONFIG`), and the registers written are named.
        unsafe {
            if ODD {
                std::arch::asm!(
                    group_text!(1, 3, 5),
                    rows = in(reg) rows, row_stride = in(reg) ROW_STRIDE,
                    weights = in(reg) weights, line = in(reg) LINE, dots = in(reg) dots,
                    out("tmm1") _, out("tmm3") _, out("tmm5") _,
                    options(nostack, preserves_flags)
                );
            } else {
                std::arch::asm!(
                    group_text!(0, 2, 4),
                    rows = in(reg) rows, row_stride = in(reg) ROW_STRIDE,
                    weights = in(reg) weights, line = in(reg) LINE, dots = in(reg) dots,
                    out("tmm0") _, out("tmm2") _, out("tmm4") _,
                    options(nostack, preserves_flags)
                );
            }
        }
    }
}
