//! Attention of a few queries over one KV head's pages.
//!
//! Hot path. A *row* is one (query token, query head); rows that share a KV head are computed together,
//! so that keys and values are loaded and widened once for all of them. Keys are walked in chunks of
//! [`CHUNK`] positions at fixed offsets from position 0, with a running maximum and sum. What must stay
//! true: a row's operations depend on its own position alone, never on its company, so its bits are the
//! same alone, in a batch, and in any chunking of its prompt.

use crate::kv_cache::{KvCache, KvDtype};
use crate::simd::{LANES, Lanes, by_level};
use crate::spec::MAX_HEAD_DIM;

/// Rows of one call at most.
pub const MAX_ROWS: usize = 16;

/// Positions whose scores are normalised together.
const CHUNK: usize = 64;

const TILES: usize = CHUNK / LANES;

/// A call's queries: tokens `first_position..first_position + tokens` of one sequence, and `heads` query
/// heads which share `kv_head`.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    pub layer: usize,
    pub kv_head: usize,
    /// Tokens times heads is at most [`MAX_ROWS`].
    pub tokens: usize,
    pub heads: usize,
    pub first_position: usize,
    /// 0: everything up to the own position; n: the last n positions, the own one included.
    pub window: usize,
    /// Multiplied into every score.
    pub scale: f32,
    /// The sequence's blocks in order; entries up to the last query's position are valid.
    pub block_table: &'a [i32],
    /// First head of the first token: `[tokens, q_token_stride]`, heads `q_head_stride` apart.
    pub q: *const f32,
    pub q_token_stride: usize,
    pub q_head_stride: usize,
    /// As for `q`; heads are `head_dim` apart.
    pub out: *mut f32,
    pub out_token_stride: usize,
}

/// A worker's memory for attention.
#[derive(Debug)]
pub struct Scratch {
    /// `[MAX_ROWS][CHUNK]`: scores, then weights.
    weights: Box<[[f32; CHUNK]; MAX_ROWS]>,
    /// `[MAX_ROWS][MAX_HEAD_DIM]`: weighted sums of values.
    sums: Box<[[f32; MAX_HEAD_DIM]; MAX_ROWS]>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            weights: Box::new([[0.0; CHUNK]; MAX_ROWS]),
            sums: Box::new([[0.0; MAX_HEAD_DIM]; MAX_ROWS]),
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

/// Element type of the cache, at compile time.
trait Element {
    const BYTES: usize;
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load<L: Lanes>(from: *const u8) -> L;
}

struct F16;
struct F32;

impl Element for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_f16(from.cast()) }
    }
}

impl Element for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(from.cast()) }
    }
}

/// Scores of `ROWS` rows against `COUNT` key tiles: one chain of multiply-adds a row and tile.
///
/// # Safety
/// Tiles of `head_dim` dimensions; `ROWS` queries of `head_dim`; the level's instructions enabled.
#[inline(always)]
unsafe fn scores<L: Lanes, E: Element, const ROWS: usize, const COUNT: usize>(
    tiles: &[*const u8; TILES],
    q: &[*const f32],
    head_dim: usize,
    scale: f32,
    weights: &mut [[f32; CHUNK]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[L::splat(0.0); COUNT]; ROWS];
        for dim in 0..head_dim {
            let mut keys = [L::splat(0.0); COUNT];
            for (key, tile) in keys.iter_mut().zip(tiles) {
                *key = E::load(tile.add(dim * LANES * E::BYTES));
            }
            for (sums, q) in sums.iter_mut().zip(q) {
                let q = L::splat(*q.add(dim));
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = q.mul_add(key, *sum);
                }
            }
        }
        for (sums, weights) in sums.into_iter().zip(weights) {
            for (tile, sum) in sums.into_iter().enumerate() {
                sum.mul(L::splat(scale))
                    .store(weights.as_mut_ptr().add(tile * LANES));
            }
        }
    }
}

