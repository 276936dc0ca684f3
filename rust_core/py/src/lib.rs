//! Python bindings of the Rust core: conversions, typed errors and releasing the GIL; no behaviour of their own.

mod bert;
mod dense_search;
mod dry;
mod executor;
mod formats;
mod held_array;
mod memory;
mod packed_weights;
mod prompt_lookup;
mod roofline;
mod row_sampler;
mod sandbox;
mod steady;
mod step_arrays;
mod swap;

use pyo3::prelude::*;

/// `engine._core`: see `engine/_core.pyi` for the signatures.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    memory::register(module)?;
    swap::register(module)?;
    formats::register(module)?;
    prompt_lookup::register(module)?;
    steady::register(module)?;
    executor::register(module)?;
    packed_weights::register(module)?;
    dry::register(module)?;
    row_sampler::register(module)?;
    roofline::register(module)?;
    bert::register(module)?;
    dense_search::register(module)?;
    sandbox::register(module)
}
