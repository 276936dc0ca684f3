//! Measurements of the machine's peak rates.

use std::time::Duration;

use pravaha_kernels::arena::Pages;
use pravaha_kernels::roofline::{self, Instruction};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::executor::to_python;

fn duration_of(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("The time to measure must be a number of seconds ≥ 0."))
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (nbytes, threads, seconds, *, huge_pages=true))]
fn measure_read_bandwidth(
    py: Python<'_>,
    nbytes: usize,
    threads: Option<usize>,
    seconds: f64,
    huge_pages: bool,
) -> PyResult<f64> {
    let duration = duration_of(seconds)?;
    let pages = if huge_pages {
        Pages::Huge
    } else {
        Pages::Small
    };
    py.detach(|| roofline::measure_read_bandwidth(nbytes, threads, pages, duration))
        .map_err(to_python)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (threads, seconds))]
fn measure_int8_dot(py: Python<'_>, threads: Option<usize>, seconds: f64) -> PyResult<f64> {
    let duration = duration_of(seconds)?;
    py.detach(|| roofline::measure_int8_dot(threads, duration))
        .map_err(to_python)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn peak_instructions() -> Vec<(&'static str, &'static str, bool)> {
    Instruction::ALL
        .into_iter()
        .map(|one| (one.name(), one.data_type(), one.available()))
        .collect()
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (instruction, threads, seconds))]
fn measure_peak(
    py: Python<'_>,
    instruction: &str,
    threads: Option<usize>,
    seconds: f64,
) -> PyResult<f64> {
    let duration = duration_of(seconds)?;
    let known = Instruction::ALL
        .into_iter()
        .find(|one| one.name() == instruction);
    let Some(known) = known else {
        let names = Instruction::ALL.map(Instruction::name).join(", ");
        return Err(PyValueError::new_err(format!(
            "There is no instruction {instruction:?} to measure: there are {names}."
        )));
    };
    py.detach(|| roofline::measure_peak(known, threads, duration))
        .map_err(to_python)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (threads, seconds))]
fn measure_barrier(py: Python<'_>, threads: Option<usize>, seconds: f64) -> PyResult<f64> {
    let duration = duration_of(seconds)?;
    py.detach(|| roofline::measure_barrier(threads, duration))
        .map_err(to_python)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(measure_read_bandwidth, module)?)?;
    module.add_function(wrap_pyfunction!(measure_int8_dot, module)?)?;
    module.add_function(wrap_pyfunction!(peak_instructions, module)?)?;
    module.add_function(wrap_pyfunction!(measure_peak, module)?)?;
    module.add_function(wrap_pyfunction!(measure_barrier, module)?)
}
