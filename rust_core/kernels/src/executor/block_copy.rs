//! Copying KV blocks between steps: inside the pool, out of it and into it.

use super::Executor;
use crate::error::KernelError;

impl Executor {
    /// Bytes of a KV block over all layers, as `read_blocks` copies them.
    pub fn block_bytes(&self) -> usize {
        self.model.kv.block_bytes()
    }

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
        self.check_blocks(sources)?;
        self.check_blocks(targets)?;
        for (&source, &target) in sources.iter().zip(targets) {
            // SAFETY: `&mut self`: no step runs, so no other thread accesses the cache.
            unsafe { self.model.kv.copy_block(source as usize, target as usize) };
        }
        Ok(())
    }

    /// Copy each block's bytes into its part of `bytes`: `[blocks.len(), block_bytes]`.
    ///
    /// # Errors
    /// `bytes` has another length, or a block is outside the pool; then nothing was copied.
    pub fn read_blocks(&mut self, blocks: &[i32], bytes: &mut [u8]) -> Result<(), KernelError> {
        self.check_bytes(blocks, bytes.len())?;
        let parts = bytes.chunks_exact_mut(self.block_bytes());
        for (&block, part) in blocks.iter().zip(parts) {
            // SAFETY: as above.
            unsafe { self.model.kv.read_block(block as usize, part) };
        }
        Ok(())
    }

    /// Copy each part of `bytes`, as written by `read_blocks`, into its block.
    ///
    /// # Errors
    /// As `read_blocks`.
    pub fn write_blocks(&mut self, blocks: &[i32], bytes: &[u8]) -> Result<(), KernelError> {
        self.check_bytes(blocks, bytes.len())?;
        for (&block, part) in blocks.iter().zip(bytes.chunks_exact(self.block_bytes())) {
            // SAFETY: as above.
            unsafe { self.model.kv.write_block(block as usize, part) };
        }
        Ok(())
    }

    fn check_bytes(&self, blocks: &[i32], given: usize) -> Result<(), KernelError> {
        let wanted = blocks.len() * self.block_bytes();
        if given != wanted {
            return Err(KernelError::step(format!(
                "{} blocks have {wanted} bytes and not {given}.",
                blocks.len()
            )));
        }
        self.check_blocks(blocks)
    }

    fn check_blocks(&self, blocks: &[i32]) -> Result<(), KernelError> {
        let total = self.model.kv.shape().blocks;
        let known = |&block: &i32| usize::try_from(block).is_ok_and(|block| block < total);
        match blocks.iter().find(|block| !known(block)) {
            Some(block) => Err(KernelError::step(format!(
                "Block {block} cannot be copied: the pool has {total}."
            ))),
            None => Ok(()),
        }
    }
}
