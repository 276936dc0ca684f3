"""Texts of outputs: drafts are checked by the agent's detectors, and replace only what they are better than."""

import json

import pytest

from agents.api.agent_spec import Capability
from agents.api.finding import Finding, Severity
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.outputs.answer import Answer
from agents.outputs.critique import Critique
from agents.outputs.design import Artifact
from agents.outputs.findings import Findings
from agents.outputs.plan import Plan
from agents.outputs.sections import Section, Sections
from agents.outputs.steps import Steps
from agents.outputs.summary import Summary
from agents.outputs.text import Text
from agents.outputs.tool_result import ToolResult
from agents.procedures.procedure import AgentTask
from agents.steps.model_phase import StepsPhase
from agents.workspace.workspace import Workspace
from tests.fakes.scripted_client import ScriptedClient
from tests.fakes.step_run import FakeStepRun
from tests.fakes.step_tools import step_tools

SOURCE = "The mill was built in 1784 and burned down in 1911. Rosa Keller built it again. It stands by the river."
TASK = AgentTask("Summarize it.", document=SOURCE)
GOOD = "The mill of 1784 burned down in 1911 and was rebuilt by Rosa Keller."
BAD = "The mill of 1784 burned down in 1999 and was rebuilt by Rosa Keller."
FILES = Workspace.of_texts({"a.py": "def f(x):\n    return x / 0\n"})


def finds_new_numbers(output, source):
    if "1999" not in str(output):
        return []
    return [
        Finding(
            "output",
            1,
            1,
            "changed-number",
            Severity.MEDIUM,
            "1999 is not in the source.",
            "1999",
            0.9,
        )
    ]


def profile(*outputs, capabilities=(Capability.TEXT,), wrong=()):
    shares = dict.fromkeys(outputs, 1.0) | dict.fromkeys(wrong, 0.0)
    return CapabilityProfile("m", dict.fromkeys(capabilities, 1.0), outputs=shares)


async def written(output, *script, given=None, task=TASK, check=finds_new_numbers, **spec):
    run = FakeStepRun(**({"requires": Capability.TEXT} | spec))
    run.check = check
    client = ScriptedClient(script)
    phase = StepsPhase(ModelSession(client), profile=given or profile(type(output).__name__))
    return await phase(task, output, run), run, client


async def test_a_summary_is_written_anew_by_a_model_that_was_measured_to():
    after, run, _ = await written(Summary(text="The mill was built.", ratio=0.2, lines=[1]), GOOD)
    assert after.text == GOOD
    assert after.ratio == round(len(GOOD) / len(SOURCE), 4)
    assert after.lines == []
    assert run.notes == ["The text is the model's; the agent's checks found nothing in it."]


@pytest.mark.parametrize(
    ("inputs", "words"), [({}, 40), ({"ratio": 0.7}, 70), ({"ratio": 0.1}, 25)]
)
async def test_a_summary_is_told_how_long_it_may_be(inputs, words):
    task = AgentTask("Summarize it.", document="a long word, " * 33 + "x", inputs=inputs)
    _, _, client = await written(Summary(text="x"), GOOD, task=task, check=lambda *_: [])
    assert f"Use at most {words} words." in client.prompt_text(0)


async def test_a_copy_is_no_summary():
    before = Summary(text="The mill was built.")
    after, run, _ = await written(before, *[SOURCE] * 4)
    assert after is before
    assert run.notes == ["The model's text was no summary and was dropped."]


async def test_without_a_measurement_the_procedures_summary_stands():
    before = Summary(text="The mill was built.")
    after, _, client = await written(before, given=profile())
    assert after is before
    assert client.requests == []


async def test_a_draft_with_findings_is_sampled_again_from_one_prefill():
    after, _, client = await written(Summary(text="x"), BAD, BAD, GOOD, BAD)
    assert after.text == GOOD
    assert len({one.prompt_ids for one in client.requests}) == 1
    assert [one.sampling.temperature for one in client.requests] == [0.0, 0.4, 0.7, 0.9]


