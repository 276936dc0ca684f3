//! Which rows a step's attention computes together.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

use super::{CHUNK, MAX_ROWS, SPLIT};
use crate::plan::Plan;
use crate::spec::ModelSpec;

/// Chunks that some neighbouring tokens of an item read from the blocks of one sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Within the item's tokens.
    pub tokens: Range<u32>,
    pub chunks: Range<u32>,
    /// Batch index of the sequence.
    pub table: u32,
}

/// One kernel call: tokens of one or several sequences, and heads that share a KV head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Into [`Work::tokens`].
    pub tokens: Range<u32>,
    /// Into [`Work::segments`].
    pub segments: Range<u32>,
    /// First query head.
    pub head: u32,
    pub heads: u32,
    /// None: all positions.
    pub split: Option<Split>,
}

/// A part of a long context, computed for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    pub index: u32,
    /// How many there are.
    pub count: u32,
    /// Whose they are: an index into [`Work::arrived`].
    pub slot: u32,
}

/// A step's attention calls: the same ones in every layer.
#[derive(Debug, Default)]
pub struct Work {
    pub items: Vec<Item>,
    /// Flat tokens, item by item.
    pub tokens: Vec<u32>,
    pub segments: Vec<Segment>,
    /// One a task that is computed in splits: how many of them arrived, over all layers.
    pub arrived: Vec<AtomicU32>,
    /// Batch indices of the runs that may share an item.
    short: Vec<u32>,
}

/// Tokens whose items share everything but their heads.
struct Group {
    tokens: Range<u32>,
    segments: Range<u32>,
    chunks: usize,
}

impl Work {
    /// Room for steps of so many rows and tokens.
    pub fn with_capacity(rows: usize, tokens: usize, heads: usize) -> Self {
        Self {
            items: Vec::with_capacity(tokens * heads),
            tokens: Vec::with_capacity(tokens),
            segments: Vec::with_capacity(2 * rows + tokens),
            arrived: Vec::new(),
            short: Vec::with_capacity(rows),
        }
    }

    /// Plan the attention of a step for `workers` workers.
    ///
    /// Runs that begin with the same blocks are put together, as many as an item holds; with too few items
    /// for the workers, long contexts are split, and heads that share a KV head separated.
    pub fn plan(&mut self, spec: &ModelSpec, plan: &Plan, workers: usize) {
        self.items.clear();
        self.tokens.clear();
        self.segments.clear();
        self.arrived.clear();
        let total = plan.token_ids.len();
        let scarce = workers > 1 && total * spec.num_kv_heads < 4 * workers;
        let heads = spec.group_size().min(MAX_ROWS);
        // Enough items for every worker to have several, but no more copies of a prefix than that takes.
        let wanted = (4 * workers).div_ceil(spec.num_kv_heads);
        let most = (MAX_ROWS / heads).min(total.div_ceil(wanted)).max(1);

        self.short.clear();
        for (index, run) in plan.runs.iter().enumerate() {
            if run.tokens < most {
                self.short.push(index as u32);
                continue;
            }
            for first in (0..run.tokens).step_by(most) {
                let tokens = most.min(run.tokens - first);
                let chunks = (run.first_position + first + tokens).div_ceil(CHUNK);
                let group = self.group(|work| {
                    let start = (run.start + first) as u32;
                    work.tokens.extend(start..start + tokens as u32);
                    work.segments.push(Segment {
                        tokens: 0..tokens as u32,
                        chunks: 0..chunks as u32,
                        table: index as u32,
                    });
                });
                self.add(spec, group, heads, scarce);
            }
        }
        let mut short = std::mem::take(&mut self.short);
        short.sort_unstable_by(|&a, &b| blocks(plan, a).cmp(blocks(plan, b)));
        let mut rest = short.as_slice();
        while !rest.is_empty() {
            let count = together(plan, rest, most);
            let (runs, later) = rest.split_at(count);
            let group = self.group(|work| work.add_family(plan, runs));
            self.add(spec, group, heads, scarce);
            rest = later;
        }
        self.short = short;
        // The longest calls first, so that the last ones to end are short.
        self.items.sort_unstable_by_key(|item| {
            let segments = &self.segments[item.segments.start as usize..item.segments.end as usize];
            let whole: u32 = segments
                .iter()
                .map(|s| s.tokens.len() as u32 * s.chunks.len() as u32)
                .sum();
            Reverse(whole * item.heads / item.split.map_or(1, |split| split.count))
        });
    }

