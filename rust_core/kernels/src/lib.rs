//! Model formats and the native CPU executor.

pub mod format;
pub mod quant;