async def test_a_text_that_stays_wrong_replaces_nothing():
    before = Summary(text="The mill was built.")
    after, run, _ = await written(before, BAD, BAD, BAD, BAD)
    assert after is before
    assert run.notes == ["The model's text was dropped: 1999 is not in the source."]


async def test_where_there_is_no_other_text_it_is_given_with_its_findings():
    after, run, _ = await written(Text(cannot_do="Prose needs a model."), BAD, BAD, BAD, BAD)
    assert after.text == BAD
    assert [one.rule for one in after.findings] == ["changed-number"]
    assert "the procedure had none" in run.notes[0]


async def test_a_text_that_took_all_room_ends_at_a_sentence_and_says_so():
    class Cut(ScriptedClient):
        def _answer(self, request):
            from engine.api.request import FinishReason

            self._deliver(request, GOOD + " It is now a mu", FinishReason.LENGTH)

    run = FakeStepRun(requires=Capability.TEXT)
    phase = StepsPhase(ModelSession(Cut()), profile=profile("Summary"))
    after = await phase(TASK, Summary(text="x"), run)
    assert after.text == GOOD
    assert "ends at its last whole sentence" in run.notes[0]


async def test_a_text_is_as_long_as_its_material_needs():
    long = AgentTask("Translate it.", document=SOURCE * 50)
    _, _, client = await written(Text(cannot_do="x"), "Ein Text.", task=long)
    assert client.requests[0].sampling.max_tokens > 4_000


@pytest.mark.parametrize(
    "output",
    [
        ToolResult(tool="read", text="a file"),
        Steps(answer="4"),
    ],
)
async def test_after_the_work_is_done_no_model_is_asked(output):
    after, run, client = await written(
        output, given=CapabilityProfile("m", is_allowed=True), requires=Capability.REACT
    )
    assert after is output
    assert client.requests == []
    assert run.untimed_blocks == 0  # a model that is not needed is not tested either


async def test_a_check_that_was_asked_for_is_not_answered_by_a_text():
    task = AgentTask(inputs={"output": "A summary.", "source": SOURCE})
    before = Summary(findings=[])
    after, _, client = await written(before, task=task, checks="text")
    assert after is before
    assert client.requests == []


async def test_the_tool_agent_ends_with_the_call():
    tools = step_tools(FILES)
    run = FakeStepRun(tools, requires=Capability.REACT)
    client = ScriptedClient(['{"thought": "", "action": "read", "input": {"path": "a.py"}}'])
    phase = StepsPhase(
        ModelSession(client), tools, profile=profile(capabilities=(Capability.REACT,))
    )
    task = AgentTask("Show me the file with f.", workspace=FILES)
    after = await phase(task, ToolResult(cannot_do="The task names no tool."), run)
    assert (after.tool, after.arguments, after.failed) == ("read", {"path": "a.py"}, False)
    assert after.text.startswith("def f(x):")
    assert after.cannot_do == ""
    assert len(client.requests) == 1