/// Add `ROWS` rows' weighted values, for `DIMS` times 16 dimensions from `dim` on.
///
/// # Safety
/// `values` names `tokens` rows of values, tile by tile; the level's instructions enabled.
#[inline(always)]
unsafe fn add_values<L: Lanes, E: Element, const ROWS: usize, const DIMS: usize>(
    values: &[*const u8; TILES],
    value_stride: usize,
    tokens: usize,
    dim: usize,
    weights: &[[f32; CHUNK]],
    sums: &mut [[f32; MAX_HEAD_DIM]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut lanes = [[L::splat(0.0); DIMS]; ROWS];
        for (lanes, sums) in lanes.iter_mut().zip(sums.iter()) {
            for (at, lane) in lanes.iter_mut().enumerate() {
                *lane = L::load(sums.as_ptr().add(dim + at * LANES));
            }
        }
        for token in 0..tokens {
            let row = values[token / LANES].add((token % LANES * value_stride + dim) * E::BYTES);
            let mut value = [L::splat(0.0); DIMS];
            for (at, value) in value.iter_mut().enumerate() {
                *value = E::load(row.add(at * LANES * E::BYTES));
            }
            for (lanes, weights) in lanes.iter_mut().zip(weights) {
                let weight = L::splat(weights[token]);
                for (lane, value) in lanes.iter_mut().zip(value) {
                    *lane = weight.mul_add(value, *lane);
                }
            }
        }
        for (lanes, sums) in lanes.into_iter().zip(sums) {
            for (at, lane) in lanes.into_iter().enumerate() {
                lane.store(sums.as_mut_ptr().add(dim + at * LANES));
            }
        }
    }
}

/// The running softmax of one row.
#[derive(Clone, Copy)]
struct Running {
    max: f32,
    sum: f32,
}

/// Turn a row's scores of `tiles` tiles into weights; returns the factor for what was summed before.
///
/// # Safety
/// The level's instructions are enabled.
#[inline(always)]
unsafe fn normalise<L: Lanes>(
    weights: &mut [f32; CHUNK],
    tiles: usize,
    running: &mut Running,
) -> f32 {
    // SAFETY: tiles of sixteen inside the chunk.
    unsafe {
        let mut largest = L::splat(f32::NEG_INFINITY);
        for tile in 0..tiles {
            largest = largest.max(L::load(weights.as_ptr().add(tile * LANES)));
        }
        let largest = largest.largest();
        let max = if largest > running.max {
            largest
        } else {
            running.max
        };
        // Nothing visible so far: every score is -inf, and exp(-inf - 0) makes the weights zero.
        let shift = if max == f32::NEG_INFINITY { 0.0 } else { max };
        let mut sum = L::splat(0.0);
        for tile in 0..tiles {
            let at = weights.as_mut_ptr().add(tile * LANES);
            let weight = L::load(at).sub(L::splat(shift)).exp();
            weight.store(at);
            sum = sum.add(weight);
        }
        let factor = if running.max == max {
            1.0
        } else {
            (running.max - max).exp()
        };
        *running = Running {
            max,
            sum: running.sum * factor + sum.sum(),
        };
        factor
    }
}

/// Call `$body` with `$rows` as a constant from 1 to 4.
macro_rules! with_rows {
    ($count:expr, $body:ident::<$($ty:ty),*; $extra:tt>($($arg:expr),*)) => {
        match $count {
            1 => $body::<$($ty),*, 1, $extra>($($arg),*),
            2 => $body::<$($ty),*, 2, $extra>($($arg),*),
            3 => $body::<$($ty),*, 3, $extra>($($arg),*),
            _ => $body::<$($ty),*, 4, $extra>($($arg),*),
        }
    };
}

