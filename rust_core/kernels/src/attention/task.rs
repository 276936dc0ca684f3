//! The arguments of one kernel call.

use std::ops::Range;

use super::prefetch::Tiles;
use super::visible::Visible;
use super::{CHUNK, MAX_ROWS, Segment};
use crate::kv_cache::KvLayer;
use crate::simd::{LANES, prefetch_for_writing, prefetch_line};

/// Queries of some tokens and of some heads that share a KV head. Rows are ordered by token, `heads` per token.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// Its keys and values.
    pub kv: &'a KvLayer,
    pub kv_head: usize,
    /// First query head.
    pub head: usize,
    /// Tokens times heads is at most [`MAX_ROWS`].
    pub heads: usize,
    /// Sliding window: the last `window` positions, a token's own included, are visible; 0: all positions. No larger
    /// than the window that the segments were planned for.
    pub window: usize,
    /// Multiplied into every score.
    pub scale: f32,
    /// A score `s`, after `scale`, becomes `softcap * tanh(s / softcap)`; 0: it stays as it is.
    pub softcap: f32,
    /// For every query head of the layer, a score without a value: it takes part in the softmax only.
    pub sinks: Option<&'a [f32]>,
    /// Flat indices of the tokens.
    pub tokens: &'a [u32],
    /// Position of every flat token.
    pub positions: &'a [i32],
    /// Which tokens read which chunks; each token's chunks in order and up to its own position.
    pub segments: &'a [Segment],
    /// Block tables of all sequences, `table_width` entries each.
    pub tables: &'a [i32],
    pub table_width: usize,
    /// First head of flat token 0: `[tokens, q_token_stride]`, heads `q_head_stride` apart.
    pub q: *const f32,
    pub q_token_stride: usize,
    pub q_head_stride: usize,
    /// As for `q`; heads are `head_dim` apart.
    pub out: *mut f32,
    pub out_token_stride: usize,
}

impl Task<'_> {
    pub fn rows(&self) -> usize {
        let rows = self.tokens.len() * self.heads;
        assert!(rows <= MAX_ROWS && rows > 0);
        rows
    }

    pub(super) fn position(&self, token: usize) -> usize {
        self.positions[self.tokens[token] as usize] as usize
    }

    /// The first and the last position among the tokens of a segment.
    pub(super) fn span(&self, segment: &Segment) -> (usize, usize) {
        let (mut first, mut last) = (usize::MAX, 0);
        for token in segment.tokens.clone() {
            let position = self.position(token as usize);
            first = first.min(position);
            last = last.max(position);
        }
        (first, last)
    }

    /// The positions that a token sees of the chunk that begins at position `start`.
    pub(super) fn visible(&self, token: usize, start: usize) -> Visible {
        let position = self.position(token);
        let first = self.first_visible(position);
        Visible {
            first: first.saturating_sub(start).min(CHUNK),
            end: (position + 1).saturating_sub(start).min(CHUNK),
        }
    }

    /// The first position that a token at `position` sees.
    pub(super) fn first_visible(&self, position: usize) -> usize {
        match self.window {
            0 => 0,
            window => (position + 1).saturating_sub(window),
        }
    }

    /// The tiles of the chunk that begins at position `start`, up to position `last`.
    pub(super) fn tiles(&self, segment: &Segment, start: usize, last: usize) -> Tiles {
        let block_size = self.kv.block_size;
        let table = &self.tables[segment.table as usize * self.table_width..][..self.table_width];
        let (mut at, mut slot) = (start / block_size, start % block_size);
        let positions = CHUNK.min((last + 1).saturating_sub(start));
        let head = self.kv.head(self.kv_head);
        Tiles::new(self.kv, positions, || {
            let tile = head.tile(table[at] as usize, slot).cast_const();
            slot += LANES;
            if slot == block_size {
                (at, slot) = (at + 1, 0);
            }
            tile
        })
    }

    /// The chunks of a segment that one of its tokens sees, the first of which is at position `earliest`.
    pub(super) fn visible_chunks(&self, segment: &Segment, earliest: usize) -> Range<usize> {
        let first = self.first_visible(earliest) / CHUNK;
        first.max(segment.chunks.start as usize)..segment.chunks.end as usize
    }

    /// The tiles of the first chunk that is read of a segment; None if none is.
    pub(super) fn first_tiles_of(&self, segment: &Segment) -> Option<Tiles> {
        let (earliest, latest) = self.span(segment);
        let chunks = self.visible_chunks(segment, earliest);
        let start = chunks.start * CHUNK;
        (!chunks.is_empty() && start <= latest).then(|| self.tiles(segment, start, latest))
    }

    /// The tiles of this task's first chunk.
    pub(super) fn first_tiles(&self) -> Tiles {
        let first = self.segments.first();
        first
            .and_then(|segment| self.first_tiles_of(segment))
            .unwrap_or(Tiles::NONE)
    }

    /// The sink of row `row` as a base-2 score.
    pub(super) fn sink(&self, row: usize) -> Option<f32> {
        let sinks = self.sinks?;
        Some(sinks[self.head + row % self.heads] * std::f32::consts::LOG2_E)
    }

    /// Prefetch the query of row `row`, which another core may have projected.
    #[inline(always)]
    pub(super) fn prefetch_query(&self, row: usize, head_dim: usize) {
        let query = self.q.wrapping_add(self.offsets(row, head_dim).0);
        for at in (0..head_dim).step_by(LANES) {
            prefetch_line(query.wrapping_add(at).cast());
        }
    }

    /// Prefetch the output of row `row` for writing; its lines may be in another core's cache.
    #[inline(always)]
    pub(super) fn prefetch_output(&self, row: usize, head_dim: usize) {
        let result = self.out.wrapping_add(self.offsets(row, head_dim).1);
        for at in (0..head_dim).step_by(LANES) {
            prefetch_for_writing(result.wrapping_add(at).cast());
        }
    }

    /// Offsets of row `row` from `q` and `out`.
    pub(super) fn offsets(&self, row: usize, head_dim: usize) -> (usize, usize) {
        let token = self.tokens[row / self.heads] as usize;
        let head = self.head + row % self.heads;
        (
            token * self.q_token_stride + head * self.q_head_stride,
            token * self.out_token_stride + head * head_dim,
        )
    }
}
