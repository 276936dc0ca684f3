//! `NativeExecutor`, and the CPU features of the machine.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2};
use pravaha_kernels::attention::CHUNK;
use pravaha_kernels::dispatch::{Level, cpu_flags};
use pravaha_kernels::error::KernelError;
use pravaha_kernels::executor::{Executor, ExecutorConfig};
use pravaha_kernels::packed_file::PackedState;
use pravaha_kernels::plan::MAX_DRAFT_TOKENS;
use pravaha_kernels::pool;
use pravaha_kernels::sampler;
use pravaha_kernels::spec::ModelSpec;
use pravaha_kernels::topology::Topology;
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::packed_weights::{Location, PackedSaving, location};
use crate::step_arrays::StepArrays;

create_exception!(
    engine._core,
    StepEntryError,
    PyValueError,
    "One entry of a step's plan is invalid; nothing was computed."
);

pub(crate) fn to_python(error: KernelError) -> PyErr {
    let message = error.to_string();
    match error {
        KernelError::Model(_) | KernelError::Config(_) | KernelError::Step(_) => {
            PyValueError::new_err(message)
        }
        KernelError::StepEntry { entry, .. } => StepEntryError::new_err((message, entry)),
        KernelError::File(_) => PyOSError::new_err(message),
        KernelError::Memory(_) => PyMemoryError::new_err(message),
        KernelError::Worker(_) => PyRuntimeError::new_err(message),
    }
}

/// See `engine/_core.pyi`.
#[pyclass(frozen, module = "engine._core")]
pub struct NativeExecutor {
    executor: Mutex<Option<Executor>>,
    /// Used while a step runs, without the lock.
    yielder: pool::CoreYielder,
}

/// See `engine/_core.pyi`.
#[pyclass(frozen, module = "engine._core")]
pub struct YieldedCore(Mutex<Option<pool::YieldedCore>>);

#[pymethods]
impl YieldedCore {
    fn release(&self) {
        let mut core = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(core.take());
    }
}

impl NativeExecutor {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Executor>>> {
        match self.executor.try_lock() {
            Ok(guard) => Ok(guard),
            // A panic is caught inside the pool and reported there.
            Err(TryLockError::Poisoned(error)) => Ok(PoisonError::into_inner(error)),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "The executor is running a step on another thread.",
            )),
        }
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("The executor is closed.")
}

#[pymethods]
impl NativeExecutor {
    #[new]
    #[pyo3(signature = (spec_json, paths, *, num_blocks, block_size, weights, kv_dtype, threads, dispatch, max_rows, max_batched_tokens, max_model_len, state_slots=0, window_blocks=0, packed_weights=None, packs_into_file=false, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        spec_json: &str,
        paths: Vec<PathBuf>,
        num_blocks: usize,
        block_size: usize,
        weights: String,
        kv_dtype: String,
        threads: Option<usize>,
        dispatch: String,
        max_rows: usize,
        max_batched_tokens: usize,
        max_model_len: usize,
        state_slots: usize,
        window_blocks: usize,
        packed_weights: Option<Location>,
        packs_into_file: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let spec = ModelSpec::from_json(spec_json).map_err(to_python)?;
        let config = ExecutorConfig {
            num_blocks,
            block_size,
            weights,
            kv_dtype,
            threads,
            dispatch,
            max_rows,
            max_batched_tokens,
            max_model_len,
            state_slots,
            window_blocks,
            packed_weights: packed_weights.map(|found| location(found, packs_into_file)),
        };
        let mut raised = None;
        let loaded = py.detach(|| {
            Executor::load(spec, &paths, &config, &mut |share| {
                if let Some(progress) = &progress {
                    raised = Python::attach(|py| progress.call1(py, (share,)).err());
                }
                raised.is_none()
            })
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let executor = loaded.map_err(to_python)?;
        Ok(Self {
            yielder: executor.core_yielder(),
            executor: Mutex::new(Some(executor)),
        })
    }

    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let guard = self.lock()?;
        let info = guard.as_ref().ok_or_else(closed)?.info();
        let dict = PyDict::new(py);
        dict.set_item("dispatch", info.dispatch)?;
        dict.set_item("threads", info.threads)?;
        dict.set_item("weight_format", info.weight_format)?;
        dict.set_item("weight_bytes", info.weight_bytes)?;
        dict.set_item("work_bytes", info.work_bytes)?;
        dict.set_item("kv_bytes", info.kv_bytes)?;
        dict.set_item("kv_dtype", info.kv_dtype)?;
        dict.set_item("parameters", info.parameters)?;
        let (packed, path, reason) = match info.packed {
            PackedState::Off => ("off", None, None),
            PackedState::Mapped(path) => ("mapped", Some(path), None),
            PackedState::Missing(path) => ("missing", Some(path), None),
            PackedState::Unusable(path, reason) => ("unusable", Some(path), Some(reason)),
        };
        dict.set_item("packed", packed)?;
        dict.set_item("packed_path", path)?;
        dict.set_item("packed_reason", reason)?;
        Ok(dict)
    }

