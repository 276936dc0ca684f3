"""The form of SGLang's `POST /v1/decisions` in terms of OpenAI's: questions that have ids.

    {"id": …, "type": "yes_no", "question": …, "yes": …, "no": …}
    {"id": …, "type": "choice", "question": …, "options": [{"name": …, "description": …}, …]}
    {"id": …, "type": "score", "question": …, "levels": […]}

Texts may be JSON, which the model reads compactly. Its answers are an object by id.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from engine.api.decisions import DecisionAnswer, Decisions

_MEMBERS = frozenset({"id", "type", "question", "options", "levels", "yes", "no"})
PROMPT_FORMAT_VERSION = 0
"""None of SGLang's wordings of a prompt."""


def has_ids(body: Any) -> bool:
    """Whether a body has the form of SGLang."""
    questions = body.get("questions") if isinstance(body, dict) else None
    if not isinstance(questions, list):
        return False
    return any(isinstance(one, dict) and ("id" in one or "question" in one) for one in questions)


def without_ids(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body in OpenAI's form, each question named by its id.

    Raises:
        ValueError: a question is none of SGLang's, or two have the same id.
    """
    questions = [_question(at, one) for at, one in enumerate(body["questions"])]
    names = [one["name"] for one in questions]
    if len(set(names)) < len(names):
        raise ValueError("two questions have the same id")
    given = body.get("input")
    text = _text(given) if isinstance(given, (dict, list)) else given
    return {**body, "input": text, "questions": questions}


def answers_by_id(decided: Decisions) -> dict[str, Any]:
    """The answers in SGLang's form; there is no refusal, but `label_mass`."""
    return {
        "object": "decisions",
        "model": decided.model,
        "prompt_format_version": PROMPT_FORMAT_VERSION,
        "answers": {one.question.name: _answer(one) for one in decided.answers},
        "usage": {
            "prompt_tokens": decided.input_tokens,
            "completion_tokens": 0,
            "total_tokens": decided.input_tokens,
        },
    }


def _answer(answer: DecisionAnswer) -> dict[str, Any]:
    kind = answer.question.kind
    names: Sequence[str] = answer.question.options
    if kind == "score":
        names = [str(level) for level in range(len(names))]
    found: dict[str, Any] = {
        "type": "yes_no" if kind == "predicate" else kind,
        "probabilities": dict(zip(names, answer.probabilities, strict=True)),
        "label_mass": answer.label_mass,
    }
    if kind == "choice":
        found["choice"] = answer.label
    elif kind == "score":
        found["score"] = answer.score
    return found


def _question(at: int, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or not isinstance(given.get("id"), str) or not given["id"]:
        raise ValueError(f"questions[{at}].id must be a text: the other questions have one")
    unknown = next((name for name in given if name not in _MEMBERS), None)
    if unknown is not None:
        raise ValueError(f"questions[{at}] has no member {unknown!r:.80}")
    kind = given.get("type")
    found = {
        "type": "predicate" if kind == "yes_no" else kind,
        "name": given["id"],
        "instructions": _text(given.get("question")),
    }
    if kind == "yes_no" and found["instructions"].strip():
        sides = [f"{name}: {_text(given[name])}" for name in ("yes", "no") if given.get(name)]
        found["instructions"] = "\n".join([found["instructions"], *sides])
    # What is no list is left to the schema, which refuses it.
    for own, name, read in (("options", "choices", _option), ("levels", "levels", _level)):
        if own in given:
            items = given[own]
            found[name] = [read(one) for one in items] if isinstance(items, list) else items
    return found


def _level(given: Any) -> dict[str, str]:
    return {"label": _text(given)}


def _option(given: Any) -> Any:
    if not isinstance(given, dict):
        return given  # refused by the schema
    option = {"value": given.get("name"), **{k: v for k, v in given.items() if k != "name"}}
    if option.get("description") is not None:
        option["description"] = _text(option["description"])
    return option


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()
