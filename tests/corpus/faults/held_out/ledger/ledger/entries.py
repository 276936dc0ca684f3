"""Entries of an account from a bank's table."""

import csv
import io
from dataclasses import dataclass

COLUMNS = ["booked", "valued", "partner", "purpose", "amount"]


@dataclass(frozen=True)
class Entry:
    booked: str
    partner: str
    purpose: str
    cents: int


def to_cents(text: str) -> int:
    """`-1.234,50` as -123450."""
    digits = text.strip().replace(".", "")
    whole, _, rest = digits.partition(",")
    sign = -1 if whole.startswith("-") else 1
    return sign * (abs(int(whole)) * 100 + int(rest.ljust(2, "0")[:2]))


def parse(text: str) -> list[Entry]:
    reader = csv.DictReader(io.StringIO(text), fieldnames=COLUMNS, delimiter=";")
    return [
        Entry(row["booked"], row["partner"].strip(), row["purpose"].strip(), to_cents(row["amount"]))
        for row in reader
    ]
