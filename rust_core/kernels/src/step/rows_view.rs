//! `RowsView`: rows of a row-major matrix of floats whose parts belong to different workers.
//!
//! Slices cannot express parts that interleave (columns of a row-major matrix), so phases address their buffers through
//! pointers. A view keeps the pointer with its stride and extent, and checks every access against the extent in debug
//! builds; in release builds it costs what the pointer arithmetic costs.

use crate::arena::Buffer;

/// `[rows, width]` floats; row `r`, column `c` is at `start[r * stride + c]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsView {
    start: *mut f32,
    stride: usize,
    rows: usize,
    width: usize,
}

impl RowsView {
    /// All of `buffer`, as rows of `stride` floats.
    #[inline(always)]
    pub fn of(buffer: &Buffer<f32>, stride: usize) -> Self {
        Self {
            start: buffer.ptr(),
            stride,
            // No panic, so that release builds, which do not read it, drop the division.
            rows: buffer.len().checked_div(stride).unwrap_or(0),
            width: stride,
        }
    }

    /// Floats from one row to the next.
    #[inline(always)]
    pub fn stride(self) -> usize {
        self.stride
    }

    /// Floats of a row.
    #[inline(always)]
    pub fn width(self) -> usize {
        self.width
    }

    /// Where row `row` begins. Dereferencing it is up to the caller.
    #[inline(always)]
    pub fn ptr(self, row: usize) -> *mut f32 {
        debug_assert!(row <= self.rows, "row {row} of {}", self.rows);
        self.start.wrapping_add(row * self.stride)
    }

    /// The rows from `first` on.
    #[inline(always)]
    pub fn rows_from(self, first: usize) -> Self {
        Self {
            start: self.ptr(first),
            rows: self.rows - first,
            ..self
        }
    }

    /// Columns `[first, first + width)` of all rows.
    #[inline(always)]
    pub fn columns(self, first: usize, width: usize) -> Self {
        debug_assert!(
            first + width <= self.width,
            "columns {first}+{width} of {}",
            self.width
        );
        Self {
            start: self.start.wrapping_add(first),
            width,
            ..self
        }
    }

    /// The values of row `row`.
    ///
    /// # Safety
    /// The buffer outlives `'a`, and no thread writes these values during it.
    #[inline(always)]
    pub unsafe fn row<'a>(self, row: usize) -> &'a [f32] {
        debug_assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: inside the buffer by the view's extent; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr(row), self.width) }
    }

    /// The values of row `row`, writable.
    ///
    /// # Safety
    /// The buffer outlives `'a`, and no other thread or reference accesses these values during it.
    #[inline(always)]
    pub unsafe fn row_mut<'a>(self, row: usize) -> &'a mut [f32] {
        debug_assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: inside the buffer by the view's extent; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(row), self.width) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rows of three floats, each its own index.
    fn counted() -> Buffer<f32> {
        let buffer = Buffer::new(12).unwrap();
        // SAFETY: the buffer is ours alone.
        let values = unsafe { buffer.slice_mut(0, 12) };
        for (at, value) in values.iter_mut().enumerate() {
            *value = at as f32;
        }
        buffer
    }

    #[test]
    fn rows_and_columns_are_where_the_stride_says() {
        let buffer = counted();
        let view = RowsView::of(&buffer, 3);
        // SAFETY: nothing writes the buffer.
        unsafe {
            assert_eq!(view.row(2), [6.0, 7.0, 8.0]);
            assert_eq!(view.columns(1, 2).row(3), [10.0, 11.0]);
            assert_eq!(view.columns(1, 2).columns(1, 1).row(0), [2.0]);
            assert_eq!(view.rows_from(1).row(0), view.row(1));
            assert_eq!(view.rows_from(2).columns(0, 1).row(1), [9.0]);
        }
        assert_eq!(view.ptr(4), buffer.ptr().wrapping_add(12));
    }

    #[test]
    fn writing_a_row_changes_its_columns_alone() {
        let buffer = counted();
        let view = RowsView::of(&buffer, 3);
        // SAFETY: one reference at a time.
        unsafe {
            view.columns(1, 1).row_mut(1).fill(-1.0);
            assert_eq!(view.row(1), [3.0, -1.0, 5.0]);
            assert_eq!(view.row(0), [0.0, 1.0, 2.0]);
        }
    }

    #[test]
    fn debug_builds_refuse_what_lies_outside() {
        let buffer = counted();
        let view = RowsView::of(&buffer, 3);
        let outside: [fn(RowsView); 4] = [
            // SAFETY: refused before anything is read.
            |view| _ = unsafe { view.row(4) },
            // SAFETY: as above.
            |view| _ = unsafe { view.rows_from(1).row(3) },
            |view| _ = view.columns(2, 2),
            |view| _ = view.rows_from(5),
        ];
        if cfg!(debug_assertions) {
            for access in outside {
                assert!(std::panic::catch_unwind(|| access(view)).is_err());
            }
        }
    }
}
