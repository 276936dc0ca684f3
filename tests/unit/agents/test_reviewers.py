"""The audit and security agents on seeded and on clean inputs, without a model; the whole roster."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.detectors.audit import DETECTORS as AUDIT
from agents.detectors.detector import DetectorContext
from agents.detectors.security import DETECTORS as SECURITY
from agents.plugins.registry import load_registry
from agents.roster.keys import BUILTIN_KEYS
from agents.roster.roster import load_roster
from agents.workspace.workspace import Workspace
from tests.unit.agents.roster_cases.case import emptiness, run_case
from tests.unit.agents.roster_cases.reviewers import CASES, SCENARIOS

SLOW = frozenset(["bandit", "types", "ruff_bugs"])
"""Detectors that start a process: not for hundreds of examples."""


def test_the_roster_is_complete_and_correct():
    roster = load_roster(load_registry())
    assert roster.problems == []
    assert {
        category: tuple(spec.key for spec in roster if spec.category == category)
        for category in BUILTIN_KEYS
    } == {category: tuple(sorted(keys)) for category, keys in BUILTIN_KEYS.items()}
    assert len(roster.specs) == 51


def test_every_reviewer_has_a_case():
    assert tuple(CASES) == (*BUILTIN_KEYS["audit"], *BUILTIN_KEYS["security"])


@pytest.mark.parametrize("key", CASES)
async def test_an_agent_delivers_without_a_model(key, tmp_path):
    case = CASES[key]
    result = await run_case(key, case, load_registry(), tmp_path)
    assert emptiness(result) == ""
    case.check(result)


@pytest.mark.parametrize("number", range(len(SCENARIOS)))
async def test_a_golden_scenario_holds(number, tmp_path):
    key, case = SCENARIOS[number]
    case.check(await run_case(key, case, load_registry(), tmp_path))


WORDS = st.sampled_from(
    ["FROM x", "USER ", "ENV A=", "services:", "- 5432:5432", "[Service]", "User=root", "def f(x):", "    return x",
     "import os", "from x import", "class A:", "@app.route('/a')", "requests.get(", "verify=False", "{", "}", "\n",
     "'", '"', "`", "openapi: 3", "paths:", "eval(", "SELECT * FROM ", "%s", "f'{x}'", "<?xml", "\0", "é", "&a *a",
     "---", "[project]", "version = ", '{"dependencies": {"a": ', "async def g():", "await ", "if x == x:", ":"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=20).map("\n".join) | st.text(max_size=100))
@settings(max_examples=60, deadline=None)
def test_no_detector_raises_on_any_text(text):
    names = ("a.py", "a.js", "a.ts", "a.go", "a.rs", "Dockerfile", "compose.yaml", "a.service", "a.sh",
             "requirements.txt", "package.json", "pyproject.toml", "Cargo.toml", "openapi.json", "a.md", "a.sql",
             "a.csv", "nginx.conf", ".env", "A.java")  # fmt: skip
    workspace = Workspace.of_texts(dict.fromkeys(names, text))
    for detector in (*AUDIT, *SECURITY):
        if detector.name in SLOW:
            continue
        for finding in detector.detect(workspace, DetectorContext()):
            assert 0 <= finding.line <= len(workspace.get(finding.file).lines) + 1, detector.name
