//! Element types of stored weights.

/// How a tensor's values are stored. Names follow ggml.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    F32,
    F16,
    BF16,
    /// 32 signed bytes and one f16 scale.
    Q8_0,
    /// 32 nibbles around 8 and one f16 scale.
    Q4_0,
    /// 32 nibbles, f16 scale and minimum.
    Q4_1,
    /// 32 nibbles, f32 scale and zero point: groups of GPTQ, AWQ and compressed-tensors checkpoints.
    Int4,
    /// 32 5-bit codes around 16 and one f16 scale.
    Q5_0,
    /// 32 5-bit codes, f16 scale and minimum.
    Q5_1,
    /// 32 nibbles that index a table of values, and one f16 scale.
    IQ4NL,
    /// 32 4-bit floats and one power of two, as a byte, that scales them.
    MXFP4,
    /// 256 2-bit codes in sixteen groups with 4-bit scales and minima.
    Q2K,
    /// 256 3-bit codes around 4 in sixteen groups with 6-bit scales.
    Q3K,
    /// 256 nibbles in eight groups with 6-bit scales and minima.
    Q4K,
    /// 256 5-bit codes in eight groups with 6-bit scales and minima.
    Q5K,
    /// 256 6-bit codes around 32 in sixteen groups with 8-bit scales.
    Q6K,
    /// 256 nibbles that index a table of values, in eight groups with 6-bit scales.
    IQ4XS,
}

impl DType {
    /// Every type, for tests and tables.
    pub const ALL: [Self; 17] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q8_0,
        Self::Q4_0,
        Self::Q4_1,
        Self::Int4,
        Self::Q5_0,
        Self::Q5_1,
        Self::IQ4NL,
        Self::MXFP4,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::IQ4XS,
    ];

    /// The type with ggml type number `code`, if supported.
    pub fn from_ggml(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            20 => Self::IQ4NL,
            23 => Self::IQ4XS,
            30 => Self::BF16,
            39 => Self::MXFP4,
            _ => return None,
        })
    }

    /// The common name, such as `Q4_K`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::Q8_0 => "Q8_0",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Int4 => "INT4",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::IQ4NL => "IQ4_NL",
            Self::MXFP4 => "MXFP4",
            Self::Q2K => "Q2_K",
            Self::Q3K => "Q3_K",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
            Self::IQ4XS => "IQ4_XS",
        }
    }

    /// The type called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Values in one block; 1 for floats.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q8_0
            | Self::Q4_0
            | Self::Q4_1
            | Self::Int4
            | Self::Q5_0
            | Self::Q5_1
            | Self::IQ4NL
            | Self::MXFP4 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K | Self::IQ4XS => 256,
        }
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q8_0 => 2 + 32,
            Self::Q4_0 | Self::IQ4NL => 2 + 16,
            Self::Q4_1 => 2 + 2 + 16,
            Self::Int4 => 4 + 4 + 16,
            Self::Q5_0 => 2 + 4 + 16,
            Self::Q5_1 => 2 + 2 + 4 + 16,
            Self::MXFP4 => 1 + 16,
            Self::Q2K => 16 + 64 + 2 + 2,
            Self::Q3K => 32 + 64 + 12 + 2,
            Self::Q4K => 2 + 2 + 12 + 128,
            Self::Q5K => 2 + 2 + 12 + 32 + 128,
            Self::Q6K => 128 + 64 + 16 + 2,
            Self::IQ4XS => 2 + 2 + 4 + 128,
        }
    }

    /// Whether values are blocks of codes (and [`super::unpack_row_affine`] applies), not floats.
    pub fn is_quantized(self) -> bool {
        self.block_len() > 1
    }
}
