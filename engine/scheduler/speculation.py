"""`Speculation`: speculative decoding with draft tokens from prompt lookup.

Prompt lookup (Saxena 2023) drafts the tokens that followed an earlier occurrence of a row's last
tokens. A step reads the weights once whatever its batch, so verifying a few draft tokens per row is
cheap. The executor samples at every draft token exactly as without drafts and discards the rest after
the first mismatch, so drafts change the number of steps and not the output. They help where text is
repeated: edits, code, quotations, tables.

The number of draft tokens is chosen in every step from two estimates. The acceptance probability
depends on how many tokens matched before the draft token; each row learns its own, starting from a
prior measured on a small model, with exponential decay, so that a row whose drafts are rejected stops
and tries again later. The cost comes from the step-time model. Draft tokens are taken in descending
order of acceptance probability per cost, up to the maximum of tokens per second. Drafts only fill a
step up to `MAX_DRAFT_TOKENS` tokens; larger steps have none.

Hot path: a pass costs one call into the core and, only if that found a draft, a few dozen numpy
expressions on at most `MAX_DRAFT_TOKENS` rows.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine._core import draft_by_lookup
from engine.api.step_costs import StepCosts, StepLoad
from engine.batch.rows import RowTable
from engine.batch.steady_decode import SteadyDecode
from engine.executors.base import MAX_DRAFT_TOKENS, StepPlan, StepResult
from engine.memory.block_manager import BlockManager

MIN_MATCH = 2
MAX_MATCH = 8
"""Minimum and maximum number of a row's last tokens that must match an earlier occurrence."""

