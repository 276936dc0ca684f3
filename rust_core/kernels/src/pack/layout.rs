//! Memory layout of a panel.
//!
//! *Quantised*: for each group of 32 inputs, codes and then scales. Codes are in quads of four consecutive inputs, four bytes
//! per column, so that one 64-byte register holds a quad of all 16 columns, the operand of one int8 dot product instruction
//! (VNNI):
//! * 8 bits: 8 × 64 bytes; register `i`, byte `4c + j` is column `c`, input `4i + j`.
//! * 4 bits: 4 × 64 bytes; register `i`, byte `4c + j` holds input `4i + j` in its low and input `16 + 4i + j` in its high
//!   nibble.
//! * 2 bits: 2 × 64 bytes; bits `2i` and `2i + 1` of byte `4c + j` in register `r` belong to input `16r + 4i + j`.
//! * 3, 5 and 6 bits: a plane of the low two (3 bits) or four bits as above, then a plane of the high bits. Of 3- and 5-bit
//!   codes, one register: bit `i` of byte `4c + j` belongs to input `4i + j`. Of 6-bit codes, two registers as in a plane of
//!   2-bit codes.
//!
//! In some formats a nibble is no code but the index of one in a table ([`super::table`]).
//!
//! Scales ([`Scales`]) follow the codes of their group: in Q8_0, 16 f16 (544 bytes with the codes), in Q4_1, 16 scale-offset
//! pairs of 16-bit integers ([`super::pairs`], 320 bytes), and in Q5_1, 16 f16 of scales and 16 of minima (384 bytes).
//!
//! In Q4_0, Q5_0 and IQ4_NL the scales of a group take 32 bytes, in MXFP4 16. So that all codes are on cache lines, two or four
//! groups are a block, which begins with the scales of all: 576 bytes in Q4_0 and IQ4_NL, 704 in Q5_0 and 1,088 in MXFP4, as in
//! the file. The last block of a panel may have fewer.
//!
//! K-quants keep the file's own integers ([`super::blocked`]). Eight groups are a block: 64 bytes of factors (16 f16 of
//! scales, 16 of minima), the scales and minima of each group (32 bytes, one byte each; in Q2_K a scale and its minimum share
//! a byte; 24 bytes of 6-bit scales in Q3_K), then the codes of each group. All codes are on cache lines. A block takes 1,344
//! bytes in Q2_K, 1,792 in Q3_K, 2,368 in Q4_K, 2,880 in Q5_K and 3,392 in Q6_K: 1.000, 1.018, 1.028, 1.023 and 1.010 times the
//! file's. IQ4_XS is stored in the same way with one array of integers (16 bytes) for each group: 2,240 bytes, 1.029 times the
//! file's.
//!
//! Where weights are multiplied through pairs (4 bits), the 16 column scales (f32) that the pairs are relative to precede the
//! panel's groups.
//!
//! *Float*: 16 values for each input, in the file's own type.

use super::table::{self, Table};
use crate::quant::DType;

/// Output columns of a panel: the 32-bit lanes of a 512-bit register.
pub const PANEL_COLUMNS: usize = 16;

/// Inputs of a group: those that share a scale of the quantised activations.
pub const GROUP: usize = 32;

/// Bytes of a cache line.
const LINE: usize = 64;

/// How the offset of a quantised weight is represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// `scale * code + min`; minima are stored.
    Min,
    /// `scale * (code - zero_point)` with a constant zero point: exact in integers, nothing stored.
    ZeroPoint(i32),
    /// Scale and offset are a pair of integers ([`super::pairs`]).
    Paired,
}

/// How the scales of a group are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// f16, copied from the file, and f16 minima if there are any.
    Half,
    /// Exponents of powers of two, as those of an f32: of 2^-126 to 2^127, and 0 for 0.
    Exponents,
    /// Scale-offset pairs of 16-bit integers ([`super::pairs`]).
    Pairs,
    /// The scales of such pairs alone, whose offsets are all 0.
    Integers,
    /// 8-bit integers and, for each block of [`BLOCK_GROUPS`] groups, f16 factors ([`super::blocked`]).
    Blocked,
    /// The same with a scale in the low and its minimum in the high four bits of a byte.
    BlockedNibbles,
    /// The same with scales of six bits.
    BlockedSixBits,
}

impl Scales {
    /// Whether groups are in blocks with factors.
    pub const fn is_blocked(self) -> bool {
        matches!(
            self,
            Self::Blocked | Self::BlockedNibbles | Self::BlockedSixBits
        )
    }
}

/// Groups in a block of a K-quant.
pub const BLOCK_GROUPS: usize = 8;

/// Bytes of a block's factors: 16 f16 of the scales, 16 f16 of the minima (unused in formats without minima).
pub const BLOCK_FACTOR_BYTES: usize = 64;

/// Bytes of one group's scales in a block of a K-quant: two arrays of 16. The second one holds minima, or the scales of the
/// group's second half.
pub const BLOCK_SCALE_BYTES: usize = 32;

