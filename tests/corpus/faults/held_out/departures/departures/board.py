"""The board of an airport."""

from datetime import datetime, timedelta

from departures.flights import Flight, to_local, to_utc


def departures(flights: list[Flight], airport: str, now_utc: datetime) -> list[str]:
    """Numbers of the flights that leave an airport in the next twelve hours, the next one first."""
    leaving = []
    for flight in flights:
        if flight.origin != airport:
            continue
        wait = to_utc(flight.departs, airport) - now_utc
        if timedelta(0) <= wait <= timedelta(hours=12):
            leaving.append((wait, flight.number))
    return [number for _, number in sorted(leaving)]


def clock(airport: str, now_utc: datetime) -> str:
    return to_local(now_utc, airport).strftime("%H:%M")


def arrival_text(flight: Flight) -> str:
    """Such as `07:10+1` for the next day."""
    days = (flight.arrives.date() - flight.departs.date()).days
    suffix = f"{days:+}" if days else ""
    return f"{flight.arrives:%H:%M}{suffix}"


def connects(first: Flight, second: Flight, minutes: int = 45) -> bool:
    """Whether one can change from one flight to another."""
    if first.target != second.origin:
        return False
    return second.departs - first.arrives >= timedelta(minutes=minutes)
