use std::f64::consts::LN_2;
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::*;
use crate::dispatch::Level;
use crate::guarded::{Guarded, on_both_sides};
use crate::kv_cache::{KvCache, KvDtype, KvHeads, KvLayer, KvShape};
use crate::pack::tests::Random;
use crate::plan::tests::plan_of_runs;
use crate::plan::{Limits, Plan};
use crate::simd::{Portable, hadamard, hadamard_size};
use crate::spec::AttentionSpec;

/// One sequence's part of a step.
#[derive(Debug, Clone)]
struct Query {
    /// Positions of its tokens: `first..first + tokens`.
    first: usize,
    tokens: usize,
    table: Vec<i32>,
}

/// A cache of three layers, the second with random contents and the others with NaN, and queries over the second.
struct Case {
    spec: AttentionSpec,
    sinks: Option<Vec<f32>>,
    kv: KvCache,
    /// `[block, slot, dim]` of KV head 0; other heads hold the same, rotated by their index.
    keys: Vec<f32>,
    values: Vec<f32>,
    q: Guarded<f32>,
    queries: Vec<Query>,
}

/// A vector as int8 codes hold it.
fn round_to_codes(vector: &mut [f32]) {
    let largest = vector.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    for x in vector {
        *x = (*x * (127.0 / largest)).round_ties_even() * (largest / 127.0);
    }
}

/// A key or a query as the kernel multiplies it: unchanged, or, if `int8`, Hadamard-rotated and rounded.
fn multiplied(mut vector: Vec<f32>, int8: bool) -> Vec<f32> {
    if int8 {
        vector.resize(vector.len().next_multiple_of(16), 0.0);
        // SAFETY: no special instructions. On all levels the bits are the same.
        unsafe { hadamard::<Portable>(&mut vector) };
        round_to_codes(&mut vector);
    }
    vector
}

impl Case {
    fn new(
        dtype: KvDtype,
        dim: usize,
        (kv_heads, group): (usize, usize),
        window: usize,
        block_size: usize,
        queries: Vec<Query>,
    ) -> Self {
        let spec = AttentionSpec {
            num_heads: kv_heads * group,
            num_kv_heads: kv_heads,
            head_dim: dim,
            // So that scores of many dimensions are no larger than those of 64.
            scale: 0.3f32.min(2.4 / (dim as f32).sqrt()),
            rope: None,
            window,
            qk_norm_whole: false,
            value_norm: false,
            softcap: 0.0,
            kv_layer: None,
            temperature: None,
        };
        let blocks = 1 + queries.iter().flat_map(|q| &q.table).max().unwrap();
        let blocks = blocks as usize;
        let other = KvHeads {
            kv_heads: 1,
            head_dim: 2 * dim.min(8),
        };
        let own = KvHeads {
            kv_heads,
            head_dim: dim,
        };
        let kv = KvCache::new(KvShape {
            dtype,
            blocks,
            block_size,
            layers: vec![other, own, other],
        })
        .unwrap();
        for layer in [0, 2] {
            fill_with_nan(kv.layer(layer), blocks);
        }
        let mut random = Random(dim as u64 * 31 + blocks as u64);
        let mut vector = |count: usize| -> Vec<f32> {
            (0..count)
                .map(|_| half::f16::from_f32(random.unit() * 2.0).to_f32())
                .collect()
        };
        let (keys, mut values) = (
            vector(blocks * block_size * dim),
            vector(blocks * block_size * dim),
        );
        if dtype == KvDtype::Int8 {
            // Values as such a cache holds them. Its keys are rotated: see `multiplied`.
            for value in values.chunks_exact_mut(dim) {
                round_to_codes(value);
            }
        }
        let tokens: usize = queries.iter().map(|q| q.tokens).sum();
        let q = Guarded::from(&vector(tokens * kv_heads * group * dim)[..]);
        let mut written = vec![false; blocks * block_size];
        for query in &queries {
            for position in 0..query.first + query.tokens {
                let block = query.table[position / block_size] as usize;
                written[block * block_size + position % block_size] = true;
            }
        }
        for (at, written) in written.into_iter().enumerate() {
            for head in 0..kv_heads {
                let turned = |from: &[f32]| -> Vec<f32> {
                    (0..dim)
                        .map(|d| from[at * dim + (d + head) % dim])
                        .collect()
                };
                // A slot that was not written holds NaN, so that reading one shows.
                let nan = vec![f32::NAN; dim];
                let (key, value) = if written {
                    (turned(&keys), turned(&values))
                } else {
                    (nan.clone(), nan)
                };
                let (block, slot) = (at / block_size, at % block_size);
                let head = kv.layer(1).head(head);
                // SAFETY: single-threaded.
                unsafe {
                    head.write_key(Level::Portable, block, slot, &key);
                    head.write_value(Level::Portable, block, slot, &value);
                }
            }
        }
        Self {
            spec,
            sinks: None,
            kv,
            keys,
            values,
            q,
            queries,
        }
    }