/// Bytes of the low four bits of one group's 6-bit scales: the first half's in the low, the second half's in the high nibbles.
pub const SIX_BIT_LOW_BYTES: usize = PANEL_COLUMNS;

/// Offset in a block of the high bits of 6-bit scales, in 16 bytes for two groups: bits `4g + 2h` and `4g + 2h + 1` belong to
/// half `h` of the first or second (`g`) of them.
pub const SIX_BIT_HIGH_OFFSET: usize = BLOCK_FACTOR_BYTES + BLOCK_GROUPS * SIX_BIT_LOW_BYTES;

/// Layout of quantised panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantLayout {
    /// Bits of a code: 2 to 6, or 8.
    pub bits: u32,
    /// Weights that share a scale: 16 or 32.
    pub group: usize,
    pub scales: Scales,
    pub offset: Offset,
    /// The codes of stored nibbles, if these are not codes themselves.
    pub table: Option<Table>,
}

impl QuantLayout {
    pub const Q4_0: Self = Self::new(4, 32, Scales::Integers, Offset::Paired);
    pub const Q4_1: Self = Self::new(4, 32, Scales::Pairs, Offset::Paired);
    pub const Q5_1: Self = Self::new(5, 32, Scales::Half, Offset::Min);
    pub const Q5_0: Self = Self::new(5, 32, Scales::Half, Offset::ZeroPoint(16));
    pub const Q8_0: Self = Self::new(8, 32, Scales::Half, Offset::ZeroPoint(128));
    pub const Q4_K: Self = Self::new(4, 32, Scales::Blocked, Offset::Paired);
    pub const Q5_K: Self = Self::new(5, 32, Scales::Blocked, Offset::Min);
    pub const Q6_K: Self = Self::new(6, 16, Scales::Blocked, Offset::ZeroPoint(32));
    pub const Q2_K: Self = Self::new(2, 16, Scales::BlockedNibbles, Offset::Min);
    pub const Q3_K: Self = Self::new(3, 16, Scales::BlockedSixBits, Offset::ZeroPoint(4));

    pub const IQ4_NL: Self = Self::looked_up(Table::IQ4, Scales::Half);
    pub const IQ4_XS: Self = Self::looked_up(Table::IQ4, Scales::Blocked);
    pub const MXFP4: Self = Self::looked_up(Table::FP4, Scales::Exponents);

    /// Every layout.
    pub const ALL: [Self; 13] = [
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::IQ4_NL,
        Self::IQ4_XS,
        Self::MXFP4,
        Self::Q2_K,
        Self::Q3_K,
    ];

    /// Index in [`Self::ALL`], for const parameters.
    pub const fn index(self) -> usize {
        let mut index = 0;
        while !self.is(Self::ALL[index]) {
            index += 1;
        }
        index
    }

    /// Equality, in constants.
    const fn is(self, other: Self) -> bool {
        const fn table(layout: QuantLayout) -> i32 {
            match layout.table {
                None => -1,
                Some(table) => table as i32,
            }
        }
        const fn offset(layout: QuantLayout) -> i32 {
            match layout.offset {
                Offset::Min => -1,
                Offset::Paired => -2,
                Offset::ZeroPoint(zero) => zero,
            }
        }
        self.bits == other.bits
            && self.group == other.group
            && self.scales as u32 == other.scales as u32
            && offset(self) == offset(other)
            && table(self) == table(other)
    }

    const fn new(bits: u32, group: usize, scales: Scales, offset: Offset) -> Self {
        Self {
            bits,
            group,
            scales,
            offset,
            table: None,
        }
    }

    /// Of nibbles that index a table.
    const fn looked_up(table: Table, scales: Scales) -> Self {
        Self {
            table: Some(table),
            ..Self::new(4, 32, scales, Offset::ZeroPoint(table::ZERO_POINT))
        }
    }

    // The offsets are always inlined: kernels know the layout, and all of this is a constant there.

    /// Bytes of a group's codes.
    #[inline(always)]
    pub const fn code_bytes(self) -> usize {
        PANEL_COLUMNS * GROUP * self.bits as usize / 8
    }

    /// Bytes of a group's scales, without the high bits of 6-bit scales.
    #[inline(always)]
    pub const fn scale_bytes(self) -> usize {
        match self.scales {
            Scales::Half => 2 * PANEL_COLUMNS * self.arrays(),
            Scales::Pairs => 4 * PANEL_COLUMNS,
            Scales::Integers => 2 * PANEL_COLUMNS,
            Scales::Blocked | Scales::BlockedNibbles => PANEL_COLUMNS * self.arrays(),
            Scales::BlockedSixBits => SIX_BIT_LOW_BYTES,
            Scales::Exponents => PANEL_COLUMNS,
        }
    }

    /// Arrays of 16 numbers in a group's scales: one for each half, or scales and minima.
    const fn arrays(self) -> usize {
        match (self.offset, self.scales) {
            (Offset::Min, _) | (Offset::Paired, Scales::Blocked) => 2,
            _ => GROUP / self.group,
        }
    }

