"""`RowTable`: the state of every running request, as a numpy structure of arrays.

A request occupies one *row* from admission until it finishes or is preempted. The arrays hold
everything a step needs, so that scheduling, planning and applying a step are numpy expressions over
rows. Hot path: do not add a Python loop over rows to the step. `place` and `release` run once per
admission, preemption or finish.

Only the engine's thread writes, except for `drained`. Readers copy through `engine.batch.mailbox`.
"""

import heapq
from math import isnan

import numpy as np
from numpy.typing import NDArray

from engine.api.image import PlacedImage
from engine.api.request import Timings
from engine.batch.breaker_rows import BreakerRows
from engine.batch.grammar_rows import GrammarRows
from engine.batch.outputs import Outputs
from engine.batch.request_record import REQUEST_DTYPE, WaitingColumns
from engine.batch.sequence import NO_ROW, Sequence, SequenceState
from engine.batch.token_id_logprobs import TokenIdLogprobs
from engine.batch.top_logprobs import TopLogprobs
from engine.executors.base import MAX_DRAFT_TOKENS, SAMPLING_DTYPE
from engine.text.detokenizer import Detokenizer

DEFAULT_STOP_IDS = 16
_NO_LOGPROBS: NDArray[np.float32] = np.zeros(0, np.float32)
_NO_TOPS = np.zeros((0, 0), np.int32), np.zeros((0, 0), np.float32)


