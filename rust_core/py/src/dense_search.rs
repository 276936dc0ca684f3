//! `VectorLayout`: stored vectors and exact search over them.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pravaha_kernels::dense_search::{Allowed, RowLayout, RowType, Rows, SearchConfig, search};
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::topology::Topology;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::executor::to_python;

/// Slots [n, k] and scores [n, k] of a search.
type Found<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

/// See `engine/_core.pyi`.
#[pyclass(frozen, module = "engine._core")]
pub struct VectorLayout {
    layout: RowLayout,
}

#[pymethods]
impl VectorLayout {
    #[new]
    #[pyo3(signature = (dtype, dimensions))]
    fn new(dtype: &str, dimensions: usize) -> PyResult<Self> {
        let row_type = RowType::parse(dtype).map_err(to_python)?;
        let layout = RowLayout::new(row_type, dimensions).map_err(to_python)?;
        Ok(Self { layout })
    }

    #[getter]
    fn row_bytes(&self) -> usize {
        self.layout.row_bytes()
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let vectors = vectors.as_slice()?;
        let mut rows = vec![0; vectors.len() / self.layout.dimensions * self.layout.row_bytes()];
        py.detach(|| self.layout.encode(vectors, &mut rows))
            .map_err(to_python)?;
        Ok(rows.to_pyarray(py))
    }

    fn decode<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let rows = rows.as_slice()?;
        let mut vectors = vec![0.0; rows.len() / self.layout.row_bytes() * self.layout.dimensions];
        py.detach(|| self.layout.decode(rows, &mut vectors))
            .map_err(to_python)?;
        Ok(vectors.to_pyarray(py))
    }

    #[pyo3(signature = (rows, queries, k, *, allowed, threads, dispatch))]
    #[allow(clippy::too_many_arguments)]
    fn search<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'_, u8>,
        queries: PyReadonlyArray2<'_, f32>,
        k: usize,
        allowed: Option<PyReadonlyArray1<'_, u8>>,
        threads: Option<usize>,
        dispatch: &str,
    ) -> PyResult<Found<'py>> {
        let level = Level::choose(dispatch).map_err(to_python)?;
        let threads = threads.unwrap_or_else(|| Topology::detect().default_threads());
        let (bytes, values) = (rows.as_slice()?, queries.as_slice()?);
        let count = values.len() / self.layout.dimensions;
        let results = count
            .checked_mul(k)
            .filter(|&n| n <= isize::MAX as usize / 16);
        let Some(results) = results else {
            return Err(PyValueError::new_err(
                "The search asks for too many results.",
            ));
        };
        // SAFETY: whole rows of an array that is borrowed until the search has ended.
        let stored = unsafe {
            let count = bytes.len() / self.layout.row_bytes();
            Rows::new(bytes.as_ptr(), count, self.layout)
        };
        let bits = allowed.as_ref().map(|bits| bits.as_slice()).transpose()?;
        let allowed = bits.map_or(Allowed::All, Allowed::Bits);
        let config = SearchConfig { k, threads, level };
        let (mut slots, mut scores) = (vec![0; results], vec![0.0; results]);
        py.detach(|| search(stored, values, allowed, config, &mut slots, &mut scores))
            .map_err(to_python)?;
        Ok((
            slots.to_pyarray(py).reshape([count, k])?,
            scores.to_pyarray(py).reshape([count, k])?,
        ))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<VectorLayout>()
}
