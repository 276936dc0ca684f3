"""`clients/run.py`: what it reads from the heads of the scripts, and which Python it takes for one."""

import re
import sys

import pytest

from clients.run import HERE, interpreter, read_script

SCRIPTS = [one for path in sorted(HERE.glob("*.py")) if (one := read_script(path))]
PINNED = re.compile(r"[\w.-]+(\[[\w,]+\])?==[\w.]+")


def test_the_folder_has_scripts_and_modules():
    names = {one.name for one in SCRIPTS}
    assert {"openai_suite", "vibe", "lm_eval_tasks"} <= names
    assert not {"run", "checks", "agent_task", "scripted_model"} & names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.name)
def test_a_head_names_pinned_packages_and_known_servers(script):
    assert script.packages
    assert [one for one in script.packages if not PINNED.fullmatch(one)] == []
    assert set(script.servers) <= {"model", "scripted"}
    assert script.servers


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.name)
def test_the_page_names_every_script(script):
    assert f"`{script.name}`" in (HERE.parent / "docs" / "clients.md").read_text()


def test_this_python_is_taken_if_it_fits():
    assert interpreter(">=3.11") == sys.executable
    assert interpreter(">=3.11,<3.13", own=12) == sys.executable
    assert interpreter(">=3.11,<3.13", own=13) != sys.executable


def test_another_python_is_looked_for_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter(">=3.12", own=11) is None
    newer = tmp_path / "python3.13"
    newer.write_text("")
    newer.chmod(0o755)
    assert interpreter(">=3.12", own=11) == str(newer)
    assert interpreter(">=3.12,<3.13", own=11) is None
