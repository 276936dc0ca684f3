//! Model file formats and the native CPU executor.
//!
//! Layers, bottom up: `simd` (16-lane vectors), [`dispatch`] (instruction set levels), [`quant`] and [`mod@format`] (weights as
//! stored), [`quantize`] (float weights in fewer bits), [`pack`] (weights as the kernels read them), [`gemm`], `attention`, [`norm`], [`rope`], [`experts`] and [`sampler`] (kernels),
//! [`kv_cache`] (paged storage), [`pool`] (worker threads), [`executor`] (one step of a batch). Beside the executor: [`bert`] (text
//! embeddings) and [`dense_search`] (nearest vectors).

mod activation;
pub mod activation_quant;
pub mod amx;
pub mod arena;
pub mod attention;
pub mod bert;
#[cfg(test)]
mod bounds;
pub mod dense_search;
pub mod dispatch;
pub mod error;
pub mod executor;
pub mod experts;
pub mod format;
pub mod gemm;
#[cfg(test)]
mod guarded;
pub mod kv_cache;
pub mod norm;
pub mod pack;
pub mod packed_file;
pub mod phase_clock;
pub mod plan;
pub mod pool;
pub mod quant;
pub mod quantize;
pub mod recurrent;
pub mod roofline;
pub mod rope;
pub mod sampler;
mod scratch;
pub(crate) mod simd;
pub mod spec;
mod step;
pub mod topology;
pub mod weights;
mod work_share;