    fn with_softcap(mut self, softcap: f32) -> Self {
        self.spec.softcap = softcap;
        self
    }

    /// With a sink for every head: some above, some below the scores.
    fn with_sinks(mut self) -> Self {
        let mut random = Random(self.heads() as u64);
        let sinks = (0..self.heads()).map(|_| random.unit() * 8.0);
        self.sinks = Some(sinks.collect());
        self
    }

    fn heads(&self) -> usize {
        self.spec.num_heads
    }

    fn plan(&self, queries: &[Query]) -> Plan {
        let shape = self.kv.shape();
        let longest = queries.iter().map(|q| q.first + q.tokens).max().unwrap();
        let limits = Limits {
            max_rows: queries.len(),
            max_batched_tokens: queries.iter().map(|q| q.tokens).sum(),
            max_model_len: longest,
            num_blocks: shape.blocks,
            block_size: shape.block_size,
            vocab: 1,
            state_slots: 0,
            window_blocks: 0,
            window: 0,
        };
        let runs = queries
            .iter()
            .map(|q| (q.first, q.tokens, q.table.as_slice()));
        plan_of_runs(limits, &runs.collect::<Vec<_>>()).unwrap()
    }

    /// The outputs of `queries`, the first of which begins at flat token `flat`.
    fn run(&self, level: Level, queries: &[Query], flat: usize, workers: usize) -> Vec<f32> {
        self.run_planned(&self.spec, level, queries, flat, workers)
    }

    /// [`Case::run`] with a work that is planned for `planned`.
    fn run_planned(
        &self,
        planned: &AttentionSpec,
        level: Level,
        queries: &[Query],
        flat: usize,
        workers: usize,
    ) -> Vec<f32> {
        let (dim, heads) = (self.spec.head_dim, self.heads());
        let plan = self.plan(queries);
        let mut work = Work::with_capacity(8, 8, heads);
        work.plan(planned, &plan, workers);
        let tokens: usize = queries.iter().map(|q| q.tokens).sum();
        let mut out = Guarded::filled(f32::NAN, tokens * heads * dim);
        let (tables, table_width) = plan.block_tables();
        let splits = (table_width * self.kv.shape().block_size).div_ceil(SPLIT);
        let rows = max_split_rows(&self.spec, workers);
        let mut partials = Guarded::filled(f32::NAN, rows * splits * partial_floats(dim));
        // The last item first: the order must not matter.
        for item in work.items.iter().rev() {
            let task = Task {
                kv: self.kv.layer(1),
                kv_head: item.head as usize / self.spec.group_size(),
                head: item.head as usize,
                heads: item.heads as usize,
                window: self.spec.window,
                scale: self.spec.scale,
                softcap: self.spec.softcap,
                sinks: self.sinks.as_deref(),
                tokens: &work.tokens[item.tokens.start as usize..item.tokens.end as usize],
                positions: &plan.positions,
                segments: &work.segments[item.segments.start as usize..item.segments.end as usize],
                tables,
                table_width,
                q: self.q[flat * heads * dim..].as_ptr(),
                q_token_stride: heads * dim,
                q_head_stride: dim,
                out: out.as_mut_ptr(),
                out_token_stride: heads * dim,
            };
            let mut scratch = Scratch::new();
            // SAFETY: the level is available; extents match.
            unsafe {
                let Some(split) = item.split else {
                    attend(level, &task, None, None, &mut scratch);
                    continue;
                };
                let split_stride = task.rows() * partial_floats(dim);
                let first = split.first_row as usize * splits * partial_floats(dim);
                let first = partials[first..][..splits * split_stride].as_mut_ptr();
                let part = first.add(split.index as usize * split_stride);
                let index = split.index as usize;
                attend(level, &task, Some((index, part)), Some(&task), &mut scratch);
                let arrived = &work.arrived[split.slot as usize];
                if arrived.fetch_add(1, Ordering::Relaxed) + 1 == split.count {
                    combine(level, &task, first, split_stride, &mut scratch);
                }
            }
        }
        out.to_vec()
    }

