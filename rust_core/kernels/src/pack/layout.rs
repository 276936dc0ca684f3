//! The bytes of a panel.
//!
//! *Quantised*: one record for each group of 32 inputs: codes, then what makes weights of them.
//! Codes come in quads of four consecutive inputs, four bytes a column, so that one 64-byte register
//! holds a quad of all 16 columns and one dot-product instruction consumes it:
//! * 8 bits: 8 × 64 bytes; register `i`, byte `4c + j` is column `c`, input `4i + j`. Then 16 scales and, if there are
//!   any, 16 minima (twice that with groups of 16: first the low half's).
//! * 4 bits: 4 × 64 bytes; register `i`, byte `4c + j` holds input `4i + j` in its low and input
//!   `16 + 4i + j` in its high nibble. Then 16 pairs of 16-bit integers ([`super::pairs`]), in units of their columns,
//!   which stand before the panel's first record, 16 floats. A record is 320 bytes.
//!
//! *Float*: 16 values for each input, in the file's own type.

use crate::quant::DType;

/// Output columns of a panel: the lanes of a 512-bit register.
pub const PANEL_COLUMNS: usize = 16;

/// Inputs that a record covers and that activations share a scale over.
pub const GROUP: usize = 32;

/// How a code becomes a weight, beside its scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// `scale * code + min`, minima stored.
    Min,
    /// `scale * (code - zero)`: exact in integers, nothing stored.
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
    /// Scales are f16 (the file's own) rather than f32 (products of two of its fields).
    pub half_scales: bool,
    pub offset: Offset,
}

impl QuantLayout {
    /// All formats' of 4 bits.
    pub const PAIRED: Self = Self {
        bits: 4,
        group: 32,
        half_scales: false,
        offset: Offset::Paired,
    };
    /// The commonest one's of 8 bits.
    pub const Q8_0: Self = Self::bytes(false, true, 128);

    /// One of 8 bits: whether halves of a group have scales of their own, whether scales are halves, and the zero, or 0 if
    /// there are minima.
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

    /// Bytes of the columns' units, which stand before the records.
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

/// What a panel holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanelKind {
    F32,
    F16,
    Bf16,
    Quant(QuantLayout),
}

impl PanelKind {
    /// The panel that keeps `dtype`: its codes as they are, and scales to 15 bits of their column's largest.
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

    /// Whether products with it take int8 activations.
    pub const fn is_quantized(self) -> bool {
        matches!(self, Self::Quant(_))
    }
}
