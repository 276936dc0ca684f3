//! Quantised GEMM in plain Rust: the reference for the other levels, and the kernel used on ARM.
//!
//! Written so that compilers emit 16-bit vector code: codes are multiplied nibble by nibble in the panel's own order. The
//! product of a nibble and an activation is at most 15 · 127 = 1,905 in magnitude and a lane sums eight of them, so 16 bits
//! cannot overflow. Dot products with planes of high bits are combined as `low + 16 · high`, or `low + 4 · high` with 3-bit
//! codes.

use super::PanelGemm;
use super::outliers::finish;
use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use crate::pack::pairs;
use crate::pack::quantized::{Group, load_column_scale};
use crate::simd::Portable;

type Columns<T> = [T; PANEL_COLUMNS];

/// 16-bit lanes for one register of codes: four inputs of each column, in rows of eight.
type Lanes = [[i16; 8]; 8];

/// Rows computed per decoding of a group's scales.
const ROWS: usize = 16;

/// See [`super::Gemm::panels`].
///
/// # Safety
/// As there.
pub(super) unsafe fn multiply(layout: QuantLayout, gemm: PanelGemm) {
    let (groups, rows) = (gemm.groups(), gemm.rows);
    // SAFETY: a whole panel, the tiles of `rows` rows of activations: the caller's promise.
    let (panel, tiles) = unsafe {
        (
            std::slice::from_raw_parts(gemm.panel.data, layout.panel_bytes(groups)),
            std::slice::from_raw_parts(gemm.x.tiles, rows.div_ceil(TILE_ROWS) * groups),
        )
    };
    for first in (0..rows).step_by(ROWS) {
        let block = ROWS.min(rows - first);
        let mut sums = [[0f32; PANEL_COLUMNS]; ROWS];
        for group in 0..groups {
            let decoded = Decoded::new(layout, Group::of(layout, panel, group));
            for (row, sums) in sums[..block].iter_mut().enumerate() {
                let row = first + row;
                let tile = &tiles[row / TILE_ROWS * groups + group];
                decoded.add(tile, row % TILE_ROWS, sums);
            }
        }
        if layout.offset == Offset::Paired {
            let column_scales: Columns<f32> =
                std::array::from_fn(|column| load_column_scale(panel, column));
            for sums in &mut sums[..block] {
                for (sum, column_scale) in sums.iter_mut().zip(column_scales) {
                    *sum *= column_scale;
                }
            }
        }
        // SAFETY: `rows` rows of 16 at `output`, their outliers: the caller's promise.
        unsafe {
            let tiles = &sums.as_chunks().0[..block.div_ceil(TILE_ROWS)];
            finish::<Portable>(tiles, gemm.skip(first));
        }
    }
}

/// A group with its scales and minima decoded, one set for each part (half or whole) of the group.
struct Decoded<'a> {
    layout: QuantLayout,
    registers: &'a [[u8; 64]],
    scales: [Columns<f32>; 2],
    /// Zeros where there are none.
    mins: [Columns<f32>; 2],
    /// Zeros where there are none.
    pairs: Columns<[i16; 2]>,
}

impl<'a> Decoded<'a> {
    fn new(layout: QuantLayout, group: Group<'a>) -> Self {
        let mut decoded = Self {
            layout,
            registers: group.registers(),
            scales: [[0.0; PANEL_COLUMNS]; 2],
            mins: [[0.0; PANEL_COLUMNS]; 2],
            pairs: [[0; 2]; PANEL_COLUMNS],
        };
        if layout.offset == Offset::Paired {
            decoded.pairs = std::array::from_fn(|column| group.pair(column));
            return decoded;
        }
        for part in 0..GROUP / layout.group {
            decoded.scales[part] = std::array::from_fn(|column| group.scale(part, column));
            if layout.offset == Offset::Min {
                decoded.mins[part] = std::array::from_fn(|column| group.min(part, column));
            }
        }
        decoded
    }

    /// Accumulate row `lane` of a tile times this group.
    fn add(&self, tile: &TileGroup, lane: usize, sums: &mut Columns<f32>) {
        let codes = &tile.codes[lane];
        if self.layout.group == GROUP {
            self.add_part(self.dots::<0, 8>(codes), 0, tile, lane, sums);
        } else {
            self.add_part(self.dots::<0, 4>(codes), 0, tile, lane, sums);
            self.add_part(self.dots::<4, 8>(codes), 1, tile, lane, sums);
        }
    }

