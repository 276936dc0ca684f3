//! Scores of blocks of rows with blocks of queries.
//!
//! Hot path: a block of rows is read once for a block of queries, into as many independent chains as the registers hold. A
//! score is one chain over the dimensions and one sum over the lanes, whatever the block's size.

use std::ops::Range;

use super::int8::ByteDots;
use super::query::Queries;
use super::top_k::TopK;
use super::{Allowed, RowType, Rows};
use crate::simd::{LANES, Lanes, by_level};

/// Rows of a block.
const ROWS: usize = 4;

/// Queries of a block where the level has the registers.
const QUERIES: usize = 4;

/// How rows are stored.
trait Stored {
    /// Scores of `R` rows with queries `first..first + Q`.
    ///
    /// # Safety
    /// The rows are readable and hold `queries.padded` values of this type; the queries exist and were prepared for it; the
    /// level's instructions are enabled.
    unsafe fn scores<L: ByteDots, const R: usize, const Q: usize>(
        rows: [*const u8; R],
        queries: &Queries,
        first: usize,
    ) -> [[f32; Q]; R];
}

/// Rows of floats.
trait Floats {
    /// Load 16 values of a row from index `at` on.
    ///
    /// # Safety
    /// The row has them; the level's instructions are enabled.
    unsafe fn load<L: Lanes>(row: *const u8, at: usize) -> L;
}

struct F32;
struct F16;
struct Int8;

impl Floats for F32 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(row: *const u8, at: usize) -> L {
        // SAFETY: the caller's promise; loads may be unaligned.
        unsafe { L::load(row.add(4 * at).cast()) }
    }
}

impl Floats for F16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(row: *const u8, at: usize) -> L {
        // SAFETY: the caller's promise; loads may be unaligned.
        unsafe { L::load_f16(row.add(2 * at).cast()) }
    }
}

impl<S: Floats> Stored for S {
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over arrays of registers put them into memory"
    )]
    unsafe fn scores<L: ByteDots, const R: usize, const Q: usize>(
        rows: [*const u8; R],
        queries: &Queries,
        first: usize,
    ) -> [[f32; Q]; R] {
        let padded = queries.padded;
        // SAFETY: the caller's promise: whole vectors of each row and query.
        unsafe {
            let floats = queries.floats.as_ptr().add(first * padded);
            let mut sums = [[L::splat(0.0); Q]; R];
            for at in (0..padded).step_by(LANES) {
                let mut values = [L::splat(0.0); Q];
                for query in 0..Q {
                    values[query] = L::load(floats.add(query * padded + at));
                }
                for row in 0..R {
                    let stored: L = S::load(rows[row], at);
                    for query in 0..Q {
                        sums[row][query] = stored.mul_add(values[query], sums[row][query]);
                    }
                }
            }
            // Through memory: a larger loop over the sums is not unrolled, and then they are kept in memory all the time.
            let mut lanes = [[[0.0; LANES]; Q]; R];
            for row in 0..R {
                for query in 0..Q {
                    sums[row][query].store(lanes[row][query].as_mut_ptr());
                }
            }
            let mut scores = [[0.0; Q]; R];
            for row in 0..R {
                for query in 0..Q {
                    scores[row][query] = L::load(lanes[row][query].as_ptr()).sum();
                }
            }
            scores
        }
    }
}

impl Stored for Int8 {
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "as above")]
    unsafe fn scores<L: ByteDots, const R: usize, const Q: usize>(
        rows: [*const u8; R],
        queries: &Queries,
        first: usize,
    ) -> [[f32; Q]; R] {
        // SAFETY: the caller's promise: the scale follows the codes.
        unsafe {
            let dots = L::byte_dots::<R, Q>(rows, queries, first);
            let mut scores = [[0.0; Q]; R];
            for row in 0..R {
                let scale = rows[row].add(queries.padded).cast::<f32>().read_unaligned();
                for query in 0..Q {
                    let dot = dots[row][query].wrapping_sub(queries.offsets[first + query]);
                    scores[row][query] = dot as f32 * (scale * queries.scales[first + query]);
                }
            }
            scores
        }
    }
}

/// Score one block of rows with all queries. Rows from `count` on repeat the last one and are ignored.
///
/// # Safety
/// As [`Stored::scores`] for all queries; `best` has an entry for each.
#[inline(always)]
unsafe fn add_block<L: ByteDots, S: Stored>(
    rows: [*const u8; ROWS],
    slots: [usize; ROWS],
    count: usize,
    queries: &Queries,
    best: &mut [TopK],
) {
    let mut first = 0;
    if L::WIDE {
        while first + QUERIES <= queries.count() {
            // SAFETY: the caller's promise; the queries exist.
            let scores = unsafe { S::scores::<L, ROWS, QUERIES>(rows, queries, first) };
            for (best, query) in best[first..].iter_mut().zip(0..QUERIES) {
                for row in 0..count {
                    best.add(slots[row], scores[row][query]);
                }
            }
            first += QUERIES;
        }
    }
    for (best, first) in best[first..].iter_mut().zip(first..) {
        // SAFETY: as above.
        let scores = unsafe { S::scores::<L, ROWS, 1>(rows, queries, first) };
        for row in 0..count {
            best.add(slots[row], scores[row][0]);
        }
    }
}

/// # Safety
/// As [`scan`], with the level's instructions enabled and rows stored as `S`.
#[inline(always)]
unsafe fn scan_stored<L: ByteDots, S: Stored>(
    rows: Rows,
    range: Range<usize>,
    allowed: Allowed<'_>,
    queries: &Queries,
    best: &mut [TopK],
) {
    let (mut slots, mut pointers) = ([0; ROWS], [std::ptr::null(); ROWS]);
    let mut count = 0;
    // SAFETY: slots are below the number of rows by contract; only full or partly repeated blocks of such slots are read.
    unsafe {
        for slot in range {
            if !allowed.has(slot) {
                continue;
            }
            (slots[count], pointers[count]) = (slot, rows.row(slot));
            count += 1;
            if count == ROWS {
                add_block::<L, S>(pointers, slots, ROWS, queries, best);
                count = 0;
            }
        }
        if count > 0 {
            add_block::<L, S>(
                slots.map(|slot| rows.row(slot)),
                slots,
                count,
                queries,
                best,
            );
        }
    }
}

/// # Safety
/// As [`scan`], with the level's instructions enabled.
#[inline(always)]
unsafe fn scan_body<L: ByteDots>(
    rows: Rows,
    range: Range<usize>,
    allowed: Allowed<'_>,
    queries: &Queries,
    best: &mut [TopK],
) {
    // SAFETY: the caller's promise.
    unsafe {
        match rows.layout.row_type {
            RowType::F32 => scan_stored::<L, F32>(rows, range, allowed, queries, best),
            RowType::F16 => scan_stored::<L, F16>(rows, range, allowed, queries, best),
            RowType::Int8 => scan_stored::<L, Int8>(rows, range, allowed, queries, best),
        }
    }
}

by_level! {
    /// Score the allowed rows of a range of slots with all queries and add them to the best.
    ///
    /// # Safety
    /// The machine has the level; slots of the range are below the number of rows; the queries were prepared for the rows'
    /// layout; `best` has an entry for each query.
    pub(super) unsafe fn scan(rows: Rows, range: Range<usize>, allowed: Allowed<'_>, queries: &Queries, best: &mut [TopK]) = scan_body with AvxVnni;
}
