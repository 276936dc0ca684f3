"""`Comparison`: runs several engines interleaved on the same workloads and collects their results."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table

from benchmarks.driven_engine import DrivenEngine, OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.machine import say
from benchmarks.measurements import COLUMNS, Lengths, Measurements, shares
from benchmarks.peer_ratios import PeerRatio, peer_ratios
from engine.benchmark.self_benchmark import SINGLE_TEXT
from engine.benchmark.step_work import Ceilings, ModelWork
from engine.benchmark.workload import random_tokens

VOCABULARY = 49_152
"""Vocabulary size of the demo model; larger vocabularies contain these token ids."""
SLOW = 0.6
"""A peer below this fraction of the best peer in a column runs in no later round of that column."""
SLOW_RUNS = 2
"""Number of runs after which a peer can be too slow for a column."""


@dataclass(slots=True)
class ComparedEngine:
    """An engine in the comparison.

    Attributes:
        recipe: how to start it.
        peer: name of the peer; None for ours.
        rated: whether it counts in the ratios.
        engine: the process, once it is started.
        measurements: its results, once it is started.
        failure: why it is skipped; None if it is not.
        warm: columns whose warm-up run is done.
        refused: column → why it cannot run it.
        slow: columns in which it no longer runs, as it is far slower than the best peer.
    """

    recipe: Recipe
    peer: str | None = None
    rated: bool = True
    engine: DrivenEngine | None = None
    measurements: Measurements | None = None
    failure: str | None = None
    warm: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    slow: set[str] = field(default_factory=set)

    @property
    def display_name(self) -> str:
        """Name used in messages."""
        return self.measurements.name if self.measurements else self.recipe.display_name

    def runs_in(self, column: str) -> bool:
        """Whether it takes its turn in the column."""
        return self.failure is None and column not in self.refused and column not in self.slow

    def result(self) -> dict[str, object]:
        """Its version, format, measurements and rates as plain data."""
        if self.engine is None or self.measurements is None:
            return {"name": self.display_name, "failure": self.failure}
        hello = {key: value for key, value in self.engine.hello.items() if key != "work"}
        return {
            **hello,
            "model": self.recipe.model.name,
            **asdict(self.measurements),
            "runs": {column: self.measurements.runs(column) for column in COLUMNS},
            "tokens_per_second": self.measurements.figures(),
            "refused": self.refused,
            "slow": sorted(self.slow, key=COLUMNS.index),
            "failure": self.failure,
        }


def prompts(streams: int, seed: int, tokens: int) -> list[list[int]]:
    """Reproducible random prompts, the same for every engine."""
    generator = random.Random(seed)
    return [random_tokens(generator, tokens, VOCABULARY) for _ in range(streams)]


class Comparison:
    """Runs all engines in rounds and computes ratios and roofline shares."""

    def __init__(
        self,
        compared: list[ComparedEngine],
        columns: list[str],
        *,
        threads: int,
        repeats: int = 1,
        lengths: Lengths | None = None,
    ) -> None:
        """Prepare the comparison; engines are started on their first run.

        Args:
            compared: the engines, ours first.
            columns: from `measurements.COLUMNS`, without *prefill*, which is part of the batches.
            threads: threads of every engine.
            repeats: runs of a column per round.
            lengths: prompt and output lengths.
        """
        self._compared = compared
        self._columns = columns
        self._lengths = lengths or Lengths()
        self._threads = threads
        self._repeats = repeats
        self._column_s: dict[str, float] = {}
        self._work: ModelWork | None = None
        self._ceilings: Ceilings | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "Comparison":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, rounds: int, until: float) -> Iterator[int]:
        """Run the rounds; yields the number of the round after every column.

        Args:
            rounds: maximum number of rounds.
            until: instant of the monotonic clock by which all columns after the first round have ended;
                a column that would take longer, by its last duration, is left out.
        """
        for number in range(1, rounds + 1):
            ran = False
            for column in self._columns:
                begin = time.monotonic()
                if number > 1 and begin + self._column_s[column] > until:
                    continue
                ran = True
                running = [c for c in self._compared if c.failure is None]
                turn = (number - 1) % max(1, len(running))
                for compared_engine in running[turn:] + running[:turn]:
                    self._take_turn(compared_engine, column, number)
                self._drop_slow(column)
                self._measure_ceilings()
                self._column_s[column] = time.monotonic() - begin
                yield number
            if not ran:
                say(f"time limit reached after {number - 1} rounds")
                return

    def _take_turn(self, compared_engine: ComparedEngine, column: str, number: int) -> None:
        if not compared_engine.runs_in(column):
            return
        try:
            engine = compared_engine.engine or self._start(compared_engine)
            say(f"round {number}, {column}: {compared_engine.display_name}")
            assert compared_engine.measurements is not None
            self._measure(engine, compared_engine, compared_engine.measurements, column, number)
        except OrderRefused as reason:
            compared_engine.refused[column] = str(reason)
            say(f"{compared_engine.display_name} is skipped in column {column}: {reason}")
        except ProcessFailed as reason:
            compared_engine.failure = str(reason)
            say(f"{compared_engine.display_name} is skipped from here on: {reason}")

    def _start(self, compared_engine: ComparedEngine) -> DrivenEngine:
        say(f"starting {compared_engine.display_name}")
        missing = compared_engine.recipe.missing
        if missing is not None:
            raise ProcessFailed(f"{missing} does not exist")
        engine = DrivenEngine(compared_engine.recipe, threads=self._threads)
        self._stack.callback(engine.close)
        compared_engine.engine = engine
        compared_engine.measurements = Measurements(
            engine.name, str(engine.hello["version"]), self._lengths
        )
        if compared_engine.peer is None and compared_engine.rated:
            self._work = ModelWork(**engine.hello["work"])
        return engine

    def _measure(
        self,
        engine: DrivenEngine,
        compared_engine: ComparedEngine,
        measurements: Measurements,
        column: str,
        number: int,
    ) -> None:
        """Run a column; its first run is a warm-up and not counted."""
        first, lengths = column not in compared_engine.warm, self._lengths
        compared_engine.warm.add(column)
        if column == "single":
            if first:
                engine.run(Order(2, [], SINGLE_TEXT))
            measurements.single += [
                engine.run(Order(self._lengths.single, [], SINGLE_TEXT))
                for _ in range(self._repeats)
            ]
            return
        streams = int(column)
        if first:
            engine.run(Order(2, prompts(streams, 1, lengths.prompt)))
        for repeat in range(self._repeats):
            seed = 2 * (number * 100 + repeat)
            short = engine.run(Order(1, prompts(streams, seed, lengths.prompt)))
            long = engine.run(Order(1 + lengths.new, prompts(streams, seed + 1, lengths.prompt)))
            # Both or none: decode throughput is computed from their difference.
            measurements.short.setdefault(streams, []).append(short)
            measurements.long.setdefault(streams, []).append(long)

    def _drop_slow(self, column: str) -> None:
        """Leave peers that cannot be the best of a column out of its later rounds.

        They stay in the table with the runs they have. Without this the slowest formats would take most
        of the time, and all others would have fewer runs.
        """
        rates = {
            c.recipe: column_rates(c.measurements, column)
            for c in self._compared
            if c.peer is not None
            and c.measurements is not None
            and c.runs_in(column)
            and c.measurements.runs(column) >= SLOW_RUNS
        }
        best = [max(each) for each in zip(*rates.values(), strict=True)]
        for compared_engine in self._compared:
            own = rates.get(compared_engine.recipe)
            if own and all(r <= SLOW * most for r, most in zip(own, best, strict=True)):
                compared_engine.slow.add(column)
                say(
                    f"{compared_engine.display_name} runs in no later round of column {column}: "
                    f"below {SLOW:.0%} of the best peer"
                )

    def _measure_ceilings(self) -> None:
        if self._work is None:
            return
        now = Ceilings.measure(
            (
                self._work.decode(streams, self._lengths.mean_context).nbytes
                for streams in self._batches()
            ),
            threads=self._threads,
            integer=self._work.integer,
            seconds_each=0.05,
        )
        self._ceilings = self._ceilings.best(now) if self._ceilings else now

    def _batches(self) -> list[int]:
        """Numbers of streams of the columns; 1 for *single*."""
        return sorted({1 if column == "single" else int(column) for column in self._columns})

    # -- results -------------------------------------------------------------------------------

    @property
    def ours(self) -> Measurements | None:
        """The results of our rated engine, once it is started."""
        return next((c.measurements for c in self._compared if c.peer is None and c.rated), None)

    def measured(self) -> list[Measurements]:
        """Results of all engines that have any, ours first."""
        return [
            c.measurements for c in self._compared if c.measurements and c.measurements.figures()
        ]

    def ratios(self) -> dict[str, PeerRatio]:
        """Column → ours over the best peer."""
        peers = [c.measurements for c in self._compared if c.peer is not None and c.measurements]
        return peer_ratios(self.ours, peers) if self.ours else {}

    def shares(self) -> dict[str, dict[str, float]]:
        """Column → our share of the roofline, by the highest ceilings measured in the run."""
        if self._work is None or self._ceilings is None or self.ours is None:
            return {}
        seconds, work = self._ceilings.seconds, self._work
        lengths = self._lengths
        floors = {
            str(n): seconds(work.decode(n, lengths.mean_context)) / n for n in self._batches()
        }
        floors["single"] = seconds(work.decode(1, lengths.single / 2))
        if batch := self.ours.fastest_prefill_batch():
            tokens = batch * lengths.prompt
            floors["prefill"] = seconds(work.prefill(tokens)) / tokens
        return shares(self.ours, floors)

    def result(self, rounds: int) -> dict[str, object]:
        """All results as plain data."""
        return {
            "threads": self._threads,
            "rounds": rounds,
            "ceilings": asdict(self._ceilings) if self._ceilings else None,
            "slow_below": SLOW,
            "engines": [c.result() for c in self._compared if c.measurements or c.failure],
            "ratio_to_best_peer": {column: asdict(r) for column, r in self.ratios().items()},
            "share_of_roofline": self.shares(),
        }


def column_rates(measurements: Measurements, column: str) -> tuple[float, float]:
    """Best decode and prefill throughput of a column's own runs; 0 where there is none.

    The prefill counts, since the *prefill* column is the best prefill of any batch.
    """
    decode = measurements.best(column) or 0.0
    if column == "single":
        return decode, 0.0
    streams = int(column)
    short = measurements.short.get(streams)
    return decode, streams * measurements.lengths.prompt / min(short) if short else 0.0


def print_table(comparison: Comparison, console: Console) -> None:
    """Print best (median) of each engine, then ratios, the runs they are of, and roofline shares."""
    table = Table(title="tokens per second: best (median)", title_justify="left")
    table.add_column("")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for measurements in comparison.measured():
        rates = measurements.figures()
        table.add_row(measurements.name, *_cells(rates, lambda rate: f"{rate:,.0f}"))
    table.add_section()
    ratios = comparison.ratios()
    both = {column: {"best": r.best, "median": r.median} for column, r in ratios.items()}
    table.add_row("÷ best peer", *_cells(both, lambda ratio: f"{ratio:.2f}"))
    runs = (str(ratios[c].best_runs) if c in ratios else "–" for c in COLUMNS)
    table.add_row("runs of each", *runs)
    table.add_row("of roofline", *_cells(comparison.shares(), lambda share: f"{share:.0%}"))
    console.print(table)


def _cells(
    figures: Mapping[str, Mapping[str, float]], shown: Callable[[float], str]
) -> Iterator[str]:
    """Best (median) of every column."""
    for column in COLUMNS:
        cell = figures.get(column)
        yield f"{shown(cell['best'])} ({shown(cell['median'])})" if cell else "–"
