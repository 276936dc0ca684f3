"""The model's part in a repair, with a scripted model: votes, explanations, findings, patches."""

import json

import pytest

from agents.api.agent_spec import AgentSpec, Capability
from agents.api.budget import Budget, BudgetMeter
from agents.api.events import RunEventType
from agents.api.finding import Finding, Severity
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.repair.heal import HealOptions, heal
from agents.repair.model_help import ModelHelp
from agents.runs.event_log import EventLog
from agents.steps.model_phase import StepsPhase
from agents.workspace.workspace import Workspace
from tests.fakes.scripted_client import ScriptedClient

CODE = '''def first(values: list[int]) -> int:
    """The first value."""
    return values[0]


def last(values: list[int]) -> int:
    return values[-1]
'''
FINDING = Finding(
    file="a.py",
    line=3,
    end_line=3,
    rule="no-such-fixer",
    severity=Severity.HIGH,
    message="values may be empty.",
    evidence="return values[0]",
    confidence=0.9,
    detector="edges",
)
SPEC = AgentSpec("edges", "audit", "Finds.", "You find.", (), (), "Findings")


class Help:
    def __init__(
        self,
        script=(),
        *,
        upto=Capability.WRITE,
        questions=(),
        scores=None,
        tokens=10**6,
        allow_model=False,
    ):
        self.client = ScriptedClient(script, scores=scores)
        ranks = {one: float(one.rank <= upto.rank) for one in list(Capability)[1:]}
        phase = StepsPhase(
            ModelSession(self.client),
            profile=CapabilityProfile("m", ranks, frozenset(questions)),
            allow_model=allow_model,
        )
        self.log = EventLog("r", clock=lambda: 0.0)
        self.notes = []
        meter = BudgetMeter(Budget(tokens=tokens), started=0.0)
        self.help = ModelHelp(phase, [SPEC], meter, self.log, self.notes.append)
        self.workspace = Workspace.of_texts({"a.py": CODE, "b.py": "x = 1\n"})

    async def review(self):
        return await self.help.review([FINDING], self.workspace)


def reported(*findings):
    return json.dumps({"findings": list(findings)}, separators=(", ", ": "))


def report(line, **more):
    return {"file": "a.py", "line": line, "severity": "high", "message": "Negative index."} | more


def answer(*lines):
    return json.dumps({"reason": "checks first", "lines": list(lines)}, separators=(", ", ": "))


async def test_a_model_that_can_nothing_is_asked_nothing():
    case = Help(upto=Capability.TEXT)
    assert await case.review() == [FINDING]
    assert (await case.help.propose(FINDING, case.workspace)).cannot_do
    assert case.client.requests == []
    assert "explains no findings" in case.notes[0]


async def test_findings_are_explained_and_added_from_one_shared_prefix():
    text = "An empty list makes the function raise an IndexError for its caller."
    case = Help([text, reported(report(7), report(3))])
    first, second = await case.review()
    assert first.message == f"values may be empty. {text}"
    assert (second.line, second.source, second.confidence) == (7, "model", 0.3)
    assert second.evidence == "return values[-1]"
    assert case.notes == []
    prompts = [one.prompt_ids for one in case.client.requests]
    shared = len(prompts[0]) - next(
        at for at, (a, b) in enumerate(zip(*prompts, strict=False)) if a != b
    )
    assert shared < len(prompts[0]) // 2
    assert all(
        "high a.py:3 no-such-fixer: values may be empty." in case.client.prompt_text(at)
        for at in (0, 1)
    )
    assert all("3     return values[0]" in case.client.prompt_text(at) for at in (0, 1))


async def test_what_is_no_prose_explains_nothing():
    case = Help(["1. 1. 1. 1.", reported()])
    assert await case.review() == [FINDING]


async def test_votes_lower_the_confidence_and_drop_nothing():
    def doubts(request, text):
        known = "no-such-fixer" in text
        return {
            line[0]: 3.0 if known and "false alarm" in line else 0.0
            for line in text.split("\n")
            if line[1:3] == ") "
        }

    case = Help(upto=Capability.LABELS, questions=["confirm_finding"], scores=doubts)
    (voted,) = await case.review()
    assert voted.confidence == 0.45
    (event,) = case.log.since(0)
    assert (event.type, event.data["abstained"]) == (RunEventType.DECISION, False)
    assert case.help.usage.generated_tokens == 4


async def test_a_patch_of_the_model_replaces_the_function():
    case = Help(
        [
            answer(
                "def first(values: list[int]) -> int:",
                '    """The first value."""',
                "    return values[0] if values else 0",
            )
        ]
    )
    patch = await case.help.propose(FINDING, case.workspace)
    assert "-    return values[0]\n+    return values[0] if values else 0" in patch.diff
    assert patch.reason == "By the model: checks first"
    assert "Write the lines 1 to 3 of a.py anew" in case.client.prompt_text()


async def test_no_patch_is_asked_for_of_a_file_with_private_data():
    case = Help([answer("x")])
    secret = 'KEY = "ghp_' + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8" + '"\n'
    case.workspace = Workspace.of_texts({"a.py": CODE + secret})
    assert (await case.help.propose(FINDING, case.workspace)).cannot_do
    assert case.client.requests == []
    assert case.notes == ["a.py holds private data, which no model is shown."]


@pytest.mark.parametrize("use", ["writer", "propose"])
async def test_a_model_that_is_only_allowed_to_write_is_named(use):
    case = Help([answer("x")], upto=Capability.TEXT, allow_model=True)
    await (case.help.writer() if use == "writer" else case.help.propose(FINDING, case.workspace))
    assert case.notes[0].startswith("--allow-model: ")


async def test_known_fixes_come_before_the_model():
    case = Help()
    finding = Finding(
        **{name: getattr(FINDING, name) for name in FINDING.__slots__} | {"rule": "empty-index"}
    )
    patch = await case.help.propose(finding, case.workspace)
    assert "if values else None" in patch.diff
    assert case.client.requests == []


async def test_a_spent_budget_leaves_the_detectors_findings():
    case = Help(["x"], tokens=10)
    assert await case.review() == [FINDING]
    assert "took no part" in case.notes[0]


MEAN = [
    "def mean(values: list[float]) -> float:",
    "    return sum(values) / len(values) if values else 0.0",
]
WRONG = [
    "def mean(values: list[float]) -> float:",
    "    return sum(values) / (len(values) or 1) + 1",
]


@pytest.mark.parametrize(("lines", "accepted"), [(MEAN, True), (WRONG, False)])
async def test_the_gate_judges_patches_of_the_model(
    project, detector, quick, monkeypatch, lines, accepted
):
    monkeypatch.setattr("agents.procedures.audit.patch_applier.fix_for", lambda file, finding: None)
    case = Help([answer(*lines)])
    options = HealOptions(propose=case.help.propose)
    result = await heal(project, [detector], options=options)
    assert bool(result.accepted) is accepted
    if accepted:
        assert result.accepted[0].patch.reason.startswith("By the model")
    else:
        assert result.rejected[0].reason == (
            "The change alters results that have nothing to do with the finding."
        )
