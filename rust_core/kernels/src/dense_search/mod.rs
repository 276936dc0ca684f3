//! Exact search for the nearest of many stored vectors, by dot product.
//!
//! Vectors are rows of bytes ([`layout`]) in memory that the caller keeps, usually a mapped file. A search reads every allowed
//! row once for all queries of the call; its cost is reading the rows. Workers take chunks of rows from a counter and keep the
//! best of each query; the lists are merged at the end.
//!
//! Results do not depend on threads, on the other queries or on how the rows are divided: a score is computed in one order,
//! and of equal scores the lower slot wins.

mod int8;
mod kernel;
mod layout;
mod query;
#[cfg(test)]
mod tests;
mod top_k;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use self::layout::{MAX_DIMENSIONS, RowLayout, RowType};
use self::query::Queries;
use self::top_k::TopK;
use crate::dispatch::Level;
use crate::error::KernelError;

/// Bytes of rows that a worker takes at once: they stay in its cache while all queries of the call are scored.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes to read per thread below which starting the thread takes longer than it saves.
const BYTES_PER_THREAD: usize = 2 << 20;

/// Slot of results beyond the number of allowed rows.
pub const NO_SLOT: i64 = -1;

/// Stored rows: row `i` is `layout.row_bytes()` bytes from `data + i * row_bytes`.
///
/// Another process may write a row while it is read. Its score is then one of a mixture of both contents; nothing else
/// depends on the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    data: *const u8,
    rows: usize,
    layout: RowLayout,
}

// SAFETY: a pointer that is only read; its validity is the promise made to `Rows::new`.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// # Safety
    /// `data` is readable for `rows` rows as long as the value is used.
    pub unsafe fn new(data: *const u8, rows: usize, layout: RowLayout) -> Self {
        Self { data, rows, layout }
    }

    /// # Safety
    /// `slot` is below the number of rows.
    #[inline(always)]
    unsafe fn row(self, slot: usize) -> *const u8 {
        // SAFETY: the caller's promise and that of `new`.
        unsafe { self.data.add(slot * self.layout.row_bytes()) }
    }
}

/// Which rows may be found.
#[derive(Debug, Clone, Copy)]
pub enum Allowed<'a> {
    All,
    /// Bit `slot % 8` of byte `slot / 8`; slots beyond the bytes are not allowed.
    Bits(&'a [u8]),
}

impl Allowed<'_> {
    #[inline(always)]
    fn has(self, slot: usize) -> bool {
        match self {
            Self::All => true,
            Self::Bits(bits) => bits
                .get(slot / 8)
                .is_some_and(|byte| byte >> (slot % 8) & 1 == 1),
        }
    }

    /// The number of slots, from 0, that contain all allowed ones.
    fn bound(self, rows: usize) -> usize {
        match self {
            Self::All => rows,
            Self::Bits(bits) => rows.min(8 * bits.len()),
        }
    }
}

/// How a search runs.
#[derive(Debug, Clone, Copy)]
pub struct SearchConfig {
    /// Number of rows to find for each query.
    pub k: usize,
    /// The most threads, the caller's included.
    pub threads: usize,
    pub level: Level,
}

/// Find the `k` rows with the largest dot products for each of `queries` (`[n, dimensions]`).
///
/// `slots` and `scores` are `[n, k]`, best first; equal scores are in the order of their slots. Where fewer rows are allowed,
/// [`NO_SLOT`] and negative infinity follow.
///
/// # Errors
/// The arrays do not fit each other, or a query holds a value that is not finite.
pub fn search(
    rows: Rows,
    queries: &[f32],
    allowed: Allowed<'_>,
    config: SearchConfig,
    slots: &mut [i64],
    scores: &mut [f32],
) -> Result<(), KernelError> {
    let queries = Queries::new(queries, rows.layout)?;
    let (count, k) = (queries.count(), config.k);
    let results = count.checked_mul(k);
    if results != Some(slots.len()) || slots.len() != scores.len() {
        return Err(KernelError::config(
            "The arrays for the results do not fit the queries.",
        ));
    }
    slots.fill(NO_SLOT);
    scores.fill(f32::NEG_INFINITY);
    if slots.is_empty() {
        return Ok(());
    }
    let bound = allowed.bound(rows.rows);
    let row_bytes = rows.layout.row_bytes();
    let chunk = (CHUNK_BYTES / row_bytes).max(1);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut best: Vec<TopK> = (0..count).map(|_| TopK::new(k)).collect();
        loop {
            let first = next.fetch_add(chunk, Ordering::Relaxed);
            if first >= bound {
                return best;
            }
            let range = first..bound.min(first + chunk);
            // SAFETY: slots below the number of rows; the level is available by its construction.
            unsafe { kernel::scan(config.level, rows, range, allowed, &queries, &mut best) };
        }
    };
    let worth = (bound * row_bytes).saturating_mul(count) / BYTES_PER_THREAD;
    let helpers = config.threads.min(worth).max(1) - 1;
    let mut lists = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
        let mut lists = vec![work()];
        for handle in handles {
            lists.push(
                handle
                    .join()
                    .map_err(|_| KernelError::Worker("A search worker failed.".into()))?,
            );
        }
        Ok::<_, KernelError>(lists)
    })?;
    let mut merged = lists.swap_remove(0);
    for list in lists {
        for (into, from) in merged.iter_mut().zip(list) {
            into.merge(from);
        }
    }
    let results = slots.chunks_exact_mut(k).zip(scores.chunks_exact_mut(k));
    for (best, (slots, scores)) in merged.into_iter().zip(results) {
        best.write(slots, scores);
    }
    Ok(())
}
