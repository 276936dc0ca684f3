//! AMX: tile registers of 16 rows of 64 bytes, and int8 multiplication of whole tiles.
//!
//! [`support`] detects whether this process may use them, `tiles` wraps the instructions, `thread_tiles` configures them per
//! thread. The GEMM kernel is `gemm/amx.rs`. In tests the instructions can be emulated, so that the same kernel runs on
//! machines without AMX.

#[cfg(test)]
pub(crate) mod emulated;
#[cfg(target_arch = "x86_64")]
pub mod peak;
pub mod row_tiles;
pub mod support;
pub(crate) mod thread_tiles;
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) mod tiles;
