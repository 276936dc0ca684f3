"""51 golden scenarios: the exact events of every agent with a scripted model.

`pytest tests/unit/agents/golden --snapshot-update` writes the traces anew after a change that is meant.
"""

import pytest

from agents.api.budget import Budget
from agents.api.events import RunEventType, RunState
from agents.plugins.registry import Registry, load_registry
from agents.roster.keys import BUILTIN_KEYS
from tests.fakes.scripted_client import ScriptedClient
from tests.unit.agents.golden.scenarios import (
    CASES,
    STEPS,
    run_scenario,
    script_of,
    spec_of,
    trace_of,
)
from tests.unit.agents.roster_cases import design, execution, reviewers, security_operations

KEYS = tuple(key for keys in BUILTIN_KEYS.values() for key in keys)

BUDGET = Budget(tokens=200_000)
"""Of the scripted model, whose tokens are single characters."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(enabled=())


def says_yes(request, text):
    """The scripted model's one-token answers: a finding is real, and nothing without content."""
    about = "Code: " in text
    return {
        line[0]: 3.0 if about and "real defect" in line else 0.0
        for line in text.split("\n")
        if line[1:3] == ") "
    }


def test_there_is_a_scenario_for_each_of_the_51_agents():
    assert len(KEYS) == 51
    assert set(CASES) == set(KEYS)


def test_every_agent_has_two_seeded_inputs():
    more = [key for key, cases in execution.SCENARIOS.items() for _ in cases]
    for family in (reviewers, design, security_operations):
        more += [key for key, _ in family.SCENARIOS]
    assert [key for key in KEYS if key not in more] == []


def test_agents_that_require_steps_have_a_script(registry):
    stepping = {key for key in KEYS if spec_of(key, registry).requires in ("react", "write")}
    assert stepping == set(STEPS)


@pytest.mark.parametrize("key", KEYS)
async def test_the_events_are_exactly_these(key, registry, tmp_path, snapshot):
    form = registry.outputs[spec_of(key, registry).output_schema]
    client = ScriptedClient(script_of(key, form), scores=says_yes)
    result, events = await run_scenario(key, registry, tmp_path, client, budget=BUDGET)
    assert result.state is RunState.OK, result.error
    called = [one.data["tool"] for one in events if one.type is RunEventType.TOOL_STARTED]
    if key in STEPS:
        scripted = [tool for tool, _ in STEPS[key].calls]
        assert called[-len(scripted) :] == scripted
    assert trace_of(events, tmp_path) == snapshot
