//! Where a worker expands the panel at hand.

use crate::arena::Buffer;
use crate::error::KernelError;
use crate::pack::layout::GROUP;

/// Memory for one panel whose codes are bytes and whose scales are floats; one a worker.
#[derive(Debug)]
pub struct PanelScratch {
    #[cfg(target_arch = "x86_64")]
    pub(super) codes: Buffer<u8>,
    #[cfg(target_arch = "x86_64")]
    pub(super) scales: Buffer<super::avx512::WideScales>,
    inputs: usize,
}

impl PanelScratch {
    /// For panels of at most `inputs` inputs. Untouched it takes no memory.
    pub fn new(inputs: usize) -> Result<Self, KernelError> {
        let groups = inputs.div_ceil(GROUP);
        Ok(Self {
            #[cfg(target_arch = "x86_64")]
            codes: Buffer::new(groups * super::avx512::EXPANDED_BYTES)?,
            // Some formats have scales for each half of a group.
            #[cfg(target_arch = "x86_64")]
            scales: Buffer::new(2 * groups)?,
            inputs,
        })
    }

    /// Inputs of the longest panel that fits.
    pub fn inputs(&self) -> usize {
        self.inputs
    }
}
