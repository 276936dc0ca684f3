"""The 51 packaged agents: each is complete, and does its job without a model."""

import inspect
from collections import Counter
from importlib import import_module

import pytest

from agents.outputs.findings import Findings
from agents.plugins.registry import Registry, load_registry
from agents.procedures.packaged import PackagedProcedure
from agents.roster.lint import MAX_CARD_TOKENS, check_spec
from agents.roster.roster import load_roster
from agents.specs.packaged import packaged_agents
from tests.unit.agents.roster_cases.case import Case, emptiness, run_case
from tests.unit.agents.roster_cases.cases import CASES, SCENARIOS

AGENTS = packaged_agents()


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(enabled=())


def test_there_are_51(registry):
    counts = Counter(agent.category for agent in AGENTS.values())
    assert counts == {"execution": 20, "audit": 12, "security": 10, "design": 9}
    assert counts.total() == 51
    roster = load_roster(registry)
    assert roster.problems == []
    assert list(roster.specs) == list(AGENTS)


@pytest.mark.parametrize("key", AGENTS)
def test_an_agent_is_complete(key, registry):
    agent = AGENTS[key]
    check_spec(agent, registry)
    # English has more than one token a word at most now and then; `agents lint` counts the model's.
    assert len(agent.card.split()) * 1.4 <= MAX_CARD_TOKENS
    assert agent.plan.verbs
    assert agent.plan.done_when
    assert key in CASES
    assert key in [one for one, _ in SCENARIOS]
    procedure = registry.procedures.get(key)
    assert procedure or agent.detectors or agent.requires == "write"
    if procedure is not None:
        assert isinstance(procedure, PackagedProcedure)
        run = import_module(procedure.module).run
        returned = inspect.get_annotations(run, eval_str=True)["return"]
        assert returned is registry.outputs[agent.output_schema]


@pytest.mark.parametrize(
    ("key", "case"),
    [
        *(pytest.param(key, case, id=key) for key, case in CASES.items()),
        *(pytest.param(*one, id=f"{one[0]}-{at}") for at, one in enumerate(SCENARIOS)),
    ],
)
async def test_an_agent_does_its_job_without_a_model(key, case, registry, tmp_path):
    result = await run_case(key, case, registry, tmp_path)
    assert case is not CASES.get(key) or case.needs_model or emptiness(result) == ""
    case.check(result)


@pytest.mark.parametrize("key", AGENTS)
async def test_an_empty_task_ends_with_a_reason(key, registry, tmp_path):
    result = await run_case(key, Case(check=lambda _: None), registry, tmp_path)
    assert result.error == ""
    assert result.output is not None
    assert result.output.cannot_do


@pytest.mark.parametrize("category", ["audit", "security"])
def test_finding_needs_no_model(category):
    """All agents of these categories that return findings have detectors."""
    finders = [one for one in AGENTS.values() if one.category == category]
    assert all(one.detectors for one in finders if one.output_schema == Findings.__name__)
    assert not [one.key for one in finders if CASES[one.key].needs_model]
