"""A response's request as one of chat completions, and errors back in the request's own words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.server.calls.responses_input import ChatInput
from app.server.calls.responses_tools import ResponseTools, chat_tool_choice
from app.server.wire.errors import ApiError, bad_request, from_engine, from_validation
from app.server.wire.responses_schemas import (
    PASSED_FIELDS,
    ContextFields,
    ResponseRequest,
    TextFormat,
)
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MESSAGE = re.compile(r"messages\[(\d+)\]")
_TOOL = re.compile(r"tools\[(\d+)\](?:\.function)?")
_OWN_NAMES = {
    "max_completion_tokens": "max_output_tokens",
    "messages": "input",
    "reasoning_effort": "reasoning.effort",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "retrieval": "tools",
    "tool_loop": "tools",
}
"""Fields of chat completions, and what they are called here."""


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Turns the paths of a chat completion's fields into those of the response's request.

    Attributes:
        messages: the paths of the messages.
        tools: the paths of the tools.
    """

    messages: Sequence[str | None] = ()
    tools: Sequence[str] = ()

    def of(self, param: str) -> str:
        """The request's own path."""
        found = _MESSAGE.match(param)
        if found is not None:
            number = int(found.group(1))
            own = self.messages[number] if number < len(self.messages) else None
            # Here the address of an image is the member itself.
            rest = param[found.end() :].replace(".image_url.url", ".image_url")
            return "input" if own is None else own + rest
        found = _TOOL.match(param)
        if found is not None and int(found.group(1)) < len(self.tools):
            return self.tools[int(found.group(1))] + param[found.end() :]
        for name, own in _OWN_NAMES.items():
            if param == name or param.startswith((f"{name}.", f"{name}[")):
                return own + param[len(name) :]
        return param

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Errors of the chat completion inside are raised with the request's own paths.

        Raises:
            ApiError: in place of any of them.
        """
        try:
            yield
        except ValidationError as error:
            raise self._translated(from_validation(error.errors())) from error
        except InvalidRequest as error:
            raise self._translated(from_engine(error)) from error
        except ApiError as error:
            raise self._translated(error) from error

    def _translated(self, error: ApiError) -> ApiError:
        if error.param is None:
            return error
        own = self.of(error.param)
        message = error.detail.replace(f"`{error.param}`", f"`{own}`")
        return error.of_field(own, message)


def chat_request(
    body: ContextFields, chat: ChatInput, tools: ResponseTools
) -> ChatCompletionRequest:
    """The request of a chat completion; what only changes the answer is in a `ResponseRequest` alone.

    Raises:
        ApiError: 400 that names a field of the body.
    """
    if not chat.messages:
        raise bad_request("`input` is empty: there is nothing to answer.", param="input")
    fields: dict[str, Any] = {
        "model": body.model,
        "messages": chat.messages,
        # A last message of the assistant is closed: its text would not be in the output.
        "add_generation_prompt": True,
        "tools": tools.offered or None,
        "tool_choice": chat_tool_choice(body.tool_choice, tools),
        "parallel_tool_calls": body.parallel_tool_calls if tools.offered else None,
        "response_format": _response_format(None if body.text is None else body.text.format),
        "reasoning_effort": body.reasoning and body.reasoning.effort,
        "retrieval": _retrieval(tools, chat),
    }
    if isinstance(body, ResponseRequest):
        fields |= {
            "stream": body.stream,
            "max_completion_tokens": body.max_output_tokens,
            "logprobs": body.wants_logprobs or None,
            "top_logprobs": body.top_logprobs if body.wants_logprobs else None,
            **{name: getattr(body, name) for name in PASSED_FIELDS},
        }
    given = {name: value for name, value in fields.items() if value is not None}
    with OwnNames(chat.paths, tools.paths).in_errors():
        return ChatCompletionRequest.model_validate(given)


def _response_format(form: TextFormat | None) -> dict[str, Any] | None:
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return {"type": "json_object"}
    if form.schema_ is None:
        raise bad_request("`text.format.schema` is missing.", param="text.format.schema")
    schema: dict[str, Any] = {"schema": form.schema_, "strict": form.strict}
    if form.name is not None and _NAME.fullmatch(form.name):
        schema["name"] = form.name
    return {"type": "json_schema", "json_schema": schema}


def _retrieval(tools: ResponseTools, chat: ChatInput) -> dict[str, Any] | None:
    """The search in files, before the answer to a question; the results of calls are none."""
    given = tools.file_search
    if given is None or not _is_question(chat.messages[-1]):
        return None
    names = ("vector_store_ids", "max_num_results", "filters", "ranking_options")
    return {name: given[name] for name in names if given.get(name) is not None}


def _is_question(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    texts = content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
    return message["role"] == "user" and bool(texts.strip())
