//! `BertEncoder`: embeds texts given as token ids.

use std::path::PathBuf;

use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pravaha_kernels::bert;
use pyo3::prelude::*;

use crate::executor::to_python;

/// See `engine/_core.pyi`.
#[pyclass(frozen, module = "engine._core")]
pub struct BertEncoder {
    encoder: bert::BertEncoder,
}

#[pymethods]
impl BertEncoder {
    #[new]
    #[pyo3(signature = (config_json, weights, *, precision, threads, dispatch))]
    fn new(
        py: Python<'_>,
        config_json: &str,
        weights: PathBuf,
        precision: &str,
        threads: Option<usize>,
        dispatch: &str,
    ) -> PyResult<Self> {
        let precision = bert::Precision::parse(precision).map_err(to_python)?;
        let encoder = py
            .detach(|| bert::BertEncoder::load(config_json, &weights, precision, threads, dispatch))
            .map_err(to_python)?;
        Ok(Self { encoder })
    }

    #[getter]
    fn dimensions(&self) -> usize {
        self.encoder.spec().hidden_size
    }

    #[getter]
    fn max_positions(&self) -> usize {
        self.encoder.spec().max_positions
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'_, i32>,
        starts: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (ids, starts) = (ids.as_slice()?, starts.as_slice()?);
        let (rows, width) = (starts.len().saturating_sub(1), self.dimensions());
        let mut vectors = vec![0.0; rows * width];
        py.detach(|| self.encoder.encode(ids, starts, &mut vectors))
            .map_err(to_python)?;
        vectors.to_pyarray(py).reshape([rows, width])
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BertEncoder>()
}
