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
//! Scales ([`Scales`]) follow the codes of their group: in Q8_0, 16 f16 (544 bytes with the codes), in Q4_0 and Q4_1, 16
//! scale-offset pairs of 16-bit integers ([`super::pairs`], 320 bytes).
//!
//! K-quants keep the file's own integers ([`super::blocked`]). Eight groups are a block: 64 bytes of factors (16 f16 of
//! scales, 16 of minima), the scales and minima of each group (32 bytes, one byte each; in Q2_K a scale and its minimum share
//! a byte; 24 bytes of 6-bit scales in Q3_K), then the codes of each group. All codes are on cache lines. A block takes 1,344
//! bytes in Q2_K, 1,792 in Q3_K, 2,368 in Q4_K, 2,880 in Q5_K and 3,392 in Q6_K: 1.000, 1.018, 1.028, 1.023 and 1.010 times the
//! file's.
//!
//! Where weights are multiplied through pairs (4 bits), the 16 column scales (f32) that the pairs are relative to precede the
//! panel's groups.
//!
//! *Float*: 16 values for each input, in the file's own type.

use crate::quant::DType;

/// Output columns of a panel: the 32-bit lanes of a 512-bit register.
pub const PANEL_COLUMNS: usize = 16;

/// Inputs of a group: those that share a scale of the quantised activations.
pub const GROUP: usize = 32;

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
    /// f16, copied from the file.
    Half,
    /// Scale-offset pairs of 16-bit integers ([`super::pairs`]).
    Pairs,
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

/// Bytes of a block's factors, scales and minima, which precede its codes, unless scales take six bits.
pub const BLOCK_HEADER_BYTES: usize = BLOCK_FACTOR_BYTES + BLOCK_GROUPS * BLOCK_SCALE_BYTES;

/// Bytes of a block's factors: 16 f16 of the scales, 16 f16 of the minima (unused in formats without minima).
pub const BLOCK_FACTOR_BYTES: usize = 64;

/// Bytes of one group's scales in a block: two arrays of 16. The second one holds minima, or the scales of the group's second
/// half.
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
}

impl QuantLayout {
    /// The layout of Q4_0 and Q4_1.
    pub const PAIRED: Self = Self::new(4, 32, Scales::Pairs, Offset::Paired);
    pub const Q8_0: Self = Self::new(8, 32, Scales::Half, Offset::ZeroPoint(128));
    pub const Q4_K: Self = Self::new(4, 32, Scales::Blocked, Offset::Paired);
    pub const Q5_K: Self = Self::new(5, 32, Scales::Blocked, Offset::Min);
    pub const Q6_K: Self = Self::new(6, 16, Scales::Blocked, Offset::ZeroPoint(32));
    pub const Q2_K: Self = Self::new(2, 16, Scales::BlockedNibbles, Offset::Min);
    pub const Q3_K: Self = Self::new(3, 16, Scales::BlockedSixBits, Offset::ZeroPoint(4));

    /// Every layout.
    pub const ALL: [Self; 7] = [
        Self::PAIRED,
        Self::Q8_0,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::Q2_K,
        Self::Q3_K,
    ];

    /// Index in [`Self::ALL`], for const parameters.
    pub const fn index(self) -> usize {
        match (self.scales, self.bits) {
            (Scales::Pairs, _) => 0,
            (Scales::Half, _) => 1,
            (Scales::Blocked, bits) => bits as usize - 2,
            (Scales::BlockedNibbles, _) => 5,
            (Scales::BlockedSixBits, _) => 6,
        }
    }

    const fn new(bits: u32, group: usize, scales: Scales, offset: Offset) -> Self {
        Self {
            bits,
            group,
            scales,
            offset,
        }
    }

    /// Bytes of a group's codes.
    pub const fn code_bytes(self) -> usize {
        PANEL_COLUMNS * GROUP * self.bits as usize / 8
    }

    /// Bytes of a group's scales, without the high bits of 6-bit scales.
    pub const fn scale_bytes(self) -> usize {
        match self.scales {
            Scales::Half => 2 * PANEL_COLUMNS * (GROUP / self.group),
            Scales::Pairs => 4 * PANEL_COLUMNS,
            Scales::Blocked | Scales::BlockedNibbles => BLOCK_SCALE_BYTES,
            Scales::BlockedSixBits => SIX_BIT_LOW_BYTES,
        }
    }

    /// Bytes of the column scales that precede the groups.
    pub const fn column_scale_bytes(self) -> usize {
        match self.offset {
            Offset::Paired => 4 * PANEL_COLUMNS,
            Offset::Min | Offset::ZeroPoint(_) => 0,
        }
    }

    /// Groups that share a header: the unit of storage.
    pub const fn block_groups(self) -> usize {
        if self.scales.is_blocked() {
            BLOCK_GROUPS
        } else {
            1
        }
    }

    /// Bytes of a block before its codes. Whole cache lines.
    pub const fn header_bytes(self) -> usize {
        match self.scales {
            Scales::Half | Scales::Pairs => 0,
            Scales::Blocked | Scales::BlockedNibbles => BLOCK_HEADER_BYTES,
            Scales::BlockedSixBits => SIX_BIT_HIGH_OFFSET + BLOCK_GROUPS / 2 * PANEL_COLUMNS,
        }
    }

    /// Bytes of [`Self::block_groups`] groups.
    pub const fn block_bytes(self) -> usize {
        if self.scales.is_blocked() {
            self.header_bytes() + BLOCK_GROUPS * self.code_bytes()
        } else {
            self.code_bytes() + self.scale_bytes()
        }
    }

    /// Offset of the block of group `group` in the panel. It begins with the factors, if there are any.
    pub const fn block_offset(self, group: usize) -> usize {
        self.column_scale_bytes() + group / self.block_groups() * self.block_bytes()
    }

    /// Offset of the codes of group `group` in the panel.
    pub const fn code_offset(self, group: usize) -> usize {
        let in_block = group % self.block_groups() * self.code_bytes();
        self.block_offset(group) + self.header_bytes() + in_block
    }

    /// Offset of the scales of group `group` in the panel.
    pub const fn scale_offset(self, group: usize) -> usize {
        let in_block = if self.scales.is_blocked() {
            BLOCK_FACTOR_BYTES + group % BLOCK_GROUPS * self.scale_bytes()
        } else {
            self.code_bytes()
        };
        self.block_offset(group) + in_block
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
            // Not packed yet: dequantised when they are loaded.
            DType::Q5_1 | DType::MXFP4 | DType::IQ4XS => Self::F32,
            DType::F16 => Self::F16,
            DType::BF16 => Self::Bf16,
            DType::Q4_0 | DType::Q4_1 => Self::Quant(QuantLayout::PAIRED),
            DType::Q8_0 | DType::Q5_0 | DType::IQ4NL => Self::Quant(QuantLayout::Q8_0),
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
            Self::Quant(layout) => layout.block_offset(inputs / GROUP),
        }
    }

    /// Whether GEMMs with it read int8 activations.
    pub const fn is_quantized(self) -> bool {
        matches!(self, Self::Quant(_))
    }
}
