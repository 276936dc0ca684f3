"""Alarms over streams."""

from dataclasses import dataclass

from sensors.stream import Stream


@dataclass(frozen=True)
class Rule:
    limit: float
    seconds: float


def mean_of(stream: Stream, seconds: float) -> float | None:
    values = [one.value for one in stream.last(seconds)]
    return sum(values) / len(values) if values else None


def rate(stream: Stream, seconds: float) -> float:
    """Change per second over the last seconds."""
    window = stream.last(seconds)
    if len(window) < 2:
        return 0.0
    first, newest = window[0], window[-1]
    return (newest.value - first.value) * 1000 / (newest.time_ms - first.time_ms)


def alarms(streams: list[Stream], rule: Rule) -> list[str]:
    """Names of the streams whose mean is above the limit."""
    found = []
    for stream in streams:
        mean = mean_of(stream, rule.seconds)
        if mean is not None and mean > rule.limit:
            found.append(stream.name)
    return found
