//! Memory layout of a panel.
//!
//! *Quantised*: one record for each group of 32 inputs: codes, then scales and offsets.
//! Codes are in quads of four consecutive inputs, four bytes per column, so that one 64-byte register
//! holds a quad of all 16 columns, the operand of one int8 dot product instruction (VNNI):
//! * 8 bits: 8 × 64 bytes; register `i`, byte `4c + j` is column `c`, input `4i + j`. Then 16 scales and, in formats with
//!   minima, 16 minima (twice that with groups of 16, the low half first).
//! * 4 bits: 4 × 64 bytes; register `i`, byte `4c + j` holds input `4i + j` in its low and input
//!   `16 + 4i + j` in its high nibble. Then 16 scale-offset pairs of 16-bit integers ([`super::pairs`]). A record is 320
//!   bytes. The 16 column scales (f32) that the pairs are relative to precede the panel's first record.
//!
//! *Float*: 16 values for each input, in the file's own type.

use crate::quant::DType;

/// Output columns of a panel: the 32-bit lanes of a 512-bit register.
pub const PANEL_COLUMNS: usize = 16;

/// Inputs per record, and per scale of the quantised activations.
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

/// Layout of quantised panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantLayout {
    /// 4 or 8.
    pub bits: u32,
    /// Weights that share a scale: 16 or 32.
    pub group: usize,
    /// Scales are f16 (copied from the file) rather than f32 (products of two of its fields).
    pub half_scales: bool,
    pub offset: Offset,
}

impl QuantLayout {
    /// The layout of all 4-bit formats.
    pub const PAIRED: Self = Self {
        bits: 4,
        group: 32,
        half_scales: false,
        offset: Offset::Paired,
    };
    /// The layout of Q8_0, the most common 8-bit format.
    pub const Q8_0: Self = Self::bytes(false, true, 128);

    /// An 8-bit layout. `split`: each half of a group has its own scale. `half_scales`: scales are f16. `zero`: the zero point,
    /// or 0 for a layout with minima.
    pub const fn bytes(split: bool, half_scales: bool, zero: i32) -> Self {
        assert!(
            !(split && zero == 0),
            "no format has minima for halves of a group"
        );
        Self {
            bits: 8,
            group: if split { GROUP / 2 } else { GROUP },
            half_scales,
            offset: if zero == 0 {
                Offset::Min
            } else {
                Offset::ZeroPoint(zero)
            },
        }
    }

    /// Bytes of a record's codes.
    pub const fn code_bytes(self) -> usize {
        PANEL_COLUMNS * GROUP * self.bits as usize / 8
    }

    /// Bytes of a record's scales (or minima, or pairs).
    pub const fn scale_bytes(self) -> usize {
        PANEL_COLUMNS * (GROUP / self.group) * if self.half_scales { 2 } else { 4 }
    }

    /// Bytes of the column scales that precede the records.
    pub const fn column_scale_bytes(self) -> usize {
        match self.offset {
            Offset::Paired => 4 * PANEL_COLUMNS,
            Offset::Min | Offset::ZeroPoint(_) => 0,
        }
    }

    /// Bytes of a record.
    pub const fn record_bytes(self) -> usize {
        let arrays = match self.offset {
            Offset::Min => 2,
            Offset::ZeroPoint(_) | Offset::Paired => 1,
        };
        self.code_bytes() + arrays * self.scale_bytes()
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
            DType::Q4_0 | DType::Q4_1 | DType::Q4K => Self::Quant(QuantLayout::PAIRED),
            DType::Q8_0 => Self::Quant(QuantLayout::Q8_0),
            DType::Q5K => Self::Quant(QuantLayout::bytes(false, false, 0)),
            DType::Q6K => Self::Quant(QuantLayout::bytes(true, false, 32)),
        }
    }

    /// Bytes of a panel of `inputs` inputs.
    pub const fn panel_bytes(self, inputs: usize) -> usize {
        match self {
            Self::F32 => inputs * PANEL_COLUMNS * 4,
            Self::F16 | Self::Bf16 => inputs * PANEL_COLUMNS * 2,
            Self::Quant(layout) => {
                layout.column_scale_bytes() + inputs / GROUP * layout.record_bytes()
            }
        }
    }

    /// Whether GEMMs with it read int8 activations.
    pub const fn is_quantized(self) -> bool {
        matches!(self, Self::Quant(_))
    }
}
