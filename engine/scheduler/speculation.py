"""`Speculation`: guesses for rows that decode, as many as are worth their cost.

A step's constant part (reading the weights) is paid whatever is in it, so a row may bring guesses of
its next tokens along: prompt lookup finds them where the row's last tokens stood before. The executor
samples at every guess as it would have without; what it would not have sampled is thrown away, so
guesses change how many steps an answer takes and nothing else. They pay where a text repeats another:
edits, code, quotations, tables.

How many to bring is decided anew in every step, from two estimates. A guess is accepted with a
probability that depends on how many tokens agree before it; each row learns its own, starting from
what a small model's answers showed, and forgets, so that a row which guessed badly stops, and tries
again later. What a guess costs says the step-time model. Guesses are then taken in the order of what
they bring for what they cost, up to where tokens a second are most. Only spare rows are filled: a
step of `MAX_DRAFT_TOKENS` tokens has none.

Hot: a pass costs one call into the core and, only where it found something, a few dozen numpy
expressions on at most `MAX_DRAFT_TOKENS` rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine._core import draft_by_lookup
from engine.api.step_costs import StepCosts, StepLoad
from engine.batch.rows import RowTable
from engine.batch.steady_decode import SteadyDecode
from engine.executors.base import MAX_DRAFT_TOKENS, StepPlan, StepResult
from engine.memory.block_manager import BlockManager

LEAST_MATCH = 2
MOST_MATCH = 8
"""Of a row's last tokens so many, at least and at most, must stand elsewhere, too."""

_PRIOR = np.array([0.0, 0.0, 0.41, 0.50, 0.62, 0.70, 0.72, 0.78, 0.95])
"""Share of guesses accepted after so many agreeing tokens; see `benchmarks/speculation.py`."""
_PRIOR_WEIGHT = 2.0
"""Guesses that outweigh the prior."""
_KEEP = 0.98
"""What a row remembers from one token to the next: half of it after 34."""
_MAX_DRAFT_COST = 0.5
"""Most that a draft token is taken to cost, in shares of a row of the step. Where costs were learned
from steps of one size, what one more token adds is a guess as well; one that is too high would never
be put right, because nothing would ever be tried."""
_LEAST_GAIN = 1.05
"""Guesses must promise so much more speed: bringing them costs a little in Python, too."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """Guesses of one step. They stand in the rows' tables, behind the known tokens.

    Attributes:
        counts: [R] int32, how many tokens each row of the batch brings.
        batch: [D] int64, batch positions of the rows that bring any.
        matched: [D] int32, how many tokens agreed before the first of them.
    """

    counts: NDArray[np.int32]
    batch: NDArray[np.int64]
    matched: NDArray[np.int32]

    @property
    def total(self) -> int:
        """Tokens of all rows."""
        return int(self.counts.sum())


class Speculation:
    """Proposes drafts and learns from what became of them. Owned by the scheduler."""

    def __init__(self, table: RowTable, *, token_budget: int) -> None:
        """Propose for rows of `table`, in steps of at most `token_budget` tokens."""
        self._table = table
        self._most = min(MAX_DRAFT_TOKENS, token_budget)
        shape = (table.max_rows, MOST_MATCH + 1)
        self._accepted = np.zeros(shape)
        self._tried = np.zeros(shape)
        self._owner = np.full(table.max_rows, -1, np.int64)  # whose estimates a row has
        self._seen = np.zeros(table.max_rows, np.int32)  # known tokens when they last faded
        # A step with drafts has fewer rows than this.
        self._drafts = np.zeros((MAX_DRAFT_TOKENS, MAX_DRAFT_TOKENS), np.int32)
        self._lengths = np.zeros(MAX_DRAFT_TOKENS, np.int32)
        self._matched = np.zeros(MAX_DRAFT_TOKENS, np.int32)

    def finds(self, steady: SteadyDecode) -> bool:
        """Whether `propose` would find drafts for these rows; whether they are worth it, it says itself."""
        return len(steady.rows) < self._most and steady.repeats(LEAST_MATCH)

    def propose(
        self,
        batch: NDArray[np.int32],
        num_scheduled_tokens: NDArray[np.int32],
        costs: StepCosts | None,
    ) -> Drafts | None:
        """Drafts for a step, or None if none are worth it.

        Args:
            batch: [R] int32, the step's rows.
            num_scheduled_tokens: [R] int32, tokens each computes without drafts.
            costs: of steps; None if nothing is known yet.
        """
        if len(batch) >= self._most or costs is None:
            return None
        spare = self._most - int(num_scheduled_tokens.sum())
        if spare <= 0:
            return None
        table, count = self._table, len(batch)
        num_tokens = table.num_tokens[batch]
        # One more token is sampled in any case, so the last one allowed is never guessed.
        room = np.minimum(table.max_total[batch] - num_tokens - 1, spare)
        # Rows that decode: behind their prompt, with nothing to catch up on.
        room *= table.may_draft[batch] & (num_tokens > table.num_prompt_tokens[batch])
        room *= num_tokens == table.num_computed[batch] + 1
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
            least=LEAST_MATCH,
            most=MOST_MATCH,
        )
        if not found:
            return None
        places = np.flatnonzero(lengths)
        rows, matched = batch[places], matched[places]
        self._forget(rows, num_tokens[places])
        worth = self._worth(rows, lengths[places], matched, spare)
        counts = _most_speed(worth, num_tokens, places, num_scheduled_tokens, costs)
        if not counts.any():
            return None
        drafting = np.flatnonzero(counts)
        whole = np.zeros(count, np.int32)
        whole[places] = counts
        self._write(batch, whole, drafts)
        return Drafts(whole, places[drafting], matched[drafting])

    def learn(self, batch: NDArray[np.int32], drafts: Drafts, accepted: NDArray[np.int32]) -> None:
        """Take note of how many of each row's draft tokens were accepted: [R] int32."""
        rows, counts = batch[drafts.batch], drafts.counts[drafts.batch]
        hits = accepted[drafts.batch]
        tried = np.minimum(hits + 1, counts)  # what follows the first miss was not tried
        place = np.arange(int(tried.sum())) - np.repeat(np.cumsum(tried) - tried, tried)
        length = np.minimum(np.repeat(drafts.matched, tried) + place, MOST_MATCH)
        owner = np.repeat(rows, tried)
        np.add.at(self._tried, (owner, length), 1.0)
        np.add.at(self._accepted, (owner, length), (place < np.repeat(hits, tried)).astype(float))

    def _forget(self, rows: NDArray[np.int32], num_tokens: NDArray[np.int32]) -> None:
        """Let the estimates of rows that know so many tokens fade; a new request's begin anew."""
        arrival = self._table.arrival[rows]
        fade = _KEEP ** (num_tokens - self._seen[rows])
        fade[self._owner[rows] != arrival] = 0.0
        self._tried[rows] *= fade[:, None]
        self._accepted[rows] *= fade[:, None]
        self._seen[rows] = num_tokens
        self._owner[rows] = arrival

    def _worth(
        self,
        rows: NDArray[np.int32],
        lengths: NDArray[np.int32],
        matched: NDArray[np.int32],
        width: int,
    ) -> NDArray[np.float64]:
        """[N, width] float64, probability that each draft token and all before it are accepted."""
        place = np.arange(width)
        row, agreeing = rows[:, None], np.minimum(matched[:, None] + place, MOST_MATCH)
        hits = self._accepted[row, agreeing] + _PRIOR_WEIGHT * _PRIOR[agreeing]
        each = hits / (self._tried[row, agreeing] + _PRIOR_WEIGHT)
        each[place >= lengths[:, None]] = 0.0
        return np.cumprod(each, axis=1)

    def _write(
        self, rows: NDArray[np.int32], counts: NDArray[np.int32], drafts: NDArray[np.int32]
    ) -> None:
        """Put the drafts behind the rows' known tokens."""
        place = np.arange(drafts.shape[1])
        taken = place < counts[:, None]
        owner = np.repeat(rows, counts)
        columns = self._table.num_tokens[owner] + np.nonzero(taken)[1]
        self._table.token_table[owner, columns] = drafts[taken]