#[inline(always)]
unsafe fn attend_element<L: Lanes, E: Element>(
    kv: &KvCache,
    queries: &Queries<'_>,
    scratch: &mut Scratch,
) {
    let shape = kv.shape();
    let (head_dim, block_size) = (shape.head_dim, shape.block_size);
    let padded_dim = kv.value_stride();
    let rows = queries.tokens * queries.heads;
    assert!(rows <= MAX_ROWS && queries.tokens > 0);
    let mut q = [std::ptr::null(); MAX_ROWS];
    for (row, q) in q[..rows].iter_mut().enumerate() {
        let (token, head) = (row / queries.heads, row % queries.heads);
        // SAFETY: the queries' extent is the caller's promise.
        *q = unsafe {
            queries
                .q
                .add(token * queries.q_token_stride + head * queries.q_head_stride)
        };
    }
    let mut running = [Running {
        max: f32::NEG_INFINITY,
        sum: 0.0,
    }; MAX_ROWS];
    for sums in &mut scratch.sums[..rows] {
        sums[..padded_dim].fill(0.0);
    }
    let last = queries.first_position + queries.tokens - 1;
    let first_visible = |position: usize| match queries.window {
        0 => 0,
        window => (position + 1).saturating_sub(window),
    };
    let start = first_visible(queries.first_position) / CHUNK * CHUNK;
    for chunk in (start..=last).step_by(CHUNK) {
        let tokens = CHUNK.min(last + 1 - chunk);
        let tiles = tokens.div_ceil(LANES);
        let mut keys = [std::ptr::null(); TILES];
        let mut values = [std::ptr::null(); TILES];
        for tile in 0..tiles {
            let position = chunk + tile * LANES;
            let block = queries.block_table[position / block_size] as usize;
            let slot = position % block_size;
            keys[tile] = kv.key_tile(queries.layer, block, queries.kv_head, slot);
            values[tile] = kv.value(queries.layer, block, queries.kv_head, slot);
        }
        for first in (0..rows).step_by(4) {
            let count = (rows - first).min(4);
            let (q, weights) = (
                &q[first..first + count],
                &mut scratch.weights[first..first + count],
            );
            // SAFETY: tiles and queries are valid; the instructions are the caller's promise.
            unsafe {
                match tiles {
                    1 => {
                        with_rows!(count, scores::<L, E; 1>(&keys, q, head_dim, queries.scale, weights))
                    }
                    2 => {
                        with_rows!(count, scores::<L, E; 2>(&keys, q, head_dim, queries.scale, weights))
                    }
                    3 => {
                        with_rows!(count, scores::<L, E; 3>(&keys, q, head_dim, queries.scale, weights))
                    }
                    _ => {
                        with_rows!(count, scores::<L, E; 4>(&keys, q, head_dim, queries.scale, weights))
                    }
                }
            }
        }
        for row in 0..rows {
            let position = queries.first_position + row / queries.heads;
            // Visible positions of the chunk: [from, to). Slots behind `to` may hold anything.
            let from = first_visible(position).saturating_sub(chunk).min(CHUNK);
            let to = (position + 1).saturating_sub(chunk).min(CHUNK);
            let weights = &mut scratch.weights[row];
            weights[..from].fill(f32::NEG_INFINITY);
            if to < tiles * LANES {
                weights[to..tiles * LANES].fill(f32::NEG_INFINITY);
            }
            // SAFETY: the instructions are the caller's promise.
            let factor = unsafe { normalise::<L>(weights, tiles, &mut running[row]) };
            if factor != 1.0 {
                scratch.sums[row][..padded_dim]
                    .iter_mut()
                    .for_each(|sum| *sum *= factor);
            }
        }
        for first in (0..rows).step_by(4) {
            let count = (rows - first).min(4);
            let weights = &scratch.weights[first..first + count];
            let sums = &mut scratch.sums[first..first + count];
            let mut dim = 0;
            while dim < padded_dim {
                // SAFETY: `tokens` values of `padded_dim` dimensions are valid; instructions as above.
                unsafe {
                    if padded_dim - dim >= 4 * LANES {
                        with_rows!(count, add_values::<L, E; 4>(&values, padded_dim, tokens, dim, weights, sums));
                        dim += 4 * LANES;
                    } else {
                        with_rows!(count, add_values::<L, E; 1>(&values, padded_dim, tokens, dim, weights, sums));
                        dim += LANES;
                    }
                }
            }
        }
    }
    for row in 0..rows {
        let (token, head) = (row / queries.heads, row % queries.heads);
        let inverse = 1.0 / running[row].sum;
        // SAFETY: the output's extent is the caller's promise.
        let out = unsafe {
            let at = token * queries.out_token_stride + head * head_dim;
            std::slice::from_raw_parts_mut(queries.out.add(at), head_dim)
        };
        for (out, sum) in out.iter_mut().zip(&scratch.sums[row]) {
            *out = sum * inverse;
        }
    }
}

#[inline(always)]
unsafe fn attend_body<L: Lanes>(kv: &KvCache, queries: &Queries<'_>, scratch: &mut Scratch) {
    // SAFETY: the caller's promise.
    unsafe {
        match kv.shape().dtype {
            KvDtype::F16 => attend_element::<L, F16>(kv, queries, scratch),
            KvDtype::F32 => attend_element::<L, F32>(kv, queries, scratch),
        }
    }
}

