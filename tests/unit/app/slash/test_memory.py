"""`/memory`: what it prints for each of its arguments."""

import json
import stat

import pytest

from agents.memory.entry import USER
from agents.memory.store import MemoryStore
from app.slash.memory import run_memory
from engine.api.errors import InvalidRequest


@pytest.fixture
def path(tmp_path):
    with MemoryStore(tmp_path / "memory.db") as store:
        store.store_fact("build/command", "make amber", scope=USER, origin="user")
        store.store_fact("colour", "cedar\x1b[31m green", scope=USER, origin="planner")
    return tmp_path / "memory.db"


def test_nothing_is_created_by_looking(tmp_path):
    assert run_memory(tmp_path / "memory.db", "") == ["Nothing is remembered."]
    assert list(tmp_path.iterdir()) == []


def test_it_lists_searches_and_forgets(path):
    listed = run_memory(path, "")
    assert len(listed) == 4
    assert not any("\x1b" in line for line in listed)
    about, text = run_memory(path, "search amber")
    assert text == "  make amber"
    assert run_memory(path, f"forget {about.split()[0]}") == ["Forgot 1."]
    assert run_memory(path, "search amber") == ["Nothing is remembered about that."]


def test_it_exports_to_a_new_file_of_the_user_alone(path, tmp_path):
    file = tmp_path / "out.jsonl"
    assert run_memory(path, f"export {file}") == [f"Wrote 2 versions to {file}."]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {json.loads(line)["path"] for line in file.read_text().splitlines()} == {
        "build/command",
        "colour",
    }
    with pytest.raises(InvalidRequest, match="File exists"):
        run_memory(path, f"export {file}")


@pytest.mark.parametrize("argument", ["search", "forget", "export", "clear", "list 3"])
def test_another_argument_is_refused(path, argument):
    with pytest.raises(InvalidRequest, match="/memory takes"):
        run_memory(path, argument)


def test_an_unknown_id_forgets_nothing(path):
    known = run_memory(path, "")[0].split()[0]
    with pytest.raises(InvalidRequest, match="nothing was forgotten"):
        run_memory(path, f"forget {known} {'0' * 24}")
    assert len(run_memory(path, "")) == 4
