"""`pravaha agents profile` and the profile in `agents list`, with a scripted model."""

import asyncio
import json
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from agents.model import profile_record
from agents.model.profile_record import ProfileRecord
from agents.model.session import ModelSession
from app.commands.agents import profiling
from app.commands.agents.command import agents_app
from engine.api.errors import EngineUnavailable
from tests.fakes.scripted_client import ScriptedClient

RECORD = ProfileRecord(
    "toy",
    {
        "labels": {"a": True},
        "functions": {"f": True, "g": False},
        "outputs": {"Plan/x": True, "Text/y": False},
    },
    {"severity": {"helps": True, "baseline": 0.5, "with_model": 0.8}},
    is_complete=True,
    seconds=61.0,
)
runner = CliRunner()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(profile_record, "cache_dir", lambda: tmp_path)
    return tmp_path / "profiles"


@pytest.fixture
def client(monkeypatch):
    client = ScriptedClient()

    @contextmanager
    def opened(flags):
        client.flags = flags
        yield client

    monkeypatch.setattr(profiling, "open_model_client", opened)
    return client


def measured(monkeypatch, outcome):
    async def record(session, report):
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(profiling, "complete_record", record)


def test_results_are_printed_and_kept(client, cache, monkeypatch):
    measured(monkeypatch, RECORD)
    done = runner.invoke(agents_app, ["profile", "toy"])
    assert done.exit_code == 0, done.output
    assert client.flags["model"] == "toy"
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "labels 1 of 1 yes labels" in rows
    assert "functions 1 of 2 yes write" in rows
    assert "loops – not measured" in rows
    assert "Plan 1 of 1 yes writes Plan" in rows
    assert "Text 0 of 1 no" in rows
    assert "severity 0.50 → 0.80 yes votes" in rows
    identity = ModelSession(client).identity()
    assert profile_record.load_record(identity) == RECORD


def test_json_is_printed_or_written(client, cache, monkeypatch, tmp_path):
    measured(monkeypatch, RECORD)
    printed = runner.invoke(agents_app, ["profile", "toy", "--json", "-"])
    data = json.loads(printed.stdout)
    assert data["identity"] == ModelSession(client).identity()
    assert data["items"]["functions"] == {"f": True, "g": False}
    file = tmp_path / "profile.json"
    runner.invoke(agents_app, ["profile", "toy", "--json", str(file)])
    assert json.loads(file.read_text()) == data


def test_write_adds_to_the_packaged_profiles(client, cache, monkeypatch, tmp_path):
    measured(monkeypatch, RECORD)
    packaged = tmp_path / "profiles.json"
    packaged.write_text('{"other": {"version": 2}}')
    monkeypatch.setattr(profiling, "packaged_file", lambda: packaged)
    assert runner.invoke(agents_app, ["profile", "toy", "--write"]).exit_code == 0
    data = json.loads(packaged.read_text())
    assert set(data) == {"other", ModelSession(client).identity()}


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_interrupted_measurement_keeps_nothing(client, cache, monkeypatch, stop):
    measured(monkeypatch, stop)
    done = runner.invoke(agents_app, ["profile", "toy"])
    assert done.exit_code == 130
    assert "nothing was kept" in done.stderr
    assert not cache.exists()


def test_an_engine_that_fails_is_one_sentence(client, cache, monkeypatch):
    measured(monkeypatch, EngineUnavailable("The engine was stopped."))
    done = runner.invoke(agents_app, ["profile", "toy"])
    assert (done.exit_code, done.stderr) == (2, "pravaha: The engine was stopped.\n")
    assert not cache.exists()


@pytest.mark.parametrize(
    "arguments",
    [["profile", "no-such-model"], ["list", "--model", "no-such-model"]],
)
def test_an_unknown_model_is_one_sentence(cache, arguments):
    done = runner.invoke(agents_app, arguments)
    assert done.exit_code in (1, 2)
    assert "No model 'no-such-model' is installed" in done.stderr
    assert "Traceback" not in done.output


def test_two_models_are_refused(cache):
    done = runner.invoke(agents_app, ["profile", "one", "--model", "two"])
    assert done.exit_code == 2
    assert "contradict each other" in done.output


def test_no_model_and_allow_model_are_refused():
    for command in (["run", "planner"], ["repair", "."]):
        done = runner.invoke(agents_app, [*command, "--no-model", "--allow-model"])
        assert done.exit_code == 2
        assert "contradict each other" in done.output
