"""`PeerRatio`: our throughput over the best peer's, from equally many runs of both.

The fastest of many runs is faster than the fastest of few, so the best of unequal numbers of runs favours
the engine that ran more often. Only the first runs of both engines are compared, as many as the one with
fewer has; engines run in turns, so these are runs of the same rounds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks.measurements import COLUMNS, Measurements


@dataclass(frozen=True, slots=True)
class PeerRatio:
    """Our throughput in a column over that of the best peer.

    Attributes:
        best: ratio of the fastest runs, over the peer with which it is lowest.
        best_peer: that peer.
        best_runs: number of runs of both engines in that ratio.
        median: ratio of the medians, over the peer with which it is lowest.
        median_peer: that peer.
        median_runs: number of runs of both engines in that ratio.
    """

    best: float
    best_peer: str
    best_runs: int
    median: float
    median_peer: str
    median_runs: int


def equal_runs(ours: Measurements, peer: Measurements) -> tuple[Measurements, Measurements]:
    """Both with equally many runs of *single* and of each batch, the first ones of each."""
    single = min(len(ours.single), len(peer.single))
    runs = {
        streams: min(len(ours.long[streams]), len(peer.long[streams]))
        for streams in ours.long.keys() & peer.long.keys()
    }

    def first(measurements: Measurements) -> Measurements:
        return replace(
            measurements,
            single=measurements.single[:single],
            short={streams: measurements.short[streams][:n] for streams, n in runs.items()},
            long={streams: measurements.long[streams][:n] for streams, n in runs.items()},
        )

    return first(ours), first(peer)


def peer_ratios(ours: Measurements, peers: Iterable[Measurements]) -> dict[str, PeerRatio]:
    """Column → ratio; columns that no peer was measured in are left out."""
    pairs = [equal_runs(ours, peer) for peer in peers]
    result: dict[str, PeerRatio] = {}
    for column in COLUMNS:
        best = [
            (mine / theirs, peer.name, peer.runs(column))
            for own, peer in pairs
            if (mine := own.best(column)) and (theirs := peer.best(column))
        ]
        medians = [
            (mine / theirs, peer.name, peer.runs(column))
            for own, peer in pairs
            if (mine := own.median(column)) and (theirs := peer.median(column))
        ]
        if best and medians:
            result[column] = PeerRatio(*min(best), *min(medians))
    return result
