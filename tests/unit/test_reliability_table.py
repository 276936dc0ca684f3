"""`docs/reliability.md` names tests; each of them exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.findall(
    r"`((?:tests|rust_core)/[\w/]+\.(?:py|rs))(?:::(\w+))?`",
    (ROOT / "docs/reliability.md").read_text(),
)


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_the_table_names_tests_that_exist(path, name):
    source = (ROOT / path).read_text()
    assert re.search(rf"\b(def|fn) {name}\(", source) if name else "test" in source


def test_the_table_is_read():
    assert len(NAMED) > 30
