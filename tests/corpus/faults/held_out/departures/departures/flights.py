"""Flights with local times and the offset of each airport from UTC."""

from dataclasses import dataclass
from datetime import datetime, timedelta

OFFSETS = {"LIS": 0, "BER": 60, "ATH": 120, "DEL": 330, "JFK": -300, "SFO": -480}
"""Minutes east of UTC."""


def to_utc(local: datetime, airport: str) -> datetime:
    return local - timedelta(minutes=OFFSETS[airport])


def to_local(utc: datetime, airport: str) -> datetime:
    return utc + timedelta(minutes=OFFSETS[airport])


@dataclass(frozen=True)
class Flight:
    number: str
    origin: str
    target: str
    departs: datetime
    arrives: datetime

    @property
    def duration(self) -> timedelta:
        return to_utc(self.arrives, self.target) - to_utc(self.departs, self.origin)
