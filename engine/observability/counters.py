"""`EngineCounters`: all counters and histograms of an engine, read by the snapshot and `/metrics`.

Updated by the engine's thread under one lock, once per step and once per finished request, never per
token. Samples of steps are added to the histograms in batches and on every read: a step of a small
model takes two milliseconds, and each numpy call costs a microsecond or, with the caches full of
weights, several. Intervals are between instants of the engine's monotonic clock: queued, scheduled,
first token, last token. Time spent preempted counts as decode.
"""

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.api.request import ENGINE_REASONS, FinishReason, Timings
from engine.api.snapshot import Rates, Totals
from engine.observability.histogram import (
    SECONDS_INTER_TOKEN,
    SECONDS_REQUEST,
    SECONDS_STEP,
    SECONDS_TTFT,
    TOKENS_REQUEST,
    TOKENS_STEP,
    Histogram,
    HistogramState,
)
from engine.observability.rates import RateWindow, RecentSamples

_PERCENTILE_PERIOD_S = 0.25
_PENDING_STEPS = 64
"""Maximum number of steps whose samples are not in the histograms yet."""


class StepRecord(NamedTuple):
    """The samples of one step.

    Attributes:
        seconds: from scheduling to applied results.
        predicted_seconds: the step-time model's prediction, or None.
        prefill_tokens: tokens computed in prefills, recomputed ones included.
        decode_tokens: tokens computed in decodes.
        new_prompt_tokens: prompt tokens computed for the first time.
        generated: tokens sampled.
        first_tokens: [N] float64, times to first token in seconds, one per first token of the step.
        inter_token_latencies: [N] float64 as bytes, seconds since the previous token, one per other
            token.
        draft_tokens: draft tokens verified.
        rows: requests in the step.
        number: of the step, counted from 1.
        started: when it was scheduled, monotonic seconds.
    """

    seconds: float
    predicted_seconds: float | None
    prefill_tokens: int
    decode_tokens: int
    new_prompt_tokens: int
    generated: int
    first_tokens: NDArray[np.float64]
    inter_token_latencies: bytes
    draft_tokens: int = 0
    rows: int = 0
    number: int = 0
    started: float = 0.0


@dataclass(frozen=True, slots=True)
class CountersState:
    """All counters and histograms at one instant."""

    totals: Totals
    histograms: dict[str, HistogramState] = field(default_factory=dict)


