from league.results import parse_match
from league.table import table


def order(*texts):
    return [row.team for row in table([parse_match(text) for text in texts])]


def test_full_order():
    assert order("A 1:0 C", "B 3:0 D") == ["B", "A", "C", "D"]
    assert order("A 1:0 X", "B 2:1 Y") == ["B", "A", "Y", "X"]
    assert order("A 3:2 X", "B 2:0 Y")[0] == "B"
    assert order("B 1:0 X", "A 1:0 Y") == ["A", "B", "X", "Y"]


def test_points_before_goals():
    assert order("A 1:0 B", "A 0:0 C", "C 0:0 B", "D 0:0 C", "B 0:9 E", "E 0:1 A")[0] == "A"