_PRIOR = np.array([0.0, 0.0, 0.41, 0.50, 0.62, 0.70, 0.72, 0.78, 0.95])
"""Prior acceptance rate by match length, [MAX_MATCH + 1]; measured by `benchmarks/speculation.py`."""
_PRIOR_WEIGHT = 2.0
"""Weight of the prior, in draft tokens."""
_DECAY = 0.98
"""Decay of a row's estimates per generated token; the half-life is 34 tokens."""
_MAX_DRAFT_COST = 0.5
"""Upper bound of a draft token's cost, as a fraction of the step's time per decode row. A model fitted to
steps of one size may overestimate the cost of another token; without the bound no draft would ever be
tried, and the estimate would never be corrected."""
_MIN_SPEEDUP = 1.05
"""Predicted speedup below which no drafts are proposed: they also cost time in Python."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """Draft tokens of one step. They are in the token table, after each row's `num_tokens` tokens.

    Attributes:
        counts: [R] int32, draft tokens of each row in the batch.
        batch: [D] int64, batch indices of the rows with draft tokens.
        matched: [D] int32, tokens that matched before the first draft token; empty for a model's drafts.
        by_model: whether a draft model proposed them (`engine.scheduler.model_drafts`).
    """

    counts: NDArray[np.int32]
    batch: NDArray[np.int64]
    matched: NDArray[np.int32]
    by_model: bool = False

    @property
    def total(self) -> int:
        """Draft tokens of all rows."""
        return int(self.counts.sum())

    def cut(self, most: NDArray[np.int32]) -> "Drafts | None":
        """The first of these draft tokens; None if none are left.

        Args:
            most: [R] int32, how many each row may have.
        """
        counts = np.minimum(self.counts, most)
        left = counts[self.batch] > 0
        if not left.any():
            return None
        matched = self.matched[left] if self.matched.size else self.matched
        return replace(self, counts=counts, batch=self.batch[left], matched=matched)


class Speculation:
    """Proposes draft tokens and learns their acceptance rates. Owned by the scheduler."""

    def __init__(self, table: RowTable, *, token_budget: int) -> None:
        """Propose for rows of `table`, in steps of at most `token_budget` tokens."""
        self._table = table
        self._max_tokens = min(MAX_DRAFT_TOKENS, token_budget)
        shape = (table.max_rows, MAX_MATCH + 1)
        self._accepted = np.zeros(shape)
        self._tried = np.zeros(shape)
        self._owner = np.full(table.max_rows, -1, np.int64)  # arrival of the estimates' request
        self._decayed_at = np.zeros(table.max_rows, np.int32)  # num_tokens at the last decay
        # Buffers of `draft_by_lookup`; a step with drafts has fewer than MAX_DRAFT_TOKENS rows.
        self._drafts = np.zeros((MAX_DRAFT_TOKENS, MAX_DRAFT_TOKENS), np.int32)
        self._lengths = np.zeros(MAX_DRAFT_TOKENS, np.int32)
        self._matched = np.zeros(MAX_DRAFT_TOKENS, np.int32)

    def may_propose(self, steady: SteadyDecode) -> bool:
        """Whether any of these rows has a match. `propose` decides whether drafts are worth it."""
        return len(steady.rows) < self._max_tokens and steady.repeats(MIN_MATCH)

    def propose(
        self,
        batch: NDArray[np.int32],
        num_scheduled_tokens: NDArray[np.int32],
        costs: StepCosts | None,
    ) -> Drafts | None:
        """Draft tokens for a step, written to the token table; None if none are worth their cost.

        Args:
            batch: [R] int32, the step's rows.
            num_scheduled_tokens: [R] int32, tokens each row computes without drafts.
            costs: coefficients of the step-time model; None before it is fitted.
        """
        if len(batch) >= self._max_tokens or costs is None:
            return None
        spare = self._max_tokens - int(num_scheduled_tokens.sum())
        if spare <= 0:
            return None
        table, count = self._table, len(batch)
        num_tokens = table.num_tokens[batch]
        # The step samples one more token than it accepts, so the last allowed token is not drafted.
        room = np.minimum(table.max_total[batch] - num_tokens - 1, spare)
        room *= draftable(table, batch)
        drafts, lengths, matched = (
            self._drafts[:count],
            self._lengths[:count],
            self._matched[:count],
        )
        found = draft_by_lookup(
            table.token_table,
            table.stop_ids,
            table.num_tokens,
            room,
            batch,
            drafts,
            lengths,
            matched,
            min_match=MIN_MATCH,
            max_match=MAX_MATCH,
        )
        if not found:
            return None
        candidates = np.flatnonzero(lengths)
        rows, matched = batch[candidates], matched[candidates]
        self._decay(rows, num_tokens[candidates])
        acceptance = self._acceptance(rows, lengths[candidates], matched, spare)
        counts = _maximize_throughput(
            acceptance, num_tokens, candidates, num_scheduled_tokens, costs
        )
        if not counts.any():
            return None
        drafting = np.flatnonzero(counts)
        batch_counts = np.zeros(count, np.int32)
        batch_counts[candidates] = counts
        self._write(batch, batch_counts, drafts)
        return Drafts(batch_counts, candidates[drafting], matched[drafting])

    def learn(self, batch: NDArray[np.int32], drafts: Drafts, accepted: NDArray[np.int32]) -> None:
        """Update the acceptance rates after a step.

        Args:
            batch: [R] int32, the step's rows.
            drafts: what `propose` returned for it.
            accepted: [R] int32, draft tokens accepted of each row.
        """
        rows, counts = batch[drafts.batch], drafts.counts[drafts.batch]
        hits = accepted[drafts.batch]
        tried = np.minimum(hits + 1, counts)  # tokens after the first mismatch were not verified
        offset = np.arange(int(tried.sum())) - np.repeat(np.cumsum(tried) - tried, tried)
        length = np.minimum(np.repeat(drafts.matched, tried) + offset, MAX_MATCH)
        owner = np.repeat(rows, tried)
        np.add.at(self._tried, (owner, length), 1.0)
        np.add.at(self._accepted, (owner, length), (offset < np.repeat(hits, tried)).astype(float))

    def _decay(self, rows: NDArray[np.int32], num_tokens: NDArray[np.int32]) -> None:
        """Decay the rows' estimates by the tokens generated since; reset them for a new request."""
        arrival = self._table.arrival[rows]
        factor = _DECAY ** (num_tokens - self._decayed_at[rows])
        factor[self._owner[rows] != arrival] = 0.0
        self._tried[rows] *= factor[:, None]
        self._accepted[rows] *= factor[:, None]
        self._decayed_at[rows] = num_tokens
        self._owner[rows] = arrival

    def _acceptance(
        self,
        rows: NDArray[np.int32],
        lengths: NDArray[np.int32],
        matched: NDArray[np.int32],
        width: int,
    ) -> NDArray[np.float64]:
        """[N, width] float64, probability that a draft token and all before it are accepted."""
        offset = np.arange(width)
        row, match_length = rows[:, None], np.minimum(matched[:, None] + offset, MAX_MATCH)
        hits = self._accepted[row, match_length] + _PRIOR_WEIGHT * _PRIOR[match_length]
        each = hits / (self._tried[row, match_length] + _PRIOR_WEIGHT)
        each[offset >= lengths[:, None]] = 0.0
        return np.cumprod(each, axis=1)

    def _write(
        self, rows: NDArray[np.int32], counts: NDArray[np.int32], drafts: NDArray[np.int32]
    ) -> None:
        """Write the draft tokens to the token table, after each row's tokens."""
        offset = np.arange(drafts.shape[1])
        taken = offset < counts[:, None]
        owner = np.repeat(rows, counts)
        columns = self._table.num_tokens[owner] + np.nonzero(taken)[1]
        self._table.token_table[owner, columns] = drafts[taken]


