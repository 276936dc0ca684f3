"""51 golden scenarios: the exact events of every agent with a scripted model.

`pytest tests/unit/agents/golden --snapshot-update` writes the traces anew after a change that is meant.
"""

import pytest

from agents.api.budget import Budget
from agents.api.events import RunEventType, RunState
from agents.plugins.registry import Registry, load_registry
from agents.specs.packaged import packaged_agents
from tests.fakes.scripted_client import ScriptedClient
from tests.unit.agents.golden.scenarios import STEPS, TEXTS, run_scenario, script_of, trace_of

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


def test_agents_that_require_steps_have_a_script():
    agents = packaged_agents().values()
    stepping = {agent.key for agent in agents if agent.requires in ("react", "write")}
    by_procedures = {"tool", "reasoning", "coder", "patch_applier", "test_generator"}
    assert stepping == set(STEPS) | set(TEXTS) - {"expander"} | by_procedures


@pytest.mark.parametrize("key", packaged_agents())
async def test_the_events_are_exactly_these(key, registry, tmp_path, snapshot):
    form = registry.outputs[packaged_agents()[key].output_schema]
    client = ScriptedClient(script_of(key, form), scores=says_yes)
    result, events = await run_scenario(key, registry, tmp_path, client, budget=BUDGET)
    assert result.state is RunState.OK, result.error
    called = [one.data["tool"] for one in events if one.type is RunEventType.TOOL_STARTED]
    if key in STEPS:
        scripted = [tool for tool, _ in STEPS[key].calls]
        assert called[-len(scripted) :] == scripted
    assert trace_of(events, tmp_path) == snapshot
