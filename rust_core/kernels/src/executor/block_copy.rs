//! Copying KV blocks between steps: inside the pool, out of it and into it.
//!
//! Blocks are copied without the layers that keep a window only, whose blocks are copied separately.

use super::Executor;
use crate::error::KernelError;
use crate::kv_cache::KvCache;

impl Executor {
    /// Bytes of a KV block over all layers, as `read_blocks` copies them.
    pub fn block_bytes(&self) -> usize {
        self.model.kv.full.block_bytes()
    }

    /// Bytes of a window block, as `read_window_blocks` copies them; 0 if all layers keep every token.
    pub fn window_block_bytes(&self) -> usize {
        let windows = self.model.kv.windows.as_ref();
        windows.map_or(0, KvCache::block_bytes)
    }

    /// Copy the KV of block `sources[i]` to block `targets[i]`, in every layer, in order.
    ///
    /// # Errors
    /// The lists differ in length or name a block outside the pool; then nothing was copied.
    pub fn copy_blocks(&mut self, sources: &[i32], targets: &[i32]) -> Result<(), KernelError> {
        copy_blocks(&mut self.model.kv.full, sources, targets)
    }

    /// As `copy_blocks`, for window blocks.
    ///
    /// # Errors
    /// As `copy_blocks`, or there are none.
    pub fn copy_window_blocks(
        &mut self,
        sources: &[i32],
        targets: &[i32],
    ) -> Result<(), KernelError> {
        copy_blocks(self.windows()?, sources, targets)
    }

    /// Copy each block's bytes into its part of `bytes`: `[blocks.len(), block_bytes]`.
    ///
    /// # Errors
    /// `bytes` has another length, or a block is outside the pool; then nothing was copied.
    pub fn read_blocks(&mut self, blocks: &[i32], bytes: &mut [u8]) -> Result<(), KernelError> {
        read_blocks(&mut self.model.kv.full, blocks, bytes)
    }

    /// As `read_blocks`, for window blocks.
    ///
    /// # Errors
    /// As `read_blocks`, or there are none.
    pub fn read_window_blocks(
        &mut self,
        blocks: &[i32],
        bytes: &mut [u8],
    ) -> Result<(), KernelError> {
        read_blocks(self.windows()?, blocks, bytes)
    }

    /// Copy each part of `bytes`, as written by `read_blocks`, into its block.
    ///
    /// # Errors
    /// As `read_blocks`.
    pub fn write_blocks(&mut self, blocks: &[i32], bytes: &[u8]) -> Result<(), KernelError> {
        write_blocks(&mut self.model.kv.full, blocks, bytes)
    }

    /// As `write_blocks`, for window blocks.
    ///
    /// # Errors
    /// As `read_blocks`, or there are none.
    pub fn write_window_blocks(&mut self, blocks: &[i32], bytes: &[u8]) -> Result<(), KernelError> {
        write_blocks(self.windows()?, blocks, bytes)
    }

    fn windows(&mut self) -> Result<&mut KvCache, KernelError> {
        let windows = self.model.kv.windows.as_mut();
        windows.ok_or_else(|| KernelError::step("The executor has no window blocks."))
    }
}

fn copy_blocks(kv: &mut KvCache, sources: &[i32], targets: &[i32]) -> Result<(), KernelError> {
    if sources.len() != targets.len() {
        return Err(KernelError::step(format!(
            "{} blocks cannot be copied to {} blocks.",
            sources.len(),
            targets.len()
        )));
    }
    check_blocks(kv, sources)?;
    check_blocks(kv, targets)?;
    for (&source, &target) in sources.iter().zip(targets) {
        // SAFETY: `&mut`: no step runs, so no other thread accesses the cache.
        unsafe { kv.copy_block(source as usize, target as usize) };
    }
    Ok(())
}

fn read_blocks(kv: &mut KvCache, blocks: &[i32], bytes: &mut [u8]) -> Result<(), KernelError> {
    check_bytes(kv, blocks, bytes.len())?;
    let parts = bytes.chunks_exact_mut(kv.block_bytes());
    for (&block, part) in blocks.iter().zip(parts) {
        // SAFETY: as above.
        unsafe { kv.read_block(block as usize, part) };
    }
    Ok(())
}

fn write_blocks(kv: &mut KvCache, blocks: &[i32], bytes: &[u8]) -> Result<(), KernelError> {
    check_bytes(kv, blocks, bytes.len())?;
    let parts = bytes.chunks_exact(kv.block_bytes());
    for (&block, part) in blocks.iter().zip(parts) {
        // SAFETY: as above.
        unsafe { kv.write_block(block as usize, part) };
    }
    Ok(())
}

fn check_bytes(kv: &KvCache, blocks: &[i32], given: usize) -> Result<(), KernelError> {
    let wanted = blocks.len() * kv.block_bytes();
    if given != wanted {
        return Err(KernelError::step(format!(
            "{} blocks have {wanted} bytes and not {given}.",
            blocks.len()
        )));
    }
    check_blocks(kv, blocks)
}

fn check_blocks(kv: &KvCache, blocks: &[i32]) -> Result<(), KernelError> {
    let total = kv.shape().blocks;
    let known = |&block: &i32| usize::try_from(block).is_ok_and(|block| block < total);
    match blocks.iter().find(|block| !known(block)) {
        Some(block) => Err(KernelError::step(format!(
            "Block {block} cannot be copied: the pool has {total}."
        ))),
        None => Ok(()),
    }
}
