"""`docs/reliability.md` and `docs/ui.md` name tests; each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/reliability.md").read_text()
SCREEN = (ROOT / "docs/ui.md").read_text()
_TEST = r"`((?:tests|rust_core)/[\w/]+\.(?:py|rs))(?:::(\w+))?`"
NAMED = re.findall(_TEST, TEXT)


def exists(path, name):
    """Whether a file holds a test of this name, or any test when no name is given."""
    file = ROOT / path
    source = file.read_text() if file.is_file() else ""
    return bool(re.search(rf"\b(def|fn) {name}\(", source)) if name else "test" in source


def test_the_table_names_tests_that_exist():
    named = {*NAMED, *re.findall(_TEST, SCREEN)}
    missing = [f"{path}::{name}" for path, name in sorted(named) if not exists(path, name)]
    assert missing == []


def test_every_item_has_its_row():
    items = {int(item) for item in re.findall(r"(?m)^\| (\d+) \|", TEXT)}
    assert items == set(range(1, 66))


def test_a_test_is_named_by_its_whole_path():
    mentioned = re.findall(r"`([^`\n]*(?:::|\btest_)[^`\n]*)`", TEXT)
    whole = {f"{path}::{name}" if name else path for path, name in NAMED}
    assert set(mentioned) - whole == {"test_"}
