"""`pravaha launch`: the list, the difference and its question, the start of a client, putting back."""

import json
import os
import sys
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.launch.clients import Server
from engine.api.errors import ModelError

SERVER = Server("http://127.0.0.1:8000", "toy")
RECORDER = """#!{python}
import json, os, sys
names = ("ANTHROPIC_BASE_URL", "OPENAI_API_BASE", "PRAVAHA_API_KEY")
told = {{name: os.environ.get(name) for name in names}}
with open({record!r}, "w") as file:
    json.dump({{"arguments": sys.argv[1:], "environment": told}}, file)
sys.exit(7)
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with nothing in it, and a PATH without clients."""
    for name in ("CODEX_HOME", "VIBE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PRAVAHA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PRAVAHA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def running(monkeypatch):
    monkeypatch.setattr("app.commands.launched_server.find_server", lambda settings: SERVER)


@pytest.fixture
def started(monkeypatch):
    """No server runs; one would be started, which is noted."""
    events = []

    @contextmanager
    def served(settings):
        events.append("start")
        yield
        events.append("stop")

    monkeypatch.setattr("app.commands.launched_server.find_server", lambda settings: None)
    monkeypatch.setattr("app.commands.launched_server.served", served)
    return events


def install(home, program):
    """A program that records how it was started."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    record = str(home / "record.json")
    (folder / program).write_text(RECORDER.format(python=sys.executable, record=record))
    (folder / program).chmod(0o755)


def recorded(home):
    return json.loads((home / "record.json").read_text())


def launch(*arguments, typed=None):
    return CliRunner().invoke(cli, ["launch", *arguments], input=typed)


def test_the_list_says_what_is_installed_and_where_settings_are(home):
    install(home, "codex")
    result = launch()
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines()}
    assert str(home / "bin" / "codex") in lines["codex"]
    assert str(home / ".codex" / "config.toml") in lines["codex"]
    assert " no " in lines["vibe"]
    assert "none needed" in lines["aider"]
    assert "not tried" in lines["opencode"]


def test_an_unknown_client_is_refused_with_the_near_one(home):
    result = launch("codx")
    assert result.exit_code == 2
    assert "codex" in result.output


def test_a_client_that_is_not_installed_changes_nothing(home, running):
    result = launch("vibe", "--yes")
    assert result.exit_code == 1
    assert "installs nothing" in result.output
    assert not (home / ".vibe").exists()


def test_printing_writes_nothing_and_needs_no_program(home, running):
    result = launch("codex", "--print", "--", "exec", "a b")
    assert result.exit_code == 0
    assert 'base_url = "http://127.0.0.1:8000/v1"' in result.output
    assert "codex exec 'a b'" in result.output
    assert not (home / ".codex").exists()


def test_a_client_without_settings_is_started_with_its_environment(home, running):
    install(home, "aider")
    result = launch("aider", "--", "--yes-always", "file.py")
    assert result.exit_code == 7
    assert recorded(home)["environment"]["OPENAI_API_BASE"] == "http://127.0.0.1:8000/v1"
    arguments = recorded(home)["arguments"]
    assert arguments == [
        "--model",
        "openai/toy",
        "--edit-format",
        "whole",
        "--yes-always",
        "file.py",
    ]


def test_settings_are_written_with_yes_and_put_back(home, running):
    install(home, "vibe")
    path = home / ".vibe" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(b"# mine\nactive_model = 'a'\n")
    result = launch("vibe", "--yes")
    assert result.exit_code == 7
    assert '+active_model = "pravaha"' in result.output
    assert "# mine" in path.read_text()
    assert "written by launch" in launch().output
    result = launch("vibe", "--undo")
    assert result.exit_code == 0
    assert path.read_bytes() == b"# mine\nactive_model = 'a'\n"
    assert launch("vibe", "--undo").exit_code == 1


def test_without_anybody_to_ask_nothing_is_written(home, running):
    install(home, "vibe")
    result = launch("vibe")
    assert result.exit_code == 1
    assert "nobody to ask" in result.output
    assert not (home / ".vibe").exists()
    assert not (home / "record.json").exists()


@pytest.mark.parametrize(("typed", "written"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_asked(home, running, monkeypatch, typed, written):
    install(home, "vibe")
    monkeypatch.setattr("app.commands.launch._can_ask", lambda: True)
    result = launch("vibe", typed=typed)
    assert (home / ".vibe" / "config.toml").exists() is written
    assert (home / "record.json").exists() is written
    assert result.exit_code == (7 if written else 1)


def test_settings_that_are_right_are_not_asked_about_again(home, running):
    install(home, "vibe")
    launch("vibe", "--yes")
    assert launch("vibe").exit_code == 7


def test_broken_settings_stay_as_they_are(home, running):
    install(home, "codex")
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(b"= broken")
    result = launch("codex", "--yes")
    assert result.exit_code == 1
    assert "is no valid TOML" in result.output
    assert path.read_bytes() == b"= broken"
    assert not (home / "record.json").exists()


def test_a_server_is_started_if_none_runs_and_stopped_at_the_end(home, started):
    install(home, "claude")
    result = launch("claude", "--model", "toy")
    assert result.exit_code == 7
    assert started == ["start", "stop"]
    assert recorded(home)["environment"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8000"
    launch("claude", "--port", "8123")
    assert recorded(home)["environment"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8123"


def test_a_model_that_cannot_be_loaded_is_said_and_nothing_is_started(home, monkeypatch):
    @contextmanager
    def served(settings):
        raise ModelError("The model toy is not installed.")
        yield

    monkeypatch.setattr("app.commands.launched_server.find_server", lambda settings: None)
    monkeypatch.setattr("app.commands.launched_server.served", served)
    install(home, "claude")
    result = launch("claude")
    assert result.exit_code == 1
    assert "The model toy is not installed." in result.output
    assert not (home / "record.json").exists()


def test_a_link_that_is_followed_stays_a_link(home, running):
    install(home, "codex")
    (home / "dot").mkdir()
    (home / ".codex").mkdir()
    (home / "dot" / "codex.toml").write_text("a = 1\n")
    os.symlink(home / "dot" / "codex.toml", home / ".codex" / "config.toml")
    assert launch("codex", "--yes").exit_code == 7
    assert (home / ".codex" / "config.toml").is_symlink()
    assert "[model_providers.pravaha]" in (home / "dot" / "codex.toml").read_text()


@pytest.mark.parametrize("options", [("--print", "--undo"), ("--yes", "--print")])
def test_contradictions_are_refused(home, options):
    result = launch("codex", *options)
    assert result.exit_code == 2
    assert "exclude each other" in result.output


@pytest.mark.parametrize("option", ["--print", "--yes", "--undo"])
def test_what_concerns_one_client_needs_its_name(home, option):
    result = launch(option)
    assert result.exit_code == 2
    assert "need a client" in result.output
