//! Large, 64-byte-aligned memory regions: one for the packed weights, one for the KV cache.
//!
//! Zeroed anonymous memory, or a part of a file that is mapped read-only ([`crate::packed_file`]), with huge pages requested:
//! a decode step reads every weight once, and with 4 KiB pages the page walks alone would take a measurable share of its
//! time. Untouched pages take no memory. A region is freed as a whole.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;

use memmap2::{Mmap, MmapOptions};

use crate::error::KernelError;

/// Alignment of every allocation in an arena, in bytes: one cache line, one AVX-512 register.
pub const ALIGN: usize = 64;

/// Memory that is freed as a whole.
///
/// In this crate's tests anonymous memory lies between guard pages (see `guarded.rs`).
#[derive(Debug)]
pub struct Arena {
    start: NonNull<u8>,
    len: usize,
    backing: Backing,
}

/// What holds the bytes of an arena.
#[derive(Debug)]
enum Backing {
    /// The arena is empty.
    None,
    #[cfg(not(test))]
    Anonymous,
    #[cfg(test)]
    Guarded { _mapping: crate::guarded::Mapping },
    /// Writing to it is fatal (SIGSEGV).
    File { map: Mmap },
}

// SAFETY: an arena is plain owned memory; its users decide which thread writes which part.
unsafe impl Send for Arena {}
// SAFETY: as above; shared access hands out raw pointers only.
unsafe impl Sync for Arena {}

/// Size of the pages that an arena requests. Advisory: the system may lack huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The base page size, 4 KiB on x86.
    Small,
    /// 2 MiB on x86.
    Huge,
}

thread_local! {
    /// Bytes of all arenas that the thread has reserved so far.
    static RESERVED: Cell<usize> = const { Cell::new(0) };
}

/// Run `build` and return, beside its result, the bytes of the arenas that it reserved on this thread.
pub fn with_reserved_bytes<T>(build: impl FnOnce() -> T) -> (T, usize) {
    let before = RESERVED.get();
    let built = build();
    (built, RESERVED.get().wrapping_sub(before))
}

impl Arena {
    /// Reserve `len` bytes (rounded up to whole pages by the operating system) with huge pages.
    pub fn new(len: usize) -> Result<Self, KernelError> {
        Self::with_pages(len, Pages::Huge)
    }

    /// Reserve `len` bytes (rounded up to whole pages by the operating system).
    pub fn with_pages(len: usize, pages: Pages) -> Result<Self, KernelError> {
        if len == 0 {
            return Ok(Self {
                start: NonNull::dangling(),
                len: 0,
                backing: Backing::None,
            });
        }
        let arena = Self::map(len, pages)?;
        RESERVED.set(RESERVED.get().wrapping_add(len));
        Ok(arena)
    }

    /// Map bytes of a file, read-only and shared with every process that maps them. Reads nothing.
    ///
    /// If the file is truncated while mapped, a read past its new end is fatal (SIGBUS): see [`crate::packed_file`].
    ///
    /// # Errors
    /// The system refuses the mapping.
    ///
    /// # Panics
    /// `range` is empty or does not begin at a multiple of [`ALIGN`].
    pub fn of_file(file: &File, range: Range<usize>) -> std::io::Result<Self> {
        assert!(!range.is_empty() && range.start.is_multiple_of(ALIGN));
        // Mapped from the file's beginning: the system aligns it for huge pages.
        // SAFETY: the map is never written here. Its readers take any bytes: they are plain numbers.
        let map = unsafe { MmapOptions::new().len(range.end).map(file) }?;
        #[cfg(target_os = "linux")]
        // Advisory: a failure changes nothing.
        let _ = map.advise(memmap2::Advice::HugePage);
        // SAFETY: inside the map, which begins at a page.
        let start = unsafe { map.as_ptr().add(range.start) };
        Ok(Self {
            start: NonNull::new(start.cast_mut()).expect("mmap returns no null"),
            len: range.len(),
            backing: Backing::File { map },
        })
    }

