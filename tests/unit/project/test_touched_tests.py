"""`scripts/touched_tests.py`, which chooses the tests of `make quick`."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.touched_tests import touched

SCRIPT = Path(__file__).parents[3] / "scripts" / "touched_tests.py"
SOURCES = {
    "tests/parity/test_pool.py": "from engine.memory.pool import Pool\n",
    "tests/retrieval/store/test_files.py": "from engine.retrieval import library\n",
    "tests/server/wire/test_chat.py": "from app.server.wire import (\n    chat,\n    errors,\n)\n",
    "tests/unit/agents/test_repair.py": 'setattr("agents.repair.heal.run", None)\n',
    "tests/unit/memory/test_pool.py": "from engine.memory.pool import Pool\n",
    "tests/unit/memory/test_trie.py": "from tests.fakes.trie import trie\n",
    "tests/unit/project/test_docs.py": "",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("engine/memory/pool.py", "tests/unit/memory/test_pool.py"),
        ("app/server/wire/errors.py", "tests/server/wire/test_chat.py"),
        ("agents/repair/heal.py", "tests/unit/agents/test_repair.py"),
        ("engine/retrieval/__init__.py", "tests/retrieval/store/test_files.py"),
        ("tests/fakes/trie.py", "tests/unit/memory/test_trie.py"),
        ("tests/parity/test_pool.py", "tests/parity/test_pool.py"),
        ("docs/ui.md", "tests/unit/project/test_docs.py"),
        ("Makefile", "tests/unit/project/test_docs.py"),
    ],
)
def test_a_change_touches_the_tests_that_import_or_name_what_changed(changed, expected):
    assert touched([changed], SOURCES) == [expected]


@pytest.mark.parametrize(
    ("changed", "folder"),
    [
        ("engine/memory/block.py", "tests/unit/memory/"),
        ("engine/memory/poo.py", "tests/unit/memory/"),
        ("engine/retrieval/store/rows.py", "tests/retrieval/store/"),
        ("app/server/wire/stream.py", "tests/server/wire/"),
        ("tests/server/wire/conftest.py", "tests/server/wire/"),
    ],
)
def test_a_module_that_no_test_imports_touches_the_tests_of_its_folder(changed, folder):
    assert touched([changed], SOURCES) == [one for one in SOURCES if one.startswith(folder)]


def test_a_change_of_data_touches_nothing():
    assert touched(["themes/night.yaml"], SOURCES) == []


def test_an_unknown_branch_is_refused_with_a_sentence():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--base", "no-such-branch"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("git merge-base failed: ")
