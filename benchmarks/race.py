"""Engines that take turns at the same columns of work, and what came of it."""

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
"""Ids of the demo model; larger vocabularies have these, too."""


@dataclass(slots=True)
class Contestant:
    """An engine in the run.

    Attributes:
        peer: whose it is; None for ours.
        rated: whether it counts in the ratios.
        rounds: rounds it takes part in; None for all.
        engine: once it is started.
        out: it failed and takes no part any more.
        warm: columns that it has begun.
        refused: columns that it cannot do.
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
    def called(self) -> str:
        """For sentences about it."""
        return self.standing.name if self.standing else self.recipe.called


def prompts(streams: int, seed: int, tokens: int) -> list[list[int]]:
    """The same random prompts for every engine."""
    generator = random.Random(seed)
    return [random_tokens(generator, tokens, VOCABULARY) for _ in range(streams)]


class Race:
    """The rounds of all contestants, and what came of them."""

    def __init__(
        self,
        contestants: list[Contestant],
        columns: list[str],
        *,
        threads: int,
        repeats: int = 1,
        lengths: Lengths | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            contestants: ours first.
            columns: of `standings.COLUMNS`, without *prefill*, which comes with the batches.
            threads: of every engine.
            repeats: runs of a column in a round.
            lengths: of the runs.
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
        """Race; yields the number of the round after every column.

        Args:
            rounds: at most so many.
            until: no round after the first begins later, by the monotonic clock.
        """
        for number in range(1, rounds + 1):
            if number > 1 and time.monotonic() >= until:
                say(f"time is up after {number - 1} rounds")
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
            say(f"round {number}, {column}: {contestant.called}")
            assert contestant.standing is not None
            self._measure(engine, contestant, contestant.standing, column, number)
        except OrderRefused as reason:
            contestant.refused.add(column)
            say(f"{contestant.called} is skipped in column {column}: {reason}")
        except ProcessFailed as reason:
            contestant.out = True
            say(f"{contestant.called} is skipped from here on: {reason}")

    def _start(self, contestant: Contestant) -> DrivenEngine:
        say(f"starting {contestant.called}")
        missing = contestant.recipe.missing
        if missing is not None:
            raise ProcessFailed(f"there is no {missing}")
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
        """A column's runs; the first round begins with one that is not counted."""
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
            # Both or none, so that there is something to subtract.
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
        """Streams of the columns; 1 for *single*."""
        return sorted({1 if column == "single" else int(column) for column in self._columns})

    # -- results -------------------------------------------------------------------------------

    @property
    def ours(self) -> Standing | None:
        """Ours that counts, once it was started."""
        return next((c.standing for c in self._contestants if c.peer is None and c.rated), None)

    def standings(self) -> list[Standing]:
        """Everybody's that has measured something, ours first."""
        return [c.standing for c in self._contestants if c.standing and c.standing.figures()]

    def ratio(self) -> dict[str, float]:
        """Column → ours over the best peer."""
        peers = [c.standing for c in self._contestants if c.peer is not None and c.standing]
        return ratios(self.ours, peers) if self.ours else {}

    def share(self) -> dict[str, float]:
        """Column → our share of the roofline, by the highest ceilings seen in the run."""
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
        """Everything, as plain data."""
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
    """Best (median) of each contestant, then ratios and shares."""
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