    fn naive(&self, query: &Query, position: usize, flat: usize, head: usize) -> Vec<f64> {
        let (dim, size) = (self.spec.head_dim, self.kv.shape().block_size);
        let turn = head / self.spec.group_size();
        let at = |position: usize, d: usize| {
            let slot = query.table[position / size] as usize * size + position % size;
            slot * dim + (d + turn) % dim
        };
        let q = &self.q[(flat * self.heads() + head) * dim..][..dim];
        let first = match self.spec.window {
            0 => 0,
            window => (position + 1).saturating_sub(window),
        };
        let int8 = self.kv.shape().dtype == KvDtype::Int8;
        // Scaled first, as in the kernel, so that a query is quantized to the same integers. Scores are of base 2.
        let factor = self.spec.scale * std::f32::consts::LOG2_E;
        let q = multiplied(q.iter().map(|q| q * factor).collect(), int8);
        let size = if int8 { hadamard_size(q.len()) } else { 1 } as f64;
        let cap = |score: f64| match f64::from(self.spec.softcap) {
            0.0 => score,
            cap => cap * (score * LN_2 / cap).tanh() / LN_2,
        };
        let scores: Vec<f64> = (first..=position)
            .map(|p| {
                let key = multiplied((0..dim).map(|d| self.keys[at(p, d)]).collect(), int8);
                let products = q.iter().zip(key).map(|(q, k)| f64::from(*q) * f64::from(k));
                cap(products.sum::<f64>() / size)
            })
            .collect();
        let sink = self.sinks.iter().map(|sinks| f64::from(sinks[head]) / LN_2);
        let all = || scores.iter().copied().chain(sink.clone());
        let max = all().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = all().map(|s| (s - max).exp2()).sum();
        (0..dim)
            .map(|d| {
                let weighted = scores
                    .iter()
                    .enumerate()
                    .map(|(i, s)| (s - max).exp2() * f64::from(self.values[at(first + i, d)]));
                weighted.sum::<f64>() / total
            })
            .collect()
    }

    fn check(&self) {
        let tolerance = match self.kv.shape().dtype {
            KvDtype::F16 | KvDtype::F32 => 2e-5,
            // Probabilities are quantized to fifteen bits.
            KvDtype::Int8 => 1e-3,
        };
        let width = self.heads() * self.spec.head_dim;
        let all_positions = AttentionSpec {
            window: 0,
            ..self.spec.clone()
        };
        let mut exact = Vec::new();
        for query in &self.queries {
            for token in 0..query.tokens {
                let flat = exact.len() / width;
                for head in 0..self.heads() {
                    exact.extend(self.naive(query, query.first + token, flat, head));
                }
            }
        }
        for level in Level::ALL.into_iter().filter(|level| level.available()) {
            let together = self.run(level, &self.queries, 0, 1);
            for workers in [2, 16] {
                let others = self.run(level, &self.queries, 0, workers);
                assert_eq!(together, others, "{level:?}, {workers} workers");
                let others = self.run_planned(&all_positions, level, &self.queries, 0, workers);
                assert_eq!(together, others, "{level:?}, planned without the window");
            }
            let mut flat = 0;
            for query in &self.queries {
                for token in 0..query.tokens {
                    let ours = &together[flat * width..][..width];
                    let one = Query {
                        first: query.first + token,
                        tokens: 1,
                        table: query.table.clone(),
                    };
                    let alone = self.run(level, &[one], flat, 1);
                    assert_eq!(alone, ours, "{level:?}: alone as in a batch");
                    flat += 1;
                }
            }
            for (at, (a, b)) in together.iter().zip(&exact).enumerate() {
                assert!(
                    (f64::from(*a) - b).abs() < tolerance,
                    "{level:?} token {} column {}: {a} {b}",
                    at / width,
                    at % width
                );
            }
        }
    }
}

