"""`Measurements`: the measured durations of an engine, and throughput and roofline shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

COLUMNS = ("single", "4", "16", "32", "64", "prefill")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of the runs, in tokens.

    Attributes:
        single: new tokens of *single*.
        prompt: prompt tokens per stream of a batch.
        new: new tokens per stream of a batch, without the first, which the prefill produces.
    """

    single: int = 128
    prompt: int = 64
    new: int = 64

    @property
    def mean_context(self) -> float:
        """Mean context length of a stream in a batch while it decodes."""
        return self.prompt + self.new / 2


@dataclass(slots=True)
class Measurements:
    """The measurements of one engine with one weight format.

    A batch is measured by pairs of runs: a *short* one with one new token, which is the prefill, and a
    *long* one with 1 + `lengths.new` tokens. Decode throughput is computed from their difference.

    Attributes:
        name: engine and weight format, as printed.
        version: version of the engine.
        lengths: lengths of the runs.
        single: seconds of the runs of *single*.
        short, long: number of streams → seconds of the runs of that batch.
    """

    name: str
    version: str
    lengths: Lengths = field(default_factory=Lengths)
    single: list[float] = field(default_factory=list)
    short: dict[int, list[float]] = field(default_factory=dict)
    long: dict[int, list[float]] = field(default_factory=dict)

    def best(self, column: str) -> float | None:
        """Tokens per second of the fastest runs; None if the column was not measured.

        The fastest short and the fastest long run may be of different rounds: both are close to the
        time of an undisturbed machine, so their difference is, too.
        """
        return self._rate(column, min)

    def median(self, column: str) -> float | None:
        """Tokens per second of the median runs; None if the column was not measured."""
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
        """Number of streams of the batch with the highest prefill throughput."""
        measured = {n: n / min(s) for n, s in self.short.items() if s}
        return max(measured, key=measured.__getitem__, default=None)

    def runs(self, column: str) -> int:
        """Number of runs behind the column's figure; for *prefill* those of its fastest batch."""
        if column == "single":
            return len(self.single)
        streams = self.fastest_prefill_batch() if column == "prefill" else int(column)
        return len(self.short.get(streams, ())) if streams is not None else 0

    def figures(self) -> dict[str, dict[str, float]]:
        """Column → best and median tokens per second, for the columns that were measured."""
        return {
            column: {"best": best, "median": middle}
            for column in COLUMNS
            if (best := self.best(column)) is not None
            and (middle := self.median(column)) is not None
        }


def shares(ours: Measurements, floors: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Column → best and median share of the roofline: the lower bound of a token's time × tokens per second.

    Args:
        ours: our measurements.
        floors: column → lower bound of the seconds per token.
    """
    return {
        column: {name: floors[column] * rate for name, rate in rates.items()}
        for column, rates in ours.figures().items()
        if column in floors
    }
