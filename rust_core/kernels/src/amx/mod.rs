//! AMX: tile registers of 16 rows of 64 bytes, and products of whole tiles of bytes.
//!
//! [`support`] says whether this process may use them, `tiles` holds the instructions.
//! What is computed with them is `gemm/amx.rs`. In tests an emulation takes the place of the instructions, so
//! that the same kernel runs on a machine without them.

#[cfg(test)]
pub(crate) mod emulated;
#[cfg(target_arch = "x86_64")]
pub mod peak;
pub mod row_tiles;
pub mod support;
pub(crate) mod thread_tiles;
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) mod tiles;
