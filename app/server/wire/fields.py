"""Rules for request fields that no schema declares; none is dropped silently.

* *Accepted*: a known field that has no effect on this engine.
* *Unsupported*: a known field that is not implemented. A 400 names it, unless it carries the value
  that means "off" (many clients send defaults).
* *Unknown*: ignored, counted and listed in a response header; with `strict_fields` a 400.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, get_args
from urllib.parse import quote

from pydantic import BaseModel

from app.server.wire.errors import bad_request

IGNORED_HEADER = "x-pravaha-ignored-fields"
_LISTED_NAMES = 20
_LISTED_CHARS = 64

ACCEPTED: dict[str, str] = {
    "user": "identifies the caller's end user; nothing here depends on it",
    "safety_identifier": "as `user`",
    "metadata": "the caller's own notes; not stored",
    "store": "nothing is ever stored, whatever it says",
    "service_tier": "there is one tier",
    "verbosity": "a hint to models trained for it; ours are not",
    "prompt_cache_key": "routes requests between servers; there is one. `cache_salt` separates callers",
    "prompt_cache_options": "a hint; every prefix is cached until its blocks are needed",
    "prompt_cache_breakpoint": "as `prompt_cache_options`, inside content parts",
    "prompt_cache_retention": "as `prompt_cache_options`",
    "name": "a participant's name in a message; chat templates here do not use it",
}
"""Known fields without an effect, and the reason why they have none."""


def _nothing(value: Any) -> bool:
    return value is None


def _nothing_or(*inert: Any) -> Callable[[Any], bool]:
    # `True == 1` in Python: compare types too.
    return lambda value: (
        value is None or any(type(value) is type(one) and value == one for one in inert)
    )


_off = _nothing_or(False)
_empty = _nothing_or([], {}, "")

UNSUPPORTED: dict[str, Callable[[Any], bool]] = {
    # OpenAI, chat and completions
    "audio": _nothing,
    "best_of": _nothing,  # plain completions have it
    "echo": _off,  # plain completions have it
    "function_call": _nothing_or("none"),
    "functions": _empty,
    "modalities": _nothing_or(["text"]),
    "moderation": _nothing,
    "parallel_tool_calls": _nothing_or(True, False),  # only means something beside tools
    "prediction": _nothing,
    "reasoning": _nothing,
    "reasoning_effort": _nothing_or("none"),
    "suffix": _empty,
    "top_logprobs": _nothing,  # chat has it; plain completions have `logprobs`
    "tool_choice": _nothing_or("none", "auto"),
    "tools": _empty,
    "web_search_options": _nothing,
    # inside messages
    "annotations": _empty,
    "refusal": _nothing,
    # inside stream_options; it pads chunks against a listener who measures them
    "include_obfuscation": _off,
    # vLLM, SGLang and llama.cpp
    "allowed_token_ids": _nothing,
    "bad_words": _empty,
    "chat_template": _nothing,
    "chat_template_kwargs": _empty,
    "continue_final_message": _off,
    "documents": _empty,
    "dynatemp_range": _nothing_or(0, 0.0),
    "ebnf": _nothing,
    "enable_thinking": _off,
    "grammar": _empty,
    "guided_decoding_backend": _nothing,
    "guided_whitespace_pattern": _nothing,
    "json_schema": _nothing,
    "length_penalty": _nothing_or(1, 1.0),
    "logits_processors": _empty,
    "lora_path": _nothing,
    "max_chunks_per_doc": _nothing,  # reranking reads all chunks
    "max_tokens_per_doc": _nothing,
    "max_output_tokens": _nothing,  # `max_tokens`
    "min_tokens": _nothing_or(0),
    "mirostat": _nothing_or(0),
    "n_predict": _nothing,
    "num_predict": _nothing,  # `max_tokens`
    "rank_fields": _nothing,
    "regex": _nothing,
    "retrieval": _nothing,  # chat has it
    "repeat_penalty": _nothing_or(1, 1.0),
    "skip_special_tokens": _nothing_or(True),
    "spaces_between_special_tokens": _nothing_or(True),
    "stop_sequences": _empty,  # `stop`
    "structural_tag": _nothing,
    "truncate_prompt_tokens": _nothing,
    "typical_p": _nothing_or(1, 1.0),
    "use_beam_search": _off,
}
"""Known fields that are not implemented, each with the test for a value that means "off"."""


def unknown_fields(body: BaseModel, *, strict: bool) -> list[str]:
    """Paths of the undeclared fields of a body that are neither accepted nor unsupported.

    Raises:
        ApiError: 400 for an unsupported field, or for an unknown one if `strict`.
    """
    unknown: list[str] = []
    for path, name, value in _extras(body, ""):
        if name in ACCEPTED:
            continue
        is_inert = UNSUPPORTED.get(name)
        if is_inert is None:
            unknown.append(path)
        elif not is_inert(value):
            raise bad_request(
                f"This server does not support `{path}` yet.",
                param=path,
                code="unsupported_parameter",
            )
    if unknown and strict:
        raise bad_request(
            f"No field is called {unknown[0]!r}; this server runs with --strict-fields.",
            param=unknown[0],
            code="unknown_parameter",
        )
    return unknown


def discard_undeclared(body: BaseModel) -> None:
    """Free the undeclared fields of a body, which it would hold until its answer is complete."""
    for _, model in _models(body):
        if model.model_extra:
            model.model_extra.clear()


def header_value(names: list[str]) -> str:
    """Field names, which a client chose, as one safe header value of bounded length."""
    listed = [quote(name[:_LISTED_CHARS], safe="[].") for name in names[:_LISTED_NAMES]]
    left_out = len(names) - len(listed)
    return ",".join(listed) + (f",+{left_out}" if left_out else "")


def _extras(body: BaseModel, prefix: str) -> Iterator[tuple[str, str, Any]]:
    """(path, name, value) of every undeclared field of a model and of the models inside it."""
    for path, model in _models(body, prefix):
        for name, value in (model.model_extra or {}).items():
            yield path + name, name, value


def _models(body: BaseModel, prefix: str = "") -> Iterator[tuple[str, BaseModel]]:
    """A model and the models inside it, each with the prefix of its fields' paths."""
    yield prefix, body
    for name in _nested_fields(type(body)):
        value = getattr(body, name)
        if isinstance(value, BaseModel):
            yield from _models(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if not isinstance(item, BaseModel):
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
