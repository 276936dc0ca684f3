//! Restrictions of the calling process, for the launcher of the agents' sandbox.

use std::path::{Path, PathBuf};

use pravaha_sandbox::landlock::{self, Rules};
use pravaha_sandbox::seccomp::{self, Permissions};
use pravaha_sandbox::{namespaces, privileges};
use pyo3::prelude::*;

/// See `engine/_core.pyi`.
#[pyfunction]
fn landlock_abi() -> u32 {
    landlock::abi()
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn has_seccomp_filters() -> bool {
    seccomp::available()
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (*, own_network))]
fn enter_namespaces(own_network: bool) -> PyResult<()> {
    Ok(namespaces::enter(own_network)?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn mount_proc() -> PyResult<()> {
    Ok(namespaces::mount_proc()?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (source, target, *, read_only))]
#[allow(clippy::needless_pass_by_value)] // converted from Python
fn bind_mount(source: PathBuf, target: PathBuf, read_only: bool) -> PyResult<()> {
    Ok(namespaces::bind(&source, &target, read_only)?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn become_subreaper() -> PyResult<()> {
    Ok(privileges::become_subreaper()?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (signal))]
fn signal_when_parent_ends(signal: u32) -> PyResult<()> {
    Ok(privileges::signal_when_parent_ends(signal)?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn hide_memory() -> PyResult<()> {
    Ok(privileges::hide_memory()?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
fn drop_privileges() -> PyResult<()> {
    Ok(privileges::drop_all()?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (*, readable, writable, tcp))]
#[allow(clippy::needless_pass_by_value)] // converted from Python
fn restrict_files(readable: Vec<PathBuf>, writable: Vec<PathBuf>, tcp: bool) -> PyResult<()> {
    fn paths(all: &[PathBuf]) -> Vec<&Path> {
        all.iter().map(PathBuf::as_path).collect()
    }
    let rules = Rules {
        readable: paths(&readable),
        writable: paths(&writable),
        tcp,
    };
    Ok(landlock::restrict(&rules)?)
}

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (*, internet, unix_sockets, tracing, own_namespaces))]
fn filter_system_calls(
    internet: bool,
    unix_sockets: bool,
    tracing: bool,
    own_namespaces: bool,
) -> PyResult<()> {
    Ok(seccomp::install(Permissions {
        internet,
        unix_sockets,
        tracing,
        own_namespaces,
    })?)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(landlock_abi, module)?)?;
    module.add_function(wrap_pyfunction!(has_seccomp_filters, module)?)?;
    module.add_function(wrap_pyfunction!(enter_namespaces, module)?)?;
    module.add_function(wrap_pyfunction!(mount_proc, module)?)?;
    module.add_function(wrap_pyfunction!(bind_mount, module)?)?;
    module.add_function(wrap_pyfunction!(become_subreaper, module)?)?;
    module.add_function(wrap_pyfunction!(signal_when_parent_ends, module)?)?;
    module.add_function(wrap_pyfunction!(hide_memory, module)?)?;
    module.add_function(wrap_pyfunction!(drop_privileges, module)?)?;
    module.add_function(wrap_pyfunction!(restrict_files, module)?)?;
    module.add_function(wrap_pyfunction!(filter_system_calls, module)?)
}
