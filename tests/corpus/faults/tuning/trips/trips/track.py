"""Recorded trips: points with a time in seconds and a place in metres."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    seconds: float
    x: float
    y: float


@dataclass
class Track:
    name: str
    points: list[Point]

    @property
    def metres(self) -> float:
        pairs = zip(self.points, self.points[1:])
        return sum(math.hypot(b.x - a.x, b.y - a.y) for a, b in pairs)

    @property
    def seconds(self) -> float:
        if len(self.points) < 2:
            return 0.0
        return self.points[-1].seconds - self.points[0].seconds


def without_pauses(track: Track, longest: float = 60.0) -> Track:
    """The track with pauses longer than `longest` seconds cut out of its times."""
    shift = 0.0
    kept: list[Point] = []
    for at, point in enumerate(track.points):
        if at:
            before = track.points[at - 1]
            gap = point.seconds - before.seconds
            if gap > longest and (before.x, before.y) == (point.x, point.y):
                shift += gap
        kept.append(Point(point.seconds - shift, point.x, point.y))
    return Track(track.name, kept)
