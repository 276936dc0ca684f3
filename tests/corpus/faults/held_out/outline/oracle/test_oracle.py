import pytest

from outline.search import find
from outline.tree import Heading, parse

TEXT = """# A
## A1
## A2
### A2x
#### A2xi
# B
## B1
### B1x
# C
"""


@pytest.mark.parametrize(
    ("title", "level"),
    [("A", 1), ("A1", 2), ("A2", 2), ("A2x", 3), ("A2xi", 4), ("B", 1), ("B1", 2), ("B1x", 3), ("C", 1)],
)
def test_all_are_found(title, level):
    found = find(parse(TEXT), title)
    assert (found.title, found.level) == (title, level)


def test_none_and_first():
    assert find([], "x") is None
    assert find(parse(TEXT), "x") is None
    twice = [Heading("a", 1, [Heading("b", 2)]), Heading("b", 1)]
    assert find(twice, "b").level == 2
