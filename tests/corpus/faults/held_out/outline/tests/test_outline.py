import pytest

from outline.search import depth, find, numbered, path_to
from outline.tree import parse

TEXT = """# Start
words
## First
## Second
### Deep
# End
#no heading
"""


@pytest.fixture
def headings():
    return parse(TEXT)


def test_parse(headings):
    assert [one.title for one in headings] == ["Start", "End"]
    assert [one.title for one in headings[0].children] == ["First", "Second"]


def test_find(headings):
    assert find(headings, "End").level == 1
    assert find(headings, "Deep").level == 3
    assert find(headings, "Missing") is None


def test_path(headings):
    assert path_to(headings, "Deep") == ["Start", "Second", "Deep"]
    assert path_to(headings, "Missing") == []


def test_numbered(headings):
    assert numbered(headings) == ["1 Start", "1.1 First", "1.2 Second", "1.2.1 Deep", "2 End"]


def test_depth(headings):
    assert depth(headings) == 3
