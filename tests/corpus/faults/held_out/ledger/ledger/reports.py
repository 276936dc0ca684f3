"""Sums of entries."""

from collections import defaultdict

from ledger.entries import Entry


def balance(entries: list[Entry], start: int = 0) -> int:
    return start + sum(entry.cents for entry in entries)


def by_month(entries: list[Entry]) -> dict[str, int]:
    """Sums by month such as `2025-03`; dates are written as `31.03.2025`."""
    sums: defaultdict[str, int] = defaultdict(int)
    for entry in entries:
        day, month, year = entry.booked.split(".")
        sums[f"{year}-{month}"] += entry.cents
    return dict(sorted(sums.items()))


def by_partner(entries: list[Entry]) -> list[tuple[str, int]]:
    """Partners with what was paid to them, the largest payment first; incomes are left out."""
    sums: defaultdict[str, int] = defaultdict(int)
    for entry in entries:
        if entry.cents < 0:
            sums[entry.partner] -= entry.cents
    return sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))


def matching(entries: list[Entry], word: str) -> list[Entry]:
    return [entry for entry in entries if word.lower() in entry.purpose.lower()]