by_level! {
    /// Attend. Keys and values of every position up to the last query's are in the cache.
    ///
    /// # Safety
    /// The machine has the level; `q` and `out` have the extent that `queries` names, and nobody else
    /// uses `out` or writes the blocks read here.
    pub unsafe fn attend(kv: &KvCache, queries: &Queries<'_>, scratch: &mut Scratch) = attend_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Level;
    use crate::kv_cache::KvShape;
    use crate::pack::tests::Random;
    use proptest::prelude::*;

    struct Case {
        kv: KvCache,
        keys: Vec<f32>,
        values: Vec<f32>,
        q: Vec<f32>,
        table: Vec<i32>,
        heads: usize,
        context: usize,
        window: usize,
    }

    impl Case {
        fn new(
            dtype: KvDtype,
            dim: usize,
            heads: usize,
            context: usize,
            window: usize,
            block_size: usize,
        ) -> Self {
            let mut random = Random(context as u64 * 31 + dim as u64);
            let blocks = context.div_ceil(block_size);
            let shape = KvShape {
                dtype,
                layers: 2,
                blocks: blocks + 3,
                block_size,
                kv_heads: 2,
                head_dim: dim,
            };
            let kv = KvCache::new(shape).unwrap();
            // Every slot holds NaN first: reading one that was not written would show.
            for block in 0..blocks + 3 {
                for slot in 0..block_size {
                    // SAFETY: single-threaded.
                    unsafe {
                        kv.write_key(1, block, 1, slot, &vec![f32::NAN; dim]);
                        kv.write_value(1, block, 1, slot, &vec![f32::NAN; dim]);
                    }
                }
            }
            let table: Vec<i32> = (0..blocks).map(|i| (blocks + 2 - i) as i32).collect();
            let mut vector = |count: usize| -> Vec<f32> {
                (0..count)
                    .map(|_| half::f16::from_f32(random.unit() * 2.0).to_f32())
                    .collect()
            };
            let (keys, values, q) = (
                vector(context * dim),
                vector(context * dim),
                vector(context * heads * dim),
            );
            for position in 0..context {
                let block = table[position / block_size] as usize;
                let part = position * dim..(position + 1) * dim;
                // SAFETY: single-threaded.
                unsafe {
                    kv.write_key(1, block, 1, position % block_size, &keys[part.clone()]);
                    kv.write_value(1, block, 1, position % block_size, &values[part]);
                }
            }
            Self {
                kv,
                keys,
                values,
                q,
                table,
                heads,
                context,
                window,
            }
        }

        fn run(&self, level: Level, first: usize, tokens: usize) -> Vec<f32> {
            let dim = self.kv.shape().head_dim;
            let mut out = vec![f32::NAN; tokens * self.heads * dim];
            let queries = Queries {
                layer: 1,
                kv_head: 1,
                tokens,
                heads: self.heads,
                first_position: first,
                window: self.window,
                scale: 0.3,
                block_table: &self.table,
                q: self.q[first * self.heads * dim..].as_ptr(),
                q_token_stride: self.heads * dim,
                q_head_stride: dim,
                out: out.as_mut_ptr(),
                out_token_stride: self.heads * dim,
            };
            // SAFETY: the level is available; extents match.
            unsafe { attend(level, &self.kv, &queries, &mut Scratch::new()) };
            out
        }

        fn naive(&self, position: usize, head: usize) -> Vec<f64> {
            let dim = self.kv.shape().head_dim;
            let q = &self.q[(position * self.heads + head) * dim..][..dim];
            let first = if self.window == 0 {
                0
            } else {
                (position + 1).saturating_sub(self.window)
            };
            let scores: Vec<f64> = (first..=position)
                .map(|p| {
                    let key = &self.keys[p * dim..][..dim];
                    0.3 * q
                        .iter()
                        .zip(key)
                        .map(|(a, b)| f64::from(*a) * f64::from(*b))
                        .sum::<f64>()
                })
                .collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|s| (s - max).exp()).sum();
            (0..dim)
                .map(|d| {
                    let weighted = scores.iter().enumerate().map(|(i, s)| {
                        (s - max).exp() * f64::from(self.values[(first + i) * dim + d])
                    });
                    weighted.sum::<f64>() / total
                })
                .collect()
        }

        fn check(&self) {
            let dim = self.kv.shape().head_dim;
            let most = MAX_ROWS / self.heads;
            for level in Level::ALL.into_iter().filter(|level| level.available()) {
                for first in (0..self.context).step_by(most) {
                    let tokens = most.min(self.context - first);
                    let out = self.run(level, first, tokens);
                    for token in 0..tokens {
                        for head in 0..self.heads {
                            let ours = &out[(token * self.heads + head) * dim..][..dim];
                            for (a, b) in ours.iter().zip(self.naive(first + token, head)) {
                                assert!((f64::from(*a) - b).abs() < 2e-5, "{level:?} {a} {b}");
                            }
                        }
                        let alone = self.run(level, first + token, 1);
                        assert_eq!(alone, out[token * self.heads * dim..][..self.heads * dim]);
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn matches_naive_attention(
            dim in prop::sample::select(vec![8usize, 16, 24, 64, 80, 128]),
            heads in 1usize..6,
            context in 1usize..200,
            window in prop::sample::select(vec![0usize, 1, 5, 64, 100]),
            block_size in prop::sample::select(vec![16usize, 32, 48]),
            f16_cache: bool,
        ) {
            let dtype = if f16_cache { KvDtype::F16 } else { KvDtype::F32 };
            Case::new(dtype, dim, heads, context, window, block_size).check();
        }
    }
}
