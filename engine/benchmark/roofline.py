"""Measures the machine's ceilings: read bandwidth, peak arithmetic throughput and barrier latency.

No model is involved. Each ceiling is measured by the native core with one thread and with all threads,
and is the best of several passes, since interference can only slow a pass down. Instructions that the
machine or the build lacks are listed without a value.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from engine import _core

FOOTPRINTS = (2_000_000, 16_000_000, 70_000_000, 140_000_000, 270_000_000, 1_000_000_000)
"""Sizes of the buffers that are read repeatedly, in bytes: from a core's private cache to main memory."""
SECONDS_EACH = 0.05
"""Duration of each measurement in a round, in seconds."""
ROUNDS = 3
"""Number of rounds; another program rarely disturbs the same measurement in all of them."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The read bandwidth at one footprint.

    Attributes:
        nbytes: the footprint, summed over threads.
        threads: number of threads, each reading its own part.
        huge_pages: whether huge pages were requested.
        bytes_per_second: summed over threads.
    """

    nbytes: int
    threads: int
    huge_pages: bool
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak throughput of one arithmetic instruction.

    Attributes:
        instruction: its name in the native core.
        data_type: type of its operands.
        ops_per_second: number of threads to operations per second, where a multiply-add is two
            operations; empty if the instruction is not available.
    """

    instruction: str
    data_type: str
    ops_per_second: dict[int, float]


@dataclass(frozen=True, slots=True)
class RooflineReport:
    """All ceilings of a machine.

    Attributes:
        dispatch: the instruction-set level that the engine selects.
        threads: the largest number of threads measured.
        bandwidths: one per footprint, number of threads and page size.
        peaks: one per instruction of the native core.
        barrier_seconds: latency of a barrier when all threads arrive at once.
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
    """Measure every ceiling. Takes 10 to 20 s and 1 GB of memory with the default footprints.

    Args:
        threads: number of threads to measure besides one; None for the engine's default.
        footprints: buffer sizes in bytes.
        seconds_each: duration of each measurement in each of `ROUNDS`.
        on_progress: called with the name of each measurement before it starts.

    Raises:
        MemoryError: the largest footprint does not fit into memory.
        ValueError: the number of threads is out of range.
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
