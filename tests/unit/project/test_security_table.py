"""`docs/security.md` names a test for each of the sixteen classes of bugs; each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = re.findall(r"(?m)^\| (\d+)\. [^|]*\|[^|]*\|(.*)\|$", (ROOT / "docs/security.md").read_text())
NAMED = r"`((?:tests|rust_core)/[\w/]+\.(?:py|rs))(?:::(\w+))?`"


def exists(path, name):
    """Whether a file holds a test of this name; the file itself if no name is given."""
    file = ROOT / path
    if not file.is_file():
        return False
    return not name or bool(re.search(rf"\b(?:def|fn) {name}\(", file.read_text()))


def test_every_class_has_tests():
    assert [int(number) for number, _ in ROWS] == list(range(1, 17))
    assert [number for number, tests in ROWS if not re.findall(NAMED, tests)] == []


def test_the_tests_exist():
    named = sorted({one for _, tests in ROWS for one in re.findall(NAMED, tests)})
    assert [f"{path}::{name}" for path, name in named if not exists(path, name)] == []
