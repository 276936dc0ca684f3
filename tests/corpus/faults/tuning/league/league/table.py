"""The table of a league."""

from dataclasses import dataclass

from league.results import Match


@dataclass
class Row:
    team: str
    played: int = 0
    points: int = 0
    scored: int = 0
    conceded: int = 0

    @property
    def difference(self) -> int:
        return self.scored - self.conceded

    def add(self, scored: int, conceded: int) -> None:
        self.played += 1
        self.scored += scored
        self.conceded += conceded
        if scored > conceded:
            self.points += 3
        elif scored == conceded:
            self.points += 1


def table(matches: list[Match]) -> list[Row]:
    """The teams: most points first, then the better goal difference, then more goals, then by name."""
    rows: dict[str, Row] = {}
    for match in matches:
        rows.setdefault(match.home, Row(match.home)).add(match.home_goals, match.away_goals)
        rows.setdefault(match.away, Row(match.away)).add(match.away_goals, match.home_goals)
    return sorted(rows.values(), key=lambda row: (-row.points, -row.difference, -row.scored, row.team))


def champion(matches: list[Match]) -> str | None:
    rows = table(matches)
    return rows[0].team if rows else None


def render(rows: list[Row]) -> list[str]:
    return [
        f"{place}. {row.team} {row.points} ({row.scored}:{row.conceded})"
        for place, row in enumerate(rows, 1)
    ]
