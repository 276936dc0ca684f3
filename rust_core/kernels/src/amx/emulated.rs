//! Bit-exact emulation of the tile instructions in portable Rust: an interpreter of the kernels' own assembly text.
//!
//! Follows the pseudocode of Intel's manual (volume 2: LDTILECFG, TILELOADD, TDPBSUD, TILESTORED, TILEZERO).
//! Processor exceptions become panics. Registers are initialised with a non-zero pattern, so that no kernel can
//! rely on their being zero.

use std::cell::RefCell;
use std::collections::HashMap;

use super::row_tiles::RowTile;
use super::tiles::{
    CONFIG, CodeTile, Dots, EVEN_TEXT, LINE, ODD_TEXT, ROW_STRIDE, TileConfig, Tiles,
};

const TILES: usize = 8;
const MAX_ROWS: usize = 16;
const MAX_ROW_BYTES: usize = 64;

/// One row of a register.
type Row = [u8; MAX_ROW_BYTES];

/// A thread's tile registers.
pub(crate) struct TileState {
    shapes: [(usize, usize); TILES],
    registers: [[Row; MAX_ROWS]; TILES],
}

impl TileState {
    /// `ldtilecfg`
    pub fn load_config(config: &TileConfig) -> Self {
        assert_eq!(config.palette, 1, "#GP: there is no such palette");
        assert_eq!(config.reserved, [0; 14], "#GP: reserved bytes");
        assert_eq!(
            config.start_row, 0,
            "start_row is not 0, which only happens after an interrupted instruction"
        );
        let all = config.rows.iter().zip(&config.row_bytes);
        for (tile, (&rows, &bytes)) in all.enumerate() {
            let (rows, bytes) = (usize::from(rows), usize::from(bytes));
            assert!(
                rows <= MAX_ROWS && bytes <= MAX_ROW_BYTES,
                "#GP: tile {tile} is too large"
            );
            assert_eq!(rows == 0, bytes == 0, "#GP: tile {tile} is half configured");
            assert!(tile < TILES || rows == 0, "#GP: there is no tile {tile}");
        }
        Self {
            shapes: std::array::from_fn(|tile| {
                (config.rows[tile].into(), config.row_bytes[tile].into())
            }),
            registers: [[[0xa5; MAX_ROW_BYTES]; MAX_ROWS]; TILES],
        }
    }

    fn shape(&self, tile: usize) -> (usize, usize) {
        assert_ne!(self.shapes[tile].0, 0, "#UD: tile {tile} is not configured");
        self.shapes[tile]
    }

    /// `tilezero`
    fn zero(&mut self, tile: usize) {
        self.shape(tile);
        self.registers[tile] = [[0; MAX_ROW_BYTES]; MAX_ROWS];
    }

    /// `tileloadd`
    ///
    /// # Safety
    /// The tile's rows, `stride` bytes apart, are readable at `from`.
    unsafe fn load(&mut self, tile: usize, from: *const u8, stride: usize) {
        let (rows, bytes) = self.shape(tile);
        self.registers[tile] = [[0; MAX_ROW_BYTES]; MAX_ROWS];
        for (row, register) in self.registers[tile].iter_mut().enumerate().take(rows) {
            // SAFETY: a row of the tile.
            let source = unsafe { std::slice::from_raw_parts(from.add(row * stride), bytes) };
            register[..bytes].copy_from_slice(source);
        }
    }

    /// `tilestored`
    ///
    /// # Safety
    /// The tile's rows, `stride` bytes apart, are writable at `to`.
    unsafe fn store(&self, tile: usize, to: *mut u8, stride: usize) {
        let (rows, bytes) = self.shape(tile);
        for (row, register) in self.registers[tile].iter().enumerate().take(rows) {
            // SAFETY: a row of the tile.
            let target = unsafe { std::slice::from_raw_parts_mut(to.add(row * stride), bytes) };
            target.copy_from_slice(&register[..bytes]);
        }
    }

