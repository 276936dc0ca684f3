"""Pydantic schemas of the tools of a chat request, in OpenAI's form.

A tool of a type that is not served is skipped and named in the response: agents send them along with
functions, and a refusal would refuse all of their work.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agents.tool_loop.values import DEFAULT_ROUNDS, MAX_ROUNDS
from app.server.wire.body import Body, DefaultedBody
from app.server.wire.json_size import json_depth
from engine.api.tools import Tool, ToolChoice

MAX_TOOLS = 512
MAX_TOOL_BYTES = 1 << 20
"""All tools of a request as JSON text."""
MAX_TOOL_DEPTH = 64
"""Nesting of a tool's parameters."""
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


def _function_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a tool's name has 1 to 128 letters, digits and the characters _ - . : /")
    return name


def _flat_parameters(parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    if parameters is not None and json_depth(parameters) > MAX_TOOL_DEPTH:
        raise ValueError(f"is nested more than {MAX_TOOL_DEPTH} levels deep")
    return parameters


class FunctionBody(Body):
    """A function that the model may call; `parameters` is a JSON schema."""

    keeps_unknown: ClassVar[bool] = True

    name: Annotated[str, AfterValidator(_function_name)]
    description: str | None = None
    parameters: Annotated[dict[str, Any] | None, AfterValidator(_flat_parameters)] = None
    strict: bool | None = None

    @property
    def tool(self) -> Tool:
        """The function as a tool."""
        return Tool(self.name, self.description or "", self.parameters or {}, bool(self.strict))


class ToolBody(Body):
    """A tool; one of another type than `function` is skipped."""

    keeps_unknown: ClassVar[bool] = True

    type: Annotated[str, Field(min_length=1, max_length=64)]
    function: FunctionBody | None = None

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, value: Any) -> Any:
        """The function of a tool in the flat form of the Responses API as the member of its own."""
        if not isinstance(value, dict):
            return value
        kind = value.get("type") or "function"
        if kind != "function":
            return {name: one for name, one in value.items() if name != "function"}
        if value.get("function") is not None:
            return {**value, "type": kind}
        if "name" not in value:
            raise ValueError("a tool of type 'function' needs the member `function`")
        flat = {name: one for name, one in value.items() if name not in ("type", "function")}
        return {"type": kind, "function": flat}


def functions_of(tools: Sequence[ToolBody] | None) -> list[Tool]:
    """The functions among some tools."""
    return [one.function.tool for one in tools or () if one.function is not None]


def check_names(names: list[str]) -> None:
    """Refuse two tools of one name.

    Raises:
        ValueError: there are two.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two tools are called {name!r}; a name must be unique")
        seen.add(name)


def _checked_tools(tools: list[ToolBody]) -> list[ToolBody]:
    check_names([one.function.name for one in tools if one.function is not None])
    return tools


def _sized(value: Any) -> Any:
    if isinstance(value, list) and len(orjson.dumps(value)) > MAX_TOOL_BYTES:
        raise ValueError(f"has more than {MAX_TOOL_BYTES >> 20} MiB")
    return value


Tools = Annotated[
    list[ToolBody],
    BeforeValidator(_sized),
    Field(max_length=MAX_TOOLS),
    AfterValidator(_checked_tools),
]


def _checked_functions(functions: list[FunctionBody]) -> list[FunctionBody]:
    check_names([one.name for one in functions])
    return functions


Functions = Annotated[
    list[FunctionBody],
    BeforeValidator(_sized),
    Field(max_length=MAX_TOOLS),
    AfterValidator(_checked_functions),
]
"""OpenAI's old field `functions`."""

_MODES: tuple[Literal["auto", "required", "none"], ...] = ("auto", "required", "none")


def _tool_choice(value: Any) -> Any:
    """The forms of `tool_choice` as a `ToolChoice`."""
    if value is None or isinstance(value, ToolChoice):
        return value
    if value == "any":  # Mistral's name
        return ToolChoice("required")
    if isinstance(value, str):
        return ToolChoice(_mode(value))
    if isinstance(value, dict) and value.get("type") == "function":
        function = value.get("function", value)
        return ToolChoice("required", frozenset({_named(function)}))
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        allowed = value.get("allowed_tools", value)
        if not isinstance(allowed, dict) or not isinstance(allowed.get("tools"), list):
            raise ValueError("`allowed_tools` needs a `mode` and a list of `tools`")
        functions = [
            one.get("function", one)
            for one in allowed["tools"]
            if isinstance(one, dict) and one.get("type", "function") == "function"
        ]
        return ToolChoice(_mode(allowed.get("mode", "auto")), frozenset(map(_named, functions)))
    raise ValueError(
        "must be 'auto', 'none', 'required', a tool as {'type': 'function', 'function': {'name': …}}, "
        "or {'type': 'allowed_tools', …}"
    )


def _mode(value: Any) -> Literal["auto", "required", "none"]:
    for mode in _MODES:
        if value == mode:
            return mode
    raise ValueError("its mode must be 'auto', 'none' or 'required'")


def _named(function: Any) -> str:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise ValueError("the tool has no `name`")
    return name


ToolChoiceField = Annotated[Any, BeforeValidator(_tool_choice)]
"""A `ToolChoice`."""


def _function_choice(value: Any) -> Any:
    """The forms of `function_call` as a `ToolChoice`."""
    if value is None or isinstance(value, ToolChoice):
        return value
    if value in ("auto", "none"):
        return ToolChoice(value)
    if isinstance(value, dict):
        return ToolChoice("required", frozenset({_named(value)}))
    raise ValueError("must be 'auto', 'none', or a function as {'name': …}")


FunctionChoiceField = Annotated[Any, BeforeValidator(_function_choice)]
"""OpenAI's old field `function_call`, as a `ToolChoice`."""


_LoopName = Annotated[str, Field(min_length=1, max_length=128)]


class ToolLoopBody(DefaultedBody):
    """Tools that the server calls itself before it answers (`docs/tools.md`)."""

    tools: Annotated[list[_LoopName], Field(max_length=64)] | None = None
    mcp_servers: Annotated[list[_LoopName], Field(max_length=16)] = Field(default_factory=list)
    max_rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = DEFAULT_ROUNDS
    mode: Literal["auto", "ask", "deny"] = "deny"


class AgentToolsRequest(ToolLoopBody):
    """Body of `POST /v1/agents/tools`; the further members are those of `ToolLoopRequest`."""

    conversation: Annotated[str, Field(max_length=256)] = ""
    text: str = ""
    has_results: bool = False


class MadeCallBody(DefaultedBody):
    """A call as the model has written it; `arguments` is JSON text."""

    id: Annotated[str, Field(min_length=1, max_length=256)]
    name: Annotated[str, Field(max_length=256)]
    arguments: str = ""


class ToolCallsRequest(DefaultedBody):
    """Body of `POST /v1/agents/tools/{name}/calls`: the calls of one answer."""

    calls: Annotated[list[MadeCallBody], Field(min_length=1, max_length=256)]
