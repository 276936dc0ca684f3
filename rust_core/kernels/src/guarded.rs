//! Memory between guard pages, for tests: an out-of-bounds access faults immediately.
//!
//! In this crate's tests every [`Arena`](crate::arena::Arena) is guarded, and inputs and results of kernels are
//! [`Guarded`] arrays. Memory is adjacent to a guard page on one side only; [`on_both_sides`] runs a test for each side.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::arena::Plain;

/// The side on which memory is adjacent to a guard page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Start,
    End,
}

thread_local! {
    static SIDE: Cell<Side> = const { Cell::new(Side::End) };
}

/// Run `test` with memory after a guard page, and again with memory before one.
pub(crate) fn on_both_sides(mut test: impl FnMut()) {
    for side in [Side::Start, Side::End] {
        SIDE.set(side);
        test();
    }
}

/// A mapping: a guard page, some pages, a guard page.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: owned memory; synchronisation is up to its users.
unsafe impl Send for Mapping {}
// SAFETY: as above; it has no methods that access the memory.
unsafe impl Sync for Mapping {}

fn page() -> usize {
    // SAFETY: reads a system constant.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).expect("pages have a size")
}

impl Mapping {
    /// `len` zeroed bytes, rounded up to a multiple of `align`, adjacent to a guard page; None if out of memory.
    pub fn reserve(len: usize, align: usize) -> Option<(NonNull<u8>, Self)> {
        let (page, len) = (page(), len.checked_next_multiple_of(align)?);
        let pages = len.checked_next_multiple_of(page)?.max(page);
        let total = pages.checked_add(2 * page)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: an anonymous mapping at an address chosen by the kernel overlaps no existing one.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), total, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let mapping = Self {
            base: NonNull::new(base.cast())?,
            len: total,
        };
        // SAFETY: all but the first and the last page of the new mapping.
        let open = unsafe {
            let middle = mapping.base.add(page);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(middle.as_ptr().cast(), pages, access), 0);
            middle
        };
        let start = match SIDE.get() {
            Side::Start => open,
            // SAFETY: inside the accessible pages.
            Side::End => unsafe { open.add(pages - len) },
        };
        Some((start, mapping))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `reserve`, unmapped once.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// An array whose first or last element is adjacent to a guard page.
#[derive(Debug)]
pub(crate) struct Guarded<T> {
    start: NonNull<T>,
    len: usize,
    _mapping: Mapping,
}

impl<T: Plain> Guarded<T> {
    pub fn filled(value: T, len: usize) -> Self {
        let (start, mapping) =
            Mapping::reserve(len * size_of::<T>(), align_of::<T>()).expect("memory");
        let mut array = Self {
            start: start.cast(),
            len,
            _mapping: mapping,
        };
        array.fill(value);
        array
    }
}

impl<T: Plain> From<&[T]> for Guarded<T> {
    fn from(values: &[T]) -> Self {
        let Some(&first) = values.first() else {
            let (start, mapping) = Mapping::reserve(0, align_of::<T>()).expect("memory");
            return Self {
                start: start.cast(),
                len: 0,
                _mapping: mapping,
            };
        };
        let mut array = Self::filled(first, values.len());
        array.copy_from_slice(values);
        array
    }
}

impl<T> Deref for Guarded<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements of plain data at `start`, owned while the mapping lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a byte can be read. Tested with a system call, which returns an error instead of faulting.
    fn readable(byte: *const u8) -> bool {
        let mut ends = [0; 2];
        // SAFETY: an array of two descriptors; the kernel checks the address that it is given.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            let written = libc::write(ends[1], byte.cast(), 1);
            libc::close(ends[0]);
            libc::close(ends[1]);
            written == 1
        }
    }

    #[test]
    fn arrays_touch_a_guard_page_on_either_side() {
        let mut touched = Vec::new();
        on_both_sides(|| {
            let array = Guarded::from(&[1.0f32, 2.0, 3.0][..]);
            assert_eq!(*array, [1.0, 2.0, 3.0]);
            let bytes = array.as_ptr_range();
            assert!(readable(bytes.start.cast()));
            assert!(readable(bytes.end.cast::<u8>().wrapping_sub(1)));
            let before = readable(bytes.start.cast::<u8>().wrapping_sub(1));
            touched.push((before, readable(bytes.end.cast())));
        });
        assert_eq!(touched, [(false, true), (true, false)]);
    }

    #[test]
    fn arenas_touch_a_guard_page_too() {
        on_both_sides(|| {
            let arena = crate::arena::Arena::new(128).unwrap();
            let (start, end) = (arena.as_ptr(), arena.as_ptr().wrapping_add(128));
            assert!(readable(start) && readable(end.wrapping_sub(1)));
            assert!(!(readable(start.wrapping_sub(1)) && readable(end)));
        });
    }
}
