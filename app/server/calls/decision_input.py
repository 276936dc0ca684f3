"""What a body of `/v1/decisions` asks: its input as messages, its questions as texts with options."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.server.calls.responses_input import ChatInput, chat_input, input_items
from app.server.wire.decisions_schemas import DecisionQuestion, DecisionRequest
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.json_size import json_depth
from engine.api.decisions import MIN_OPTIONS, DecisionRules, predicate
from engine.api.decisions import DecisionQuestion as Asked
from engine.decisions.prompts import INSTRUCTION, SEPARATOR, instructed

_ITEMS = (
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
)
_MAX_JSON_DEPTH = 32
_MAX_JSON_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class AskedDecisions:
    """What a call asks, whatever its body looks like.

    Attributes:
        model: name of the model; None for the primary one.
        input: the messages that the questions are about, the last one with `INSTRUCTION`.
        questions: the questions.
        paths: of each question in the body, for errors.
        rules: how probabilities are read.
        cache_salt: as `Request.cache_salt`.
    """

    model: str | None
    input: ChatInput
    questions: tuple[Asked, ...]
    paths: tuple[str, ...]
    rules: DecisionRules
    cache_salt: str | None = None


def asked_decisions(body: DecisionRequest) -> AskedDecisions:
    """What a body of `/v1/decisions` asks.

    Raises:
        ApiError, InvalidRequest: 400 that names the member.
    """
    paths = tuple(f"questions[{index}]" for index in range(len(body.questions)))
    return AskedDecisions(
        body.model,
        decision_messages(body),
        tuple(asked_question(one, path) for one, path in zip(body.questions, paths, strict=True)),
        paths,
        _rules(body),
        body.cache_salt,
    )


def _rules(body: DecisionRequest) -> DecisionRules:
    given = {name: getattr(body, name) for name in ("calibrate", "margin", "min_label_mass")}
    if body.has_ids and given["min_label_mass"] is None:
        given["min_label_mass"] = 0.0  # its form has no refusal
    return DecisionRules(**{name: value for name, value in given.items() if value is not None})


def decision_messages(body: DecisionRequest) -> ChatInput:
    """The input as messages; the last one is the user's and ends with `INSTRUCTION`.

    Raises:
        ApiError: 400 that names the item.
    """
    items = input_items(body.input)
    called: set[str] = set()
    for index, item in enumerate(items):
        _check_item(item, f"input[{index}]", called)
    read = [_with_json_as_text(item, f"input[{index}]") for index, item in enumerate(items)]
    chat = chat_input(None, [], read)
    if not any(_says_something(one) for one in chat.messages):
        raise bad_request("`input` is empty: there is nothing to decide on.", param="input")
    if chat.messages[-1]["role"] != "user":
        chat.add({"role": "user", "content": ""}, None)
    last = chat.messages[-1]
    if isinstance(last["content"], str):
        last["content"] = instructed(last["content"])
    else:
        last["content"] = [*last["content"], {"type": "text", "text": SEPARATOR + INSTRUCTION}]
    return chat


def asked_question(question: DecisionQuestion, path: str) -> Asked:
    """A question with its options.

    Raises:
        ApiError: 400 that names the member.
    """
    text = _instructions(question.instructions, f"{path}.instructions")
    for name, owner in (("choices", "choice"), ("levels", "score")):
        given = getattr(question, name)
        if (given is not None) != (question.type == owner):
            what = "needs" if given is None else "has no"
            raise bad_request(
                f"`{path}.{name}` is not valid: a question of the type {question.type!r} {what} `{name}`.",
                param=f"{path}.{name}",
            )
    if question.type == "predicate":
        return predicate(text, name=question.name)
    if question.type == "choice":
        choices = question.choices or []
        values = [one.value for one in choices]
        _check_options(values, f"{path}.choices", "choices")
        names, described = _choice_names(values), [one.description for one in choices]
    else:
        levels = question.levels or []
        names, described = [one.label for one in levels], [one.description for one in levels]
        _check_options(list(zip(names, described, strict=True)), f"{path}.levels", "levels")
    return Asked(question.type, text, tuple(names), tuple(described), question.name)


def _says_something(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    if isinstance(content, str):
        return bool(content.strip())
    is_text = [part.get("text", "x").strip() for part in content]
    return any(is_text) or bool(message.get("tool_calls"))


def _check_item(item: Mapping[str, Any], path: str, called: set[str]) -> None:
    kind = item.get("type") or ("message" if "role" in item else None)
    if kind not in _ITEMS:
        raise bad_request(
            f"`{path}.type` is not valid: it must be one of {', '.join(_ITEMS)}.",
            param=f"{path}.type",
        )
    call_id = item.get("call_id")
    if kind.endswith("_call") and isinstance(call_id, str):
        called.add(call_id)
    if kind.endswith("_output") and isinstance(call_id, str) and call_id not in called:
        raise bad_request(
            f"`{path}.call_id` is not valid: no call before it has the id {call_id[:80]!r}.",
            param=f"{path}.call_id",
        )


def _with_json_as_text(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    """An item whose parts of JSON are parts of text, on lines of their own."""
    content = item.get("content")
    if not isinstance(content, list):
        return dict(item)
    parts = []
    for index, part in enumerate(content):
        if isinstance(part, dict) and part.get("type") == "input_json":
            text = _json_text(part.get("data"), f"{path}.content[{index}].data")
            before, after = "\n" if index else "", "\n" if index + 1 < len(content) else ""
            parts.append({"type": "input_text", "text": f"{before}{text}{after}"})
        else:
            parts.append(part)
    return {**item, "content": parts}


def _instructions(given: str | Sequence[Mapping[str, Any]], path: str) -> str:
    if not isinstance(given, str):
        given = "\n".join(_part(part, f"{path}[{index}]") for index, part in enumerate(given))
    if not given.strip():
        raise bad_request(f"`{path}` is not valid: it is empty.", param=path)
    return given.strip()


def _part(part: Mapping[str, Any], path: str) -> str:
    kind = part.get("type")
    if kind == "input_json":
        return _json_text(part.get("data"), f"{path}.data")
    if kind == "input_image":
        raise ApiError(
            400,
            f"`{path}` is not valid: questions with images are not supported.",
            param=path,
            code="images_not_supported",
        )
    text = part.get("text")
    if kind != "input_text" or not isinstance(text, str):
        raise bad_request(
            f"`{path}` is not valid: it must be a part of the type input_text or input_json.",
            param=path,
        )
    return text


def _json_text(data: Any, path: str) -> str:
    """An object, or a list of objects, as compact JSON."""
    objects = data if isinstance(data, list) else [data]
    if not all(isinstance(one, dict) for one in objects):
        raise bad_request(
            f"`{path}` is not valid: it must be an object or a list of objects.", param=path
        )
    if json_depth(data) > _MAX_JSON_DEPTH:
        raise bad_request(
            f"`{path}` is not valid: it is nested deeper than {_MAX_JSON_DEPTH} levels.", param=path
        )
    text = orjson.dumps(data)
    if len(text) > _MAX_JSON_BYTES:
        raise bad_request(
            f"`{path}` is not valid: it has more than {_MAX_JSON_BYTES:,} bytes.", param=path
        )
    return text.decode()


def _check_options(names: Sequence[Hashable], path: str, what: str) -> None:
    if len(names) < MIN_OPTIONS:
        raise bad_request(
            f"`{path}` is not valid: at least {MIN_OPTIONS} {what} are needed.", param=path
        )
    if len(set(names)) < len(names):
        raise bad_request(f"`{path}` is not valid: two {what} are the same.", param=path)


def _choice_names(values: Sequence[str | bool]) -> list[str]:
    """Choices as the model reads them.

    Texts are quoted beside a boolean of the same spelling, and where one would show nothing.
    """
    names = [value if isinstance(value, str) else str(value).lower() for value in values]
    if len(set(names)) == len(names) and all(map(str.strip, names)):
        return names
    return [orjson.dumps(value).decode() for value in values]