    /// `tdpbsud`: 32-bit sums of products of signed bytes of `a` and unsigned bytes of `b`.
    fn multiply(&mut self, sums: usize, a: usize, b: usize) {
        let ((rows, row_bytes), (a_rows, a_bytes), (b_rows, b_bytes)) =
            (self.shape(sums), self.shape(a), self.shape(b));
        assert!(
            sums != a && sums != b && a != b,
            "#UD: a tile is named twice"
        );
        assert_eq!(
            rows, a_rows,
            "#UD: rows of the sums and of the first operand differ"
        );
        assert_eq!(
            row_bytes, b_bytes,
            "#UD: columns of the sums and of the second operand differ"
        );
        assert_eq!(
            a_bytes,
            4 * b_rows,
            "#UD: inner dimensions of the operands differ"
        );
        for row in 0..rows {
            for column in 0..row_bytes / 4 {
                let at = 4 * column..4 * column + 4;
                let old = &self.registers[sums][row][at.clone()];
                let mut sum = i32::from_le_bytes(old.try_into().expect("four bytes"));
                for quad in 0..b_rows {
                    for byte in 0..4 {
                        let x = self.registers[a][row][4 * quad + byte].cast_signed();
                        let y = self.registers[b][quad][4 * column + byte];
                        sum = sum.wrapping_add(i32::from(x) * i32::from(y));
                    }
                }
                self.registers[sums][row][at].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }

    /// Execute `text`, whose operands `{name}` have these values.
    ///
    /// # Safety
    /// The text's loads and stores are valid.
    unsafe fn execute(&mut self, text: &str, values: &[(&str, usize)]) {
        let values: HashMap<&str, usize> = values.iter().copied().collect();
        for line in text.lines() {
            let (name, operands) = line
                .split_once(' ')
                .expect("an instruction and its operands");
            let operands: Vec<&str> = operands.split(", ").collect();
            // SAFETY: the caller's promise.
            unsafe {
                match (name, operands.as_slice()) {
                    ("tilezero", [tile]) => self.zero(number(tile)),
                    ("tileloadd", [tile, from]) => {
                        let (from, stride) = address(from, &values);
                        self.load(number(tile), from as *const u8, stride);
                    }
                    ("tilestored", [to, tile]) => {
                        let (to, stride) = address(to, &values);
                        self.store(number(tile), to as *mut u8, stride);
                    }
                    ("tdpbsud", [sums, a, b]) => self.multiply(number(sums), number(a), number(b)),
                    _ => panic!("{line:?} is not emulated"),
                }
            }
        }
    }
}

/// Parse the tile name `tmm0` to `tmm7`.
fn number(name: &str) -> usize {
    let number = name
        .strip_prefix("tmm")
        .and_then(|digits| digits.parse().ok());
    number
        .filter(|&tile| tile < TILES)
        .unwrap_or_else(|| panic!("{name:?} is no tile"))
}

/// Base and stride of the operand `[{base} + {stride}*1]`.
fn address(text: &str, values: &HashMap<&str, usize>) -> (usize, usize) {
    let parts = text
        .strip_prefix("[{")
        .and_then(|rest| rest.strip_suffix("}*1]"));
    let (base, stride) = parts
        .and_then(|parts| parts.split_once("} + {"))
        .expect("an address");
    (values[base], values[stride])
}

thread_local! {
    static STATE: RefCell<TileState> = RefCell::new(TileState::load_config(&CONFIG));
}

/// This thread's emulated tiles.
pub(crate) struct Emulated;

// SAFETY: executes the texts of the instructions on the memory that they cover.
unsafe impl Tiles for Emulated {
    unsafe fn group<const ODD: bool>(
        rows: *const RowTile,
        weights: *const CodeTile,
        dots: *mut Dots,
    ) {
        let values = [
            ("rows", rows.expose_provenance()),
            ("row_stride", ROW_STRIDE),
            ("weights", weights.expose_provenance()),
            ("line", LINE),
            ("dots", dots.expose_provenance()),
        ];
        let text = if ODD { ODD_TEXT } else { EVEN_TEXT };
        // SAFETY: pointers by the contract of `group`.
        STATE.with_borrow_mut(|state| unsafe { state.execute(text, &values) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation_quant::TILE_ROWS;
    use crate::pack::layout::{GROUP, PANEL_COLUMNS};
    use crate::pack::tests::Random;
    use proptest::prelude::*;

    fn random_operands(seed: u64) -> (RowTile, Box<CodeTile>) {
        let mut random = Random(seed);
        let mut extreme = |extremes: [u8; 2]| match random.bits() % 8 {
            0 => extremes[0],
            1 => extremes[1],
            _ => random.bits() as u8,
        };
        let rows = RowTile {
            codes: std::array::from_fn(|_| {
                std::array::from_fn(|_| extreme([0x80, 0x7f]).cast_signed())
            }),
        };
        let weights = Box::new(std::array::from_fn(|_| {
            std::array::from_fn(|_| extreme([0, 255]))
        }));
        (rows, weights)
    }

    /// Dot products over a group's inputs, by a naive loop.
    fn naive(rows: &RowTile, weights: &CodeTile) -> Dots {
        Dots(std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                let product = |input: usize| {
                    let weight = weights[input / 4][4 * column + input % 4];
                    i32::from(rows.codes[row][input]) * i32::from(weight)
                };
                (0..GROUP).map(product).sum()
            })
        }))
    }

    /// Results of `T` with both sets of registers.
    fn computed<T: Tiles>(rows: &RowTile, weights: &CodeTile) -> [Dots; 2] {
        let mut dots = [Dots([[i32::MIN; PANEL_COLUMNS]; 16]); 2];
        let [even, odd] = &mut dots;
        // SAFETY: own memory; callers check that the hardware is available before passing it.
        unsafe {
            T::group::<false>(rows, weights, even);
            T::group::<true>(rows, weights, odd);
        }
        dots
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn dot_products_equal_a_naive_loop(seed: u64) {
            let (rows, weights) = random_operands(seed);
            let [even, odd] = computed::<Emulated>(&rows, &weights);
            prop_assert_eq!(even.0, naive(&rows, &weights).0);
            prop_assert_eq!(odd.0, even.0);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn hardware_equals_the_emulation() {
        if let Err(reason) = crate::amx::support::support() {
            eprintln!("skipped: {reason}");
            return;
        }
        for seed in 0..64 {
            let (rows, weights) = random_operands(seed);
            // SAFETY: support was checked above.
            unsafe { crate::amx::thread_tiles::configure() };
            let hardware = computed::<crate::amx::tiles::Hardware>(&rows, &weights);
            crate::amx::thread_tiles::release();
            let emulated = computed::<Emulated>(&rows, &weights);
            assert_eq!(hardware.map(|dots| dots.0), emulated.map(|dots| dots.0));
        }
    }

    #[test]
    fn a_row_tile_holds_whole_four_row_tiles() {
        assert_eq!(super::super::row_tiles::ROWS % TILE_ROWS, 0);
    }

    #[test]
    #[should_panic(expected = "#UD: inner dimensions of the operands differ")]
    fn mismatched_operands_raise_ud() {
        TileState::load_config(&CONFIG).multiply(0, 1, 4);
    }

    #[test]
    #[should_panic(expected = "#GP: reserved bytes")]
    fn a_malformed_configuration_raises_gp() {
        TileState::load_config(&TileConfig {
            reserved: [1; 14],
            ..CONFIG
        });
    }
}
