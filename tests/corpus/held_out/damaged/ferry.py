"""Ferries."""

TIMES = {
    "north": [8, 12, 16],
    "south": [9, 13, 17],


def next_ferry(line: str, hour: int) -> int | None:
    return next((time for time in TIMES[line] if time > hour), None)
