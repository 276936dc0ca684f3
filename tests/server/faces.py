"""A valid request of every endpoint that reads a body of JSON and asks the model, or a store, something."""

import copy
from collections.abc import Iterator
from typing import Any

MESSAGES = [{"role": "user", "content": "hi"}]
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
CALLED = {"type": "function", "function": TOOL}

FACES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "toy", "messages": MESSAGES, "max_tokens": 2, "tools": [CALLED],
        "response_format": {"type": "text"},
    },
    "/v1/completions": {"model": "toy", "prompt": "hi", "max_tokens": 2},
    "/v1/responses": {
        "model": "toy", "input": "hi", "max_output_tokens": 2, "tools": [{"type": "function", **TOOL}],
    },
    "/v1/responses/input_tokens": {"model": "toy", "input": "hi"},
    "/v1/decisions": {
        "model": "toy", "input": MESSAGES,
        "questions": [
            {"type": "predicate", "instructions": [{"type": "input_text", "text": "hi"}]},
            {"type": "choice", "instructions": "hi", "choices": [{"value": "a"}, {"value": True}]},
            {"type": "score", "instructions": "hi", "levels": [{"label": "a"}, {"label": "b"}]},
        ],
    },
    "/v1/messages": {"model": "toy", "messages": MESSAGES, "max_tokens": 2},
    "/v1/messages/count_tokens": {"model": "toy", "messages": MESSAGES},
    "/api/chat": {"model": "toy", "messages": MESSAGES, "options": {"num_predict": 2}},
    "/api/generate": {"model": "toy", "prompt": "hi", "options": {"num_predict": 2}},
    "/completion": {"prompt": "hi", "n_predict": 2},
    "/v1/embeddings": {"model": "minilm", "input": "hi"},
    "/api/embed": {"model": "minilm", "input": "hi"},
    "/v1/rerank": {"model": "minilm", "query": "hi", "documents": ["a"]},
    "/v1/moderations": {"input": "hi"},
    "/v1/conversations": {"items": []},
    "/tokenize": {"prompt": "hi"},
    "/detokenize": {"tokens": [104]},
    "/apply-template": {"messages": MESSAGES},
    "/price": {"tokens": [104]},
}  # fmt: skip
"""Bodies by path; the engine of these tests has a model `toy` and no embedder."""

GENERATING = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat",
    "/api/generate", "/completion",
)  # fmt: skip
"""Paths whose answer is the model's."""


def body_of(path: str, **fields: Any) -> dict[str, Any]:
    """A body of a path with fields added or replaced."""
    return copy.deepcopy(FACES[path]) | fields


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all members and items in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in inner:
        yield (*at, key)
        if isinstance(member, (dict, list)):
            yield from places(member, (*at, key))


def with_value(body: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of a body with another value at a place."""
    changed = copy.deepcopy(body)
    target: Any = changed
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return changed