class RowTable:
    """Arrays indexed by row; `max_rows` rows of `max_model_len` tokens.

    The large tables take no resident memory until they are written, and the lowest free row is used
    first, so resident memory grows with the number of requests that ran at once.

    Attributes:
        token_table: [max_rows, max_model_len] int32, prompt and output tokens by position.
        logprob_table: [max_rows, max_model_len] float32, logprobs of output tokens, where requested.
        top_logprobs: alternatives of output tokens, where requested.
        token_id_logprobs: logprobs of chosen token ids at output positions, where requested.
        drafted_table: [max_rows, max_model_len] bool, whether an output token is an accepted draft token.
        num_tokens: [max_rows] int32, valid tokens in `token_table`. Raised last: this publishes tokens
            to readers.
        num_computed: [max_rows] int32, tokens whose KV is in the row's blocks.
        num_prompt_tokens: [max_rows] int32, tokens of the prompt.
        penalty_start: [max_rows] int32, position from which penalties count tokens as output: the
            prompt length, or for a fork that of its oldest ancestor.
        max_total: [max_rows] int32, number of tokens at which the row finishes.
        num_blocks: [max_rows] int32, valid entries of `block_tables`.
        block_tables: [max_rows, max_blocks] int32, block index in the row to block id; -1 beyond
            `num_blocks`.
        num_indexed: [max_rows] int32, leading blocks that are in the prefix cache.
        stop_ids: [max_rows, max_stop_ids] int32, stop token ids, padded with -1.
        sampling: [max_rows] of `SAMPLING_DTYPE`.
        may_draft: [max_rows] bool, whether draft tokens may be proposed for the row.
        prompt_counted: [max_rows] int32, prompt tokens already counted in the metrics.
        records: [max_rows] of `REQUEST_DTYPE`; its token counts are those at admission.
        arrival, priority, service_class, queued_at, deadline: [max_rows] views of `records`.
        scheduled_at, first_token_at, last_token_at: [max_rows] float64, monotonic seconds, NaN before.
        drained: [max_rows] bool, set by readers: every output was read.
        sequences: row to its sequence, None for a free row.
        bias_rows, bias_ids, bias_values: [B] int32, int32, float32, logit biases of all rows, sorted
            by row.
        scoring_rows: row to sequence, for rows that compute prompt logprobs.
        cache_salts: row to the digest of its cache salt, for rows with one.
        images: row to its images, for rows with images.
        uncomputed_images: the same for rows that may have to compute one.
        breakers: sequence breakers of the rows with a DRY penalty.
        stop_string_rows: row to sequence and detokenizer, for rows with stop strings.
        grammars: matchers of the rows with a grammar.
        logprob_rows, top_rows: number of rows with logprobs, and with alternatives.
    """

    def __init__(
        self,
        *,
        max_rows: int,
        max_model_len: int,
        block_size: int,
        max_stop_ids: int = DEFAULT_STOP_IDS,
    ) -> None:
        self.max_rows = max_rows
        self.max_model_len = max_model_len
        self.block_size = block_size
        max_blocks = -(-max_model_len // block_size)
        self.token_table = np.zeros((max_rows, max_model_len), np.int32)
        self.logprob_table = np.zeros((max_rows, max_model_len), np.float32)
        self.top_logprobs = TopLogprobs(max_rows)
        self.token_id_logprobs = TokenIdLogprobs()
        self.drafted_table = np.zeros((max_rows, max_model_len), np.bool_)
        self.num_tokens = np.zeros(max_rows, np.int32)
        self.num_computed = np.zeros(max_rows, np.int32)
        self.num_prompt_tokens = np.zeros(max_rows, np.int32)
        self.penalty_start = np.zeros(max_rows, np.int32)
        self.max_total = np.zeros(max_rows, np.int32)
        self.num_blocks = np.zeros(max_rows, np.int32)
        self.block_tables = np.full((max_rows, max_blocks), -1, np.int32)
        self.num_indexed = np.zeros(max_rows, np.int32)
        self.stop_ids = np.full((max_rows, max_stop_ids), -1, np.int32)
        self.sampling = np.zeros(max_rows, SAMPLING_DTYPE)
        self.may_draft = np.zeros(max_rows, np.bool_)
        self.prompt_counted = np.zeros(max_rows, np.int32)
        self.records: NDArray[np.void] = np.zeros(max_rows, REQUEST_DTYPE)
        self.arrival: NDArray[np.int64] = self.records["arrival"]
        self.priority: NDArray[np.int32] = self.records["priority"]
        self.service_class: NDArray[np.int8] = self.records["service_class"]
        self.queued_at: NDArray[np.float64] = self.records["queued_at"]
        self.deadline: NDArray[np.float64] = self.records["deadline"]
        self.scheduled_at = np.full(max_rows, np.nan)
        self.first_token_at = np.full(max_rows, np.nan)
        self.last_token_at = np.full(max_rows, np.nan)
        self.drained = np.zeros(max_rows, np.bool_)
        self.sequences: list[Sequence | None] = [None] * max_rows
        self.bias_rows = np.zeros(0, np.int32)
        self.bias_ids = np.zeros(0, np.int32)
        self.bias_values = np.zeros(0, np.float32)
        self.breakers = BreakerRows(self.sampling)
        self.scoring_rows: dict[int, Sequence] = {}
        self.cache_salts: dict[int, bytes] = {}
        self.images: dict[int, tuple[PlacedImage, ...]] = {}
        self.uncomputed_images: dict[int, tuple[PlacedImage, ...]] = {}
        self.stop_string_rows: dict[int, tuple[Sequence, Detokenizer]] = {}
        self.grammars = GrammarRows(max_rows)
        self.logprob_rows = 0
        self.top_rows = 0
        self._free = list(range(max_rows))

    @property
    def num_free(self) -> int:
        """Number of free rows."""
        return len(self._free)

    def place(self, sequence: Sequence, now: float) -> int:
        """Assign a sequence the lowest free row, without blocks; returns the row."""
        row = heapq.heappop(self._free)
        count = len(sequence.tokens)
        self.token_table[row, :count] = sequence.tokens
        self.num_prompt_tokens[row] = sequence.num_prompt
        self.penalty_start[row] = sequence.penalty_start
        self.num_computed[row] = 0
        self.max_total[row] = sequence.max_total
        self.stop_ids[row] = -1
        self.stop_ids[row, : len(sequence.stop_ids)] = sequence.stop_ids
        self.sampling[row] = sequence.sampling
        # A token mask, and the logprobs of chosen token ids, cover one position.
        self.may_draft[row] = sequence.matcher is None and not sequence.logprob_ids.size
        self.prompt_counted[row] = sequence.prompt_counted
        self.records[row] = sequence.record
        self.drained[row] = True
        self._restore(row, sequence, now)
        self.num_tokens[row] = count
        self.sequences[row] = sequence
        sequence.row = row
        sequence.move_to(SequenceState.RUNNING)
        self._update_feature_rows(row, sequence, 1)
        if sequence.bias_ids.size:
            at = int(np.searchsorted(self.bias_rows, row))
            self.bias_rows = np.insert(self.bias_rows, at, [row] * len(sequence.bias_ids))
            self.bias_ids = np.insert(self.bias_ids, at, sequence.bias_ids)
            self.bias_values = np.insert(self.bias_values, at, sequence.bias_values)
        sequence.mailbox.place(self, row)
        return row

    def assign_prefix_blocks(
        self, row: int, blocks: NDArray[np.int32], *, computed: int, indexed: int
    ) -> None:
        """Set the first blocks of a row that was just placed; the row takes over the caller's references.

        Args:
            row: the row.
            blocks: [B] int32, in sequence order.
            computed: tokens whose KV they hold; fewer than the row has.
            indexed: how many leading blocks are in the prefix cache.
        """
        self.block_tables[row, : len(blocks)] = blocks
        self.num_blocks[row] = len(blocks)
        self.num_computed[row] = computed
        self.num_indexed[row] = indexed
        found = min(computed, int(self.num_prompt_tokens[row]))
        self.prompt_counted[row] = max(int(self.prompt_counted[row]), found)

    def release(self, row: int) -> NDArray[np.int32]:
        """Free a row: save the sequence's tokens and detach its outputs into the mailbox.

        Returns:
            The blocks it held, in sequence order; the caller frees them.
        """
        sequence = self.sequence(row)
        sequence.tokens = self.token_table[row, : self.num_tokens[row]].copy()
        sequence.prompt_counted = int(self.prompt_counted[row])
        sequence.kept = sequence.mailbox.detach()
        sequence.row = NO_ROW
        # Steps without drafts do not write this table. A stop string may have cut off marked tokens.
        written = slice(sequence.num_prompt, self.num_tokens.item(row) + MAX_DRAFT_TOKENS)
        self.drafted_table[row, written] = False
        blocks = self.block_tables[row, : self.num_blocks[row]].copy()
        self.block_tables[row, : len(blocks)] = -1
        self.num_blocks[row] = 0
        self.num_tokens[row] = 0
        self.num_computed[row] = 0
        self.num_indexed[row] = 0
        self._update_feature_rows(row, sequence, -1)
        if sequence.bias_ids.size:
            others = self.bias_rows != row
            self.bias_rows = self.bias_rows[others]
            self.bias_ids = self.bias_ids[others]
            self.bias_values = self.bias_values[others]
        self.sequences[row] = None
        heapq.heappush(self._free, row)
        return blocks

    def sequence(self, row: int) -> Sequence:
        """The sequence in an occupied row."""
        sequence = self.sequences[row]
        if sequence is None:
            raise AssertionError(f"row {row} holds no request")
        return sequence

    def columns(self, rows: NDArray[np.int32]) -> WaitingColumns:
        """The request records of running rows, with current token counts; `rows` is [n] int32."""
        records, num_tokens = self.records[rows], self.num_tokens[rows]
        records["num_pending_tokens"] = num_tokens - self.num_computed[rows]
        records["cached_tokens_hint"] = 0
        records["max_new_tokens"] = self.max_total[rows] - num_tokens
        records["has_first_token"] = ~np.isnan(self.first_token_at[rows])
        return WaitingColumns.of(records)

    # ---- readers, on their own threads; see `engine.batch.mailbox` ----

    def copy_outputs(self, row: int, start: int, num_logprobs: int | None) -> Outputs:
        """Copy the outputs of a row from output position `start` on. Any thread.

        Args:
            row: the row.
            start: how many outputs to skip.
            num_logprobs: None without logprobs, else how many alternatives in addition.
        """
        prompt = self.num_prompt_tokens.item(row)
        stop = self.num_tokens.item(row)
        begin = min(prompt + start, stop)
        logprobs, tops = _NO_LOGPROBS, _NO_TOPS
        if num_logprobs is not None:
            logprobs = self.logprob_table[row, begin:stop].copy()
        if num_logprobs:
            tops = self.top_logprobs.copy(row, begin - prompt, stop - prompt, num_logprobs)
        elif num_logprobs is not None:
            tops = np.zeros((stop - begin, 0), np.int32), np.zeros((stop - begin, 0), np.float32)
        return Outputs(
            ids=self.token_table[row, begin:stop].copy(),
            logprobs=logprobs,
            top_ids=tops[0],
            top_logprobs=tops[1],
            token_id_logprobs=self.token_id_logprobs.copy(row, begin - prompt, stop - prompt),
            drafted=self.drafted_table[row, begin:stop].copy(),
            timings=self.timings(row),
        )

    def num_outputs(self, row: int) -> int:
        """Number of tokens the row has generated. Any thread."""
        return self.num_tokens.item(row) - self.num_prompt_tokens.item(row)

    def mark_drained(self, row: int) -> None:
        """Record that a reader is about to copy every output of the row. Any thread."""
        self.drained[row] = True

    def timings(self, row: int) -> Timings:
        """The row's timestamps."""
        return Timings(
            queued=self.queued_at.item(row),
            scheduled=_instant(self.scheduled_at.item(row)),
            first_token=_instant(self.first_token_at.item(row)),
            last_token=_instant(self.last_token_at.item(row)),
        )

    def _restore(self, row: int, sequence: Sequence, now: float) -> None:
        """Set timestamps, logprobs and draft marks: initial values, or those saved at preemption."""
        kept = sequence.kept
        if kept is None:
            self.scheduled_at[row] = now
            self.first_token_at[row] = np.nan
            self.last_token_at[row] = np.nan
            return
        timings = kept.timings
        self.scheduled_at[row] = now if timings.scheduled is None else timings.scheduled
        self.first_token_at[row] = np.nan if timings.first_token is None else timings.first_token
        self.last_token_at[row] = np.nan if timings.last_token is None else timings.last_token
        start = sequence.num_prompt
        self.drafted_table[row, start : start + len(kept.drafted)] = kept.drafted
        if kept.logprobs.size:
            self.logprob_table[row, start : start + len(kept.logprobs)] = kept.logprobs
        if kept.top_ids.size:
            self.top_logprobs.restore(row, kept.top_ids, kept.top_logprobs)

    def _update_feature_rows(self, row: int, sequence: Sequence, change: int) -> None:
        wanted = sequence.mailbox.num_logprobs
        self.logprob_rows += change * (wanted is not None)
        self.top_rows += change * bool(wanted)
        if sequence.logprob_ids.size:
            if change > 0:
                kept = sequence.kept
                values = _NO_TOPS[1] if kept is None else kept.token_id_logprobs
                self.token_id_logprobs.place(row, sequence.logprob_ids, values)
            else:
                self.token_id_logprobs.release(row)
        scores = sequence.mailbox.prompt_scores
        if change < 0:
            self.scoring_rows.pop(row, None)
        elif scores is not None and not scores.complete:
            self.scoring_rows[row] = scores.scorer = sequence
        if sequence.cache_salt:
            if change > 0:
                self.cache_salts[row] = sequence.cache_salt
            else:
                del self.cache_salts[row]
        if sequence.request.images:
            if change > 0:
                self.images[row] = self.uncomputed_images[row] = sequence.request.images
            else:
                del self.images[row]
                self.uncomputed_images.pop(row, None)
        if sequence.detokenizer is not None:
            if change > 0:
                self.stop_string_rows[row] = (sequence, sequence.detokenizer)
            else:
                del self.stop_string_rows[row]
        if sequence.breakers is not None:
            if change > 0:
                self.breakers.place(row, sequence.breakers)
            else:
                self.breakers.release(row)
        if sequence.matcher is not None:
            if change > 0:
                self.grammars.place(row, sequence.matcher)
            else:
                self.grammars.release(row)


def _instant(seconds: float) -> float | None:
    return None if isnan(seconds) else seconds
