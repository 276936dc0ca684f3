//! Planning of a step's attention: which rows are computed in one kernel call.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

use super::{CHUNK, MAX_ROWS, SPLIT};
use crate::plan::Plan;
use crate::spec::AttentionSpec;

/// Chunks of a split.
const SPLIT_CHUNKS: u32 = (SPLIT / CHUNK) as u32;

/// Chunks that consecutive tokens of an item read from the blocks of one sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Relative to the item's tokens.
    pub tokens: Range<u32>,
    pub chunks: Range<u32>,
    /// Batch index of the sequence.
    pub table: u32,
}

impl Segment {
    /// Of one query head: chunks, each counted once for every token that reads it.
    fn cost(&self) -> usize {
        self.tokens.len() * self.chunks.len()
    }

    /// Number of its chunks in split `split`.
    fn chunks_in(&self, split: u32) -> usize {
        let split = split * SPLIT_CHUNKS..(split + 1) * SPLIT_CHUNKS;
        let (start, end) = (
            self.chunks.start.max(split.start),
            self.chunks.end.min(split.end),
        );
        end.saturating_sub(start) as usize
    }
}

/// One kernel call: tokens of one or more sequences, and query heads that share a KV head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Into [`Work::tokens`].
    pub tokens: Range<u32>,
    /// Into [`Work::segments`].
    pub segments: Range<u32>,
    /// First query head.
    pub head: u32,
    pub heads: u32,
    /// None: all visible positions.
    pub split: Option<Split>,
}

/// A part of a long context, computed separately: positions `index * SPLIT..(index + 1) * SPLIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    pub index: u32,
    /// Number of splits of the task: those in which a token sees a chunk.
    pub count: u32,
    /// The task, as an index into [`Work::arrived`].
    pub slot: u32,
    /// The task's first row among all rows that are computed in splits.
    pub first_row: u32,
}

/// The attention calls of a step, the same in every layer with as many heads and the same window.
#[derive(Debug, Default)]
pub struct Work {
    pub items: Vec<Item>,
    /// For each item, the cost of all items up to it, itself included.
    pub costs: Vec<usize>,
    /// Flat tokens, item by item.
    pub tokens: Vec<u32>,
    pub segments: Vec<Segment>,
    /// For each task that is computed in splits, the number of finished ones, over all its layers.
    pub arrived: Vec<AtomicU32>,
    /// Batch indices of the runs that may share an item with others.
    short: Vec<u32>,
    groups: Vec<Group>,
    /// Rows that are computed in splits.
    split_rows: usize,
    /// Positions that a token sees, up to its own; 0: all. Chunks outside of every token's window are in no segment.
    window: usize,
}

/// Tokens and segments of items that differ only in their heads.
#[derive(Debug)]
struct Group {
    tokens: Range<u32>,
    segments: Range<u32>,
    /// Of all segments.
    cost: usize,
}

/// How a step's groups become items.
struct Division {
    /// Query heads of an item.
    heads: usize,
    /// Whether there are too few items for the workers.
    scarce: bool,
    /// An item of a higher cost is split, so that no worker waits long for another's last item.
    large: usize,
    /// The most rows that may be split.
    most_rows: usize,
}

impl Work {
    /// Reserve memory for steps of up to `rows` rows and `tokens` tokens.
    pub fn with_capacity(rows: usize, tokens: usize, heads: usize) -> Self {
        Self {
            items: Vec::with_capacity(tokens * heads),
            costs: Vec::with_capacity(tokens * heads),
            tokens: Vec::with_capacity(tokens),
            segments: Vec::with_capacity(2 * rows + tokens),
            arrived: Vec::new(),
            short: Vec::with_capacity(rows),
            groups: Vec::with_capacity(tokens),
            split_rows: 0,
            window: 0,
        }
    }

