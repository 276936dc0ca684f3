"""What the model does in a run, by profile; the procedure's output stands where it can do nothing."""

import json
from dataclasses import replace

import pytest

from agents import Cluster
from agents.api.agent_spec import Capability
from agents.api.errors import InvalidTask
from agents.api.events import RunEventType
from agents.api.finding import Severity
from agents.model.profile import CapabilityProfile
from agents.model.question import Decision
from agents.model.session import ModelSession
from agents.outputs.answer import Answer
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.verdict import Verdict
from agents.procedures.procedure import AgentTask
from agents.steps.model_phase import StepsPhase, with_votes
from agents.tools.tool import Taint
from agents.workspace.workspace import Workspace
from engine.api.request import Request
from tests.fakes.scripted_client import ScriptedClient
from tests.fakes.step_run import FakeStepRun
from tests.fakes.step_tools import step_tools

FILES = Workspace.of_texts({"a.py": "import os\nos.system(command)\n"})
TASK = AgentTask("Review the code.", workspace=FILES)
RECORD = FindingRecord(
    id="1",
    file="a.py",
    line=2,
    end_line=2,
    rule="B605",
    severity=Severity.MEDIUM,
    confidence=0.8,
    message="A shell is started.",
    evidence="os.system(command)",
)
ALL = dict.fromkeys(list(Capability)[1:], 1.0)


def profile(*questions, upto=Capability.WRITE):
    scores = {one: float(one.rank <= upto.rank) for one in ALL}
    return CapabilityProfile("m", scores, frozenset(questions))


def phase_of(client, given):
    return StepsPhase(ModelSession(client), step_tools(FILES), profile=given)


def vote(question, label, *, abstained=False):
    return Decision(question, label, {label: 1.0}, abstained)


async def test_an_agent_below_its_required_capability_keeps_its_output():
    client = ScriptedClient()
    run = FakeStepRun(requires=Capability.REACT)
    output = Answer(text="by the procedure")
    phase = phase_of(client, profile(upto=Capability.TEXT))
    assert await phase(TASK, output, run) is output
    assert run.notes == [
        "The model toy was measured to do labels, text; tester requires react, so the agent did what needs no model. "
        "--allow-model lets it try."
    ]
    assert client.requests == []


async def test_only_questions_that_help_are_asked():
    def says_no(request: Request, text: str) -> dict[str, float]:
        known = "B605" in text
        return {
            line[0]: 3.0 if known and "false alarm" in line else 0.0
            for line in text.split("\n")
            if line[1:3] == ") "
        }

    client = ScriptedClient(scores=says_no)
    run = FakeStepRun(score_questions=("confirm_finding", "severity"))
    phase = phase_of(client, profile("confirm_finding"))
    output = await phase(TASK, Findings(findings=[RECORD]), run)
    assert output.findings[0].confidence == 0.4
    assert output.findings[0].severity is Severity.MEDIUM
    (event,) = run.events(RunEventType.DECISION)
    assert (event.data["question"], event.data["abstained"]) == ("confirm_finding", False)
    assert run.usage.generated_tokens == 4


async def test_without_helpful_questions_nothing_is_asked():
    client = ScriptedClient()
    run = FakeStepRun(score_questions=("confirm_finding",))
    output = Findings(findings=[RECORD])
    assert await phase_of(client, profile())(TASK, output, run) is output
    assert client.requests == []


@pytest.mark.parametrize(
    ("votes", "severity", "confidence"),
    [
        ([vote("severity", "critical")], Severity.CRITICAL, 0.8),
        ([vote("severity", "info")], Severity.MEDIUM, 0.8),
        ([vote("severity", "critical", abstained=True)], Severity.MEDIUM, 0.8),
        ([vote("confirm_finding", "no, it is a false alarm")], Severity.MEDIUM, 0.4),
        ([vote("confirm_finding", "yes, it is a real defect")], Severity.MEDIUM, 0.8),
    ],
)
def test_votes_raise_severity_and_lower_confidence_only(votes, severity, confidence):
    after = with_votes(RECORD, votes)
    assert (after.severity, after.confidence) == (severity, confidence)