fn fill_with_nan(layer: &KvLayer, blocks: usize) {
    let nan = vec![f32::NAN; layer.head_dim];
    for at in 0..blocks * layer.block_size {
        let (block, slot) = (at / layer.block_size, at % layer.block_size);
        for head in 0..layer.kv_heads {
            // SAFETY: single-threaded.
            unsafe {
                layer
                    .head(head)
                    .write_key(Level::Portable, block, slot, &nan);
                layer
                    .head(head)
                    .write_value(Level::Portable, block, slot, &nan);
            }
        }
    }
}

/// Sequences that share a number of blocks with the one before, each followed by blocks of its own.
fn family(block_size: usize, members: &[(usize, usize, usize)]) -> Vec<Query> {
    let mut free = 0..;
    let mut queries: Vec<Query> = Vec::new();
    for &(shared, first, tokens) in members {
        let blocks = (first + tokens).div_ceil(block_size);
        let before = queries.last().map_or(&[][..], |q| &q.table);
        // Blocks that are written by this step are not shared.
        let written = first / block_size;
        let ours = queries.last().map_or(0, |q: &Query| q.first / block_size);
        let shared = shared.min(written).min(ours).min(before.len());
        let mut table = before[..shared].to_vec();
        table.extend(free.by_ref().take(blocks - shared));
        queries.push(Query {
            first,
            tokens,
            table,
        });
    }
    queries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn matches_naive_attention_alone_and_in_a_batch(
        dim in prop::sample::select(vec![8usize, 16, 24, 64, 80, 96, 112, 128, 160, 192, 256, 512]),
        heads in (1usize..3, 1usize..6),
        window in prop::sample::select(vec![0usize, 0, 1, 5, 64, 100]),
        softcap in prop::sample::select(vec![0f32, 0.0, 2.0, 50.0]),
        sinks: bool,
        block_size in prop::sample::select(vec![16usize, 32, 48]),
        members in prop::collection::vec((0usize..12, 0usize..250, 1usize..20), 1..5),
        dtype in prop::sample::select(vec![KvDtype::F16, KvDtype::F32, KvDtype::Int8]),
    ) {
        let queries = family(block_size, &members);
        on_both_sides(|| {
            let case = Case::new(dtype, dim, heads, window, block_size, queries.clone());
            let case = case.with_softcap(softcap);
            let case = if sinks { case.with_sinks() } else { case };
            case.check();
        });
    }
}

#[test]
fn long_contexts_are_the_same_in_splits_and_behind_a_shared_prefix() {
    for (dtype, window) in [(KvDtype::F16, 0), (KvDtype::F32, 700), (KvDtype::Int8, 0)] {
        let members = [(0, 1100, 1), (30, 1023, 2), (32, 1535, 1), (9, 511, 3)];
        let queries = family(32, &members);
        let case = Case::new(dtype, 16, (2, 3), window, 32, queries);
        case.check();
        case.with_sinks().with_softcap(3.0).check();
    }
}

#[test]
fn windows_of_long_contexts_are_the_same_in_splits_and_behind_a_shared_prefix() {
    for (dtype, window) in [
        (KvDtype::F16, 512),
        (KvDtype::F32, 1000),
        (KvDtype::Int8, 64),
    ] {
        // The last two share more than the third's window, which ends before it.
        let members = [
            (0, 2300, 1),
            (70, 2400, 2),
            (75, 5000, 1),
            (150, 4900, 3),
            (9, 511, 3),
        ];
        let case = Case::new(dtype, 8, (1, 2), window, 32, family(32, &members));
        case.check();
        case.with_sinks().check();
    }
}

