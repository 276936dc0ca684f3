"""`Race`: runs several engines interleaved on the same workloads and collects their results."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table

from benchmarks.driven_engine import DrivenEngine, OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.machine import say
from benchmarks.standings import COLUMNS, Lengths, Standing, ratios, shares
from engine.benchmark.self_benchmark import SINGLE_TEXT
from engine.benchmark.step_work import Ceilings, ModelWork
from engine.benchmark.workload import random_tokens

VOCABULARY = 49_152
"""Vocabulary size of the demo model; larger vocabularies contain these token ids."""


@dataclass(slots=True)
class Contestant:
    """An engine in the comparison.

    Attributes:
        recipe: how to start it.
        peer: name of the peer; None for ours.
        rated: whether it counts in the ratios.
        rounds: number of rounds in which it runs; None for all.
        engine: the process, once it is started.
        standing: its results, once it is started.
        out: whether it failed and is skipped.
        warm: columns whose warm-up run is done.
        refused: columns that it cannot run.
    """

    recipe: Recipe
    peer: str | None = None
    rated: bool = True
    rounds: int | None = None
    engine: DrivenEngine | None = None
    standing: Standing | None = None
    out: bool = False
    warm: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    @property
    def display_name(self) -> str:
        """Name used in messages."""
        return self.standing.name if self.standing else self.recipe.display_name


def prompts(streams: int, seed: int, tokens: int) -> list[list[int]]:
    """Reproducible random prompts, the same for every engine."""
    generator = random.Random(seed)
    return [random_tokens(generator, tokens, VOCABULARY) for _ in range(streams)]


class Race:
    """Runs all contestants in rounds and computes ratios and roofline shares."""

    def __init__(
        self,
        contestants: list[Contestant],
        columns: list[str],
        *,
        threads: int,
        repeats: int = 1,
        lengths: Lengths | None = None,
    ) -> None:
        """Prepare the comparison; engines are started on their first run.

        Args:
            contestants: the engines, ours first.
            columns: from `standings.COLUMNS`, without *prefill*, which is part of the batches.
            threads: threads of every engine.
            repeats: runs of a column per round.
            lengths: prompt and output lengths.
        """
        self._contestants = contestants
        self._columns = columns
        self._lengths = lengths or Lengths()
        self._threads = threads
        self._repeats = repeats
        self._work: ModelWork | None = None
        self._ceilings: Ceilings | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "Race":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, rounds: int, until: float) -> Iterator[int]:
        """Run the rounds; yields the number of the round after every column.

        Args:
            rounds: maximum number of rounds.
            until: instant of the monotonic clock after which no round but the first starts.
        """
        for number in range(1, rounds + 1):
            if number > 1 and time.monotonic() >= until:
                say(f"time limit reached after {number - 1} rounds")
                return
            running = [c for c in self._contestants if not c.out and number <= (c.rounds or rounds)]
            turn = (number - 1) % len(running)
            for column in self._columns:
                for contestant in running[turn:] + running[:turn]:
                    self._take_turn(contestant, column, number)
                self._measure_ceilings()
                yield number

    def _take_turn(self, contestant: Contestant, column: str, number: int) -> None:
        if contestant.out or column in contestant.refused:
            return
        try:
            engine = contestant.engine or self._start(contestant)
            say(f"round {number}, {column}: {contestant.display_name}")
            assert contestant.standing is not None
            self._measure(engine, contestant, contestant.standing, column, number)
        except OrderRefused as reason:
            contestant.refused.add(column)
            say(f"{contestant.display_name} is skipped in column {column}: {reason}")
        except ProcessFailed as reason:
            contestant.out = True
            say(f"{contestant.display_name} is skipped from here on: {reason}")

    def _start(self, contestant: Contestant) -> DrivenEngine:
        say(f"starting {contestant.display_name}")
        missing = contestant.recipe.missing
        if missing is not None:
            raise ProcessFailed(f"{missing} does not exist")
        engine = DrivenEngine(contestant.recipe, threads=self._threads)
        self._stack.callback(engine.close)
        contestant.engine = engine
        contestant.standing = Standing(engine.name, str(engine.hello["version"]), self._lengths)
        if contestant.peer is None and contestant.rated:
            self._work = ModelWork(**engine.hello["work"])
        return engine

    def _measure(
        self,
        engine: DrivenEngine,
        contestant: Contestant,
        standing: Standing,
        column: str,
        number: int,
    ) -> None:
        """Run a column; its first run is a warm-up and not counted."""
        first, lengths = column not in contestant.warm, self._lengths
        contestant.warm.add(column)
        if column == "single":
            if first:
                engine.run(Order(2, [], SINGLE_TEXT))
            standing.single += [
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
            standing.short.setdefault(streams, []).append(short)
            standing.long.setdefault(streams, []).append(long)

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
    def ours(self) -> Standing | None:
        """The results of our rated engine, once it is started."""
        return next((c.standing for c in self._contestants if c.peer is None and c.rated), None)

    def standings(self) -> list[Standing]:
        """Results of all engines that have any, ours first."""
        return [c.standing for c in self._contestants if c.standing and c.standing.figures()]

    def ratio(self) -> dict[str, float]:
        """Column → ours over the best peer."""
        peers = [c.standing for c in self._contestants if c.peer is not None and c.standing]
        return ratios(self.ours, peers) if self.ours else {}

    def share(self) -> dict[str, float]:
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
            "contestants": [
                asdict(standing) | {"tokens_per_second": standing.figures()}
                for standing in self.standings()
            ],
            "ratio_to_best_peer": self.ratio(),
            "share_of_roofline": self.share(),
        }


def print_table(race: Race, console: Console) -> None:
    """Print best (median) of each engine, then ratios and roofline shares."""
    table = Table(title="tokens per second: best (median)", title_justify="left")
    table.add_column("")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for standing in race.standings():
        figures = standing.figures()
        cells = [
            f"{figures[c]['best']:,.0f} ({figures[c]['median']:,.0f})" if c in figures else "–"
            for c in COLUMNS
        ]
        table.add_row(standing.name, *cells)
    table.add_section()
    ratio, share = race.ratio(), race.share()
    table.add_row("÷ best peer", *(f"{ratio[c]:.2f}" if c in ratio else "–" for c in COLUMNS))
    table.add_row("of roofline", *(f"{share[c]:.0%}" if c in share else "–" for c in COLUMNS))
    console.print(table)
