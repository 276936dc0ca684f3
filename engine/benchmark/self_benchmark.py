"""`SelfBenchmark`: throughput and latency of the loaded model, and the share of the roofline reached.

The workload is that of `benchmarks/peers.py`: *single* is one stream of 128 tokens from a short text;
a batch of n is n streams of 64 random prompt tokens and 64 new tokens each, greedy, ignoring
end-of-sequence. Requests go through the engine's public API, so scheduling and detokenisation are
included. Throughput is measured with the caller's clock, from the first submission to the last text
received; latencies with the engine's clock. The roofline is that of `engine.benchmark.step_work`.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from engine.api.request import Request, RequestOutput, SamplingParams
from engine.benchmark.pace import MAX_REPEATS, Pace
from engine.benchmark.step_work import Ceilings, ModelWork
from engine.benchmark.workload import random_tokens
from engine.runtime.engine import AsyncPravahaEngine

BATCHES = (1, 4, 16, 32, 64)
PROMPT_TOKENS = NEW_TOKENS = 64
SINGLE_TOKENS = 128
MEAN_CONTEXT = PROMPT_TOKENS + NEW_TOKENS / 2
"""Mean context length of a stream in a batch while it decodes."""
SINGLE_TEXT = (
    "<|im_start|>user\nWrite a long story about a dragon.<|im_end|>\n<|im_start|>assistant\n"
)
"""Prompt of *single*, the same for every engine, in the demo model's chat template."""
SINGLE_CONTEXT = 20 + SINGLE_TOKENS / 2
"""Mean context length of *single*."""
PACE_TOKENS = 9
"""Tokens of the stream that measures the pace of a model."""
RUN_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Column:
    """One row of the printed table. Latency names are those of `vllm bench serve`.

    Attributes:
        streams: concurrent requests.
        prefill_throughput: prompt tokens per second; None for *single*.
        output_throughput: generated tokens per second, summed over streams. *single* includes the
            time of its short prefill, batches exclude prefill.
        median_ttft_ms: median time to first token, in milliseconds.
        mean_itl_ms: mean inter-token latency, in milliseconds.
        roofline_share: roofline time over measured time of a decode step, 0–1.
        prefill_roofline_share: the same for prefill; None for *single* and for float weights.
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
    """The results of a run.

    Attributes:
        model: the fields of `ModelInfo`.
        roofline: the measured ceilings.
        columns: results by name: `single`, then the numbers of streams.
        repeats: runs of each column, of which the best is reported.
    """

    model: dict[str, Any]
    roofline: Ceilings
    columns: dict[str, Column]
    repeats: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Run:
    """One timed run.

    Attributes:
        outputs: the finished requests.
        seconds: duration by the caller's clock.
    """

    outputs: tuple[RequestOutput, ...]
    seconds: float

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
    """Runs the benchmark on a started engine without other requests.

    Args:
        engine: a ready engine with at least as many rows as the largest batch.
        repeats: runs of each column; the best one is reported, as for the peers. None takes as many as fit
            in `BUDGET_S`, at most `MAX_REPEATS` and at least one.
        on_progress: called before each column runs with its name and the predicted seconds until the end.
        on_estimate: called once with the predicted seconds and the runs of each column, before the first.
    """

    def __init__(
        self,
        engine: AsyncPravahaEngine,
        *,
        repeats: int | None = None,
        on_progress: Callable[[str, float], None] = lambda _, __: None,
        on_estimate: Callable[[float, int], None] = lambda _, __: None,
    ) -> None:
        self._engine = engine
        self._given_repeats = repeats
        self._repeats = repeats or MAX_REPEATS
        self._on_progress = on_progress
        self._on_estimate = on_estimate

    def run(self, batches: Sequence[int] = BATCHES) -> BenchmarkReport:
        """Measure the pace and the roofline, then *single* and every batch."""
        work = ModelWork.of(self._engine)
        pace = self._pace()
        self._repeats = self._given_repeats or pace.repeats(batches)
        seconds = pace.seconds(batches, self._repeats)
        self._on_estimate(seconds, self._repeats)
        self._on_progress("roofline", seconds)
        ceilings = Ceilings.measure(
            (work.decode(streams, MEAN_CONTEXT).nbytes for streams in (1, *batches)),
            threads=self._engine.model_info.threads,
            integer=work.integer,
            seconds_each=0.2,
        )
        self._on_progress("single", seconds)
        columns = {"single": self._single(work, ceilings)}
        for index, streams in enumerate(batches):
            left = pace.seconds(batches[index:], self._repeats, single=False)
            self._on_progress(str(streams), left)
            columns[str(streams)] = self._batch(streams, work, ceilings)
        info = asdict(self._engine.model_info)
        return BenchmarkReport(info, ceilings, columns, self._repeats)

    def _pace(self) -> Pace:
        """The model's speed, from one prompt and a few tokens; the first run warms up pages and caches."""
        vocabulary = self._engine.model_info.vocab_size
        self._generate(random_prompts(1, -2, vocabulary), new_tokens=2)
        run = self._generate(random_prompts(1, -1, vocabulary), new_tokens=PACE_TOKENS)
        return Pace(PROMPT_TOKENS, NEW_TOKENS, SINGLE_TOKENS, run.median_ttft, run.mean_itl)

    def _single(self, work: ModelWork, ceilings: Ceilings) -> Column:
        """One stream, including the prefill of its short prompt."""
        prompt = self._engine.tokenizer.encode(SINGLE_TEXT, special=True)
        self._generate([prompt], new_tokens=2)  # warm-up: pages, caches, threads
        runs = [self._generate([prompt], new_tokens=SINGLE_TOKENS) for _ in range(self._repeats)]
        best = min(runs, key=lambda run: run.seconds)
        rate = SINGLE_TOKENS / best.seconds
        return Column(
            streams=1,
            prefill_throughput=None,
            output_throughput=rate,
            median_ttft_ms=1e3 * best.median_ttft,
            mean_itl_ms=1e3 * best.mean_itl,
            roofline_share=ceilings.seconds(work.decode(1, SINGLE_CONTEXT)) * rate,
            prefill_roofline_share=None,
        )

    def _batch(self, streams: int, work: ModelWork, ceilings: Ceilings) -> Column:
        """One batch. Runs with 1 and with 1 + `NEW_TOKENS` new tokens separate prefill and decode."""
        vocabulary = self._engine.model_info.vocab_size
        self._generate(random_prompts(streams, 1, vocabulary), new_tokens=2)
        short, long = [], []
        for repeat in range(self._repeats):
            prompts = random_prompts(streams, 2 + 2 * repeat, vocabulary)
            short.append(self._generate(prompts, new_tokens=1))
            prompts = random_prompts(streams, 3 + 2 * repeat, vocabulary)
            long.append(self._generate(prompts, new_tokens=1 + NEW_TOKENS))
        prefill_s = min(run.seconds for run in short)
        best = min(long, key=lambda run: run.seconds)
        rate = streams * NEW_TOKENS / (best.seconds - prefill_s)
        prompt_tokens = streams * PROMPT_TOKENS
        return Column(
            streams=streams,
            prefill_throughput=prompt_tokens / prefill_s,
            output_throughput=rate,
            median_ttft_ms=1e3 * best.median_ttft,
            mean_itl_ms=1e3 * best.mean_itl,
            roofline_share=ceilings.seconds(work.decode(streams, MEAN_CONTEXT)) * rate / streams,
            prefill_roofline_share=ceilings.seconds(work.prefill(prompt_tokens)) / prefill_s
            if work.integer
            else None,
        )

    def _generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int) -> _Run:
        """Run the prompts concurrently."""
        sampling = SamplingParams(temperature=0.0, max_tokens=new_tokens, ignore_eos=True)
        start = time.perf_counter()
        handles = [self._engine.submit(Request(tuple(p), sampling)) for p in prompts]
        outputs = tuple(h.wait_result(RUN_TIMEOUT_S) for h in handles)
        return _Run(outputs, time.perf_counter() - start)


def random_prompts(count: int, seed: int, vocab_size: int) -> list[list[int]]:
    """Reproducible prompts of `PROMPT_TOKENS` ordinary token ids, the same for every engine."""
    generator = random.Random(seed)  # noqa: S311 - benchmark data, not a secret
    return [random_tokens(generator, PROMPT_TOKENS, vocab_size) for _ in range(count)]