async def test_the_model_writes_what_the_procedure_could_not():
    client = ScriptedClient(["A short text."])
    run = FakeStepRun(requires=Capability.TEXT)
    output = Answer(cannot_do="Prose needs a model.")
    after = await phase_of(client, profile(upto=Capability.TEXT))(TASK, output, run)
    assert (after.text, after.cannot_do) == ("A short text.", "")
    assert "Prose needs a model." in run.notes[0]


async def test_a_text_that_is_no_prose_is_dropped():
    output = Answer(cannot_do="Prose needs a model.")
    run = FakeStepRun(requires=Capability.TEXT)
    client = ScriptedClient(["1. 1. 2. 2. 3. 3."] * 4)
    phase = phase_of(client, profile(upto=Capability.TEXT))
    assert await phase(TASK, output, run) is output
    assert run.notes == ["The model's text was no prose and was dropped."]
    first, *others = client.requests  # further drafts share the first one's prompt
    assert {one.prompt_ids for one in others} == {first.prompt_ids}


def final_step(**members):
    given = json.dumps(members, separators=(",", ":"))
    return f'{{"thought": "", "action": "final_answer", "input": {given}}}'


async def stepped(output, *script, task=TASK, given=None, **spec):
    spec = {"requires": Capability.REACT} | spec
    run = FakeStepRun(step_tools(FILES), **spec)
    client = ScriptedClient(script)
    return await phase_of(client, given or profile())(task, output, run), run, client


ANSWER = final_step(citations=[], cannot_do="")


async def test_steps_replace_the_output_of_agents_that_require_them():
    look = '{"thought": "look", "action": "read", "input": {"path": "a.py"}}'
    after, run, client = await stepped(Answer(text="before"), look, ANSWER, "It is well done.")
    assert after.text == "It is well done."
    assert [name for name, _ in run.calls] == ["read"]
    assert client.requests[2].sampling.grammar is None  # a text is no JSON
    answered = len(client.requests[1].prompt_ids)
    assert client.requests[2].prompt_ids[:answered] == client.requests[1].prompt_ids


async def test_an_answer_keeps_the_findings_of_the_detectors():
    before = Answer(text="before", findings=[RECORD])
    after, _, _ = await stepped(before, ANSWER, "All is well.")
    assert (after.text, after.findings) == ("All is well.", [RECORD])


async def test_a_model_does_not_decide_a_verdict():
    before = Verdict(score=20, passed=False, reasons=["Tests failed."], findings=[RECORD])
    after, run, _ = await stepped(before, final_step())
    assert after == before
    assert run.notes == []


async def test_what_the_model_is_shown_labels_the_run():
    _, run, _ = await stepped(Answer(), ANSWER, "x")
    assert run.taint == {Taint.UNTRUSTED, Taint.LOCAL}
    secret = replace(TASK, document="key = rk_live_51Zq8Lm3Xv0Pt7Ws2Ka9")
    _, run, _ = await stepped(Answer(), ANSWER, "x", task=secret)
    assert Taint.PRIVATE in run.taint


async def test_a_spent_budget_leaves_the_procedures_output():
    run = FakeStepRun(step_tools(FILES), requires=Capability.REACT, tokens=10)
    output = Answer(text="before")
    assert await phase_of(ScriptedClient(), profile())(TASK, output, run) is output
    assert "ended without an answer" in run.notes[0]


async def test_a_cluster_asks_its_client(registry, roster):
    cluster = Cluster(registry=registry, roster=roster, client=ScriptedClient(["one", "two"]))
    replies = await cluster.ask_all("a document", ["first?", "second?"])
    assert [one.text for one in replies.replies] == ["one", "two"]


async def test_a_cluster_without_a_model_says_so(registry, roster):
    with pytest.raises(InvalidTask, match="no model"):
        await Cluster(registry=registry, roster=roster).ask_all("a document", ["?"])
