"""`Stepper`: runs sequences on an executor without the engine, with its own rows, blocks and plans."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.api.config import EngineConfig
from engine.executors.base import (
    NO_BREAKER_HEADS,
    NO_BREAKER_TAILS,
    SAMPLING_DTYPE,
    Executor,
    StateKeeper,
    StepPlan,
    StepResult,
)

_GREEDY = {"top_p": 1.0, "repetition_penalty": 1.0, "num_logprobs": -1}


@dataclass
class Run:
    """One sequence: its parameters and its results.

    Attributes:
        prompt: token ids.
        new_tokens: number of tokens to sample.
        arrival: index of the first step in which it runs.
        chunks: lengths of its prefill chunks, used cyclically; None for the whole budget.
        sampling: fields of `SAMPLING_DTYPE` that differ from greedy.
        bias: (token id, value) pairs.
        logprob_ids: token ids whose logprobs are reported; the run has no drafts then.
        forced: tokens that are sampled first: a bias forces each of them, and `logprobs`, which are
            raw, are theirs.
        score: number of alternatives per prompt token to score; None scores nothing.
        drafts: maps the sequence's tokens to the next draft tokens. A wrong draft must change nothing.
        accepted: number of accepted draft tokens.
        prompt_logprobs, prompt_ranks, prompt_top: one entry per prompt token except the first.
        tokens, logprobs, top: one entry per sampled token; `top` contains (id, logprob) pairs.
        id_logprobs: values of `logprob_ids`, one list per sampled token.
        failed: whether its logits were unusable.
    """

    prompt: Sequence[int]
    new_tokens: int
    arrival: int = 0
    chunks: Sequence[int] | None = None
    sampling: Mapping[str, float] = field(default_factory=dict)
    bias: Sequence[tuple[int, float]] = ()
    logprob_ids: Sequence[int] = ()
    forced: Sequence[int] = ()
    score: int | None = None
    drafts: Callable[[Sequence[int]], Sequence[int]] = lambda tokens: ()
    accepted: int = 0
    prompt_logprobs: list[float] = field(default_factory=list)
    prompt_ranks: list[int] = field(default_factory=list)
    prompt_top: list[list[tuple[int, float]]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[list[tuple[int, float]]] = field(default_factory=list)
    id_logprobs: list[list[float]] = field(default_factory=list)
    failed: bool = False

    def __post_init__(self) -> None:
        self.all_tokens = list(self.prompt)
        self.computed = 0
        self.num_chunks = 0

    @property
    def done(self) -> bool:
        return self.failed or len(self.tokens) >= self.new_tokens

    def next_count(self, budget: int) -> int:
        """Tokens to compute in the next step."""
        count = min(len(self.all_tokens) - self.computed, budget)
        if self.chunks is not None:
            count = min(count, self.chunks[self.num_chunks % len(self.chunks)])
        return count

    def next_bias(self) -> list[tuple[int, float]]:
        """Biases of the next step."""
        force = (
            [(self.forced[len(self.tokens)], 1e4)] if len(self.tokens) < len(self.forced) else []
        )
        return [*self.bias, *force]


def has_states(executor: Executor) -> bool:
    """Whether the executor's model has recurrent layers."""
    return isinstance(executor, StateKeeper) and executor.state_bytes > 0