    /// Whether the bytes are those of a file.
    pub fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File { .. })
    }

    /// Read a part of a mapped file into memory; does nothing for other arenas. Returns when it is read.
    pub fn populate(&self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len);
        #[cfg(target_os = "linux")]
        if let Backing::File { map } = &self.backing {
            let before = self.start.as_ptr() as usize - map.as_ptr() as usize;
            // Advisory: without it the pages are read when they are first used.
            let _ = map.advise_range(
                memmap2::Advice::PopulateRead,
                before + range.start,
                range.len(),
            );
        }
    }

    #[cfg(test)]
    fn map(len: usize, _pages: Pages) -> Result<Self, KernelError> {
        match crate::guarded::Mapping::reserve(len, ALIGN) {
            Some((start, mapping)) => Ok(Self {
                start,
                len,
                backing: Backing::Guarded { _mapping: mapping },
            }),
            None => Err(Self::refusal(len)),
        }
    }

    fn refusal(len: usize) -> KernelError {
        KernelError::Memory(format!(
            "{:.1} MiB of memory could not be reserved: {}.",
            len as f64 / (1 << 20) as f64,
            std::io::Error::last_os_error()
        ))
    }

    #[cfg(not(test))]
    fn map(len: usize, pages: Pages) -> Result<Self, KernelError> {
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing
        // that exists; the result is checked.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Self::refusal(len));
        }
        #[cfg(target_os = "linux")]
        // SAFETY: the range is the mapping just made. Advisory: a failure changes nothing.
        unsafe {
            let advice = match pages {
                Pages::Small => libc::MADV_NOHUGEPAGE,
                Pages::Huge => libc::MADV_HUGEPAGE,
            };
            libc::madvise(start, len, advice);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pages;
        Ok(Self {
            start: NonNull::new(start.cast()).expect("mmap returns no null"),
            len,
            backing: Backing::Anonymous,
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First byte. Callers ensure that no thread writes what another reads or writes, and that none writes to a file's.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

#[cfg(not(test))]
impl Drop for Arena {
    fn drop(&mut self) {
        if matches!(self.backing, Backing::Anonymous) {
            // SAFETY: exactly the mapping made in `new`, unmapped once.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

/// Round up to a multiple of [`ALIGN`] bytes.
pub fn align_up(len: usize) -> usize {
    len.next_multiple_of(ALIGN)
}

/// A zeroed, cache-line-aligned array of which workers write disjoint parts.
///
/// Scratch memory of the step: sized at construction, never grown. Accessed through raw pointers because the workers'
/// parts interleave (columns of a row-major matrix), which slices cannot express.
#[derive(Debug)]
pub struct Buffer<T> {
    arena: Arena,
    len: usize,
    element: std::marker::PhantomData<T>,
}

/// Types whose all-zero bytes are a value and that need no drop.
///
/// # Safety
/// Implementors must be plain data for which every bit pattern is valid.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}
// SAFETY: plain numbers.
unsafe impl Plain for u8 {}
// SAFETY: plain numbers.
unsafe impl Plain for i8 {}
// SAFETY: plain numbers.
unsafe impl Plain for i32 {}
// SAFETY: plain numbers.
unsafe impl Plain for u32 {}
// SAFETY: plain numbers.
unsafe impl Plain for u64 {}
// SAFETY: plain numbers.
unsafe impl Plain for f32 {}
// SAFETY: plain numbers.
unsafe impl Plain for f64 {}

impl<T: Plain> Buffer<T> {
    pub fn new(len: usize) -> Result<Self, KernelError> {
        Self::with_pages(len, Pages::Huge)
    }

    /// As [`Buffer::new`] with the page size given.
    pub fn with_pages(len: usize, pages: Pages) -> Result<Self, KernelError> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or_else(|| KernelError::Memory("A work buffer would not fit in memory.".into()))?;
        Ok(Self {
            arena: Arena::with_pages(bytes, pages)?,
            len,
            element: std::marker::PhantomData,
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn ptr(&self) -> *mut T {
        self.arena.as_ptr().cast()
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: in bounds, initialised (zeroed pages), aligned; exclusive by `&mut self`, as nothing holds a pointer
        // beyond its own borrow of the buffer.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.len) }
    }

    /// The part `[start, start + len)`.
    ///
    /// # Safety
    /// No thread writes this part while the slice lives.
    pub unsafe fn slice(&self, start: usize, len: usize) -> &[T] {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: in bounds (checked), initialised (zeroed pages), aligned to a cache line.
        unsafe { std::slice::from_raw_parts(self.ptr().add(start), len) }
    }

    /// The part `[start, start + len)`, writable.
    ///
    /// # Safety
    /// No other reference reads or writes this part while the slice lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: in bounds (checked), initialised (zeroed pages), aligned; exclusive by contract.
        unsafe { std::slice::from_raw_parts_mut(self.ptr().add(start), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_are_aligned_and_zeroed() {
        let arena = Arena::new(100_000).unwrap();
        assert_eq!(arena.as_ptr() as usize % ALIGN, 0);
        // SAFETY: the arena is ours alone.
        let bytes = unsafe { std::slice::from_raw_parts(arena.as_ptr(), arena.len()) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn an_empty_arena_is_fine_and_an_impossible_one_is_refused() {
        assert!(Arena::new(0).unwrap().is_empty());
        assert!(matches!(
            Arena::new(usize::MAX / 2),
            Err(KernelError::Memory(_))
        ));
    }

    #[test]
    fn reserved_bytes_are_those_of_all_arenas_that_were_made() {
        let (buffers, bytes) = with_reserved_bytes(|| {
            drop(Arena::new(100).unwrap());
            [Buffer::<f32>::new(10).unwrap(), Buffer::new(0).unwrap()]
        });
        assert_eq!((buffers.len(), bytes), (2, 140));
    }

    #[test]
    fn buffers_hand_out_disjoint_parts() {
        let buffer = Buffer::<f32>::new(10).unwrap();
        // SAFETY: the two parts do not overlap, and the buffer is ours alone.
        let (low, high) = unsafe { (buffer.slice_mut(0, 5), buffer.slice_mut(5, 5)) };
        low.fill(1.0);
        high.fill(2.0);
        // SAFETY: nothing is written any more.
        assert_eq!(unsafe { buffer.slice(4, 2) }, [1.0, 2.0]);
    }
}
