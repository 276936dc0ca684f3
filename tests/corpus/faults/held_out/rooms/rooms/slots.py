"""Time slots of a day in minutes since midnight."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Slot:
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= 24 * 60:
            raise ValueError("a slot ends after its start, on the same day")

    @property
    def minutes(self) -> int:
        return self.end - self.start

    def overlaps(self, other: "Slot") -> bool:
        """Whether both have a minute in common. A slot may begin when another one ends."""
        return self.start < other.end and other.start < self.end


def parse_slot(text: str) -> Slot:
    """Such as `9:30-11:00`."""

    def minutes(part: str) -> int:
        hour, minute = part.split(":")
        return int(hour) * 60 + int(minute)

    start, end = text.split("-")
    return Slot(minutes(start), minutes(end))
