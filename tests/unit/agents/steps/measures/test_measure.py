"""A measurement tells how far it is, can be cancelled, and keeps nothing half-measured."""

import asyncio

import pytest

from agents.api.agent_spec import Capability
from agents.api.errors import ModelFailure
from agents.api.events import RunEventType
from agents.model import profile_record
from agents.model.layout import SharedLayout
from agents.model.profile_record import load_record
from agents.model.session import ModelSession
from agents.outputs.findings import Findings
from agents.outputs.plan import Plan
from agents.outputs.summary import Summary
from agents.outputs.text import Text
from agents.procedures.procedure import AgentTask
from agents.steps.measures import model_profiles
from agents.steps.measures.answer_items import ANSWERS
from agents.steps.measures.bench import Suite
from agents.steps.measures.measure import Measurement
from agents.steps.model_phase import StepsPhase
from tests.fakes.scripted_client import ScriptedClient
from tests.fakes.step_run import FakeStepRun


def suite(name, *rights, gate=None):
    """Items with known results; the first waits for a gate."""

    async def measure(bench):
        if gate is not None:
            await gate.wait()
        for _ in rights:
            bench.tick()
        return {str(at): right for at, right in enumerate(rights)}

    return Suite(name, f"the {name}", len(rights), measure)


@pytest.fixture
def session():
    return ModelSession(ScriptedClient())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(profile_record, "cache_dir", lambda: tmp_path)
    return tmp_path / "profiles"


async def test_progress_is_told_item_by_item(session):
    told = []
    measurement = Measurement((suite("labels", True, False), suite("functions", True)))
    record = await measurement.run(session, SharedLayout(session), told.append)
    assert [(one.done, one.total) for one in told] == [(0, 3), (1, 3), (2, 3), (2, 3), (3, 3)]
    assert told[-1].text == "testing toy once: the functions, 3 of 3"
    assert record.scores() == {Capability.LABELS: 0.5, Capability.WRITE: 1.0}
    assert record.name == "toy"


async def test_a_model_that_cannot_read_is_tested_for_nothing_more(session):
    unreadable = Suite(ANSWERS.name, ANSWERS.title, 1, suite("answers", False).measure)
    measurement = Measurement((unreadable, suite("functions", True)))
    record = await measurement.run(session, SharedLayout(session))
    assert set(record.items) == {"answers"}


async def test_a_cancelled_test_goes_on_with_its_next_suite(session, cache, monkeypatch):
    gate = asyncio.Event()
    suites = (suite("labels", True), suite("functions", True, gate=gate))
    monkeypatch.setattr(model_profiles, "SHORT", suites)
    phase = StepsPhase(session)
    told = []
    first = asyncio.create_task(phase.profile(told.append))
    while len(told) < 3:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not cache.exists()
    gate.set()
    again = []
    profile = await phase.profile(again.append)
    assert profile.reached == (Capability.LABELS, Capability.WRITE)
    assert [one.title for one in again] == ["the functions"] * 2


async def test_a_model_is_tested_once_for_all_who_wait_and_later_processes(
    session, cache, monkeypatch
):
    gate = asyncio.Event()
    monkeypatch.setattr(model_profiles, "SHORT", (suite("labels", True, gate=gate),))
    phase = StepsPhase(session)
    told = [[], []]
    tasks = [asyncio.create_task(phase.profile(one.append)) for one in told]
    while not told[0]:
        await asyncio.sleep(0)
    gate.set()
    first, second = await asyncio.gather(*tasks)
    assert first == second
    assert [one.done for one in told[0]] == [0, 1]
    assert [one.done for one in told[1]] == [1]  # it came later and is told the rest
    assert load_record(session.identity()).scores() == {Capability.LABELS: 1.0}
    silent = []
    assert await StepsPhase(session).profile(silent.append) == first
    assert silent == []


async def test_an_engine_that_fails_leaves_no_profile(cache, monkeypatch):
    async def fails(bench):
        raise ModelFailure("The engine was stopped.")

    monkeypatch.setattr(model_profiles, "SHORT", (Suite("labels", "labels", 1, fails),))
    phase = StepsPhase(ModelSession(ScriptedClient()))
    with pytest.raises(ModelFailure, match="stopped"):
        await phase.profile()
    assert not cache.exists()


async def test_a_disk_without_room_costs_only_a_repetition(session, cache, monkeypatch):
    cache.write_text("a file where the folder should be")
    monkeypatch.setattr(model_profiles, "SHORT", (suite("labels", True),))
    assert (await StepsPhase(session).profile()).reached == (Capability.LABELS,)


async def test_an_unknown_model_that_is_allowed_is_not_tested(session, cache):
    told = []
    profile = await StepsPhase(session, allow_model=True).profile(told.append)
    assert profile.is_allowed
    assert profile.summary == "nothing"
    assert told == []


@pytest.mark.parametrize(
    ("output", "requires", "is_tested"),
    [
        (
            Findings(),
            Capability.LABELS,
            False,
        ),  # the short test says nothing about votes and findings
        (Plan(cannot_do="x"), Capability.REACT, True),
        (Summary(text="x"), Capability.TEXT, True),
        (Text(cannot_do="x"), Capability.LABELS, True),
    ],
)
async def test_an_unknown_model_is_only_tested_if_that_decides_something(
    session, cache, monkeypatch, output, requires, is_tested
):
    monkeypatch.setattr(model_profiles, "SHORT", (suite("labels", False),))
    run = FakeStepRun(requires=requires)
    await StepsPhase(session)(AgentTask("Do it."), output, run)
    assert bool(run.events(RunEventType.MODEL_TEST)) is is_tested
    assert run.untimed_blocks == is_tested