    fn packed_saving(&self) -> PyResult<Option<PackedSaving>> {
        let guard = self.lock()?;
        let saving = guard.as_ref().ok_or_else(closed)?.packed_saving();
        Ok(saving.map(PackedSaving))
    }

    fn execute(&self, py: Python<'_>, mut arrays: PyRefMut<'_, StepArrays>) -> PyResult<()> {
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        // The caller's arrays are read and written with the GIL held only: no Python thread can change them meanwhile.
        let (input, output) = arrays.parts();
        executor.begin(&input, &output).map_err(to_python)?;
        py.detach(|| executor.compute()).map_err(to_python)?;
        let (_, mut output) = arrays.parts();
        executor.finish(&mut output);
        Ok(())
    }

    fn yield_core(&self, py: Python<'_>) -> YieldedCore {
        YieldedCore(Mutex::new(Some(py.detach(|| self.yielder.yield_core()))))
    }

    fn copy_blocks(
        &self,
        py: Python<'_>,
        sources: PyReadonlyArray1<'_, i32>,
        targets: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<()> {
        let (sources, targets) = (sources.as_slice()?, targets.as_slice()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.copy_blocks(sources, targets))
            .map_err(to_python)
    }

    fn time_phases(&self, wanted: bool) -> PyResult<()> {
        self.lock()?
            .as_mut()
            .ok_or_else(closed)?
            .time_phases(wanted);
        Ok(())
    }

    fn take_phase_seconds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let phases = self
            .lock()?
            .as_mut()
            .ok_or_else(closed)?
            .take_phase_seconds();
        let dict = PyDict::new(py);
        for (name, seconds) in phases {
            dict.set_item(name, seconds)?;
        }
        Ok(dict)
    }

    #[getter]
    fn block_bytes(&self) -> PyResult<usize> {
        Ok(self.lock()?.as_ref().ok_or_else(closed)?.block_bytes())
    }

    fn read_blocks(
        &self,
        py: Python<'_>,
        blocks: PyReadonlyArray1<'_, i32>,
        mut data: PyReadwriteArray2<'_, u8>,
    ) -> PyResult<()> {
        let (blocks, bytes) = (blocks.as_slice()?, data.as_slice_mut()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.read_blocks(blocks, bytes))
            .map_err(to_python)
    }

    fn write_blocks(
        &self,
        py: Python<'_>,
        blocks: PyReadonlyArray1<'_, i32>,
        data: PyReadonlyArray2<'_, u8>,
    ) -> PyResult<()> {
        let (blocks, bytes) = (blocks.as_slice()?, data.as_slice()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.write_blocks(blocks, bytes))
            .map_err(to_python)
    }

    #[getter]
    fn window_block_bytes(&self) -> PyResult<usize> {
        let guard = self.lock()?;
        Ok(guard.as_ref().ok_or_else(closed)?.window_block_bytes())
    }

