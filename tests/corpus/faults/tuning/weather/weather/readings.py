"""Daily readings of stations."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Day:
    station: str
    date: str
    low: float
    high: float
    rain: float


def parse_day(row: dict[str, str]) -> Day:
    """A day from a row with the columns station, date, tmin, tmax and rain (`-` for none)."""
    rain = 0.0 if row["rain"] == "-" else float(row["rain"])
    return Day(row["station"], row["date"], float(row["tmin"]), float(row["tmax"]), rain)


def parse_table(lines: Iterable[str]) -> list[Day]:
    rows = [line.strip().split(";") for line in lines if line.strip()]
    head, *body = rows
    return [parse_day(dict(zip(head, row))) for row in body]
