//! The thin Python face of the Rust core: conversions, typed errors and the GIL, no behaviour of its own.
use pyo3::prelude::*;

/// `engine._core`: see `engine/_core.pyi` for the signatures.
#[pymodule(gil_used = false)]
fn _core(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