    fn copy_window_blocks(
        &self,
        py: Python<'_>,
        sources: PyReadonlyArray1<'_, i32>,
        targets: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<()> {
        let (sources, targets) = (sources.as_slice()?, targets.as_slice()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.copy_window_blocks(sources, targets))
            .map_err(to_python)
    }

    fn read_window_blocks(
        &self,
        py: Python<'_>,
        blocks: PyReadonlyArray1<'_, i32>,
        mut data: PyReadwriteArray2<'_, u8>,
    ) -> PyResult<()> {
        let (blocks, bytes) = (blocks.as_slice()?, data.as_slice_mut()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.read_window_blocks(blocks, bytes))
            .map_err(to_python)
    }

    fn write_window_blocks(
        &self,
        py: Python<'_>,
        blocks: PyReadonlyArray1<'_, i32>,
        data: PyReadonlyArray2<'_, u8>,
    ) -> PyResult<()> {
        let (blocks, bytes) = (blocks.as_slice()?, data.as_slice()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.write_window_blocks(blocks, bytes))
            .map_err(to_python)
    }

    #[getter]
    fn state_bytes(&self) -> PyResult<usize> {
        Ok(self.lock()?.as_ref().ok_or_else(closed)?.state_bytes())
    }

    fn copy_states(
        &self,
        py: Python<'_>,
        sources: PyReadonlyArray1<'_, i32>,
        targets: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<()> {
        let (sources, targets) = (sources.as_slice()?, targets.as_slice()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.copy_states(sources, targets))
            .map_err(to_python)
    }

    fn read_states(
        &self,
        py: Python<'_>,
        slots: PyReadonlyArray1<'_, i32>,
        mut data: PyReadwriteArray2<'_, u8>,
    ) -> PyResult<()> {
        let (slots, bytes) = (slots.as_slice()?, data.as_slice_mut()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.read_states(slots, bytes))
            .map_err(to_python)
    }

    fn write_states(
        &self,
        py: Python<'_>,
        slots: PyReadonlyArray1<'_, i32>,
        data: PyReadonlyArray2<'_, u8>,
    ) -> PyResult<()> {
        let (slots, bytes) = (slots.as_slice()?, data.as_slice()?);
        let mut guard = self.lock()?;
        let executor = guard.as_mut().ok_or_else(closed)?;
        py.detach(|| executor.write_states(slots, bytes))
            .map_err(to_python)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let executor = self.lock()?.take();
        py.detach(|| drop(executor));
        Ok(())
    }
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (spec_json, paths, *, block_size, weights, kv_dtype, threads, max_rows, max_batched_tokens, max_model_len))]
#[allow(clippy::too_many_arguments)]
fn plan_memory<'py>(
    py: Python<'py>,
    spec_json: &str,
    paths: Vec<PathBuf>,
    block_size: usize,
    weights: String,
    kv_dtype: String,
    threads: Option<usize>,
    max_rows: usize,
    max_batched_tokens: usize,
    max_model_len: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = ModelSpec::from_json(spec_json).map_err(to_python)?;
    let config = ExecutorConfig {
        num_blocks: 0, // what it is to be computed from
        block_size,
        weights,
        kv_dtype,
        threads,
        dispatch: "auto".into(), // changes no size
        max_rows,
        max_batched_tokens,
        max_model_len,
        state_slots: 0,       // as num_blocks
        window_blocks: 0,     // as num_blocks
        packed_weights: None, // as large mapped
    };
    let plan = py
        .detach(|| Executor::plan_memory(&spec, &paths, &config))
        .map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("weight_bytes", plan.weight_bytes)?;
    dict.set_item("active_bytes", plan.active_bytes)?;
    dict.set_item("weight_format", plan.weight_format)?;
    dict.set_item("work_bytes", plan.work_bytes)?;
    dict.set_item("block_bytes", plan.block_bytes)?;
    dict.set_item("window_block_bytes", plan.window_block_bytes)?;
    dict.set_item("window", plan.window)?;
    dict.set_item("state_bytes", plan.state_bytes)?;
    Ok(dict)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (spec_json, paths, *, weights, packed_weights))]
fn find_packed<'py>(
    py: Python<'py>,
    spec_json: &str,
    paths: Vec<PathBuf>,
    weights: &str,
    packed_weights: Location,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = ModelSpec::from_json(spec_json).map_err(to_python)?;
    let location = location(packed_weights, false);
    let file = py
        .detach(|| Executor::find_packed(&spec, &paths, weights, &location))
        .map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("path", file.path)?;
    dict.set_item("file_bytes", file.bytes)?;
    dict.set_item("found", file.found)?;
    Ok(dict)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn cpu_features(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let topology = Topology::detect();
    let dict = PyDict::new(py);
    dict.set_item("level", Level::choose("auto").map_err(to_python)?.name())?;
    let levels = Level::ALL.into_iter().filter(|level| level.available());
    dict.set_item("levels", levels.map(Level::name).collect::<Vec<_>>())?;
    let obstacles = PyDict::new(py);
    for level in Level::ALL {
        if let Some(obstacle) = level.obstacle() {
            obstacles.set_item(level.name(), obstacle)?;
        }
    }
    dict.set_item("obstacles", obstacles)?;
    let flags = cpu_flags().into_iter().filter(|(_, present)| *present);
    dict.set_item("flags", flags.map(|(name, _)| name).collect::<Vec<_>>())?;
    dict.set_item("threads", topology.default_threads())?;
    dict.set_item("cores", topology.cores)?;
    dict.set_item("affinity", topology.affinity)?;
    dict.set_item("quota", topology.quota)?;
    Ok(dict)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("StepEntryError", module.py().get_type::<StepEntryError>())?;
    module.add_class::<NativeExecutor>()?;
    module.add_class::<YieldedCore>()?;
    module.add_class::<StepArrays>()?;
    module.add_function(wrap_pyfunction!(plan_memory, module)?)?;
    module.add_function(wrap_pyfunction!(find_packed, module)?)?;
    module.add_function(wrap_pyfunction!(cpu_features, module)?)?;
    module.add("SAMPLING_ROW_LAYOUT", sampler::SAMPLING_ROW_LAYOUT.to_vec())?;
    module.add("ATTENTION_CHUNK", CHUNK)?;
    module.add("MAX_DRAFT_TOKENS", MAX_DRAFT_TOKENS)?;
    module.add("MAX_TOP_LOGPROBS", sampler::MAX_TOP_LOGPROBS)?;
    module.add("MAX_LOGPROB_TOKEN_IDS", sampler::MAX_LOGPROB_TOKEN_IDS)
}