    /// Plan the attention of a step for `workers` workers, for layers with as many heads as `spec` and a window that is no
    /// larger (0 is the largest).
    ///
    /// Runs that begin with the same blocks share items, as many as an item holds. A long context is split if there are too
    /// few items for the workers, or if its item costs more than a quarter of a worker's share of the step. Heads
    /// that share a KV head are separated if there are too few items.
    pub fn plan(&mut self, spec: &AttentionSpec, plan: &Plan, workers: usize) {
        self.items.clear();
        self.tokens.clear();
        self.segments.clear();
        self.arrived.clear();
        self.groups.clear();
        self.split_rows = 0;
        self.window = spec.window;
        let total = plan.token_ids.len();
        let heads = spec.group_size().min(MAX_ROWS);
        // Several items for every worker, but no more loads of a shared prefix than that needs.
        let wanted = wanted_groups(spec, workers);
        let most = (MAX_ROWS / heads).min(total.div_ceil(wanted)).max(1);

        self.short.clear();
        for (index, run) in plan.runs.iter().enumerate() {
            if run.tokens < most {
                self.short.push(index as u32);
                continue;
            }
            for first in (0..run.tokens).step_by(most) {
                let tokens = most.min(run.tokens - first);
                let position = run.first_position + first;
                let chunks = self.first_chunk(position)..(position + tokens).div_ceil(CHUNK);
                let group = self.group(|work| {
                    let start = (run.start + first) as u32;
                    work.tokens.extend(start..start + tokens as u32);
                    work.segments.push(Segment {
                        tokens: 0..tokens as u32,
                        chunks: chunks.start as u32..chunks.end as u32,
                        table: index as u32,
                    });
                });
                self.groups.push(group);
            }
        }
        let mut short = std::mem::take(&mut self.short);
        short.sort_unstable_by(|&a, &b| blocks(plan, a).cmp(blocks(plan, b)));
        let mut rest = short.as_slice();
        while !rest.is_empty() {
            let count = self.group_size(plan, rest, most);
            let (runs, later) = rest.split_at(count);
            let group = self.group(|work| work.add_shared(plan, runs));
            self.groups.push(group);
            rest = later;
        }
        self.short = short;
        self.add_items(spec, total, heads, workers);
        self.order_items();
    }

    /// Add the items of all groups.
    fn add_items(&mut self, spec: &AttentionSpec, tokens: usize, heads: usize, workers: usize) {
        let groups = std::mem::take(&mut self.groups);
        let cost: usize = groups.iter().map(|group| group.cost).sum();
        let few = 4 * workers;
        let division = Division {
            heads,
            scarce: workers > 1 && tokens * spec.num_kv_heads < few,
            large: match workers {
                1 => usize::MAX,
                _ => cost * spec.num_heads / few,
            },
            most_rows: max_split_rows(spec, workers),
        };
        for group in &groups {
            self.add(spec, group, &division);
        }
        self.groups = groups;
    }

    /// Sort the items: the costliest first, so that the workers finish at about the same time.
    fn order_items(&mut self) {
        let cost = |item: &Item| {
            let segments = &self.segments[item.segments.start as usize..item.segments.end as usize];
            let cost_of = |segment: &Segment| match item.split {
                None => segment.cost(),
                Some(split) => segment.tokens.len() * segment.chunks_in(split.index),
            };
            segments.iter().map(cost_of).sum::<usize>() * item.heads as usize
        };
        self.items.sort_unstable_by_key(|item| Reverse(cost(item)));
        self.costs.clear();
        let mut total = 0;
        self.costs.extend(self.items.iter().map(|item| {
            total += cost(item).max(1);
            total
        }));
    }

    /// The tokens and segments that `fill` adds, as a group.
    fn group(&mut self, fill: impl FnOnce(&mut Self)) -> Group {
        let (tokens, segments) = (self.tokens.len() as u32, self.segments.len() as u32);
        fill(self);
        let added = &self.segments[segments as usize..];
        Group {
            tokens: tokens..self.tokens.len() as u32,
            cost: added.iter().map(Segment::cost).sum(),
            segments: segments..self.segments.len() as u32,
        }
    }

    /// Add the tokens and segments of runs that are sorted by their blocks.
    fn add_shared(&mut self, plan: &Plan, runs: &[u32]) {
        let first = self.tokens.len();
        for &run in runs {
            let run = &plan.runs[run as usize];
            self.tokens
                .extend(run.start as u32..(run.start + run.tokens) as u32);
        }
        debug_assert!(self.tokens.len() - first <= MAX_ROWS);
        self.add_segments(plan, runs, 0, 0);
    }

    /// Add the segments of `runs`, whose tokens begin at `token` of the item, from chunk `from` on: first the chunks
    /// that all of them share, then recursively those of each subset that shares more.
    fn add_segments(&mut self, plan: &Plan, runs: &[u32], token: u32, from: usize) {
        let count = |runs: &[u32]| -> u32 {
            runs.iter()
                .map(|&run| plan.runs[run as usize].tokens as u32)
                .sum()
        };
        let (first, last) = (runs[0], runs[runs.len() - 1]);
        let to = if runs.len() == 1 {
            let run = &plan.runs[first as usize];
            (run.first_position + run.tokens).div_ceil(CHUNK)
        } else {
            // Sorted: blocks common to the first and the last are common to all.
            common_chunks(plan, first, last).max(from)
        };
        let earliest = runs
            .iter()
            .map(|&run| plan.runs[run as usize].first_position);
        let visible = from.max(self.first_chunk(earliest.min().unwrap_or(0)));
        if to > visible {
            self.segments.push(Segment {
                tokens: token..token + count(runs),
                chunks: visible as u32..to as u32,
                table: first,
            });
        }
        if runs.len() == 1 {
            return;
        }
        let (mut rest, mut token) = (runs, token);
        while !rest.is_empty() {
            let same = rest
                .iter()
                .take_while(|&&run| run == rest[0] || common_chunks(plan, rest[0], run) > to)
                .count();
            let (part, later) = rest.split_at(same);
            self.add_segments(plan, part, token, to);
            token += count(part);
            rest = later;
        }
    }

