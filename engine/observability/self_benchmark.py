"""`SelfBenchmark`: what this machine does with this model, and what share of its roofline that is.

The work is that of `benchmarks/peers`: *single* is one stream of 128 tokens from a short text; a
batch of n is n streams of 64 random prompt tokens and 64 new tokens each, end-of-sequence ignored,
greedy. Everything goes through the engine's public door, scheduler included, and every figure is
read from the engine's own counters and clock.

The roofline of a column is the larger of two times a step cannot beat: its bytes (weights once,
plus the KV the streams hold) over the read bandwidth measured at that footprint, and its
multiply-adds over the measured peak of the integer dot product. Williams et al., "Roofline", 2009.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from engine.engine import AsyncPravahaEngine
from engine.observability.workload import elapsed_seconds, random_tokens
from engine.request import Request, RequestOutput, SamplingParams

BATCHES = (1, 4, 16, 32, 64)
PROMPT_TOKENS = NEW_TOKENS = 64
SINGLE_TOKENS = 128
MEAN_CONTEXT = PROMPT_TOKENS + NEW_TOKENS / 2
"""Tokens a stream of a batch holds on average while it decodes."""
SINGLE_PROMPT = "Write a long story about a dragon."
RUN_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Roofline:
    """Ceilings measured on this machine just now.

    Attributes:
        read_bytes_per_second: by footprint in bytes, all compute threads together.
        int8_ops_per_second: multiplies and adds counted apart; None where weights are not integers.
    """

    read_bytes_per_second: dict[int, float]
    int8_ops_per_second: float | None


@dataclass(frozen=True, slots=True)
class Column:
    """One row of the printed table. Latency names are those of `vllm bench serve`.

    Attributes:
        streams: requests at once.
        prefill_throughput: prompt tokens per second; None for *single*.
        output_throughput: generated tokens per second, all streams together. *single* counts its
            short prompt's time in, batches leave prefill out.
        roofline_share: roofline time over measured time of a decode step, 0–1.
        prefill_roofline_share: the same for the prompt; None without an integer peak.
    """

    streams: int
    prefill_throughput: float | None
    output_throughput: float
    median_ttft_ms: float
    mean_itl_ms: float
    roofline_share: float
    prefill_roofline_share: float | None


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The whole run; columns by name: `single`, then the numbers of streams."""

    model: dict[str, Any]
    roofline: Roofline
    columns: dict[str, Column]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Run:
    """One timed run, by the engine's own clock."""

    outputs: tuple[RequestOutput, ...]

    @property
    def seconds(self) -> float:
        """From the first request queued to the last token of all."""
        return elapsed_seconds(self.outputs)

    @property
    def median_ttft(self) -> float:
        return median(o.timings.ttft or 0.0 for o in self.outputs)

    @property
    def mean_itl(self) -> float:
        return fmean(_mean_itl(o) for o in self.outputs)


def _mean_itl(output: RequestOutput) -> float:
    first, last = output.timings.first_token, output.timings.last_token
    if first is None or last is None or len(output.token_ids) < 2:
        return 0.0
    return (last - first) / (len(output.token_ids) - 1)


