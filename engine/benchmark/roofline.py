"""What this machine allows at most: read bandwidth, arithmetic peaks and barriers, without any model.

Every figure is measured here and now by the native core, by one thread and by all of them, and is the best
of many passes: interference only ever slows one down. Instructions that this machine or build lacks are named
without a figure.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from engine import _core

FOOTPRINTS = (2_000_000, 16_000_000, 70_000_000, 140_000_000, 270_000_000, 1_000_000_000)
"""Bytes read over and over: from what a core's own cache holds to what none does."""
SECONDS_EACH = 0.05
"""Time each figure is measured for in a round."""
ROUNDS = 3
"""Everything is measured so often, apart in time: another program seldom disturbs all of them."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Reading one footprint.

    Attributes:
        nbytes: the footprint, all threads together.
        threads: how many read, each its own part.
        huge_pages: whether huge pages were asked for.
        bytes_per_second: all threads together.
    """

    nbytes: int
    threads: int
    huge_pages: bool
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Peak:
    """One arithmetic instruction.

    Attributes:
        instruction: its name in the native core.
        data_type: what it multiplies.
        ops_per_second: by number of threads, multiplications and additions counted apart; empty where
            it was not measured.
    """

    instruction: str
    data_type: str
    ops_per_second: dict[int, float]


@dataclass(frozen=True, slots=True)
class RooflineReport:
    """All ceilings of a machine.

    Attributes:
        dispatch: the instruction-set level that the engine would choose.
        threads: the largest number of threads measured.
        bandwidths: every footprint, by threads and pages.
        peaks: every instruction that the core knows.
        barrier_seconds: the time in which all threads meet when nobody is late.
    """

    dispatch: str
    threads: int
    bandwidths: tuple[Bandwidth, ...]
    peaks: tuple[Peak, ...]
    barrier_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return asdict(self)


def measure_roofline(
    threads: int | None = None,
    *,
    footprints: tuple[int, ...] = FOOTPRINTS,
    seconds_each: float = SECONDS_EACH,
    on_progress: Callable[[str], None] = lambda _: None,
) -> RooflineReport:
    """Measure every ceiling; ten to twenty seconds, and a gigabyte of memory, with the default footprints.

    Args:
        threads: how many to measure beside one; None takes as many as the engine would.
        footprints: bytes to read.
        seconds_each: time for each figure in each of `ROUNDS`.
        on_progress: told what is measured next.

    Raises:
        MemoryError: the largest footprint does not fit.
        ValueError: the number of threads is absurd.
    """
    features = _core.cpu_features()
    most = threads if threads is not None else int(str(features["threads"]))
    counts = sorted({1, most})
    instructions = _core.peak_instructions()
    reads: dict[tuple[int, int, bool], float] = {}
    rates: dict[tuple[str, int], float] = {}
    barrier = float("inf")
    for _ in range(ROUNDS):
        for nbytes in footprints:
            on_progress(f"{nbytes / 1e6:,.0f} MB")
            for count, huge in product(counts, (True, False)):
                rate = _core.measure_read_bandwidth(nbytes, count, seconds_each, huge_pages=huge)
                reads[nbytes, count, huge] = max(rate, reads.get((nbytes, count, huge), 0.0))
        for instruction, _, available in instructions:
            on_progress(instruction)
            for count in counts if available else ():
                rate = _core.measure_peak(instruction, count, seconds_each)
                rates[instruction, count] = max(rate, rates.get((instruction, count), 0.0))
        on_progress("barriers")
        barrier = min(barrier, _core.measure_barrier(most, seconds_each))
    peaks = (
        Peak(name, kind, {n: rates[name, n] for n in counts if available})
        for name, kind, available in instructions
    )
    return RooflineReport(
        dispatch=str(features["level"]),
        threads=most,
        bandwidths=tuple(Bandwidth(*key, rate) for key, rate in reads.items()),
        peaks=tuple(peaks),
        barrier_seconds=barrier,
    )
