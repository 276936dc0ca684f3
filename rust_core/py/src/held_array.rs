//! `HeldArray`: a numpy array whose address Rust keeps across steps.
//!
//! Reading an array object's fields costs little, but after a step they are in no CPU cache, and a step has more than
//! thirty arrays: reading all of them took more than a hundred microseconds.

use std::ptr::NonNull;

use numpy::ndarray::Dimension;
use numpy::{
    Element, PyArray, PyArrayMethods, PyReadonlyArray, PyReadwriteArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The address and length of a C-contiguous array that is kept alive.
///
/// Contract of the caller: the array's memory does not move (numpy moves no array that is referenced elsewhere, except
/// by `resize(refcheck=False)`), and while its slice is in use no other thread writes what Rust reads or writes. Slices are
/// used with the GIL held, so a Python thread could do so in a free-threaded interpreter only.
/// Readers of what Rust writes are notified afterwards (`engine.batch.mailbox`).
pub(crate) struct HeldArray<T> {
    array: Py<PyAny>,
    data: *mut T,
    len: usize,
}

// SAFETY: plain numbers at an address that the reference keeps valid, on any thread.
unsafe impl<T: Send> Send for HeldArray<T> {}
// SAFETY: a shared `HeldArray` gives only shared slices.
unsafe impl<T: Sync> Sync for HeldArray<T> {}

impl<T: Element + Copy> HeldArray<T> {
    /// Hold an array that Rust will only read.
    pub(crate) fn reading<D: Dimension>(array: &PyReadonlyArray<'_, T, D>) -> PyResult<Self> {
        Self::new(array, array.as_slice()?.len())
    }

    /// Hold an array that Rust will also write.
    pub(crate) fn writing<D: Dimension>(array: &PyReadwriteArray<'_, T, D>) -> PyResult<Self> {
        Self::new(array, array.as_slice()?.len())
    }

    /// `len`: length of the array as a slice, whose existence proves that it is aligned and without gaps.
    fn new<D: Dimension>(array: &Bound<'_, PyArray<T, D>>, len: usize) -> PyResult<Self> {
        if !array.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "An array of a step is not C-contiguous.",
            ));
        }
        let data = if len == 0 {
            NonNull::dangling().as_ptr() // the address of an empty array need not be aligned
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
        // SAFETY: `len` contiguous aligned numbers by `new`, alive and unmoved by the type's contract; numpy's
        // pointers are never null.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Only for arrays held by [`HeldArray::writing`].
    pub(crate) fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as `slice`; writable, and no part of another held array, because it was borrowed
        // together with those when it was made.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}
