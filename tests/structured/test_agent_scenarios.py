"""The 51 golden scenarios with the demo model: every step is valid and every run ends by itself.

The profile says that the model can do everything, so that no part of the model phase is left out. That shows
validity and termination, not that the answers are good.
"""

import pytest

from agents.api.events import RunEventType, RunState
from agents.plugins.registry import Registry, load_registry
from agents.specs.packaged import packaged_agents
from engine.clients.in_process import InProcessClient
from tests.parity.real_engine import running
from tests.unit.agents.golden.scenarios import run_scenario
from tests.unit.agents.roster_cases.cases import CASES

SOME = ("tool", "patch_applier", "test_generator", "dependency_audit", "ui_designer")


@pytest.fixture(scope="module")
def client(demo_model):
    with running(demo_model, pool_tokens=24_000, prefix_caching=True) as engine:
        yield InProcessClient(engine)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(enabled=())


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=() if key in SOME else pytest.mark.soak) for key in CASES],
)
async def test_a_run_with_the_demo_model_is_valid_and_ends(key, client, registry, tmp_path):
    result, events = await run_scenario(key, registry, tmp_path, client)
    spec = packaged_agents()[key]
    assert result.state is RunState.OK, result.error
    registry.outputs[spec.output_schema].model_validate(result.output.model_dump())
    steps = [one.data for one in events if one.type is RunEventType.STEP_STARTED]
    chosen = [one.data for one in events if one.type is RunEventType.ACTION_CHOSEN]
    assert len(chosen) == len(steps) <= spec.max_turns
    for step, action in zip(steps, chosen, strict=True):
        assert action["action"] in step["actions"]
    if chosen:
        assert [one["action"] == "final_answer" for one in chosen].index(True) == len(chosen) - 1
    assert not [one for one in events if one.type is RunEventType.ERROR]
    used = [one.data["computed_tokens"] for one in events if "computed_tokens" in one.data]
    assert used == sorted(used)
    assert not used or used[-1] <= spec.budget.tokens
    assert events[-1].data["state"] == "ok"
