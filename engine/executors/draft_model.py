"""`DraftModel`: a small model that proposes the next tokens of a few requests, with a KV store of its own.

It has a fixed number of *slots*, each with the KV blocks of one whole context. A slot remembers the tokens
whose KV it holds. Before a model drafts for a request, the request's tokens are compared with a slot's, and
only what follows the common prefix is computed. So rejected drafts, forks, preemption, prefix hits, and
rows that pass to another request need no bookkeeping: whatever happened, the tokens decide.

The executor samples with the request's own parameters, seed and positions. Both models then add the same
noise to their logits, so that where their distributions are close, their samples agree.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import (
    NO_BREAKER_HEADS,
    NO_BREAKER_TAILS,
    SAMPLING_DTYPE,
    Executor,
    StepPlan,
)
from engine.text.common_prefix import common_prefix

SLOTS = 2
"""Requests for which drafts can be computed at once."""
CATCH_UP_TOKENS = 64
"""Maximum number of tokens of a slot that are computed in one call, so that no step waits long."""

_NOTHING: NDArray[np.int32] = np.zeros(0, np.int32)
_WARM_UP_STEPS = 8
_LEARNING = 0.1
"""Weight of a step's time in `token_seconds`."""
_OUTLIER = 2.0
"""A step's time counts at most as this multiple of the usual one."""
_RECOVERY = 0.02
"""Share by which `token_seconds` approaches its best value per step without proposals."""


class SamplingTables(NamedTuple):
    """What sampling reads besides the tokens; indexed by row like the arrays of `StepPlan`.

    Attributes:
        sampling: [rows] of `SAMPLING_DTYPE`.
        penalty_start: [rows] int32.
        bias_rows, bias_ids, bias_values: [B] each, sorted by row.
        breaker_heads, breaker_tails: as in `StepPlan`.
    """

    sampling: NDArray[np.void]
    penalty_start: NDArray[np.int32]
    bias_rows: NDArray[np.int32]
    bias_ids: NDArray[np.int32]
    bias_values: NDArray[np.float32]
    breaker_heads: NDArray[np.uint32]
    breaker_tails: NDArray[np.int32]