    /// What `fill` adds, as a group.
    fn group(&mut self, fill: impl FnOnce(&mut Self)) -> Group {
        let (tokens, segments) = (self.tokens.len() as u32, self.segments.len() as u32);
        fill(self);
        let segments = segments..self.segments.len() as u32;
        let ends = self.segments[segments.start as usize..].iter();
        Group {
            tokens: tokens..self.tokens.len() as u32,
            chunks: ends.map(|s| s.chunks.end as usize).max().unwrap_or(0),
            segments,
        }
    }

    /// The tokens of runs that are sorted by their blocks, and who reads what of them.
    fn add_family(&mut self, plan: &Plan, runs: &[u32]) {
        let first = self.tokens.len();
        for &run in runs {
            let run = &plan.runs[run as usize];
            self.tokens
                .extend(run.start as u32..(run.start + run.tokens) as u32);
        }
        debug_assert!(self.tokens.len() - first <= MAX_ROWS);
        self.share(plan, runs, 0, 0);
    }

    /// Segments of `runs`, whose tokens begin at `token` of the item, from chunk `from` on: what all of
    /// them share, then each part of them that goes on together.
    fn share(&mut self, plan: &Plan, runs: &[u32], token: u32, from: usize) {
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
            // Sorted: what the first and the last have in common, all have.
            common_chunks(plan, first, last).max(from)
        };
        if to > from {
            self.segments.push(Segment {
                tokens: token..token + count(runs),
                chunks: from as u32..to as u32,
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
            self.share(plan, part, token, to);
            token += count(part);
            rest = later;
        }
    }

    /// A group's items: one a KV head, or more where items are scarce.
    fn add(&mut self, spec: &ModelSpec, group: Group, heads: usize, scarce: bool) {
        let size = spec.group_size();
        let splits = (group.chunks * CHUNK).div_ceil(SPLIT);
        let split = scarce && splits > 1;
        let heads = if scarce && !split { 1 } else { heads };
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
                self.arrived.push(AtomicU32::new(0));
                for index in 0..splits as u32 {
                    item.split = Some(Split {
                        index,
                        count: splits as u32,
                        slot,
                    });
                    self.items.push(item.clone());
                }
            }
        }
    }
}

/// A run's blocks up to its last position.
fn blocks(plan: &Plan, run: u32) -> &[i32] {
    let last = &plan.runs[run as usize];
    let count = (last.first_position + last.tokens).div_ceil(plan.block_size());
    &plan.block_table(run as usize)[..count]
}

/// Chunks at the start of two runs' contexts that stand in the same blocks.
fn common_chunks(plan: &Plan, a: u32, b: u32) -> usize {
    let same = blocks(plan, a)
        .iter()
        .zip(blocks(plan, b))
        .take_while(|(a, b)| a == b)
        .count();
    same * plan.block_size() / CHUNK
}

/// How many of `runs`, which are sorted, to put together: as many as save the most reads, up to `most` tokens.
fn together(plan: &Plan, runs: &[u32], most: usize) -> usize {
    let (mut best, mut saved) = (1, 0);
    let mut tokens = plan.runs[runs[0] as usize].tokens;
    for count in 2..=runs.len() {
        tokens += plan.runs[runs[count - 1] as usize].tokens;
        let common = common_chunks(plan, runs[0], runs[count - 1]);
        if tokens > most || common == 0 {
            break;
        }
        if (count - 1) * common >= saved {
            (best, saved) = (count, (count - 1) * common);
        }
    }
    best
}

/// How many tasks of a step are computed in splits at most, and how many rows one has at most.
pub fn most_split_tasks(spec: &ModelSpec, workers: usize) -> (usize, usize) {
    // Tokens of a step whose items are scarce: fewer than `4 * workers / num_kv_heads`.
    let tokens = (4 * workers).div_ceil(spec.num_kv_heads);
    let rows = spec.group_size() * tokens;
    let tasks = tokens * spec.num_kv_heads * spec.group_size().div_ceil(MAX_ROWS);
    (tasks, rows.min(MAX_ROWS))
}
