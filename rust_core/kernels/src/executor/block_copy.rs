//! Copying KV blocks between steps.

use super::Executor;
use crate::error::KernelError;

impl Executor {
    /// Copy the KV of block `sources[i]` to block `targets[i]`, in every layer, in order.
    ///
    /// # Errors
    /// The lists differ in length or name a block outside the pool; then nothing was copied.
    pub fn copy_blocks(&mut self, sources: &[i32], targets: &[i32]) -> Result<(), KernelError> {
        if sources.len() != targets.len() {
            return Err(KernelError::step(format!(
                "{} blocks cannot be copied to {} blocks.",
                sources.len(),
                targets.len()
            )));
        }
        let kv = &self.model.kv;
        let total = kv.shape().blocks;
        let known = |&block: &i32| usize::try_from(block).is_ok_and(|block| block < total);
        if let Some(block) = sources.iter().chain(targets).find(|block| !known(block)) {
            return Err(KernelError::step(format!(
                "Block {block} cannot be copied: the pool has {total}."
            )));
        }
        for (&source, &target) in sources.iter().zip(targets) {
            // SAFETY: `&mut self`: no step runs, so nobody reads or writes the cache.
            unsafe { kv.copy_block(source as usize, target as usize) };
        }
        Ok(())
    }
}
