"""Rules for request fields that no schema declares; none is dropped silently.

* *Accepted*: a known field that has no effect on this engine.
* *Unsupported*: a known field that is not implemented. A 400 names it, unless it carries the value
  that means "off" (many clients send defaults).
* *Unknown*: ignored, counted and listed in a response header; with `strict_fields` a 400. Inside an object
  that says how to answer, such as `response_format`, it is always a 400.

The tables here are those of whole bodies in OpenAI's forms. An object inside one has its own (`Body`), and
so has a whole body that ignores what it does not know (`keeps_unknown`).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, get_args
from urllib.parse import quote

from pydantic import BaseModel

from app.server.wire.body import Body, IsOff, nothing, nothing_or
from app.server.wire.errors import bad_request

IGNORED_HEADER = "x-pravaha-ignored-fields"
_LISTED_NAMES = 20
_LISTED_CHARS = 64

ACCEPTED: dict[str, str] = {
    "user": "identifies the caller's end user; nothing here depends on it",
    "safety_identifier": "as `user`",
    "metadata": "the caller's own notes; not stored",
    "store": "chats are never stored, whatever it says",
    "service_tier": "there is one tier",
    "verbosity": "a hint to models trained for it; ours are not",
    "prompt_cache_key": "names a session; of chats the figures are sorted by it (`/v1/sessions`)",
    "session_id": "as `prompt_cache_key`",
    "prompt_cache_options": "a hint; every prefix is cached until its blocks are needed",
    "prompt_cache_retention": "as `prompt_cache_options`",
    "audio": "the voice of spoken answers, which `modalities` would ask for",
    "prediction": "a hint for speed; answers are the same without it",
}
"""Known fields without an effect, and the reason why they have none."""

_off = nothing_or(False)
_empty = nothing_or([], {}, "")

UNSUPPORTED: dict[str, IsOff] = {
    # OpenAI, chat and completions
    "best_of": nothing_or(1),  # plain completions have it
    "echo": _off,  # plain completions have it
    "function_call": nothing_or("none", "auto"),  # chat has it
    "functions": _empty,  # chat has it
    "modalities": nothing_or(["text"]),
    "moderation": nothing,
    "parallel_tool_calls": nothing_or(True, False),  # chat has it
    "reasoning": nothing,  # chat has it
    "reasoning_effort": nothing_or("none"),  # chat has it
    "suffix": _empty,  # plain completions have it
    "top_logprobs": nothing_or(0),  # chat has it; plain completions have `logprobs`
    "tool_choice": nothing_or("none", "auto"),  # chat has it
    "tools": _empty,  # chat has it
    "web_search_options": nothing,
    # vLLM, SGLang and llama.cpp
    "allowed_token_ids": nothing,
    "bad_words": _empty,
    "chat_template": nothing,
    "chat_template_kwargs": _empty,  # chat has it
    "continue_final_message": _off,  # chat has it
    "documents": _empty,
    "dynatemp_range": nothing_or(0, 0.0),
    "ebnf": nothing,
    "enable_thinking": _off,  # chat has it
    "guided_decoding_backend": nothing,
    "guided_whitespace_pattern": nothing,
    "length_penalty": nothing_or(1, 1.0),
    "logits_processors": _empty,
    "lora_path": nothing,
    "max_chunks_per_doc": nothing,  # reranking reads all chunks
    "max_tokens_per_doc": nothing,
    "max_output_tokens": nothing,  # `max_tokens`
    "min_tokens": nothing_or(0),
    "mirostat": nothing_or(0),
    "n_predict": nothing,
    "num_predict": nothing,  # `max_tokens`
    "rank_fields": nothing,
    "regex": nothing,
    "retrieval": nothing,  # chat has it
    "repeat_penalty": nothing_or(1, 1.0),
    "skip_special_tokens": nothing_or(True),
    "spaces_between_special_tokens": nothing_or(True),
    "stop_sequences": _empty,  # `stop`
    "structural_tag": nothing,
    "truncate_prompt_tokens": nothing,
    "typical_p": nothing_or(1, 1.0),
    "use_beam_search": _off,
}
"""Known fields that are not implemented, each with the test for a value that means "off"."""


def unknown_fields(body: Body, *, strict: bool) -> list[str]:
    """Paths of the undeclared fields of a body that are neither accepted nor unsupported.

    Raises:
        ApiError: 400 for an unsupported field, or for an unknown one if `strict`.
    """
    unknown: list[str] = []
    for prefix, model in _models(body):
        for name, value in (model.model_extra or {}).items():
            if _is_unknown(prefix, name, value, model):
                unknown.append(prefix + name)
    if unknown and strict:
        raise bad_request(
            f"No field is called {unknown[0]!r}; this server runs with --strict-fields.",
            param=unknown[0],
            code="unknown_parameter",
        )
    return unknown


def _is_unknown(prefix: str, name: str, value: Any, model: Body) -> bool:
    """Whether an undeclared field of a body (without a prefix), or of an object in one, is to be listed.

    Raises:
        ApiError: 400 for an unsupported field, or an unknown one where none is ignored.
    """
    path = prefix + name
    has_own = bool(prefix) or model.keeps_unknown
    if name in (model.without_effect if has_own else ACCEPTED):
        return False
    is_off = (model.unsupported if has_own else UNSUPPORTED).get(name)
    if is_off is None:
        if not prefix or model.keeps_unknown:
            return True
        raise bad_request(f"There is no field `{path}`.", param=path, code="unknown_parameter")
    if not is_off(value):
        raise bad_request(
            f"This server does not support `{path}` yet.", param=path, code="unsupported_parameter"
        )
    return False


def discard_undeclared(body: Body) -> None:
    """Free the undeclared fields of a body, which it would hold until its answer is complete."""
    for _, model in _models(body):
        if model.model_extra:
            model.model_extra.clear()


def header_value(names: list[str]) -> str:
    """Field names, which a client chose, as one safe header value of bounded length."""
    listed = [quote(name[:_LISTED_CHARS], safe="[].:$") for name in names[:_LISTED_NAMES]]
    left_out = len(names) - len(listed)
    return ",".join(listed) + (f",+{left_out}" if left_out else "")


def _models(body: Body, prefix: str = "") -> Iterator[tuple[str, Body]]:
    """A model and the models inside it, each with the prefix of its fields' paths."""
    yield prefix, body
    for name in _nested_fields(type(body)):
        value = getattr(body, name)
        if isinstance(value, Body):
            yield from _models(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if not isinstance(item, Body):
                    break  # lists are homogeneous; token ids need no walk
                yield from _models(item, f"{prefix}{name}[{index}].")


@lru_cache
def _nested_fields(kind: type[BaseModel]) -> tuple[str, ...]:
    """Fields of a model that may hold models: a conversation can have thousands of parts without any."""
    return tuple(
        name for name, field in kind.model_fields.items() if _can_hold_model(field.annotation)
    )


def _can_hold_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_can_hold_model, get_args(annotation)))
