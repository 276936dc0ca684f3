//! `GgufFile` for Python: metadata, tensor table and slow reference dequantisation of one GGUF file or of all parts of one
//! model.

use std::path::PathBuf;

use numpy::{
    IntoPyArray, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pravaha_kernels::dispatch::Level;
use pravaha_kernels::format::gguf::{MetadataArray, MetadataValue, TensorInfo, split_of};
use pravaha_kernels::format::{FormatError, GgufSet, TensorSource, TensorView};
use pravaha_kernels::pack::PANEL_COLUMNS;
use pravaha_kernels::quant::{DType, dequantize_row};
use pravaha_kernels::quantize::{QUANTIZED_TO, Quantizer};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// Adds this file's classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<GgufTensor>()?;
    module.add_class::<GgufFile>()?;
    module.add_function(wrap_pyfunction!(quantize, module)?)
}

fn unusable(error: FormatError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// One entry of a GGUF file's tensor table.
#[pyclass(frozen, get_all, module = "engine._core")]
struct GgufTensor {
    name: String,
    shape: Py<PyTuple>,
    dtype: &'static str,
    offset: usize,
    nbytes: usize,
}

impl GgufTensor {
    fn new(py: Python<'_>, info: &TensorInfo) -> PyResult<Self> {
        Ok(Self {
            name: info.name.clone(),
            shape: PyTuple::new(py, &info.shape)?.unbind(),
            dtype: info.dtype.name(),
            offset: info.range.start,
            nbytes: info.range.len(),
        })
    }
}

#[pymethods]
impl GgufTensor {
    fn __repr__(&self) -> String {
        format!(
            "GgufTensor(name={:?}, shape={}, dtype={:?})",
            self.name, self.shape, self.dtype
        )
    }
}

/// One path, or the paths of a split model.
#[derive(FromPyObject)]
enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

/// An open GGUF model whose headers have been validated.
#[pyclass(frozen, module = "engine._core")]
struct GgufFile {
    file: GgufSet,
    metadata: PyOnceLock<Py<PyDict>>,
    tensors: PyOnceLock<Py<PyList>>,
}

#[pymethods]
impl GgufFile {
    #[new]
    fn new(py: Python<'_>, path: Paths) -> PyResult<Self> {
        let paths = match path {
            Paths::One(path) => vec![path],
            Paths::Several(paths) => paths,
        };
        if paths.is_empty() {
            return Err(PyValueError::new_err("a model has at least one file"));
        }
        let opened = py.detach(|| GgufSet::open_files(&paths));
        let file = opened.map_err(unusable)?;
        Ok(Self {
            file,
            metadata: PyOnceLock::new(),
            tensors: PyOnceLock::new(),
        })
    }

    /// The place of a file in a split model: its number from 1 and the count; None if it is a whole model.
    #[staticmethod]
    fn split_of(py: Python<'_>, path: PathBuf) -> PyResult<Option<(usize, usize)>> {
        let split = py.detach(|| split_of(&path)).map_err(unusable)?;
        Ok(split.map(|split| (split.number(), split.count)))
    }

    /// GGUF version of the file.
    #[getter]
    fn version(&self) -> u32 {
        self.file.version()
    }

    /// The file's key-value pairs.
    #[getter]
    fn metadata<'py>(&'py self, py: Python<'py>) -> PyResult<&'py Bound<'py, PyDict>> {
        let metadata = self.metadata.get_or_try_init(py, || -> PyResult<_> {
            let dict = PyDict::new(py);
            for (key, value) in self.file.metadata_entries() {
                dict.set_item(key, to_python(py, value)?)?;
            }
            Ok(dict.unbind())
        })?;
        Ok(metadata.bind(py))
    }

    /// The tensor table, in file order.
    #[getter]
    fn tensors<'py>(&'py self, py: Python<'py>) -> PyResult<&'py Bound<'py, PyList>> {
        let tensors = self.tensors.get_or_try_init(py, || -> PyResult<_> {
            let list = PyList::empty(py);
            for info in self.file.tensors() {
                list.append(Bound::new(py, GgufTensor::new(py, info)?)?)?;
            }
            Ok(list.unbind())
        })?;
        Ok(tensors.bind(py))
    }

    /// One tensor as float32, in its own shape.
    fn dequantize<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let tensor = self.file.tensor(name).map_err(unusable)?;
        let values = py.detach(|| dequantize(&tensor))?;
        values.into_pyarray(py).reshape(tensor.shape)
    }
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn quantize<'py>(
    py: Python<'py>,
    weights: PyReadonlyArray2<'py, f32>,
    dtype: &str,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let target = QUANTIZED_TO
        .into_iter()
        .find(|target| target.name() == dtype)
        .ok_or_else(|| PyValueError::new_err(format!("weights are not quantized to {dtype}")))?;
    let &[rows, cols] = weights.shape() else {
        unreachable!("two dimensions");
    };
    if !cols.is_multiple_of(target.block_len()) {
        return Err(PyValueError::new_err(format!(
            "rows of {cols} weights are not whole {dtype} blocks"
        )));
    }
    let bytes: Vec<u8> = weights
        .as_slice()?
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let level = Level::choose("auto").map_err(|error| PyValueError::new_err(error.to_string()))?;
    let blocks = py.detach(|| {
        let tensor = TensorView {
            name: "weights",
            shape: &[rows, cols],
            dtype: DType::F32,
            bytes: &bytes,
        };
        let mut quantizer = Quantizer::default();
        let mut blocks = Vec::new();
        for start in (0..rows).step_by(PANEL_COLUMNS) {
            let outputs = start..rows.min(start + PANEL_COLUMNS);
            blocks.extend_from_slice(quantizer.quantize(level, &tensor, target, outputs).bytes);
        }
        blocks
    });
    blocks
        .into_pyarray(py)
        .reshape([rows, cols / target.block_len() * target.block_bytes()])
}

fn dequantize(tensor: &TensorView<'_>) -> PyResult<Vec<f32>> {
    let count = tensor.rows() * tensor.cols();
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| {
        PyMemoryError::new_err(format!(
            "no memory for {count} values of tensor {}",
            tensor.name
        ))
    })?;
    values.resize(count, 0.0);
    for (row, out) in values.chunks_exact_mut(tensor.cols()).enumerate() {
        dequantize_row(tensor.dtype, tensor.row(row), out);
    }
    Ok(values)
}

fn to_python<'py>(py: Python<'py>, value: MetadataValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        MetadataValue::U8(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::I8(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::U16(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::I16(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::U32(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::I32(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::U64(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::I64(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::F32(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::F64(value) => value.into_pyobject(py)?.into_any(),
        MetadataValue::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        MetadataValue::String(text) => PyString::new(py, text).into_any(),
        MetadataValue::Array(array) => to_list(py, array)?.into_any(),
    })
}

fn to_list<'py>(py: Python<'py>, array: MetadataArray<'_>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for value in array.iter() {
        list.append(to_python(py, value)?)?;
    }
    Ok(list)
}
