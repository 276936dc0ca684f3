"""`PrefixBenchmark`: measures the effect of prefix caching on many agents with a common prefix.

`AGENTS` requests are submitted together. They share a prefix of `PREFIX_TOKENS` random tokens, end
in `TAIL_TOKENS` different ones, and generate `NEW_TOKENS` tokens each, greedily, ignoring
end-of-sequence. The workload runs in an engine with prefix caching and in one without; outputs are
compared. All figures come from the engine's counters and clock.
"""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from engine.api.request import Request, SamplingParams
from engine.benchmark.workload import elapsed_seconds, random_tokens
from engine.runtime.engine import AsyncPravahaEngine

AGENTS = 51
PREFIX_TOKENS = 1000
TAIL_TOKENS = 24
NEW_TOKENS = 16
RUN_TIMEOUT_S = 3600.0

StartEngine = Callable[[bool], AbstractContextManager[AsyncPravahaEngine]]
"""Starts an engine with or without prefix caching, and shuts it down on exit."""


@dataclass(frozen=True, slots=True)
class PrefixRun:
    """One run of the workload.

    Attributes:
        seconds: from queueing the first request to the last token of all requests.
        median_ttft_ms: median time to first token, in milliseconds.
        prompt_tokens: prompt tokens computed.
        hits, queries: prompt tokens found in the prefix cache, and looked up.
        peak_blocks: maximum number of active KV blocks, sampled at every wake-up.
        preemptions: preempted requests.
    """

    seconds: float
    median_ttft_ms: float
    prompt_tokens: int
    hits: int
    queries: int
    peak_blocks: int
    preemptions: int

    @property
    def hit_rate(self) -> float:
        """Fraction of the looked-up prompt tokens that were found, 0–1."""
        return self.hits / self.queries if self.queries else 0.0


@dataclass(frozen=True, slots=True)
class PrefixReport:
    """Both runs.

    Attributes:
        model: the fields of `ModelInfo`.
        agents, prefix_tokens, tail_tokens: the workload.
        least_blocks: minimum number of blocks: the shared prefix, plus each agent's private blocks.
        shared, private: the run with prefix caching, and the one without.
        equal_answers: number of outputs that are equal in both runs.
    """

    model: dict[str, Any]
    agents: int
    prefix_tokens: int
    tail_tokens: int
    least_blocks: int
    shared: PrefixRun
    private: PrefixRun
    equal_answers: int

    @property
    def seconds_saved(self) -> float:
        """Time saved by prefix caching, in seconds."""
        return self.private.seconds - self.shared.seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        derived = {"seconds_saved": self.seconds_saved, "hit_rate": self.shared.hit_rate}
        return asdict(self) | derived


class PrefixBenchmark:
    """Runs the workload on its own engines.

    Args:
        start: starts an engine without other requests.
        agents: number of requests.
        prefix_tokens: length of the shared prefix.
        on_progress: called with the name of each run before it starts.
        on_estimate: called with the predicted seconds of the second run, before it.
    """

    def __init__(
        self,
        start: StartEngine,
        *,
        agents: int = AGENTS,
        prefix_tokens: int = PREFIX_TOKENS,
        on_progress: Callable[[str], None] = lambda _: None,
        on_estimate: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._start = start
        self._agents = agents
        self._prefix_tokens = prefix_tokens
        self._on_progress = on_progress
        self._on_estimate = on_estimate

    def run(self) -> PrefixReport:
        """Run the workload with and without prefix caching, each in a new engine."""
        self._on_progress("a shared prefix")
        shared, answers, model, least = self._run(prefix_caching=True)
        generated = self._agents * NEW_TOKENS
        computed = self._agents * (self._prefix_tokens + TAIL_TOKENS) + generated
        self._on_estimate(shared.seconds * computed / (shared.prompt_tokens + generated))
        self._on_progress("private prefixes")
        private, alone, _, _ = self._run(prefix_caching=False)
        return PrefixReport(
            model=model,
            agents=self._agents,
            prefix_tokens=self._prefix_tokens,
            tail_tokens=TAIL_TOKENS,
            least_blocks=least,
            shared=shared,
            private=private,
            equal_answers=sum(one == other for one, other in zip(answers, alone, strict=True)),
        )

    def _run(
        self, *, prefix_caching: bool
    ) -> tuple[PrefixRun, list[tuple[int, ...]], dict[str, Any], int]:
        with self._start(prefix_caching) as engine:
            engine.wait_ready()
            vocabulary = engine.model_info.vocab_size
            prompts = agent_prompts(self._agents, self._prefix_tokens, vocabulary)
            sampling = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True)
            warm = random_tokens(random.Random(-1), 2 * TAIL_TOKENS, vocabulary)  # noqa: S311
            engine.submit(Request(tuple(warm), sampling)).wait_result(RUN_TIMEOUT_S)
            before = engine.snapshot().totals
            held = [0]
            engine.on_wake(lambda: held.append(max(held[-1], engine.snapshot().blocks.active)))
            handles = [engine.submit(Request(prompt, sampling)) for prompt in prompts]
            outputs = [handle.wait_result(RUN_TIMEOUT_S) for handle in handles]
            after = engine.snapshot()
            totals = after.totals
            size = after.blocks.block_size
            run = PrefixRun(
                seconds=elapsed_seconds(outputs),
                median_ttft_ms=1e3 * median(output.timings.ttft or 0.0 for output in outputs),
                prompt_tokens=totals.prompt_tokens - before.prompt_tokens,
                hits=totals.prefix_cache_hits - before.prefix_cache_hits,
                queries=totals.prefix_cache_queries - before.prefix_cache_queries,
                peak_blocks=held[-1],
                preemptions=totals.preemptions - before.preemptions,
            )
            shared = self._prefix_tokens // size
            whole = -(-(self._prefix_tokens + TAIL_TOKENS + NEW_TOKENS) // size)
            least = shared + self._agents * (whole - shared)
            answers = [output.token_ids for output in outputs]
            return run, answers, asdict(engine.model_info), least


def agent_prompts(agents: int, prefix_tokens: int, vocab_size: int) -> list[tuple[int, ...]]:
    """Reproducible prompts that share their first `prefix_tokens` token ids."""
    generator = random.Random(0)  # noqa: S311 - benchmark data, not a secret
    prefix = random_tokens(generator, prefix_tokens, vocab_size)
    return [(*prefix, *random_tokens(generator, TAIL_TOKENS, vocab_size)) for _ in range(agents)]
