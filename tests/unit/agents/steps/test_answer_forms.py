"""Schemas of answers have values from reality; what can be computed is computed."""

import json

import pytest

from agents.outputs.diagnosis import Diagnosis, StackFrame
from agents.outputs.plan import Plan, PlanStep
from agents.outputs.steps import SolutionStep, Steps
from agents.outputs.text import Text
from agents.plugins.registry import load_registry
from agents.specs.packaged import packaged_agents
from agents.steps.answer_forms import answer_schema, answered, card_notes, ordered_steps
from agents.steps.bounded_schema import fitting_schema
from agents.workspace.workspace import Workspace
from engine.api.grammar import Grammar
from tests.fakes.scripted_client import accepts

FILES = Workspace.of_texts({"a.py": "x\n", "b.py": "y\n"})
NO_FILES = Workspace.of_texts({})


def allowed(form, value, workspace=FILES):
    schema, _ = fitting_schema(answer_schema(form, workspace), 3_000, 0.4)
    return accepts(Grammar.json_schema(schema), json.dumps(value))


def plan(agent="coder", step="s1", needs=()):
    one = {"id": step, "agent": agent, "input": "do it", "needs": list(needs), "done_when": "done"}
    return {"steps": [one], "risks": [], "fallback": "", "cannot_do": ""}


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [
        (plan(), True),
        (plan("security_audit", needs=["s1"]), True),
        (plan("no_such_agent"), False),
        (plan(step="first"), False),
        (plan(needs=["s99"]), False),
        ({**plan(), "steps": [], "cannot_do": "It names no task."}, True),
    ],
)
def test_plans_name_agents_that_exist(value, is_allowed):
    assert allowed(Plan, value) is is_allowed
    assert all(key in card_notes(Plan) for key in packaged_agents())


def test_a_diagnosis_names_a_file_that_exists():
    def diagnosis(file):
        return {
            "file": file,
            "line": 1,
            "cause": "x",
            "confidence": 0.5,
            "next_steps": [],
            "cannot_do": "",
        }

    assert allowed(Diagnosis, diagnosis("b.py"))
    assert not allowed(Diagnosis, diagnosis("c.py"))
    assert allowed(Diagnosis, diagnosis("anything.py"), NO_FILES)


@pytest.mark.parametrize("form", load_registry().outputs.values(), ids=load_registry().outputs)
def test_the_reason_why_not_comes_last_and_whole_texts_are_not_asked_for(form):
    members = list(answer_schema(form, FILES).get("properties", {}))
    assert "cannot_do" not in members[:-1]
    assert not {"text", "content", "lesson"} & set(members) or form.__name__ == "Agreement"
    assert "findings" not in members


def test_steps_of_a_plan_are_numbered_and_need_only_earlier_ones():
    def step(name, *needs):
        return PlanStep(id=name, agent="coder", input="x", needs=list(needs))

    steps = [step("s4", "s2"), step("s2", "s4", "s2", "s9", "s4"), step("s2", "s2")]
    assert [(one.id, one.needs) for one in ordered_steps(steps)] == [
        ("s1", []),
        ("s2", ["s1"]),
        ("s3", ["s2"]),
    ]


def test_results_of_steps_are_computed():
    answer = {
        "steps": [
            {"expression": "3 * 12", "result": "35", "reason": "boxes"},
            {"expression": "what is left", "result": "31", "reason": ""},
        ],
        "answer": "31",
        "cannot_do": "",
    }
    after = answered(Steps(cannot_do="Not without a model."), answer)
    assert after.steps == [
        SolutionStep(expression="3 * 12", result="36", reason="boxes"),
        SolutionStep(expression="what is left", result="31"),
    ]
    assert (after.answer, after.cannot_do) == ("31", "")


def test_what_parsers_read_stays_and_empty_answers_replace_nothing():
    frame = StackFrame(file="a.py", line=1)
    before = Diagnosis(
        error="KeyError", frames=[frame], file="a.py", line=1, cause="a key", confidence=0.4
    )
    answer = {"error": "made up", "file": "", "line": 0, "cause": "the key x", "confidence": 0.9}
    after = answered(before, answer)
    assert (after.error, after.frames, after.file, after.line) == ("KeyError", [frame], "a.py", 1)
    assert (after.cause, after.confidence) == ("the key x", 0.9)


def test_a_reason_why_not_is_kept_unless_there_is_an_answer_beside_it():
    answer = {"changes": [], "cannot_do": "There are no facts."}
    assert answered(Text(cannot_do="No model."), answer).cannot_do == "There are no facts."
    refused = {"steps": [], "risks": ["all"], "fallback": "ask", "cannot_do": "No task."}
    assert answered(Plan(cannot_do="No model."), refused).cannot_do == "No task."
    hedged = plan() | {"cannot_do": "it may fail"}
    assert answered(Plan(cannot_do="No model."), hedged).cannot_do == ""
