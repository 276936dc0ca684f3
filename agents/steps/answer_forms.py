"""What a model answers for each output: the schema, with values from reality, and what program completes.

Whole texts are not part of it: they are written as texts (`agents.steps.writing`). What detectors, parsers
and checks fill in is not asked for either.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agents.outputs.base import Output
from agents.outputs.diagnosis import Diagnosis
from agents.outputs.plan import Plan, PlanStep
from agents.outputs.steps import SolutionStep, Steps
from agents.outputs.verdict import Verdict
from agents.specs.packaged import packaged_agents
from agents.steps.writing import text_member
from agents.text.expressions import evaluate_in_steps
from agents.text.quantity import InvalidExpression
from agents.workspace.workspace import Workspace

_DETECTED = frozenset(["findings", "claims", "inventory"])
_DECIDED = frozenset(["score", "score_of", "passed", "not_judged", "reasons", "cannot_do"])
"""Members of a verdict, which checks decide."""
_PARSED = frozenset(["frames", "language", "error", "message", "diff"])
"""Members of a diagnosis: what the parser of traces read, and the diff, which is made by program."""
_BESIDE = frozenset(["cannot_do", "risks", "fallback", "confidence"])
"""Members that make no answer by themselves. Small models fill each member of an answer: a reason why they
cannot do what they then do is none."""
MAX_PLAN_STEPS = 12
_MAX_FILES = 200


def kept_members(form: type[BaseModel]) -> frozenset[str]:
    """Members that detectors, parsers and checks fill in; a model's answer has none of them."""
    kept = _DETECTED
    if issubclass(form, Verdict):
        kept |= _DECIDED
    if issubclass(form, Diagnosis):
        kept |= _PARSED
    return kept & form.model_fields.keys()


def answer_schema(form: type[BaseModel], workspace: Workspace) -> dict[str, Any]:
    """The JSON schema of what the model answers: the reason why it cannot comes last."""
    schema = form.model_json_schema()
    left_out = {*kept_members(form), text_member(form)}
    members = {k: v for k, v in schema.get("properties", {}).items() if k not in left_out}
    if "cannot_do" in members:
        members["cannot_do"] = members.pop("cannot_do")
    if issubclass(form, Plan):
        step = schema["$defs"][PlanStep.__name__]["properties"]
        ids = [f"s{number}" for number in range(1, MAX_PLAN_STEPS + 1)]
        step["id"] = {"enum": ids}
        step["agent"] = {"enum": sorted(packaged_agents())}
        step["needs"] = {"type": "array", "items": {"enum": ids}, "maxItems": 4}
        members["steps"] = {**members["steps"], "maxItems": MAX_PLAN_STEPS}
    if issubclass(form, Diagnosis) and len(workspace):
        members["file"] = {"enum": ["", *(file.path for file in workspace)][:_MAX_FILES]}
    return {**schema, "properties": members}


def card_notes(form: type[BaseModel]) -> str:
    """What a role card alone does not say about the answer."""
    if issubclass(form, Plan):
        return f"The roster: {', '.join(sorted(packaged_agents()))}."
    return ""


def answered(output: Output, answer: Mapping[str, Any]) -> Output:
    """The output with a model's answer, but for what detectors and checks filled in and the model left empty.

    Raises:
        pydantic.ValidationError: the answer is not one of the output's schema.
    """
    form = type(output)
    kept = {name: getattr(output, name) for name in kept_members(form)}
    given = {
        name: value
        for name, value in answer.items()
        if name not in kept and (value or not getattr(output, name))
    }
    written = form.model_validate({**output.model_dump(), **given}).model_copy(update=kept)
    if "cannot_do" not in kept and any(answer.get(name) for name in given.keys() - _BESIDE):
        written = written.model_copy(update={"cannot_do": ""})
    return _completed(written)


def _completed(output: Output) -> Output:
    if isinstance(output, Plan):
        return output.model_copy(update={"steps": ordered_steps(output.steps)})
    if isinstance(output, Steps):
        return output.model_copy(update={"steps": [_computed(step) for step in output.steps]})
    if isinstance(output, Diagnosis) and not output.file:
        return output.model_copy(update={"line": 0})
    return output


def ordered_steps(steps: list[PlanStep]) -> list[PlanStep]:
    """The steps numbered in their order; each needs only earlier ones, so there is no cycle."""
    ordered: list[PlanStep] = []
    known: dict[str, str] = {}
    for number, step in enumerate(steps, 1):
        needs = list(dict.fromkeys(known[one] for one in step.needs if one in known))
        known[step.id] = f"s{number}"
        ordered.append(step.model_copy(update={"id": f"s{number}", "needs": needs}))
    return ordered


def _computed(step: SolutionStep) -> SolutionStep:
    """The step with the value of its expression, where that can be computed."""
    try:
        value, _ = evaluate_in_steps(step.expression)
    except InvalidExpression:
        return step
    return step.model_copy(update={"result": value.show()[:300]})