def _most_speed(
    worth: NDArray[np.float64],
    num_tokens: NDArray[np.int32],
    places: NDArray[np.intp],
    num_scheduled_tokens: NDArray[np.int32],
    costs: StepCosts,
) -> NDArray[np.int32]:
    """[N] int32, draft tokens of each row with which tokens a second are most.

    Within a row each is worth less than the one before, so the best ones of all rows are the first
    ones of each.
    """
    rows, width = worth.shape
    each = costs.decode_row + costs.kv_token * num_tokens[places]
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
    value = worth.ravel()
    best = np.argsort(-value / cost, kind="stable")[:width]
    tokens = decodes + np.cumsum(value[best])
    speed = tokens / (seconds + np.cumsum(cost[best]))
    top = int(np.argmax(speed))
    if speed[top] < _LEAST_GAIN * decodes / seconds:
        return np.zeros(rows, np.int32)
    taken = best[: top + 1]
    taken = taken[value[taken] > 0]
    return np.bincount(taken // width, minlength=rows).astype(np.int32)


def record_accepted(table: RowTable, plan: StepPlan, result: StepResult) -> None:
    """Write logprobs and alternatives of accepted draft tokens, where they were requested.

    The tokens themselves are in the row's table and KV blocks already.
    """
    if not table.logprob_rows:
        return
    counts = plan.num_draft_tokens
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.flatnonzero(place < np.repeat(result.accepted, counts))
    if not kept.size:
        return
    rows = np.repeat(plan.rows, counts)[kept]
    at = table.num_tokens[rows] + place[kept].astype(np.int32)
    table.logprob_table[rows, at] = result.draft_logprobs[kept]
    if table.top_rows:
        table.top_logprobs.record(
            rows,
            at - table.num_prompt_tokens[rows],
            result.draft_top_ids[kept],
            result.draft_top_logprobs[kept],
        )


def release_unused(table: RowTable, blocks: BlockManager, rows: NDArray[np.int32]) -> None:
    """Release blocks beyond what the rows have computed, which rejected draft tokens had taken.

    Args:
        table: the rows' state.
        blocks: who holds which block.
        rows: rows whose drafts were rejected.
    """
    needed = (table.num_computed[rows] + (table.block_size - 1)) // table.block_size
    surplus = table.num_blocks[rows] > needed
    for row, keep in zip(rows[surplus].tolist(), needed[surplus].tolist(), strict=True):
        held = int(table.num_blocks[row])
        unused = table.block_tables[row, keep:held].copy()
        table.block_tables[row, keep:held] = -1
        table.num_blocks[row] = keep
        blocks.release(unused)