#[test]
fn the_largest_heads_are_computed_in_splits_too() {
    for dtype in [KvDtype::F16, KvDtype::F32, KvDtype::Int8] {
        let queries = family(16, &[(0, 700, 1), (30, 600, 14)]);
        let case = Case::new(dtype, 512, (1, 2), 0, 16, queries);
        case.with_softcap(30.0).check();
    }
}

#[test]
fn a_sink_far_above_all_scores_takes_all_attention_and_one_far_below_none() {
    for level in Level::ALL.into_iter().filter(|level| level.available()) {
        let mut case = Case::new(KvDtype::F32, 16, (1, 2), 0, 16, family(16, &[(0, 40, 1)]));
        let without = case.run(level, &case.queries, 0, 1);
        case.sinks = Some(vec![1e4, f32::NEG_INFINITY]);
        let with = case.run(level, &case.queries, 0, 1);
        assert_eq!(with[..16], [0.0; 16], "{level:?}");
        assert_eq!(with[16..], without[16..], "{level:?}");
        case.sinks = Some(vec![f32::NAN; 2]);
        let with = case.run(level, &case.queries, 0, 1);
        assert!(with.iter().all(|x| x.is_nan()), "{level:?}");
    }
}

#[test]
fn many_rows_of_one_prefix_make_one_item_a_kv_head() {
    let members: Vec<_> = (0..12).map(|i| (31, 1000 + i, 1)).collect();
    let case = Case::new(KvDtype::F32, 8, (2, 3), 0, 32, family(32, &members));
    let plan = case.plan(&case.queries);
    let mut work = Work::default();
    work.plan(&case.spec, &plan, 1);
    assert_eq!(work.items.len(), 2 * 2, "{:?}", work.items);
    let shared: Vec<_> = work
        .segments
        .iter()
        .filter(|s| s.tokens.len() > 1)
        .collect();
    assert!(shared.iter().all(|s| s.chunks == (0..15)), "{shared:?}");
    assert_eq!(shared.iter().map(|s| s.tokens.len()).sum::<usize>(), 12);
    case.check();
}

#[test]
fn runs_without_common_blocks_share_no_segments() {
    let case = Case::new(
        KvDtype::F32,
        8,
        (2, 1),
        0,
        16,
        family(16, &[(0, 100, 1), (0, 100, 1), (0, 3, 1)]),
    );
    let mut work = Work::default();
    work.plan(&case.spec, &case.plan(&case.queries), 1);
    assert_eq!(work.segments.len(), 3);
    assert!(work.segments.iter().all(|s| s.chunks.start == 0));
}

/// The items of a step over random contents, and the number of them that are splits.
fn planned(case: &Case, workers: usize) -> (Work, usize) {
    let mut work = Work::default();
    work.plan(&case.spec, &case.plan(&case.queries), workers);
    let splits = work.items.iter().filter(|item| item.split.is_some());
    let splits = splits.count();
    (work, splits)
}

/// The costliest item and the cost of all items.
fn costs(work: &Work) -> (usize, usize) {
    let before = std::iter::once(&0).chain(&work.costs);
    let each = work
        .costs
        .iter()
        .zip(before)
        .map(|(end, start)| end - start);
    (each.max().unwrap(), *work.costs.last().unwrap())
}

#[test]
fn a_long_context_among_short_ones_is_split_evenly_among_the_workers() {
    let mut members = vec![(0, 100, 1); 15];
    members.insert(7, (0, 4000, 1));
    let case = Case::new(KvDtype::F32, 8, (3, 3), 0, 32, family(32, &members));
    for workers in [2, 3, 4] {
        let (work, splits) = planned(&case, workers);
        assert_eq!(
            splits,
            3 * 8,
            "each KV head of the long one, in eight splits"
        );
        let (largest, all) = costs(&work);
        assert!(
            4 * workers * largest <= all,
            "{workers}: {largest} of {all}"
        );
    }
    case.check();
}

