"""Requests of Ollama's API as chat requests."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from app.server.process.context import ServerContext
from app.server.wire.errors import ApiError, bad_request
from app.server.wire.ollama_schemas import (
    OllamaChatRequest,
    OllamaGenerateRequest,
    OllamaGeneration,
    OllamaMessage,
    OllamaOptions,
)
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.request import NO_LIMIT

_LATEST = ":latest"
_NO_END = -2
"""Ollama's `num_predict` for an answer that fills the context."""


def plain_name(name: str) -> str:
    """A model's name without the tag that Ollama's clients add to it."""
    return name.removesuffix(_LATEST)


def served_name(context: ServerContext, name: str) -> str:
    """The name of a served model, by which clients ask for it with or without a tag.

    Reads the names of the installed models if the server loads them on demand.

    Raises:
        ApiError: 404, in Ollama's words.
    """
    if context.models.find(name) is not None:
        return name
    plain = plain_name(name)
    if context.models.find(plain) is not None:
        return plain
    found = next((one for one in context.models.names() if plain_name(one) == plain), None)
    if found is None:
        raise model_not_found(name)
    return found


def model_not_found(name: str) -> ApiError:
    """The error for a model that there is not, in Ollama's words, by which clients know it."""
    return ApiError(404, f"model '{name[:80]}' not found", param="model", code="model_not_found")


def chat_request(body: OllamaChatRequest, model: str) -> ChatCompletionRequest:
    """The chat request that a body of `/api/chat` means.

    Raises:
        ApiError: 400 that names Ollama's field.
    """
    messages = _messages(body.messages or ())
    return _request(body, model, messages, {"tools": body.tools} if body.tools else {})


def generate_request(body: OllamaGenerateRequest, model: str) -> ChatCompletionRequest:
    """The chat request of one turn that a body of `/api/generate` means, without `raw` and `context`.

    Raises:
        ApiError: as `chat_request`.
    """
    turns = [OllamaMessage(role="system", content=body.system)] if body.system else []
    turns.append(OllamaMessage(role="user", content=body.prompt or "", images=body.images))
    return _request(body, model, _messages(turns), {})


def _request(
    body: OllamaGeneration, model: str, messages: list[dict[str, Any]], more: dict[str, Any]
) -> ChatCompletionRequest:
    fields = {
        "model": model,
        "messages": messages,
        "stream": body.streams,
        "keep_alive": body.keep_alive,
        **sampling_fields(body.options or OllamaOptions()),
        **format_fields(body.format),
        **_thinking(body.think),
        **more,
    }
    if body.logprobs:
        fields |= {"logprobs": True, "top_logprobs": body.top_logprobs}
    try:
        return ChatCompletionRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise bad_request(f"`{_ollama_name(where)}` is not valid: {reason}.", param=where) from None


def sampling_fields(options: OllamaOptions) -> dict[str, Any]:
    """The sampling fields that options mean; those that are left out are the model's."""
    limit = options.num_predict
    fields = {
        "seed": options.seed,
        "max_tokens": NO_LIMIT if limit in (_NO_END, 0) else limit,
        "top_k": options.top_k,
        "top_p": options.top_p,
        "min_p": options.min_p,
        "temperature": options.temperature,
        "repetition_penalty": options.repeat_penalty,
        "presence_penalty": options.presence_penalty,
        "frequency_penalty": options.frequency_penalty,
        "stop": options.stop,
    }
    return {name: value for name, value in fields.items() if value is not None}


_OPTION_NAMES = {"max_tokens": "num_predict", "repetition_penalty": "repeat_penalty"}


def _ollama_name(where: str) -> str:
    """Ollama's name of a chat request's field."""
    if where in OllamaOptions.model_fields or where in _OPTION_NAMES:
        return f"options.{_OPTION_NAMES.get(where, where)}"
    return "format" if where.startswith("response_format") else where


def format_fields(given: dict[str, Any] | str | None) -> dict[str, Any]:
    """The field that a `format` means: `json`, or a JSON schema; an empty one means none."""
    if given is None or given == "":
        return {}
    if given == "json":
        return {"response_format": {"type": "json_object"}}
    if isinstance(given, str):
        raise bad_request("`format` must be 'json', or a JSON schema.", param="format")
    schema = {"name": "format", "schema": given}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _thinking(think: bool | str | None) -> dict[str, Any]:
    if think is None:
        return {}
    if isinstance(think, bool):
        return {"enable_thinking": think}
    return {"reasoning_effort": think, "enable_thinking": True}


def _messages(given: Sequence[OllamaMessage]) -> list[dict[str, Any]]:
    """The messages with ids of calls, which Ollama's clients drop.

    A result belongs to the oldest call of its name that has none yet, else to the oldest that has none.
    """
    messages: list[dict[str, Any]] = []
    waiting: list[tuple[str, str]] = []  # (name, id) of calls without a result
    for position, message in enumerate(given):
        turn: dict[str, Any] = {"role": message.role, "content": _content(message)}
        if message.thinking:
            turn["reasoning_content"] = message.thinking
        if message.tool_calls:
            turn["tool_calls"] = []
            for number, call in enumerate(message.tool_calls):
                call_id = call.id or f"call_{position}_{number}"
                waiting.append((call.function.name, call_id))
                function = {"name": call.function.name, "arguments": call.function.arguments}
                turn["tool_calls"].append({"id": call_id, "type": "function", "function": function})
        if message.role == "tool":
            turn["tool_call_id"] = _answered(waiting, message) or f"call_{position}"
        messages.append(turn)
    return messages


def _answered(waiting: list[tuple[str, str]], message: OllamaMessage) -> str | None:
    """The id of the call whose result a message is; the call waits no more."""
    if not waiting:
        return message.tool_call_id
    ids = [one_id for _, one_id in waiting]
    names = [name for name, _ in waiting]
    if message.tool_call_id in ids:
        at = ids.index(message.tool_call_id)
    elif message.tool_name in names:
        at = names.index(message.tool_name)
    else:
        at = 0
    return waiting.pop(at)[1]


def _content(message: OllamaMessage) -> Any:
    text = message.content or ""
    if not message.images:
        return text
    # The type in the address is not looked at: images are known by their bytes.
    images = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
        for image in message.images
    ]
    return [*images, {"type": "text", "text": text}]