    /// Bytes of the column scales that precede the groups.
    #[inline(always)]
    pub const fn column_scale_bytes(self) -> usize {
        match self.offset {
            Offset::Paired => 4 * PANEL_COLUMNS,
            Offset::Min | Offset::ZeroPoint(_) => 0,
        }
    }

    /// Groups whose scales precede all their codes: the unit of storage. In a block of one group they follow the codes.
    #[inline(always)]
    pub const fn block_groups(self) -> usize {
        match self.scales {
            Scales::Blocked | Scales::BlockedNibbles | Scales::BlockedSixBits => BLOCK_GROUPS,
            Scales::Pairs => 1,
            Scales::Half if self.bits == 8 => 1,
            Scales::Half | Scales::Integers | Scales::Exponents => LINE / self.scale_bytes(),
        }
    }

    /// Bytes of factors and scales that precede the codes of a block.
    #[inline(always)]
    pub const fn header_bytes(self) -> usize {
        match (self.scales, self.block_groups()) {
            (_, 1) => 0,
            (Scales::BlockedSixBits, groups) => SIX_BIT_HIGH_OFFSET + groups / 2 * PANEL_COLUMNS,
            (_, groups) => self.factor_bytes() + groups * self.scale_bytes(),
        }
    }

    /// Bytes of a block's factors, which precede its scales.
    #[inline(always)]
    pub const fn factor_bytes(self) -> usize {
        if self.scales.is_blocked() {
            BLOCK_FACTOR_BYTES
        } else {
            0
        }
    }

    /// Bytes of [`Self::block_groups`] groups.
    #[inline(always)]
    pub const fn block_bytes(self) -> usize {
        match self.block_groups() {
            1 => self.code_bytes() + self.scale_bytes(),
            groups => self.header_bytes() + groups * self.code_bytes(),
        }
    }

    /// Offset of the block of group `group` in the panel. It begins with the factors, if there are any.
    #[inline(always)]
    pub const fn block_offset(self, group: usize) -> usize {
        self.column_scale_bytes() + group / self.block_groups() * self.block_bytes()
    }

    /// Bytes of a panel of `groups` groups. An incomplete last block has no codes of the missing groups.
    #[inline(always)]
    pub const fn panel_bytes(self, groups: usize) -> usize {
        let missing = groups.next_multiple_of(self.block_groups()) - groups;
        self.block_offset(groups + missing) - missing * self.code_bytes()
    }

    /// Offset of the codes of group `group` in the panel.
    #[inline(always)]
    pub const fn code_offset(self, group: usize) -> usize {
        let in_block = group % self.block_groups();
        self.block_offset(group) + self.header_bytes() + in_block * self.code_bytes()
    }

    /// Offset of the scales of group `group` in the panel.
    #[inline(always)]
    pub const fn scale_offset(self, group: usize) -> usize {
        self.block_offset(group)
            + match self.block_groups() {
                1 => self.code_bytes(),
                groups => self.factor_bytes() + group % groups * self.scale_bytes(),
            }
    }
}

/// Element type or quantised layout of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanelKind {
    F32,
    F16,
    Bf16,
    Quant(QuantLayout),
}

impl PanelKind {
    /// The panel kind for weights stored as `dtype`.
    pub const fn of(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::F32,
            DType::F16 => Self::F16,
            DType::BF16 => Self::Bf16,
            DType::Q4_0 => Self::Quant(QuantLayout::Q4_0),
            DType::Q4_1 | DType::Int4 => Self::Quant(QuantLayout::Q4_1),
            DType::Q5_0 => Self::Quant(QuantLayout::Q5_0),
            DType::Q5_1 => Self::Quant(QuantLayout::Q5_1),
            DType::Q8_0 => Self::Quant(QuantLayout::Q8_0),
            DType::MXFP4 => Self::Quant(QuantLayout::MXFP4),
            DType::IQ4XS => Self::Quant(QuantLayout::IQ4_XS),
            DType::IQ4NL => Self::Quant(QuantLayout::IQ4_NL),
            DType::Q4K => Self::Quant(QuantLayout::Q4_K),
            DType::Q5K => Self::Quant(QuantLayout::Q5_K),
            DType::Q6K => Self::Quant(QuantLayout::Q6_K),
            DType::Q2K => Self::Quant(QuantLayout::Q2_K),
            DType::Q3K => Self::Quant(QuantLayout::Q3_K),
        }
    }

    /// Bytes of a panel of `inputs` inputs.
    pub const fn panel_bytes(self, inputs: usize) -> usize {
        match self {
            Self::F32 => inputs * PANEL_COLUMNS * 4,
            Self::F16 | Self::Bf16 => inputs * PANEL_COLUMNS * 2,
            Self::Quant(layout) => layout.panel_bytes(inputs / GROUP),
        }
    }

    /// Whether GEMMs with it read int8 activations.
    pub const fn is_quantized(self) -> bool {
        matches!(self, Self::Quant(_))
    }
}