async def test_sections_are_written_together_behind_one_prompt():
    before = Sections(
        sections=[
            Section(title="The mill", level=1, points=["its age"], words=50),
            Section(title="The fire", level=1, words=50),
        ]
    )
    one = "The mill\nThe mill was built in 1784 by the river and ground corn."
    two = "The fire came in the year 1911 and took the roof and the wheel."
    after, _, client = await written(before, one, two, given=profile())
    assert [section.text for section in after.sections] == [one.partition("\n")[2], two]
    first, second = (request.prompt_ids for request in client.requests)
    same = next(at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    assert same > len(first) // 2
    assert "its age" in client.prompt_text(0)


async def test_defects_are_reported_at_lines_that_exist():
    answer = {
        "findings": [{"file": "a.py", "line": 2, "severity": "high", "message": "It divides by 0."}]
    }
    task = AgentTask("Review it.", workspace=FILES)
    for before in (Findings(), Critique(summary="0 weaknesses.")):
        after, _, client = await written(
            before, json.dumps(answer, separators=(",", ":")), task=task, requires=Capability.LABELS
        )
        (found,) = after.findings
        assert (found.line, found.evidence, found.source) == (2, "return x / 0", "model")
        assert len(client.requests) == 1


async def test_reviewers_that_were_measured_wrong_add_nothing():
    task = AgentTask("Review it.", workspace=FILES)
    given = profile(wrong=("Findings",))
    _, run, client = await written(Findings(), task=task, given=given, requires=Capability.LABELS)
    assert client.requests == []
    assert run.notes == []  # nothing is missing: the detectors' findings are the result


async def test_an_answer_without_sources_is_not_made_up():
    before = Answer(cannot_do="There are no sources.")
    after, _, client = await written(before, task=AgentTask("What does the lamp mean?"))
    assert after is before
    assert client.requests == []


async def test_a_page_is_written_as_a_text_and_checked_as_a_file():
    page = "<!doctype html><html><h1>Pay</h1></html>"
    seen = []
    after, _, _ = await written(
        Artifact(cannot_do="It needs a model."),
        f"```html\n{page}\n```",
        given=profile(capabilities=(Capability.TEXT, Capability.WRITE)),
        check=lambda output, source: seen.append(output) or [],
        requires=Capability.WRITE,
    )
    assert (after.name, after.content, after.cannot_do) == ("prototype.html", page, "")
    assert seen == [{"name": "prototype.html", "content": page}]


PLAN = {
    "steps": [{"id": "s1", "agent": "coder", "input": "x", "needs": [], "done_when": "y"}],
    "risks": [],
    "fallback": "",
    "cannot_do": "",
}


def final(**members):
    given = json.dumps(members, separators=(",", ":"))
    return f'{{"thought": "", "action": "final_answer", "input": {given}}}'


async def test_a_model_without_loops_answers_at_once_if_its_answers_are_right():
    after, _, client = await written(Plan(cannot_do="x"), final(**PLAN), requires=Capability.REACT)
    assert after.steps[0].agent == "coder"
    assert len(client.requests) == 1


async def test_outputs_that_were_measured_wrong_are_left_to_the_procedure():
    given = CapabilityProfile("m", {Capability.REACT: 1.0}, outputs={"Plan": 0.33})
    before = Plan(fallback="stop")
    after, run, client = await written(before, given=given, requires=Capability.REACT)
    assert after is before
    assert client.requests == []
    assert "measured to get 33% of outputs" in run.notes[0]
    assert "--allow-model" in run.notes[0]


async def test_an_allowed_model_takes_part_and_the_result_says_so():
    given = CapabilityProfile("m", outputs={"Plan": 0.33}, is_allowed=True)
    after, run, _ = await written(
        Plan(cannot_do="x"), final(**PLAN), given=given, requires=Capability.REACT, max_turns=1
    )
    assert after.steps
    assert run.notes[0] == "--allow-model: toy takes part; it was measured to do nothing."


async def test_an_answer_with_defects_replaces_no_procedures_answer():
    before = Plan(fallback="stop")
    after, run, _ = await written(
        before,
        final(**{**PLAN, "fallback": "in 1999"}),
        given=profile("Plan"),
        requires=Capability.REACT,
    )
    assert after is before
    assert run.notes == ["The model's answer was dropped: 1999 is not in the source."]


async def test_an_answer_without_room_is_no_error():
    given = profile("Plan", capabilities=(Capability.TEXT, Capability.REACT))
    run = FakeStepRun(requires=Capability.REACT, tokens=10)
    phase = StepsPhase(ModelSession(ScriptedClient()), profile=given)
    before = Plan(cannot_do="x")
    assert await phase(TASK, before, run) is before
    assert "ended without an answer" in run.notes[0]
    before = Answer(cannot_do="x")
    run = FakeStepRun(requires=Capability.TEXT, tokens=10)
    assert await phase(TASK, before, run) is before
    assert "are left for a text" in run.notes[0]