def _maximize_throughput(
    acceptance: NDArray[np.float64],
    num_tokens: NDArray[np.int32],
    candidates: NDArray[np.intp],
    num_scheduled_tokens: NDArray[np.int32],
    costs: StepCosts,
) -> NDArray[np.int32]:
    """[N] int32, number of draft tokens of each candidate that maximises tokens per second.

    A draft token is never likelier to be accepted than the one before it, so taking the best tokens of
    all rows takes a prefix of each row's draft.

    Args:
        acceptance: [N, width], from `Speculation._acceptance`.
        num_tokens: [R] int32, tokens of the batch's rows.
        candidates: [N], batch indices of the rows that have a draft.
        num_scheduled_tokens: [R] int32, tokens each row of the batch computes without drafts.
        costs: coefficients of the step-time model.
    """
    rows, width = acceptance.shape
    each = costs.decode_row + costs.kv_token * num_tokens[candidates]
    decodes = int(np.count_nonzero(num_scheduled_tokens == 1))
    seconds = costs.seconds(
        StepLoad(
            prefill_tokens=int(num_scheduled_tokens.sum()) - decodes,
            num_decode_rows=decodes,
            kv_tokens=int((num_scheduled_tokens * num_tokens).sum()),
        )
    )
    if seconds <= 0:
        return np.zeros(rows, np.int32)
    each = np.minimum(each, _MAX_DRAFT_COST * seconds / decodes)
    cost = np.repeat(np.maximum(each, 1e-9), width)
    value = acceptance.ravel()
    best = np.argsort(-value / cost, kind="stable")[:width]
    tokens = decodes + np.cumsum(value[best])
    speed = tokens / (seconds + np.cumsum(cost[best]))
    fastest = int(np.argmax(speed))
    if speed[fastest] < _MIN_SPEEDUP * decodes / seconds:
        return np.zeros(rows, np.int32)
    taken = best[: fastest + 1]
    taken = taken[value[taken] > 0]
    return np.bincount(taken // width, minlength=rows).astype(np.int32)


def record_accepted(table: RowTable, plan: StepPlan, result: StepResult) -> None:
    """Mark accepted draft tokens, and write their logprobs and alternatives where they were requested.

    The tokens themselves are in the row's table and KV blocks already. Call it before they are published.
    """
    counts = plan.num_draft_tokens
    offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.flatnonzero(offset < np.repeat(result.accepted, counts))
    if not kept.size:
        return
    rows = np.repeat(plan.rows, counts)[kept]
    at = table.num_tokens[rows] + offset[kept].astype(np.int32)
    table.drafted_table[rows, at] = True
    if not table.logprob_rows:
        return
    table.logprob_table[rows, at] = result.draft_logprobs[kept]
    if table.top_rows:
        table.top_logprobs.record(
            rows,
            at - table.num_prompt_tokens[rows],
            result.draft_top_ids[kept],
            result.draft_top_logprobs[kept],
        )


def draftable(table: RowTable, batch: NDArray[np.int32]) -> NDArray[np.bool_]:
    """[R] bool, which rows may have drafts and decode: past their prompt, with one pending token.

    Args:
        table: the row table.
        batch: [R] int32, the step's rows.
    """
    num_tokens = table.num_tokens[batch]
    decodes = (num_tokens > table.num_prompt_tokens[batch]) & (
        num_tokens == table.num_computed[batch] + 1
    )
    allowed: NDArray[np.bool_] = table.may_draft[batch] & decodes
    return allowed


def release_unused(table: RowTable, blocks: BlockManager, rows: NDArray[np.int32]) -> None:
    """Release the blocks that were allocated for rejected draft tokens.

    Args:
        table: the row table.
        blocks: the pool.
        rows: [N] int32, rows with rejected draft tokens.
    """
    needed = (table.num_computed[rows] + (table.block_size - 1)) // table.block_size
    surplus = table.num_blocks[rows] > needed
    for row, keep in zip(rows[surplus].tolist(), needed[surplus].tolist(), strict=True):
        held = int(table.num_blocks[row])
        unused = table.block_tables[row, keep:held].copy()
        table.block_tables[row, keep:held] = -1
        table.num_blocks[row] = keep
        blocks.discard(unused)