    fn add_part(
        &self,
        dots: Columns<i32>,
        part: usize,
        tile: &TileGroup,
        lane: usize,
        sums: &mut Columns<f32>,
    ) {
        let row_scale = tile.scales[lane];
        if self.layout.offset == Offset::Paired {
            let start = tile.initial_sums[lane];
            for ((sum, dot), pair) in sums.iter_mut().zip(dots).zip(self.pairs) {
                *sum += pairs::dequantize_dot(dot.wrapping_add(start), pair) as f32 * row_scale;
            }
            return;
        }
        let row_sum = tile.sum_of_part(self.layout, part, lane);
        let (zero, min_sum) = match self.layout.offset {
            Offset::ZeroPoint(zero) => (zero * row_sum, 0.0),
            Offset::Min | Offset::Paired => (0, row_sum as f32),
        };
        for (column, (sum, dot)) in sums.iter_mut().zip(dots).enumerate() {
            let value = (dot - zero) as f32 * self.scales[part][column];
            *sum += (value + self.mins[part][column] * min_sum) * row_scale;
        }
    }

    /// Exact dot products over quads `FIRST..LAST` of inputs, per column.
    fn dots<const FIRST: usize, const LAST: usize>(&self, codes: &[i8; GROUP]) -> Columns<i32> {
        let (mut low, mut high) = (Lanes::default(), Lanes::default());
        for quad in FIRST..LAST {
            let [a, b, c, d] = codes.as_chunks::<4>().0[quad].map(i16::from);
            let x = [a, b, c, d, a, b, c, d];
            let bits = self.layout.bits;
            if bits == 8 {
                add_bits::<15>(&self.registers[quad], 0, x, &mut low);
                add_bits::<15>(&self.registers[quad], 4, x, &mut high);
                continue;
            }
            if let Some(table) = self.layout.table {
                let nibbles = self.registers[quad % 4].map(|byte| byte >> (quad / 4 * 4) & 15);
                let codes = nibbles.map(|nibble| table.codes()[usize::from(nibble)]);
                add_bits::<15>(&codes, 0, x, &mut low);
                add_bits::<15>(&codes, 4, x, &mut high);
                continue;
            }
            if bits < 4 {
                add_bits::<3>(&self.registers[quad / 4], quad % 4 * 2, x, &mut low);
            } else {
                add_bits::<15>(&self.registers[quad % 4], quad / 4 * 4, x, &mut low);
            }
            match bits {
                3 => add_bits::<1>(&self.registers[2], quad, x, &mut high),
                6 => add_bits::<3>(&self.registers[4 + quad / 4], quad % 4 * 2, x, &mut high),
                5 => add_bits::<1>(&self.registers[4], quad, x, &mut high),
                _ => {}
            }
        }
        let mut dots = sum_fours(&low);
        let high_weight = match self.layout.bits {
            2 => return dots,
            4 if self.layout.table.is_none() => return dots,
            3 => 4,
            _ => 16,
        };
        for (dot, high) in dots.iter_mut().zip(sum_fours(&high)) {
            *dot += high_weight * high;
        }
        dots
    }
}

/// `lanes += (byte >> shift & MASK) * x`, for the bytes of a register. `MASK` is at most 15.
#[inline(always)]
fn add_bits<const MASK: u8>(register: &[u8; 64], shift: usize, x: [i16; 8], lanes: &mut Lanes) {
    for (bytes, lanes) in register.as_chunks::<8>().0.iter().zip(lanes) {
        for i in 0..8 {
            // Never wraps (see the module's bounds); `wrapping_*` avoids overflow checks in the vector code.
            let product = i16::from(bytes[i] >> shift & MASK).wrapping_mul(x[i]);
            lanes[i] = lanes[i].wrapping_add(product);
        }
    }
}

/// Sums of each column's four lanes.
#[inline(always)]
fn sum_fours(lanes: &Lanes) -> Columns<i32> {
    let mut sums = [0; PANEL_COLUMNS];
    for (lanes, sums) in lanes.iter().zip(sums.as_chunks_mut::<2>().0) {
        let wide = lanes.map(i32::from);
        sums[0] = wide[0] + wide[1] + (wide[2] + wide[3]);
        sums[1] = wide[4] + wide[5] + (wide[6] + wide[7]);
    }
    sums
}
