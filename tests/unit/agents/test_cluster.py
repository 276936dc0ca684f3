"""Runs of one agent over toy agents."""

import asyncio

import pytest

from agents import Cluster
from agents.api.budget import Budget
from agents.api.errors import InvalidTask, UnknownAgent
from agents.api.events import RunEventType, RunState
from agents.runs.result import RunResult, result_from_fields


@pytest.fixture
def cluster(registry, roster):
    return Cluster(registry=registry, roster=roster)


async def test_a_run_delivers_the_findings_of_its_detectors(cluster, tmp_path):
    (tmp_path / "a.txt").write_text("good\na bad line\n")
    result = await cluster.run("words", [tmp_path])
    assert result.state is RunState.OK
    (finding,) = result.findings
    assert (finding.file, finding.line, finding.detector) == ("a.txt", 2, "bad_words")
    assert finding.evidence == "a bad line"


async def test_a_failing_detector_is_said_and_hides_nothing(cluster, tmp_path):
    (tmp_path / "a.txt").write_text("bad\n")
    result = await cluster.run("unlucky", [tmp_path])
    assert [one.rule for one in result.findings] == ["bad-word"]
    assert any("failing failed (RuntimeError: a bug in a detector)" in one for one in result.notes)


async def test_the_events_tell_states_and_findings(cluster, tmp_path):
    (tmp_path / "a.txt").write_text("bad\n")
    events = []
    await cluster.run("words", [tmp_path], on_start=lambda run: run.log.follow(events.append))
    assert [event.type for event in events] == [
        RunEventType.RUN_STATE,
        RunEventType.BUDGET,
        RunEventType.FINDING,
        RunEventType.RUN_STATE,
    ]
    assert [event.sequence for event in events] == [0, 1, 2, 3]


async def test_a_single_file_is_also_the_document(cluster, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a text")
    result = await cluster.run("echo", [path])
    assert result.output.text == "a text"


async def test_an_agents_failure_is_a_result(cluster):
    result = await cluster.run("broken")
    assert (result.state, result.error) == (RunState.FAILED, "There is nothing to do.")


async def test_the_time_budget_ends_a_run(cluster):
    result = await cluster.run("endless", budget=Budget(seconds=0.05))
    assert result.state is RunState.EXHAUSTED
    assert "0.05 s" in result.error


async def test_cancelling_the_task_finishes_the_run(cluster):
    runs, started = [], asyncio.Event()

    def begin(run):
        runs.append(run)
        run.log.follow(lambda event: started.set())

    task = asyncio.ensure_future(cluster.run("endless", on_start=begin))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runs[0].state is RunState.CANCELLED


async def test_unknown_agents_and_paths_are_refused(cluster, tmp_path):
    with pytest.raises(UnknownAgent, match="Did you mean words"):
        await cluster.run("word")
    with pytest.raises(InvalidTask, match="no file or folder"):
        await cluster.run("words", [tmp_path / "missing"])


async def test_a_result_survives_storing(cluster, registry, tmp_path):
    (tmp_path / "a.txt").write_text("bad\n")
    result = await cluster.run("words", [tmp_path])
    assert result_from_fields(result.stored_fields(), registry.outputs) == result


def test_a_stored_result_of_a_schema_that_is_gone_is_refused(registry):
    fields = RunResult("run-1", "x", RunState.OK).stored_fields() | {"schema": "Gone", "output": {}}
    with pytest.raises(InvalidTask, match="Gone"):
        result_from_fields(fields, registry.outputs)
