"""Bounded schemas of all output models: their longest text is known, and what they allow is valid."""

import json
import random
import re

import pytest

from agents.api.errors import InvalidTask
from agents.plugins.registry import load_registry
from agents.steps.bounded_schema import Bounds, bounded_schema, fitting_schema, longest_text
from agents.steps.findings_answer import ReportedFindings

OUTPUTS = {**load_registry().outputs, "ReportedFindings": ReportedFindings}


def longest_value(schema, rng):
    """A value of the schema with every text and array as long as possible."""
    if "anyOf" in schema:
        return longest_value(max(schema["anyOf"], key=longest_text), rng)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return max(schema["enum"], key=lambda one: len(json.dumps(one)))
    match schema["type"]:
        case "string":
            return rng.choice("x€😀") * schema["maxLength"]
        case "integer":
            return max(schema["minimum"], schema["maximum"], key=lambda one: len(str(one)))
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            return [longest_value(schema["items"], rng) for _ in range(schema["maxItems"])]
    return {name: longest_value(part, rng) for name, part in schema["properties"].items()}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_the_longest_value_is_valid_and_within_the_bound(output):
    rng = random.Random(7)
    widths = []
    for tokens in (100, 600, 2000, 20_000):
        schema, longest = fitting_schema(output.model_json_schema(), tokens, 0.5)
        value = longest_value(schema, rng)
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert len(written) <= longest
        widths.append(longest)
        if "pattern" not in json.dumps(schema):
            output.model_validate(value)
    assert widths == sorted(widths)


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_every_output_has_a_form_whatever_the_room(output):
    for tokens in (0, 1, 50, 10**6):
        schema, longest = fitting_schema(output.model_json_schema(), tokens, 0.4)
        assert longest == longest_text(schema)


def test_a_usual_budget_leaves_lines_whole():
    """8,192 tokens leave some 3,000 for an answer: lines of plans and diagnoses keep their full length."""
    for name in ("Plan", "Steps", "Diagnosis", "UISpec"):
        schema, _ = fitting_schema(OUTPUTS[name].model_json_schema(), 3_000, 0.4)
        lengths = [int(one) for one in re.findall(r'"maxLength": (\d+)', json.dumps(schema))]
        assert max(lengths) >= 300, name


def test_maps_are_left_out_and_all_members_required():
    schema = bounded_schema(
        {
            "type": "object",
            "properties": {
                "label": {"type": "string", "default": ""},
                "weights": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        },
        Bounds(),
    )
    assert schema["required"] == ["label"]
    assert schema["additionalProperties"] is False


def test_recursion_is_refused():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    with pytest.raises(InvalidTask):
        bounded_schema({"$ref": "#/$defs/Node", "$defs": {"Node": node}}, Bounds())
