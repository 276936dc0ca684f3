"""What was measured of each engine, and the figures made of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

COLUMNS = ("single", "4", "16", "32", "64", "prefill")


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long the runs are, in tokens.

    Attributes:
        single: new ones of *single*.
        prompt: of each stream of a batch.
        new: of each stream of a batch, beyond the first, which comes of the prompt.
    """

    single: int = 128
    prompt: int = 64
    new: int = 64

    @property
    def mean_context(self) -> float:
        """Tokens that a stream of a batch holds on average while it decodes."""
        return self.prompt + self.new / 2


@dataclass(slots=True)
class Standing:
    """One engine with one weight format.

    A batch is measured by pairs of runs: a *short* one of one new token, which is the prompts' prefill,
    and a *long* one of 1 + `lengths.new`. Decode throughput is that of the difference.

    Attributes:
        name: engine and weight format, as printed.
        version: the engine's own.
        single: seconds of the runs of *single*.
        short, long: by streams, seconds of the runs of a batch.
    """

    name: str
    version: str
    lengths: Lengths = field(default_factory=Lengths)
    single: list[float] = field(default_factory=list)
    short: dict[int, list[float]] = field(default_factory=dict)
    long: dict[int, list[float]] = field(default_factory=dict)

    def best(self, column: str) -> float | None:
        """Tokens per second of the fastest runs, or None where the column was not measured.

        The fastest short and the fastest long run need not be of one round: both come close to what an
        undisturbed machine takes, so their difference does, too.
        """
        return self._rate(column, min)

    def median(self, column: str) -> float | None:
        """The same of the median runs."""
        return self._rate(column, median)

    def _rate(self, column: str, typical: Callable[[list[float]], float]) -> float | None:
        if column == "single":
            return self.lengths.single / typical(self.single) if self.single else None
        if column == "prefill":
            rates = (n * self.lengths.prompt / typical(s) for n, s in self.short.items() if s)
            return max(rates, default=None)
        streams = int(column)
        if not self.long.get(streams):
            return None
        taken = typical(self.long[streams]) - typical(self.short[streams])
        return streams * self.lengths.new / taken if taken > 0 else None

    def fastest_prefill_batch(self) -> int | None:
        """Streams of the batch whose prompts were computed at the highest rate."""
        measured = {n: n / min(s) for n, s in self.short.items() if s}
        return max(measured, key=measured.__getitem__, default=None)

    def figures(self) -> dict[str, dict[str, float]]:
        """Column → best and median, of the columns that were measured."""
        return {
            column: {"best": best, "median": middle}
            for column in COLUMNS
            if (best := self.best(column)) is not None
            and (middle := self.median(column)) is not None
        }


def ratios(ours: Standing, peers: Iterable[Standing]) -> dict[str, float]:
    """Column → our best over the best of the peers; columns nobody else measured are left out."""
    peers = list(peers)
    result: dict[str, float] = {}
    for column in COLUMNS:
        rate = ours.best(column)
        others = [best for peer in peers if (best := peer.best(column)) is not None]
        if rate is not None and others:
            result[column] = rate / max(others)
    return result


def shares(ours: Standing, floors: Mapping[str, float]) -> dict[str, float]:
    """Column → the time that a token cannot beat, times our best tokens per second."""
    return {
        column: floors[column] * rate
        for column in COLUMNS
        if column in floors and (rate := ours.best(column)) is not None
    }