class DraftModel:
    """A loaded draft model. Engine's thread only.

    Attributes:
        name: its name.
        max_len: maximum number of tokens of a request, drafts included.
        token_seconds: usual time of a step that proposes a token for each slot.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        name: str,
        max_len: int,
        block_size: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Wrap an executor that has `SLOTS` rows and `slot_blocks(max_len, block_size)` blocks for each."""
        self.name = name
        self.max_len = max_len
        self.token_seconds = 0.0
        self._shortest_seconds = float("inf")
        self._executor = executor
        self._clock = clock
        width = slot_blocks(max_len, block_size)
        self._block_tables = np.arange(SLOTS * width, dtype=np.int32).reshape(SLOTS, width)
        self._tokens = np.zeros((SLOTS, max_len), np.int32)
        self._num_tokens = np.zeros(SLOTS, np.int32)
        self._num_computed = np.zeros(SLOTS, np.int32)
        self._sampling = np.zeros(SLOTS, SAMPLING_DTYPE)
        self._penalty_start = np.zeros(SLOTS, np.int32)
        self._biases = _NOTHING, _NOTHING, np.zeros(0, np.float32)
        self._breakers = NO_BREAKER_HEADS, NO_BREAKER_TAILS
        self._used = [0] * SLOTS
        self._uses = 0

    def warm_up(self) -> None:
        """Measure `token_seconds`.

        Raises:
            ExecutorError: a step failed.
        """
        self._sampling["top_p"] = self._sampling["repetition_penalty"] = 1.0
        self._num_tokens[0] = 1
        for _ in range(_WARM_UP_STEPS):
            self._num_computed[0] = 0
            self.propose([0])
            self._num_tokens[0] = 1
        self._num_tokens[:] = self._num_computed[:] = 0
        self.token_seconds = self._shortest_seconds

    def rest(self) -> None:
        """Let `token_seconds` approach its best value, after a step without proposals.

        Otherwise a time that was measured on a busy machine could end drafting for good.
        """
        self.token_seconds += _RECOVERY * (self._shortest_seconds - self.token_seconds)

    def follow(
        self, histories: Sequence[NDArray[np.int32]], rows: Sequence[int], tables: SamplingTables
    ) -> list[int]:
        """Choose a slot for each request, and let it continue the request's tokens.

        A slot keeps the KV of the tokens that it has in common with the request.

        Args:
            histories: at most `SLOTS` requests' tokens, each fewer than `max_len`.
            rows: their rows in `tables`, ascending.
            tables: their sampling parameters.

        Returns:
            The slot of each request.
        """
        slots = self._choose_slots(histories)
        for slot, history, row in zip(slots, histories, rows, strict=True):
            common = min(self._common(slot, history), len(history) - 1)
            self._tokens[slot, common : len(history)] = history[common:]
            self._num_computed[slot] = common
            self._num_tokens[slot] = len(history)
            self._sampling[slot] = tables.sampling[row]
            self._penalty_start[slot] = tables.penalty_start[row]
            self._uses += 1
            self._used[slot] = self._uses
        self._sampling["num_logprobs"] = 0
        self._breakers = tables.breaker_heads, tables.breaker_tails
        if tables.bias_rows.size:
            self._biases = _biases_by_slot(tables, sorted(zip(slots, rows, strict=True)))
        else:
            self._biases = _NOTHING, _NOTHING, tables.bias_values[:0]
        return slots

    def pending(self, slot: int) -> int:
        """Tokens of a slot that are not computed, of which `propose` computes the last."""
        return int(self._num_tokens[slot] - self._num_computed[slot])

    def catch_up(self, slot: int) -> None:
        """Compute tokens of a slot, without its last one and at most `CATCH_UP_TOKENS`.

        Raises:
            ExecutorError: the step failed; the slot is empty.
        """
        self._run([slot], [min(self.pending(slot) - 1, CATCH_UP_TOKENS)], samples=False)

    def propose(self, slots: Sequence[int]) -> tuple[list[int], list[float]]:
        """Compute what is pending in these slots, and append a proposed token to each.

        Args:
            slots: at least one, with together at most `SLOTS * CATCH_UP_TOKENS` pending tokens.

        Returns:
            For each slot, the token and its probability in the draft model; -1 and nothing appended where
            the logits are not numbers.

        Raises:
            ExecutorError: the step failed; the slots are empty.
        """
        counts = [self.pending(slot) for slot in slots]
        began = self._clock()
        tokens, logprobs = self._run(slots, counts, samples=True)
        if sum(counts) == len(slots):
            self._observe(self._clock() - began)
        for slot, token in zip(slots, tokens, strict=True):
            if token >= 0:
                self._tokens[slot, self._num_tokens[slot]] = token
                self._num_tokens[slot] += 1
        return tokens, np.exp(np.array(logprobs)).tolist()

    def close(self) -> None:
        """Free its memory. Idempotent."""
        self._executor.close()

    def _observe(self, seconds: float) -> None:
        """Update the times of a step that proposed a token for each slot."""
        self._shortest_seconds = min(self._shortest_seconds, seconds)
        usual = self.token_seconds or seconds
        self.token_seconds += _LEARNING * (min(seconds, _OUTLIER * usual) - usual)

    def _choose_slots(self, histories: Sequence[NDArray[np.int32]]) -> list[int]:
        """The slots that keep most of what they hold; the least recently used ones among equals."""
        chosen: dict[int, int] = {}
        scored = []
        for at, history in enumerate(histories):
            for slot in range(SLOTS):
                lost = int(self._num_computed[slot]) - (kept := self._common(slot, history))
                scored.append((kept - lost, -self._used[slot], at, slot))
        for _, _, at, slot in sorted(scored, reverse=True):
            if at not in chosen and slot not in chosen.values():
                chosen[at] = slot
        return [chosen[at] for at in range(len(histories))]

    def _common(self, slot: int, history: NDArray[np.int32]) -> int:
        """Length of the longest common prefix of a history and the computed tokens of a slot."""
        return common_prefix(history, self._tokens[slot, : self._num_computed[slot]])

    def _run(
        self, slots: Sequence[int], counts: Sequence[int], *, samples: bool
    ) -> tuple[list[int], list[float]]:
        """Compute the next `counts` tokens of slots; the sampled tokens and their log-probabilities."""
        order = sorted(range(len(slots)), key=slots.__getitem__)
        rows = np.array([slots[at] for at in order], np.int32)
        lengths = np.array([counts[at] for at in order], np.int32)
        query_start = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(lengths, out=query_start[1:])
        first = self._num_computed[rows]
        positions = np.arange(int(query_start[-1]), dtype=np.int32)
        positions += np.repeat(first - query_start[:-1], lengths)
        bias_rows, bias_ids, bias_values = self._biases
        breaker_heads, breaker_tails = self._breakers
        plan = StepPlan(
            rows=rows,
            query_start=query_start,
            token_ids=self._tokens[np.repeat(rows, lengths), positions],
            positions=positions,
            needs_logits=np.full(len(rows), samples, np.uint8),
            block_tables=self._block_tables,
            token_table=self._tokens,
            num_tokens=self._num_tokens,
            penalty_start=self._penalty_start,
            sampling=self._sampling,
            bias_rows=bias_rows,
            bias_ids=bias_ids,
            bias_values=bias_values,
            breaker_heads=breaker_heads,
            breaker_tails=breaker_tails,
        )
        try:
            result = self._executor.execute(plan)
        except BaseException:
            self._num_computed[rows] = self._num_tokens[rows] = 0
            raise
        self._num_computed[rows] = first + lengths
        by_slot = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        places = [by_slot[slot] for slot in slots]
        return result.sampled[places].tolist(), result.logprobs[places].tolist()


def slot_blocks(max_len: int, block_size: int) -> int:
    """Number of KV blocks of a slot."""
    return -(-max_len // block_size)


def _biases_by_slot(
    tables: SamplingTables, slots_and_rows: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """The logit biases of rows, by slot."""
    rows, ids, values = [], [], []
    for slot, row in slots_and_rows:
        chosen = tables.bias_rows == row
        rows.append(np.full(int(chosen.sum()), slot, np.int32))
        ids.append(tables.bias_ids[chosen])
        values.append(tables.bias_values[chosen])
    return np.concatenate(rows), np.concatenate(ids), np.concatenate(values)