class EngineCounters:
    """Counters and histograms of one engine. Histogram names are those of vLLM without a prefix."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._prompt_tokens = 0
        self._generation_tokens = 0
        self._steps = 0
        self._preemptions = 0
        self._prefix_queries = 0
        self._prefix_hits = 0
        self._swap_queries = 0
        self._swap_hits = 0
        self._copied_blocks = 0
        self._drafts = 0
        self._draft_tokens = 0
        self._accepted_tokens = 0
        self._model_draft_tokens = 0
        self._accepted_model_tokens = 0
        self._deadlines_met = 0
        self._deadlines_missed = 0
        self._predicted_seconds = 0.0
        self._measured_seconds = 0.0
        self._finished = {reason.value: 0 for reason in ENGINE_REASONS}
        self._ttft = Histogram(SECONDS_TTFT)
        self._inter_token = Histogram(SECONDS_INTER_TOKEN)
        self._e2e = Histogram(SECONDS_REQUEST)
        self._queue_time = Histogram(SECONDS_REQUEST)
        self._prefill_time = Histogram(SECONDS_REQUEST)
        self._decode_time = Histogram(SECONDS_REQUEST)
        self._inference_time = Histogram(SECONDS_REQUEST)
        self._step_time = Histogram(SECONDS_STEP)
        self._iteration_tokens = Histogram(TOKENS_STEP)
        self._prompt_lengths = Histogram(TOKENS_REQUEST)
        self._output_lengths = Histogram(TOKENS_REQUEST)
        self._max_tokens = Histogram(TOKENS_REQUEST)
        self._pending: list[StepRecord] = []  # in the counters, not in the histograms yet
        self._window = RateWindow()
        self._recent_ttft = RecentSamples()
        self._recent_latencies = RecentSamples()
        self._percentiles: tuple[float | None, ...] = (None, None, None, None)
        self._percentiles_at = -np.inf

    def record_step(self, now: float, step: StepRecord) -> None:
        """Count a step. Its samples are added to the histograms later, in a batch.

        Args:
            now: the instant at which the step ended.
            step: its samples.
        """
        with self._lock:
            self._steps += 1
            self._prompt_tokens += step.new_prompt_tokens
            self._generation_tokens += step.generated
            if step.predicted_seconds is not None:
                self._predicted_seconds += step.predicted_seconds
                self._measured_seconds += step.seconds
            self._pending.append(step)
            if len(self._pending) == _PENDING_STEPS:
                self._flush_pending()
        self._window.add(now, step.prefill_tokens, step.generated)

    def _flush_pending(self) -> None:
        """Add the pending samples to histograms and percentiles. The caller holds the lock."""
        steps, self._pending = self._pending, []
        if not steps:
            return
        self._step_time.observe_all(np.array([step.seconds for step in steps]))
        tokens = [step.new_prompt_tokens + step.generated for step in steps]
        self._iteration_tokens.observe_all(np.array(tokens, np.float64))
        inter_token_latencies = np.frombuffer(
            b"".join([step.inter_token_latencies for step in steps]), np.float64
        )
        self._inter_token.observe_all(inter_token_latencies)
        self._recent_latencies.add(inter_token_latencies)
        first_tokens = np.concatenate([step.first_tokens for step in steps])
        self._ttft.observe_all(first_tokens)
        self._recent_ttft.add(first_tokens)

    @property
    def steps(self) -> int:
        """Number of executed steps, over all models of the engine."""
        return self._steps

    def record_preemptions(self, count: int) -> None:
        """Count preempted requests."""
        with self._lock:
            self._preemptions += count

    def record_lookup(self, *, queried: int, found: int, swapped: int | None = None) -> None:
        """Count the prefix-cache lookup of an admission.

        Args:
            queried: prompt tokens looked up.
            found: prompt tokens found in the pool.
            swapped: further prompt tokens loaded from the swap tier; None without one.
        """
        with self._lock:
            self._prefix_queries += queried
            self._prefix_hits += found
            if swapped is not None:
                self._swap_queries += queried - found
                self._swap_hits += swapped

    def record_copies(self, blocks: int) -> None:
        """Count copied KV blocks."""
        with self._lock:
            self._copied_blocks += blocks

    def record_drafts(
        self, *, drafts: int, tokens: int, accepted: int, by_model: bool = False
    ) -> None:
        """Count a step's drafts (at most one per row), their tokens, and the accepted tokens.

        Args:
            drafts: number of drafts.
            tokens: their tokens.
            accepted: how many of them were accepted.
            by_model: whether a draft model proposed them; these are also counted apart.
        """
        with self._lock:
            self._drafts += drafts
            self._draft_tokens += tokens
            self._accepted_tokens += accepted
            if by_model:
                self._model_draft_tokens += tokens
                self._accepted_model_tokens += accepted

    def record_deadlines(self, *, met: int, missed: int) -> None:
        """Count first tokens of requests with a deadline."""
        with self._lock:
            self._deadlines_met += met
            self._deadlines_missed += missed

    def record_finish(
        self,
        now: float,
        reason: FinishReason,
        timings: Timings,
        *,
        prompt_tokens: int,
        output_tokens: int,
        max_tokens: int,
    ) -> None:
        """Count a finished request.

        Args:
            now: the instant at which it finished.
            reason: its finish reason.
            timings: its instants.
            prompt_tokens: length of its prompt.
            output_tokens: tokens it generated.
            max_tokens: its limit of generated tokens.
        """
        with self._lock:
            self._finished[reason.value] += 1
            self._prompt_lengths.observe(prompt_tokens)
            self._output_lengths.observe(output_tokens)
            self._max_tokens.observe(max_tokens)
            self._e2e.observe(now - timings.queued)
            if timings.scheduled is None:
                return
            self._queue_time.observe(timings.scheduled - timings.queued)
            if timings.first_token is None or timings.last_token is None:
                return
            self._prefill_time.observe(timings.first_token - timings.scheduled)
            self._decode_time.observe(timings.last_token - timings.first_token)
            self._inference_time.observe(timings.last_token - timings.scheduled)

    def totals(self) -> Totals:
        """The counters. Called once per step, so it copies no histogram."""
        return Totals(
            prompt_tokens=self._prompt_tokens,
            generation_tokens=self._generation_tokens,
            steps=self._steps,
            preemptions=self._preemptions,
            prefix_cache_queries=self._prefix_queries,
            prefix_cache_hits=self._prefix_hits,
            external_prefix_cache_queries=self._swap_queries,
            external_prefix_cache_hits=self._swap_hits,
            copied_blocks=self._copied_blocks,
            drafts=self._drafts,
            draft_tokens=self._draft_tokens,
            accepted_draft_tokens=self._accepted_tokens,
            model_draft_tokens=self._model_draft_tokens,
            accepted_model_draft_tokens=self._accepted_model_tokens,
            deadlines_met=self._deadlines_met,
            deadlines_missed=self._deadlines_missed,
            predicted_seconds=self._predicted_seconds,
            measured_seconds=self._measured_seconds,
            finished=self._finished.copy(),
        )

    def rates(self, now: float, *, fresh: bool = False) -> Rates:
        """Throughput and latency percentiles of the recent past. Any thread.

        Args:
            now: the current instant.
            fresh: recompute the percentiles; otherwise they may be `_PERCENTILE_PERIOD_S` old.
        """
        with self._lock:
            if fresh or now - self._percentiles_at >= _PERCENTILE_PERIOD_S:
                self._percentiles_at = now
                self._flush_pending()
                self._percentiles = (
                    *self._recent_ttft.percentiles(),
                    *self._recent_latencies.percentiles(),
                )
            percentiles = self._percentiles
        prefill, decode = self._window.rates(now)
        return Rates(decode, prefill, *percentiles)

    def tokens_per_second(self, now: float) -> tuple[float, float]:
        """Prefill and decode tokens per second over the two seconds before `now`. Any thread."""
        return self._window.rates(now)

    def state(self) -> CountersState:
        """All counters and histograms, consistent with each other: no step is counted in part."""
        with self._lock:
            self._flush_pending()
            return CountersState(
                totals=self.totals(),
                histograms={
                    "time_to_first_token_seconds": self._ttft.state(),
                    "inter_token_latency_seconds": self._inter_token.state(),
                    "e2e_request_latency_seconds": self._e2e.state(),
                    "request_queue_time_seconds": self._queue_time.state(),
                    "request_prefill_time_seconds": self._prefill_time.state(),
                    "request_decode_time_seconds": self._decode_time.state(),
                    "request_inference_time_seconds": self._inference_time.state(),
                    "iteration_tokens_total": self._iteration_tokens.state(),
                    "request_prompt_tokens": self._prompt_lengths.state(),
                    "request_generation_tokens": self._output_lengths.state(),
                    "request_params_max_tokens": self._max_tokens.state(),
                    "step_seconds": self._step_time.state(),
                },
            )
