"""Things to send: sizes in centimetres, weights in grams."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    length: float
    width: float
    height: float
    grams: int

    @property
    def sides(self) -> list[float]:
        """The longest side first."""
        return sorted([self.length, self.width, self.height], reverse=True)


@dataclass(frozen=True)
class Kind:
    name: str
    sides: tuple[float, float, float]
    grams: int
    cents: int


KINDS = (
    Kind("letter", (23.5, 12.5, 0.5), 20, 95),
    Kind("large letter", (35.3, 25.0, 2.0), 500, 180),
    Kind("packet", (35.3, 30.0, 15.0), 2000, 419),
    Kind("parcel", (120.0, 60.0, 60.0), 31500, 1049),
)