class Stepper:
    """Runs sequences on one executor; every run has its own row and blocks."""

    def __init__(
        self, executor: Executor, config: EngineConfig, *, num_blocks: int, max_model_len: int
    ) -> None:
        self.executor = executor
        self._config = config
        self._num_blocks = num_blocks
        rows, blocks = config.max_num_seqs, -(-max_model_len // config.block_size)
        self._block_tables = np.full((rows, blocks), -1, np.int32)
        self._token_table = np.zeros((rows, max_model_len), np.int32)
        self._num_tokens = np.zeros(rows, np.int32)
        self._penalty_start = np.zeros(rows, np.int32)
        self._sampling = np.zeros(rows, SAMPLING_DTYPE)
        # Of each row, so that slots are not in the order of the rows; empty for a model without states.
        slots = np.arange(rows, dtype=np.int32)[::-1]
        self.state_slots = np.ascontiguousarray(slots if has_states(executor) else slots[:0])
        self.breaker_heads, self.breaker_tails = NO_BREAKER_HEADS, NO_BREAKER_TAILS

    def run(self, runs: Sequence[Run]) -> None:
        """Run all sequences to completion; a step contains all that have arrived, within the budget."""
        # Random block order, so that block tables are not contiguous.
        free = np.random.default_rng(len(runs)).permutation(self._num_blocks).tolist()
        self._block_tables[:] = -1
        for row, run in enumerate(runs):
            self._token_table[row, : len(run.all_tokens)] = run.all_tokens
            self._num_tokens[row] = len(run.all_tokens)
            self._penalty_start[row] = len(run.prompt)
            self._sampling[row] = 0
            for name, value in {**_GREEDY, **run.sampling}.items():
                self._sampling[row][name] = value
        step = 0
        while not all(run.done for run in runs):
            self._step(runs, step, free)
            step += 1

    def fork(self, source: Run, target: Run) -> None:
        """Run `target` from copies of what `source`, the only run of the last call, has computed."""
        for name, value in {**_GREEDY, **target.sampling}.items():
            self._sampling[1][name] = value
        self._token_table[1, : len(target.all_tokens)] = target.all_tokens
        self._num_tokens[1], self._penalty_start[1] = len(target.all_tokens), len(target.prompt)
        target.computed = source.computed
        used = self._block_tables[0][self._block_tables[0] >= 0]
        free = sorted(set(range(self._num_blocks)) - set(used.tolist()))
        copies = np.array([free.pop() for _ in used], np.int32)
        self._block_tables[1, : len(copies)] = copies
        self.executor.copy_blocks(np.ascontiguousarray(used), copies)
        if isinstance(self.executor, StateKeeper) and len(self.state_slots):
            self.executor.copy_states(self.state_slots[:1], self.state_slots[1:2])
        while not target.done:
            self._step([source, target], 0, free)

    def _step(self, runs: Sequence[Run], step: int, free: list[int]) -> None:
        budget = self._config.max_num_batched_tokens
        rows: list[int] = []
        start, ids, positions, needs, drafts = [0], [], [], [], []
        scores: list[tuple[int, int, int, int]] = []  # row, flat token, target, alternatives
        for row, run in enumerate(runs):
            count = run.next_count(budget)
            if run.done or step < run.arrival or count == 0:
                continue
            first, last = run.computed, run.computed + count
            draft = list(run.drafts(run.all_tokens)) if last == len(run.all_tokens) else []
            draft = draft[: min(budget - count, run.new_tokens - len(run.tokens) - 1)]
            if run.score is not None:
                end = min(last, len(run.prompt) - 1)
                scores += [
                    (row, len(ids) + at - first, run.all_tokens[at + 1], run.score)
                    for at in range(first, end)
                ]
            num_tokens = len(run.all_tokens)
            self._token_table[row, num_tokens : num_tokens + len(draft)] = draft
            drafts.append(len(draft))
            for index in range(-(-(last + len(draft)) // self._config.block_size)):
                if self._block_tables[row, index] < 0:
                    self._block_tables[row, index] = free.pop()
            ids += [*run.all_tokens[first:last], *draft]
            positions += range(first, last + len(draft))
            rows.append(row)
            start.append(len(ids))
            needs.append(last == len(run.all_tokens))
            budget -= count + len(draft)
            run.computed, run.num_chunks = last, run.num_chunks + 1
        if not rows:
            return
        bias = sorted((row, token, value) for row in rows for token, value in runs[row].next_bias())
        listed = [(row, one) for row in sorted(rows) for one in runs[row].logprob_ids]
        result = self.executor.execute(
            StepPlan(
                rows=np.array(rows, np.int32),
                query_start=np.array(start, np.int32),
                token_ids=np.array(ids, np.int32),
                positions=np.array(positions, np.int32),
                needs_logits=np.array(needs, np.uint8),
                block_tables=self._block_tables,
                token_table=self._token_table,
                num_tokens=self._num_tokens,
                penalty_start=self._penalty_start,
                sampling=self._sampling,
                bias_rows=np.array([row for row, _, _ in bias], np.int32),
                bias_ids=np.array([token for _, token, _ in bias], np.int32),
                bias_values=np.array([value for _, _, value in bias], np.float32),
                logprob_rows=np.array([row for row, _ in listed], np.int32),
                logprob_ids=np.array([one for _, one in listed], np.int32),
                breaker_heads=self.breaker_heads,
                breaker_tails=self.breaker_tails,
                num_draft_tokens=np.array(drafts if any(drafts) else [], np.int32),
                score_tokens=np.array([flat for _, flat, _, _ in scores], np.int32),
                score_targets=np.array([target for _, _, target, _ in scores], np.int32),
                score_tops=np.array([tops for _, _, _, tops in scores], np.int32),
                state_slots=self.state_slots,
            )
        )
        for at, (row, _, _, tops) in enumerate(scores):
            runs[row].prompt_logprobs.append(float(result.score_logprobs[at]))
            runs[row].prompt_ranks.append(int(result.score_ranks[at]))
            pairs = zip(result.score_top_ids[at], result.score_top_logprobs[at], strict=True)
            runs[row].prompt_top.append([(int(i), float(p)) for i, p in pairs][:tops])
        first_draft = np.cumsum([0, *drafts])
        for batch, row in enumerate(rows):
            if needs[batch]:
                self._record_drafts(runs[row], row, result, batch, int(first_draft[batch]))
                self._record(runs[row], row, result, batch)
                values = [
                    float(result.token_id_logprobs[at])
                    for at, (owner, _) in enumerate(listed)
                    if owner == row
                ]
                runs[row].id_logprobs.append(values)

    def _record_drafts(
        self, run: Run, row: int, result: StepResult, batch: int, first: int
    ) -> None:
        accepted = int(result.accepted[batch])
        run.accepted += accepted
        wanted = max(int(self._sampling[row]["num_logprobs"]), 0)
        for at in range(first, first + accepted):
            token = int(self._token_table[row, len(run.all_tokens)])
            run.all_tokens.append(token)
            run.tokens.append(token)
            run.computed += 1
            run.logprobs.append(float(result.draft_logprobs[at]))
            pairs = zip(result.draft_top_ids[at], result.draft_top_logprobs[at], strict=True)
            run.top.append([(int(i), float(p)) for i, p in pairs][:wanted])
        self._num_tokens[row] = len(run.all_tokens)

    def _record(self, run: Run, row: int, result: StepResult, batch: int) -> None:
        if result.failed[batch]:
            run.failed = True
            return
        token = int(result.sampled[batch])
        run.tokens.append(token)
        run.logprobs.append(float(result.logprobs[batch]))
        wanted = max(int(self._sampling[row]["num_logprobs"]), 0)
        ids, logprobs = result.top_ids[batch, :wanted], result.top_logprobs[batch, :wanted]
        run.top.append(list(zip(ids.tolist(), logprobs.tolist(), strict=True)))
        if not run.done:
            run.all_tokens.append(token)
            self._token_table[row, len(run.all_tokens) - 1] = token
            self._num_tokens[row] = len(run.all_tokens)
