//! Files of packed weights for Python.

use std::path::PathBuf;
use std::sync::Arc;

use pravaha_kernels::packed_file::{self, PackedLocation, Saved};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::executor::to_python;

/// Folder, identity of the source and path of the model.
pub(crate) type Location = (PathBuf, [u8; 32], String);

/// The location in the arguments of a `NativeExecutor`. Too long a source is shortened: it is informative.
pub(crate) fn location(
    (folder, source_id, source): Location,
    packs_into_file: bool,
) -> PackedLocation {
    let mut end = source.len().min(packed_file::SOURCE_BYTES);
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    let source = source[..end].to_owned();
    PackedLocation {
        folder,
        source_id,
        source,
        packs_into_file,
    }
}

/// See `engine/_core.pyi`.
#[pyclass(frozen, module = "engine._core")]
pub struct PackedSaving(pub(crate) Arc<packed_file::PackedSaving>);

#[pymethods]
impl PackedSaving {
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    #[getter]
    fn file_bytes(&self) -> usize {
        self.0.file_bytes()
    }

    fn save(&self, py: Python<'_>) -> PyResult<&'static str> {
        match py.detach(|| self.0.save()) {
            Ok(Saved::Done) => Ok("done"),
            Ok(Saved::Cancelled) => Ok("cancelled"),
            Ok(Saved::Busy) => Ok("busy"),
            Err(error) => Err(PyOSError::new_err(error.to_string())),
        }
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn inspect_packed(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let header = packed_file::inspect(&path).map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("source", header.source)?;
    dict.set_item("source_id", PyBytes::new(py, &header.source_id))?;
    dict.set_item("weight_bytes", header.bytes)?;
    Ok(dict)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn verify_packed(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| packed_file::verify(&path)).map_err(to_python)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PackedSaving>()?;
    module.add_function(wrap_pyfunction!(inspect_packed, module)?)?;
    module.add_function(wrap_pyfunction!(verify_packed, module)?)
}
