//! How a checkpoint stores groups.

use serde::Deserialize;

/// A format of quantised checkpoints, as its config.json names it: the tensors do not say which one they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Scheme {
    /// GPTQ, first version: zero points are stored less 1. The writer subtracts 1 from every code of a word at once, so that a zero point
    /// of 0 borrows from its neighbour, and adding 1 to every code at once restores all of them.
    #[serde(rename = "gptq")]
    Gptq,
    /// GPTQ, second version: zero points as they are.
    #[serde(rename = "gptq_v2")]
    GptqV2,
    /// AWQ (`gemm`): the eight outputs of a word are in the order 0, 2, 4, 6, 1, 3, 5, 7.
    #[serde(rename = "awq")]
    Awq,
    /// compressed-tensors.
    #[serde(rename = "pack-quantized")]
    PackQuantized,
}

impl Scheme {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gptq => "gptq",
            Self::GptqV2 => "gptq_v2",
            Self::Awq => "awq",
            Self::PackQuantized => "pack-quantized",
        }
    }

    /// What follows the module's name in the name of a matrix's codes.
    pub(super) fn codes(self) -> &'static str {
        self.parts()[0]
    }

    /// The same for all tensors of a matrix: codes, zero points, scales, groups, and the shape if it is stored.
    pub(super) fn parts(self) -> &'static [&'static str] {
        match self {
            Self::PackQuantized => &[
                ".weight_packed",
                ".weight_zero_point",
                ".weight_scale",
                ".weight_g_idx",
                ".weight_shape",
            ],
            _ => &[".qweight", ".qzeros", ".scales", ".g_idx"],
        }
    }
}
