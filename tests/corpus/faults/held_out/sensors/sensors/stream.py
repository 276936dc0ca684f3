"""Samples of sensors, with times in milliseconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    time_ms: int
    value: float


class Stream:
    def __init__(self, name: str) -> None:
        self.name = name
        self.samples: list[Sample] = []

    def push(self, time_ms: int, value: float) -> None:
        if self.samples and time_ms <= self.samples[-1].time_ms:
            raise ValueError("times must grow")
        self.samples.append(Sample(time_ms, value))

    def last(self, seconds: float) -> list[Sample]:
        """The samples of the last seconds before the newest one, that one included."""
        if not self.samples:
            return []
        since = self.samples[-1].time_ms - seconds * 1000
        return [one for one in self.samples if one.time_ms >= since]
