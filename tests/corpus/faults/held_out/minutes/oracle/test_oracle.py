import pytest

from minutes.figures import longest_turn
from minutes.transcript import Remark


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([], ("", 0)),
        ([("a", 1)], ("a", 1)),
        ([("a", 2), ("b", 1), ("a", 2)], ("a", 2)),
        ([("a", 2), ("a", 2), ("b", 3)], ("a", 4)),
        ([("b", 3), ("a", 2), ("a", 2)], ("a", 4)),
        ([("a", 1), ("b", 1), ("c", 1)], ("a", 1)),
        ([("a", 1), ("b", 5), ("a", 5), ("c", 6)], ("c", 6)),
    ],
)
def test_longest_turn(turns, expected):
    remarks = [Remark(name, " ".join(["word"] * count)) for name, count in turns]
    assert longest_turn(remarks) == expected
