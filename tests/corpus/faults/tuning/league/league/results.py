"""Results of matches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Match:
    home: str
    away: str
    home_goals: int
    away_goals: int


def parse_match(text: str) -> Match:
    """Such as `Ajax 2:1 Benfica`."""
    home, score, away = text.split()
    goals = score.split(":")
    if len(goals) != 2:
        raise ValueError(f"no score in {text!r}")
    return Match(home, away, int(goals[0]), int(goals[1]))
