"""The execution agents without a model, on seeded inputs."""

import pytest

from agents.plugins.registry import Registry, load_registry
from agents.roster.keys import BUILTIN_KEYS
from agents.roster.lint import MAX_CARD_TOKENS
from agents.roster.spec_file import read_spec
from tests.unit.agents.roster_cases.case import emptiness, run_case
from tests.unit.agents.roster_cases.execution import CASES, SCENARIOS

KEYS = BUILTIN_KEYS["execution"]
TOOLS = {
    "read",
    "grep",
    "glob",
    "git",
    "edit",
    "write",
    "todo",
    "python",
    "shell",
    "http_fetch",
    "rag_search",
    "memory",
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(enabled=())


def test_every_agent_has_cases():
    assert set(CASES) == set(KEYS)


@pytest.mark.parametrize(
    ("key", "case"),
    [
        *(pytest.param(key, case, id=key) for key, case in CASES.items()),
        *(
            pytest.param(key, case, id=f"{key}-{number}")
            for key, cases in SCENARIOS.items()
            for number, case in enumerate(cases, start=2)
        ),
    ],
)
async def test_an_agent_does_its_job_without_a_model(key, case, registry, tmp_path):
    result = await run_case(key, case, registry, tmp_path)
    assert case is not CASES.get(key) or emptiness(result) == ""
    case.check(result)


@pytest.mark.parametrize("key", KEYS)
def test_a_specification_names_what_exists(key, registry):
    folder = next(one for one in registry.agent_folders if one.name == "execution")
    spec = read_spec(folder / f"{key}.md")
    assert (spec.key, spec.category) == (key, "execution")
    assert set(spec.tools) <= TOOLS
    assert set(spec.detectors) <= set(registry.detectors)
    assert spec.output_schema in registry.outputs
    assert key in registry.procedures
    # English has more than one token a word at most now and then; `agents lint` counts the model's.
    assert len(spec.card.split()) * 1.4 <= MAX_CARD_TOKENS


@pytest.mark.parametrize("key", KEYS)
async def test_an_empty_task_ends_with_a_reason(key, registry, tmp_path):
    from tests.unit.agents.roster_cases.case import Case

    result = await run_case(key, Case(check=lambda _: None), registry, tmp_path)
    assert result.error == ""
    assert result.output is not None
    assert result.output.cannot_do