#[test]
fn a_long_prefix_that_rows_share_is_split_among_short_ones() {
    let mut members: Vec<_> = (0..8).map(|_| (60, 2000, 1)).collect();
    members.extend([(0, 60, 1); 40]);
    let case = Case::new(KvDtype::Int8, 16, (1, 3), 0, 32, family(32, &members));
    let (work, splits) = planned(&case, 2);
    assert!(splits > 0);
    assert!(
        work.items
            .iter()
            .any(|item| item.split.is_some() && item.tokens.len() > 1)
    );
    case.check();
}

#[test]
fn only_visible_chunks_are_planned_and_only_their_splits_computed() {
    let window = 600;
    let queries = family(32, &[(0, 5000, 1)]);
    let case = Case::new(KvDtype::F32, 8, (3, 3), window, 32, queries);
    let (work, splits) = planned(&case, 2);
    // Positions 4401 to 5000.
    assert_eq!(work.segments.len(), 1);
    assert_eq!(work.segments[0].chunks, 68..79);
    assert_eq!(splits, 3 * 2);
    let indices: Vec<_> = work.items.iter().filter_map(|item| item.split).collect();
    assert!(indices.iter().all(|split| (8..10).contains(&split.index)));
    assert!(indices.iter().all(|split| split.count == 2));
    assert_eq!(costs(&work), (3 * 7, 9 * 11));
    case.check();
}

#[test]
fn rows_whose_windows_share_nothing_share_no_item() {
    // They share 960 positions, of which the window of the second has none.
    let members = [(0, 1000, 1), (30, 4000, 1)];
    let case = Case::new(KvDtype::F32, 8, (4, 1), 300, 32, family(32, &members));
    let (work, _) = planned(&case, 1);
    assert_eq!(work.items.len(), 4 * 2);
    let chunks: Vec<_> = work.segments.iter().map(|s| s.chunks.clone()).collect();
    assert_eq!(chunks, [10..16, 57..63]);
    case.check();
    let case = Case::new(KvDtype::F32, 8, (4, 1), 0, 32, family(32, &members));
    assert_eq!(planned(&case, 1).0.items.len(), 4);
}

#[test]
fn rows_share_what_is_visible_of_their_prefix() {
    let members: Vec<_> = (0..12).map(|i| (120, 4000 + i, 1)).collect();
    let case = Case::new(KvDtype::F32, 8, (4, 3), 1024, 32, family(32, &members));
    let (work, _) = planned(&case, 1);
    assert_eq!(work.items.len(), 4, "{:?}", work.items);
    let shared: Vec<_> = work
        .segments
        .iter()
        .filter(|s| s.tokens.len() > 1)
        .collect();
    assert_eq!(shared.len(), 1);
    assert_eq!(shared[0].chunks, 46..60);
    case.check();
}

#[test]
fn equal_contexts_are_split_only_if_there_are_too_few_of_them() {
    for (rows, wanted) in [(1, 3 * 2), (2, 6 * 2), (3, 0), (16, 0), (32, 0)] {
        let members = vec![(0, 1000, 1); rows];
        let case = Case::new(KvDtype::F32, 8, (3, 3), 0, 32, family(32, &members));
        assert_eq!(planned(&case, 2).1, wanted, "{rows} rows");
        assert_eq!(planned(&case, 1).1, 0, "one worker");
    }
}

#[test]
fn no_more_rows_are_split_than_there_is_memory_for() {
    let mut members: Vec<_> = (0..12).map(|i| (0, 3000 + i, 1)).collect();
    members.extend([(0, 10, 1); 80]);
    let case = Case::new(KvDtype::F32, 8, (1, 6), 0, 32, family(32, &members));
    let (work, splits) = planned(&case, 8);
    assert!(splits > 0 && work.items.iter().any(|item| item.split.is_none()));
    let ends = work.items.iter().filter_map(|item| {
        let rows = item.tokens.len() as u32 * item.heads;
        Some(item.split?.first_row + rows)
    });
    assert!(ends.max().unwrap() as usize <= max_split_rows(&case.spec, 8));
}
