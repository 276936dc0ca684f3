//! Per-worker GEMM scratch memory.

use super::outliers::OutlierIndex;
use crate::error::KernelError;

/// Sized once for the largest row count and the longest panel. Pages that are never touched take no physical memory.
#[derive(Debug)]
pub struct PanelScratch {
    pub(super) outliers: OutlierIndex,
    #[cfg(target_arch = "x86_64")]
    pub(super) expanded: super::avx512::ExpandedPanels,
}

impl PanelScratch {
    /// For at most `rows` rows of at most `inputs` inputs.
    pub fn new(rows: usize, inputs: usize) -> Result<Self, KernelError> {
        Ok(Self {
            outliers: OutlierIndex::new(rows, inputs)?,
            #[cfg(target_arch = "x86_64")]
            expanded: super::avx512::ExpandedPanels::new(inputs)?,
        })
    }
}
