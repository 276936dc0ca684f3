"""Summaries by station."""

from collections import defaultdict

from weather.readings import Day


def by_station(days: list[Day]) -> dict[str, list[Day]]:
    found: defaultdict[str, list[Day]] = defaultdict(list)
    for day in days:
        found[day.station].append(day)
    return dict(found)


def summary(days: list[Day]) -> dict[str, float]:
    return {
        "lowest": min(day.low for day in days),
        "highest": max(day.high for day in days),
        "rain": round(sum(day.rain for day in days), 1),
        "frost_days": sum(day.low < 0 for day in days),
    }


def report(days: list[Day]) -> list[str]:
    lines = []
    for station, own in sorted(by_station(days).items()):
        values = summary(own)
        lines.append(
            f"{station}: {values['lowest']:.1f} to {values['highest']:.1f} °C, "
            f"{values['rain']:.1f} mm, {values['frost_days']} days of frost"
        )
    return lines


def warmest(days: list[Day]) -> str:
    """Name of the station with the highest reading."""
    best = {station: summary(own)["highest"] for station, own in by_station(days).items()}
    return max(best, key=lambda station: best[station])
