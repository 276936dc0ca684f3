//! Steady rows: rows that decode one token per step, after their prompt.
//!
//! Hot path. A step leaves the CPU caches full of weights, so the cost of the code between two steps is the number of
//! cache lines it touches: here a few per row, in one pass. Allocates memory only for rows that finish or fill a block.

use crate::TokenId;
use crate::prompt_lookup::find;

/// The rows, and the row-indexed arrays of the engine that a steady step reads or changes.
///
/// Every array has as many rows as `num_tokens`; see `RowTable` in `engine/batch/rows.py`.
#[derive(Debug)]
pub struct SteadyRows<'a> {
    /// The rows of the step, each once.
    pub rows: &'a [i32],
    /// `[max_rows, max_model_len]`
    pub token_table: &'a mut [TokenId],
    /// `[max_rows, max_blocks]`
    pub block_tables: &'a mut [i32],
    pub num_tokens: &'a mut [i32],
    pub num_computed: &'a mut [i32],
    pub num_blocks: &'a mut [i32],
    pub num_indexed: &'a [i32],
    pub max_total: &'a [i32],
    /// `[max_rows, max_stop_ids]`, padded with -1.
    pub stop_ids: &'a [TokenId],
    /// Seconds; NaN before a row's first token.
    pub last_token_at: &'a mut [f64],
    /// Set by the readers of a row when they have read all its tokens.
    pub drained: &'a mut [bool],
    /// Tokens in a block.
    pub block_size: usize,
}

/// The effects of a step's tokens.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Advance {
    /// Number of tokens that the step's tokens attended to, over all rows.
    pub kv_tokens: u64,
    /// Rows that finish, and whether by a stop token; a row that also reached its length counts as stopped.
    pub finished: Vec<(i32, bool)>,
    /// Rows that filled a block, with the half-open range of their full blocks that are not indexed: (row, start, end).
    pub filled: Vec<(i32, i32, i32)>,
}

impl SteadyRows<'_> {
    /// Whether the arrays have consistent lengths and every row exists. A precondition of the other methods, which
    /// panic otherwise.
    pub fn fits(&self) -> bool {
        let count = self.num_tokens.len();
        let whole = |len: usize| count > 0 && len.is_multiple_of(count);
        self.block_size > 0
            && whole(self.token_table.len())
            && whole(self.block_tables.len())
            && whole(self.stop_ids.len())
            && self.num_computed.len() == count
            && self.num_blocks.len() == count
            && self.num_indexed.len() == count
            && self.max_total.len() == count
            && self.last_token_at.len() == count
            && self.drained.len() == count
            && self
                .rows
                .iter()
                .all(|&row| (0..count as i64).contains(&i64::from(row)))
    }

    /// Entries of a row of the token table.
    fn width(&self) -> usize {
        self.token_table.len() / self.num_tokens.len()
    }

    /// Whether the row has computed all its tokens but the last, and its table has room for another token.
    fn is_steady(&self, row: usize) -> bool {
        let known = self.num_tokens[row];
        known > 0
            && (known as usize) < self.width()
            && self.num_computed[row] == known - 1
            && !self.last_token_at[row].is_nan()
    }

    /// Fills in the next step: the last token of each row, and its position.
    ///
    /// Returns how many rows have no block for that token, or None if some row is not steady.
    pub fn look_up(&self, token_ids: &mut [TokenId], positions: &mut [i32]) -> Option<usize> {
        let mut lacking = 0;
        let places = token_ids.iter_mut().zip(positions);
        for (&row, (token_id, position)) in self.rows.iter().zip(places) {
            let row = row as usize;
            if !self.is_steady(row) {
                return None;
            }
            let at = self.num_computed[row] as usize;
            *token_id = self.token_table[row * self.width() + at];
            *position = at as i32;
            lacking += usize::from(self.lacks_block(row));
        }
        Some(lacking)
    }

    fn lacks_block(&self, row: usize) -> bool {
        self.num_computed[row] as usize / self.block_size >= self.num_blocks[row].max(0) as usize
    }

    /// Whether the last `min_match` tokens of some row occur in it earlier, so that its next ones can be drafted; see
    /// [`crate::prompt_lookup`].
    pub fn repeats(&self, min_match: usize) -> bool {
        self.rows.iter().any(|&row| {
            let (row, width) = (row as usize, self.width());
            let known = (self.num_tokens[row].max(0) as usize).min(width);
            find(
                &self.token_table[row * width..][..known],
                min_match,
                min_match,
            )
            .is_some()
        })
    }

    /// Appends one of `blocks` to each row that has no block for its next token.
    ///
    /// Returns false, with nothing changed, if there are more or fewer blocks than such rows, or a table is full.
    pub fn append_blocks(&mut self, blocks: &[i32]) -> bool {
        let most = self.block_tables.len() / self.num_tokens.len();
        let lacking = |row: &&i32| self.lacks_block(**row as usize);
        let room =
            |row: &i32| (0..most as i64).contains(&i64::from(self.num_blocks[*row as usize]));
        let sound = self.rows.iter().filter(lacking).all(room);
        if !sound || self.rows.iter().filter(lacking).count() != blocks.len() {
            return false;
        }
        let mut blocks = blocks.iter();
        for &row in self.rows {
            let row = row as usize;
            if self.lacks_block(row)
                && let Some(&block) = blocks.next()
            {
                self.block_tables[row * most + self.num_blocks[row] as usize] = block;
                self.num_blocks[row] += 1;
            }
        }
        true
    }

    /// Whether some row was marked as drained. Clears the marks.
    pub fn take_drained(&mut self) -> bool {
        let take = |&row: &i32| std::mem::take(&mut self.drained[row as usize]);
        self.rows.iter().map(take).fold(false, |any, one| any | one)
    }

    /// Appends each row's sampled token; a row's `num_tokens` is raised last.
    ///
    /// `sampled` and `latencies` have one entry for each of `rows`; the latter is filled with the inter-token latencies:
    /// seconds since the row's previous token.
    ///
    /// Returns None, with nothing changed, if a row has no sampled token or is not steady.
    pub fn advance(
        &mut self,
        sampled: &[TokenId],
        now: f64,
        latencies: &mut [f64],
    ) -> Option<Advance> {
        if sampled.len() != self.rows.len() {
            return None;
        }
        let sound = |(&row, &token): (&i32, &TokenId)| token >= 0 && self.is_steady(row as usize);
        if !self.rows.iter().zip(sampled).all(sound) {
            return None;
        }
        let width = self.width();
        let stops = self.stop_ids.len() / self.num_tokens.len();
        let mut change = Advance::default();
        for ((&id, &token), latency) in self.rows.iter().zip(sampled).zip(latencies) {
            let row = id as usize;
            let known = self.num_tokens[row];
            *latency = now - self.last_token_at[row];
            self.last_token_at[row] = now;
            self.token_table[row * width + known as usize] = token;
            self.num_computed[row] = known;
            change.kv_tokens += known as u64;
            let full = known / self.block_size as i32;
            if (known as usize).is_multiple_of(self.block_size) && full > self.num_indexed[row] {
                change.filled.push((id, self.num_indexed[row], full));
            }
            let stopped = self.stop_ids[row * stops..][..stops].contains(&token);
            if stopped || known + 1 >= self.max_total[row] {
                change.finished.push((id, stopped));
            }
            self.num_tokens[row] = known + 1;
        }
        Some(change)
    }
}
