"""`FormatColumns`: decode and prefill throughput of engines that have one model loaded, in turns.

`SxC` decodes S streams with C private tokens of context each. Their prompts are computed once and then
found in the prefix cache, so each sample is a short run with one new token and a long one, and its
throughput is that of the difference. `prefillN` computes one prompt of N new tokens.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Protocol

from benchmarks.comparison import prompts
from benchmarks.driven_engine import DrivenEngine, OrderRefused
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.engine_turns import fill, lowest_ratios, throughput
from benchmarks.machine import say
from engine.benchmark.step_work import Ceilings, ModelWork, StepWork

DECODE = {
    "1x128": (1, 128),
    "4x128": (4, 128),
    "16x128": (16, 128),
    "64x128": (64, 128),
    "1x4096": (1, 4096),
    "1x8192": (1, 8192),
    "4x8192": (4, 8192),
}
"""Column → streams and context."""
PREFILL = {"prefill512": 512, "prefill4096": 4096}
"""Column → tokens of the prompt."""
CONTEXTS = (512, 128, 4096, 8192)
"""In the order in which they are measured: the longest takes most of the time."""
SEEDS_PER_CONTEXT = 1000
BASELINE = ", baseline"
"""Label of another checkout of ours, which is in no ratio."""

Sample = tuple[float, ...]
"""Seconds of a prefill, or of a short and a long run."""


class Work(Protocol):
    """What the steps of a model have to do at least; see `ModelWork`."""

    def decode(self, streams: int, context: float) -> StepWork:
        """The work of a step that decodes one token per stream."""

    def prefill(self, tokens: int) -> StepWork:
        """The work of a prompt."""


@dataclass(slots=True)
class FormatColumns:
    """Measures columns and keeps their samples and figures as plain data.

    Attributes:
        engines: started engines, ours first; one that fails is taken out.
        threads: threads of every engine, and of the ceilings.
        new_tokens: new tokens of a stream in a long run, without the first.
        rounds: samples of a column, given its context.
        until: instant of the monotonic clock by which rounds should have ended: one that would take
            longer, by the last one's duration, is left out.
        save: called after every round.
        work: of our engine's steps; None for what it says itself.
        columns: column → `seconds` of each engine's samples, `tokens_per_second`, `ratio_to_best_peer` and
            `share_of_roofline`, these three by the fastest samples and by the medians, and `ceilings`.
        skipped: engine → why it was taken out.
        ceilings: the highest measured ceilings of the machine.
    """

    engines: list[DrivenEngine]
    threads: int
    new_tokens: int
    rounds: Callable[[int], int]
    until: float
    save: Callable[[], None]
    work: Work | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    ceilings: Ceilings | None = None

    def measure(self, names: list[str]) -> None:
        """Measure the named columns."""
        for engine in self.engines:
            engine.run(Order(2, prompts(1, 0, 64)))
        for context in CONTEXTS:
            found = None
            if f"prefill{context}" in names:
                found = self._prefill(f"prefill{context}", context)
            wanted = [name for name, (_, tokens) in DECODE.items() if tokens == context]
            if not (wanted := [name for name in wanted if name in names]) or self._time_is_up():
                continue
            if found is None:
                streams = max(DECODE[name][0] for name in wanted)
                found = prompts(streams, SEEDS_PER_CONTEXT * context, context)
                self.engines = [engine for engine in self.engines if fill(engine, found)]
            for name in wanted:
                self._decode(name, found[: DECODE[name][0]])

    def _prefill(self, column: str, tokens: int) -> list[list[int]] | None:
        """Measure prompts; returns the last one, which every engine holds, or None."""
        last = None

        def run(engine: DrivenEngine, number: int) -> Sample:
            nonlocal last
            # New prompts in every round, or they would be found in the prefix cache.
            last = prompts(1, SEEDS_PER_CONTEXT * tokens + 1 + number, tokens)
            return (engine.run(Order(1, last)),)

        self._measure_rounds(column, tokens, run)
        return last

    def _decode(self, column: str, every: list[list[int]]) -> None:
        def run(engine: DrivenEngine, number: int) -> Sample:
            return engine.run(Order(1, every)), engine.run(Order(1 + self.new_tokens, every))

        self._measure_rounds(column, len(every[0]), run)

    def _measure_rounds(
        self, column: str, context: int, run: Callable[[DrivenEngine, int], Sample]
    ) -> None:
        """Run every engine in every round, in an order that rotates. Only whole rounds are kept."""
        samples: dict[str, list[Sample]] = {}
        taken = 0.0
        for number in range(self.rounds(context)):
            begin = time.monotonic()
            if self._time_is_up(taken) or not self.engines:
                return
            at = number % len(self.engines)
            for engine in self.engines[at:] + self.engines[:at]:
                say(f"round {number + 1}, {column}: {engine.name}")
                try:
                    sample = run(engine, number)
                except (ProcessFailed, OrderRefused) as reason:
                    say(f"{engine.name} is skipped from here on: {reason}")
                    self.skipped[engine.name] = str(reason)
                    self.engines.remove(engine)
                    samples.pop(engine.name, None)
                else:
                    samples.setdefault(engine.name, []).append(sample)
            self._measure_ceilings(column)
            self.columns[column] = self._figures(column, samples)
            self.save()
            taken = time.monotonic() - begin

    def _time_is_up(self, needed: float = 0.0) -> bool:
        if time.monotonic() + needed < self.until:
            return False
        say("time limit reached")
        return True

    # -- figures -----------------------------------------------------------------------------------

    def _figures(self, column: str, samples: dict[str, list[Sample]]) -> dict[str, Any]:
        rates = {name: self._rates(column, runs) for name, runs in samples.items()}
        figures: dict[str, Any] = {"seconds": samples, "tokens_per_second": rates}
        ours, *others = self.engines
        peers = [rates[peer.name] for peer in others if peer.recipe.label != BASELINE]
        own = rates[ours.name]
        figures["ratio_to_best_peer"] = lowest_ratios(own, peers)
        if self.ceilings:
            floor = self.ceilings.seconds(self._work(column)) / self._tokens(column)
            figures["ceilings"] = asdict(self.ceilings)
            figures["share_of_roofline"] = {n: floor * rate for n, rate in own.items() if rate}
        return figures

    def _rates(self, column: str, samples: list[Sample]) -> dict[str, float | None]:
        columns = [list(seconds) for seconds in zip(*samples, strict=True)]
        if column in PREFILL:
            (seconds,) = columns
            return {
                name: PREFILL[column] / typical(seconds)
                for name, typical in (("best", min), ("median", median))
            }
        return throughput(DECODE[column][0] * self.new_tokens, *columns)

    def _tokens(self, column: str) -> int:
        """Tokens of the step, or the prompt, that the roofline is of."""
        return PREFILL[column] if column in PREFILL else DECODE[column][0]

    def _work(self, column: str) -> StepWork:
        work = self.work or ModelWork(**self.engines[0].hello["work"])
        if column in PREFILL:
            return work.prefill(PREFILL[column])
        streams, context = DECODE[column]
        return work.decode(streams, context + self.new_tokens / 2)

    def _measure_ceilings(self, column: str) -> None:
        now = Ceilings.measure(
            [self._work(column).nbytes],
            threads=self.threads,
            integer=bool(self.engines[0].hello["work"]["integer"]),
            seconds_each=0.1,
        )
        self.ceilings = self.ceilings.best(now) if self.ceilings else now

    def result(self) -> dict[str, Any]:
        """All results as plain data."""
        return {"columns": self.columns, "skipped": self.skipped}
