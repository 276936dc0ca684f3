import pytest

from league.results import parse_match
from league.table import champion, render, table


def matches(*texts):
    return [parse_match(text) for text in texts]


def test_parse():
    assert parse_match("A 2:1 B").away_goals == 1
    with pytest.raises(ValueError):
        parse_match("A 2-1 B")


def test_points():
    rows = table(matches("A 1:0 B", "B 2:2 A"))
    assert [(row.team, row.points) for row in rows] == [("A", 4), ("B", 1)]


def test_goal_difference_decides():
    assert champion(matches("A 1:0 C", "B 3:0 D")) == "B"


def test_nobody():
    assert champion([]) is None


def test_render():
    assert render(table(matches("A 1:0 B"))) == ["1. A 3 (1:0)", "2. B 0 (0:1)"]
