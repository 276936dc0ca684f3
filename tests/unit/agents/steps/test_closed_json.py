"""A JSON text that was cut anywhere becomes a value of its schema that keeps what was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.outputs.plan import Plan
from agents.plugins.registry import load_registry
from agents.steps.bounded_schema import Bounds, bounded_schema
from agents.steps.closed_json import closed_json

OUTPUTS = load_registry().outputs
PLAN = bounded_schema(Plan.model_json_schema(), Bounds(300, 5))
WRITTEN = {
    "cannot_do": "",
    "findings": [],
    "steps": [
        {
            "id": "s1",
            "agent": "coder",
            "input": "write the parser",
            "needs": [],
            "done_when": "it parses",
        },
        {
            "id": "s2",
            "agent": "critic",
            "input": 'judge "it"\nonce more',
            "needs": ["s1"],
            "done_when": "",
        },
    ],
    "risks": ["none known"],
    "fallback": "ask the user",
}
TEXT = json.dumps(WRITTEN, separators=(",", ":"))


def values(schema):
    """A strategy for the values of a bounded schema."""
    if "anyOf" in schema:
        return st.one_of([values(part) for part in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "string":
            return st.text(
                min_size=schema.get("minLength", 0), max_size=min(20, schema["maxLength"])
            )
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            return st.lists(
                values(schema["items"]),
                min_size=schema.get("minItems", 0),
                max_size=min(3, schema["maxItems"]),
            )
    return st.fixed_dictionaries(
        {name: values(part) for name, part in schema["properties"].items()}
    )


def test_a_whole_text_is_its_value():
    assert closed_json(TEXT, PLAN) == WRITTEN


@pytest.mark.parametrize("end", range(len(TEXT)))
def test_a_plan_that_was_cut_anywhere_keeps_its_whole_steps(end):
    plan = Plan.model_validate(closed_json(TEXT[:end], PLAN))
    whole = [
        step for step in WRITTEN["steps"] if json.dumps(step, separators=(",", ":")) in TEXT[:end]
    ]
    assert [step.model_dump() for step in plan.steps] == whole


def test_a_text_that_was_cut_ends_at_a_whole_word():
    schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 100}}}
    assert closed_json('{"text":"The parser fails at the thi', schema) == {
        "text": "The parser fails at the…"
    }
    assert closed_json('{"text":"one\\\\nline, tw', schema) == {"text": "one\\nline…"}
    assert closed_json('{"text":"half an escape \\\\', schema)["text"].endswith("escape…")


@pytest.mark.parametrize(
    "name", ["Plan", "Steps", "Diagnosis", "UISpec", "Layout", "Findings", "Ranking"]
)
@given(data=st.data())
def test_any_prefix_of_any_answer_is_valid(name, data):
    schema = bounded_schema(OUTPUTS[name].model_json_schema(), Bounds(40, 3))
    value = data.draw(values(schema))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert closed_json(text, schema) == value
    OUTPUTS[name].model_validate(closed_json(text[: data.draw(st.integers(0, len(text)))], schema))


@given(text=st.text(alphabet='{}[]",:\\\\ab1. ntu', max_size=60))
def test_no_text_breaks_it(text):
    Plan.model_validate(closed_json(text, PLAN))