class SelfBenchmark:
    """Runs the columns on a started engine that serves nobody else.

    Args:
        engine: ready, with at least as many rows as the largest batch.
        repeats: runs of each column; the best is reported, as for the peers.
        on_progress: told the name of each column before it runs.
    """

    def __init__(
        self,
        engine: AsyncPravahaEngine,
        *,
        repeats: int = 3,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._repeats = repeats
        self._on_progress = on_progress

    def run(self, batches: Sequence[int] = BATCHES) -> BenchmarkReport:
        """Measure the roofline, then *single* and every batch."""
        self._on_progress("roofline")
        roofline = self._measure_roofline(batches)
        self._on_progress("single")
        columns = {"single": self._single(roofline)}
        for streams in batches:
            self._on_progress(str(streams))
            columns[str(streams)] = self._batch(streams, roofline)
        return BenchmarkReport(asdict(self._engine.model_info), roofline, columns)

    def _single(self, roofline: Roofline) -> Column:
        """One stream, its short prompt counted in, as a person would wait for it."""
        self._generate(0, seed=0, new_tokens=2)  # warm: pages, caches, threads
        runs = [self._generate(0, seed=0, new_tokens=SINGLE_TOKENS) for _ in range(self._repeats)]
        best = min(runs, key=lambda run: run.seconds)
        rate = SINGLE_TOKENS / best.seconds
        return Column(
            streams=1,
            prefill_throughput=None,
            output_throughput=rate,
            median_ttft_ms=1e3 * best.median_ttft,
            mean_itl_ms=1e3 * best.mean_itl,
            roofline_share=self._step_floor(1, roofline, context=SINGLE_TOKENS / 2) * rate,
            prefill_roofline_share=None,
        )

    def _batch(self, streams: int, roofline: Roofline) -> Column:
        """Prefill and decode told apart by a run of 1 new token and one of 1 + `NEW_TOKENS`."""
        self._generate(streams, seed=1, new_tokens=2)
        short = [self._generate(streams, seed=2 + i, new_tokens=1) for i in range(self._repeats)]
        long = [
            self._generate(streams, seed=2 + self._repeats + i, new_tokens=1 + NEW_TOKENS)
            for i in range(self._repeats)
        ]
        prefill_s = min(run.seconds for run in short)
        best = min(long, key=lambda run: run.seconds)
        rate = streams * NEW_TOKENS / (best.seconds - prefill_s)
        prompt_tokens = streams * PROMPT_TOKENS
        prefill_floor = self._prefill_floor(prompt_tokens, roofline)
        return Column(
            streams=streams,
            prefill_throughput=prompt_tokens / prefill_s,
            output_throughput=rate,
            median_ttft_ms=1e3 * best.median_ttft,
            mean_itl_ms=1e3 * best.mean_itl,
            roofline_share=self._step_floor(streams, roofline, context=MEAN_CONTEXT)
            * rate
            / streams,
            prefill_roofline_share=prefill_floor / prefill_s if prefill_floor else None,
        )

    def _generate(self, streams: int, *, seed: int, new_tokens: int) -> _Run:
        """Run that many random prompts at once; 0 runs the text prompt of *single*."""
        sampling = SamplingParams(temperature=0.0, max_tokens=new_tokens, ignore_eos=True)
        if streams == 0:
            question = {"role": "user", "content": SINGLE_PROMPT}
            prompts = [self._engine.tokenizer.encode_chat([question])]
        else:
            prompts = random_prompts(streams, seed, self._engine.model_info.vocab_size)
        handles = [self._engine.submit(Request(tuple(p), sampling)) for p in prompts]
        return _Run(tuple(h.wait_result(RUN_TIMEOUT_S) for h in handles))

    # -- roofline ------------------------------------------------------------------------------

    def _measure_roofline(self, batches: Sequence[int]) -> Roofline:
        from engine import _core

        threads = self._engine.model_info.threads
        footprints = sorted({self._step_bytes(n, MEAN_CONTEXT) for n in (1, *batches)})
        # Neighbouring footprints share a measurement: they differ by less than the noise.
        read = {
            size: _core.measure_read_bandwidth(size, threads, 0.4)
            for size in {footprints[0], footprints[len(footprints) // 2], footprints[-1]}
        }
        quantised = self._engine.model_info.weight_format.upper().startswith("Q")
        peak = _core.measure_int8_dot(threads, 0.4) if quantised else None
        return Roofline(read, peak)

    def _step_bytes(self, streams: int, context: float) -> int:
        blocks = self._engine.snapshot().blocks
        kv_per_token = blocks.block_bytes / blocks.block_size
        return int(self._engine.model_info.weight_bytes + streams * context * kv_per_token)

    def _step_floor(self, streams: int, roofline: Roofline, *, context: float) -> float:
        """Seconds a decode step cannot beat."""
        size = self._step_bytes(streams, context)
        nearest = min(roofline.read_bytes_per_second, key=lambda s: abs(s - size))
        by_bytes = size / roofline.read_bytes_per_second[nearest]
        return max(
            by_bytes, self._compute_time(streams, self._engine.model_info.parameters, roofline)
        )

    def _prefill_floor(self, tokens: int, roofline: Roofline) -> float:
        """Seconds a prompt cannot beat; lm_head runs for the last token only and is left out."""
        spec = self._engine.spec
        body = self._engine.model_info.parameters - spec.vocab_size * spec.hidden_size
        return self._compute_time(tokens, body, roofline)

    @staticmethod
    def _compute_time(tokens: int, parameters: int, roofline: Roofline) -> float:
        if roofline.int8_ops_per_second is None:
            return 0.0
        return 2.0 * parameters * tokens / roofline.int8_ops_per_second


def random_prompts(count: int, seed: int, vocab_size: int) -> list[list[int]]:
    """Reproducible prompts of `PROMPT_TOKENS` ordinary token ids, the same for every engine."""
    generator = random.Random(seed)  # noqa: S311 - benchmark data, not a secret
    return [random_tokens(generator, PROMPT_TOKENS, vocab_size) for _ in range(count)]
