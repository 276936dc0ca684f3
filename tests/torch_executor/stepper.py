"""`Stepper`: runs sequences on an executor without the engine, with its own rows, blocks and plans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.api.config import EngineConfig
from engine.executors.base import SAMPLING_DTYPE, Executor, StepPlan, StepResult

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
        forced: tokens that replace the first sampled ones in the sequence.
        tokens, logprobs, top: one entry per sampled token; `top` contains (id, logprob) pairs.
        failed: whether its logits were unusable.
    """

    prompt: Sequence[int]
    new_tokens: int
    arrival: int = 0
    chunks: Sequence[int] | None = None
    sampling: Mapping[str, float] = field(default_factory=dict)
    bias: Sequence[tuple[int, float]] = ()
    forced: Sequence[int] = ()
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[list[tuple[int, float]]] = field(default_factory=list)
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

    def _step(self, runs: Sequence[Run], step: int, free: list[int]) -> None:
        budget = self._config.max_num_batched_tokens
        rows: list[int] = []
        start, ids, positions, needs = [0], [], [], []
        for row, run in enumerate(runs):
            count = run.next_count(budget)
            if run.done or step < run.arrival or count == 0:
                continue
            first, last = run.computed, run.computed + count
            for index in range(-(-last // self._config.block_size)):
                if self._block_tables[row, index] < 0:
                    self._block_tables[row, index] = free.pop()
            ids += run.all_tokens[first:last]
            positions += range(first, last)
            rows.append(row)
            start.append(len(ids))
            needs.append(last == len(run.all_tokens))
            budget -= count
            run.computed, run.num_chunks = last, run.num_chunks + 1
        if not rows:
            return
        bias = sorted((row, token, value) for row in rows for token, value in runs[row].bias)
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
            )
        )
        for batch, row in enumerate(rows):
            if needs[batch]:
                self._record(runs[row], row, result, batch)

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
        if len(run.tokens) <= len(run.forced):
            token = run.forced[len(run.tokens) - 1]
        if not run.done:
            run.all_tokens.append(token)
            self._token_table[row, len(run.all_tokens) - 1] = token
            self._num_tokens[row] = len(run.all_tokens)