    /// Add a group's items: one for each KV head, or more.
    fn add(&mut self, spec: &AttentionSpec, group: &Group, division: &Division) {
        let size = spec.group_size();
        let segments = &self.segments[group.segments.start as usize..group.segments.end as usize];
        let splits = visible_splits(segments);
        let rows = group.tokens.len() * spec.num_heads;
        let wanted = division.scarce || group.cost * division.heads > division.large;
        let split = splits.len() > 1 && wanted && self.split_rows + rows <= division.most_rows;
        let heads = if division.scarce && !split {
            1
        } else {
            division.heads
        };
        for kv_head in 0..spec.num_kv_heads {
            for head in (0..size).step_by(heads) {
                let mut item = Item {
                    tokens: group.tokens.clone(),
                    segments: group.segments.clone(),
                    head: (kv_head * size + head) as u32,
                    heads: heads.min(size - head) as u32,
                    split: None,
                };
                if !split {
                    self.items.push(item);
                    continue;
                }
                let slot = self.arrived.len() as u32;
                let first_row = self.split_rows as u32;
                self.arrived.push(AtomicU32::new(0));
                self.split_rows += group.tokens.len() * item.heads as usize;
                for index in splits.clone() {
                    item.split = Some(Split {
                        index,
                        count: splits.len() as u32,
                        slot,
                        first_row,
                    });
                    self.items.push(item.clone());
                }
            }
        }
    }

    /// The first chunk that a token at `position` sees.
    fn first_chunk(&self, position: usize) -> usize {
        match self.window {
            0 => 0,
            window => (position + 1).saturating_sub(window) / CHUNK,
        }
    }

    /// How many of the sorted `runs` to put into one group: the number that saves the most loads, up to `most` tokens.
    fn group_size(&self, plan: &Plan, runs: &[u32], most: usize) -> usize {
        let (mut best, mut saved) = (1, 0);
        let first = &plan.runs[runs[0] as usize];
        let (mut tokens, mut earliest, mut latest) =
            (first.tokens, first.first_position, first.first_position);
        for count in 2..=runs.len() {
            let run = &plan.runs[runs[count - 1] as usize];
            tokens += run.tokens;
            earliest = earliest.min(run.first_position);
            latest = latest.max(run.first_position);
            // The first chunk that all of them see, and the first that one of them sees.
            let (all, one) = (self.first_chunk(latest), self.first_chunk(earliest));
            let common = common_chunks(plan, runs[0], runs[count - 1]).saturating_sub(all);
            if tokens > most || common == 0 {
                break;
            }
            // Rows also compute, in vain, chunks before their own window.
            let saves = ((count - 1) * common).saturating_sub(count * (all - one));
            if saves >= saved.max(1) {
                (best, saved) = (count, saves);
            }
        }
        best
    }
}

/// The splits in which a token sees a chunk. Tokens share an item only if they see a chunk together, so no split between
/// the first and the last is without one.
fn visible_splits(segments: &[Segment]) -> Range<u32> {
    let starts = segments.iter().map(|segment| segment.chunks.start);
    let ends = segments.iter().map(|segment| segment.chunks.end);
    let (start, end) = (starts.min().unwrap_or(0), ends.max().unwrap_or(0));
    start / SPLIT_CHUNKS..end.div_ceil(SPLIT_CHUNKS)
}

/// The blocks of a run up to its last position.
fn blocks(plan: &Plan, run: u32) -> &[i32] {
    let last = &plan.runs[run as usize];
    let count = (last.first_position + last.tokens).div_ceil(plan.block_size());
    &plan.block_table(run as usize)[..count]
}

/// Number of chunks at the start of two runs' contexts that are in the same blocks.
fn common_chunks(plan: &Plan, a: u32, b: u32) -> usize {
    let same = blocks(plan, a)
        .iter()
        .zip(blocks(plan, b))
        .take_while(|(a, b)| a == b)
        .count();
    same * plan.block_size() / CHUNK
}

/// Groups that make four items for every worker.
fn wanted_groups(spec: &AttentionSpec, workers: usize) -> usize {
    (4 * workers).div_ceil(spec.num_kv_heads)
}

/// The most rows of a step that are computed in splits: all rows of a step with too few items, or one full group.
pub fn max_split_rows(spec: &AttentionSpec, workers: usize) -> usize {
    let scarce = spec.group_size() * wanted_groups(spec, workers);
    spec.num_kv_heads * scarce.max(MAX_ROWS)
}
