//! `Held`: an array of Python's that Rust uses step after step without asking Python.
//!
//! Taking an array apart costs little, but what it touches is in no cache after a step, and a step has
//! more than thirty arrays: together they cost more than a hundred microseconds that way.

use std::ptr::NonNull;

use numpy::ndarray::Dimension;
use numpy::{
    Element, PyArray, PyArrayMethods, PyReadonlyArray, PyReadwriteArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A C-contiguous array, kept alive, of which only the address is looked at again.
///
/// Contract of whoever hands it over: its memory stays where it is (numpy moves none that somebody else
/// refers to, but for `resize(refcheck=False)`), and during a call that uses it nobody else writes what
/// Rust reads or writes. Readers of what Rust writes find out afterwards (`engine.batch.mailbox`).
pub(crate) struct Held<T> {
    array: Py<PyAny>,
    data: *mut T,
    len: usize,
}

// SAFETY: numbers at an address that the reference keeps valid, whichever thread looks.
unsafe impl<T: Send> Send for Held<T> {}
// SAFETY: a shared `Held` gives shared slices alone.
unsafe impl<T: Sync> Sync for Held<T> {}

impl<T: Element + Copy> Held<T> {
    /// Hold an array that Rust will only read.
    pub(crate) fn reading<D: Dimension>(array: &PyReadonlyArray<'_, T, D>) -> PyResult<Self> {
        Self::new(array, array.as_slice()?.len())
    }

    /// Hold an array that Rust will also write.
    pub(crate) fn writing<D: Dimension>(array: &PyReadwriteArray<'_, T, D>) -> PyResult<Self> {
        Self::new(array, array.as_slice()?.len())
    }

    /// `len`: of the slice that the array is; that it is one proves it aligned and without gaps.
    fn new<D: Dimension>(array: &Bound<'_, PyArray<T, D>>, len: usize) -> PyResult<Self> {
        if !array.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "An array of a step is not C-contiguous.",
            ));
        }
        let data = if len == 0 {
            NonNull::dangling().as_ptr() // of an empty array even the address may be odd
        } else {
            array.data()
        };
        Ok(Self {
            data,
            len,
            array: array.clone().into_any().unbind(),
        })
    }

    /// Whether this is that array.
    pub(crate) fn is(&self, array: &Bound<'_, PyAny>) -> bool {
        self.array.is(array)
    }

    pub(crate) fn slice(&self) -> &[T] {
        // SAFETY: `len` aligned numbers in a row by `new`, alive and unmoved by the type's contract; numpy's
        // pointers are never null.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Only of what was made by [`Held::writing`].
    pub(crate) fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as `slice`; writable, and no part of another held array, because it was borrowed
        // together with those when it was made.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}
