"""Pydantic schemas of the tools of a chat request, in OpenAI's form.

A tool of a type that is not served is skipped and named in the response: agents send them along with
functions, and a refusal would refuse all of their work.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

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
    """Name of the function."""
    description: str | None = None
    """What it does; the model reads it."""
    parameters: Annotated[dict[str, Any] | None, AfterValidator(_flat_parameters)] = None
    """JSON schema of its arguments."""
    strict: bool | None = None
    """The arguments must match the schema."""

    @property
    def tool(self) -> Tool:
        """The function as a tool."""
        return Tool(self.name, self.description or "", self.parameters or {}, bool(self.strict))


class ToolBody(Body):
    """A tool; one of another type than `function` is skipped."""

    keeps_unknown: ClassVar[bool] = True

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """`function`; tools of other types are skipped."""
    function: FunctionBody | None = None
    """The function."""

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


class ChosenFunction(BaseModel):
    """The function of a choice."""

    name: str


class ToolOfChoice(BaseModel):
    """A function that must be called; in the flat form its `name` is a member of the choice itself."""

    type: Literal["function"]
    function: ChosenFunction


class AllowedTools(BaseModel):
    """Functions of which some may, or must, be called."""

    mode: Literal["auto", "required", "none"]
    tools: list[ToolOfChoice]


class AllowedToolsChoice(BaseModel):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


_Choices = Literal["auto", "none", "required", "any"] | ToolOfChoice | AllowedToolsChoice | None
ToolChoiceField = Annotated[Any, BeforeValidator(_tool_choice, json_schema_input_type=_Choices)]
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


_OldChoices = Literal["auto", "none"] | ChosenFunction | None
FunctionChoiceField = Annotated[
    Any, BeforeValidator(_function_choice, json_schema_input_type=_OldChoices)
]
"""OpenAI's old field `function_call`, as a `ToolChoice`."""


_LoopName = Annotated[str, Field(min_length=1, max_length=128)]


class ToolLoopBody(DefaultedBody):
    """Tools that the server calls itself before it answers (`docs/tools.md`)."""

    tools: Annotated[list[_LoopName], Field(max_length=64)] | None = None
    """Names of built-in tools; without it all that only read."""
    mcp_servers: Annotated[list[_LoopName], Field(max_length=16)] = Field(default_factory=list)
    """Names of configured MCP servers."""
    max_rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = DEFAULT_ROUNDS
    """Most rounds of calls before the answer."""
    mode: Literal["auto", "ask", "deny"] = "deny"
    """Of calls with side effects: offer none, ask for approval, or do not ask."""


class AgentToolsRequest(ToolLoopBody):
    """Body of `POST /v1/agents/tools`; the further members are those of `ToolLoopRequest`."""

    conversation: Annotated[str, Field(max_length=256)] = ""
    """Names what belongs together: rules and files are those of a conversation."""
    text: str = ""
    """What the user has written."""
    has_results: bool = False
    """Whether there are results of tools already."""


class MadeCallBody(DefaultedBody):
    """A call as the model has written it; `arguments` is JSON text."""

    id: Annotated[str, Field(min_length=1, max_length=256)]
    """Id of the call."""
    name: Annotated[str, Field(max_length=256)]
    """Name of the tool."""
    arguments: str = ""
    """The arguments, as JSON text."""


class ToolCallsRequest(DefaultedBody):
    """Body of `POST /v1/agents/tools/{name}/calls`: the calls of one answer."""

    calls: Annotated[list[MadeCallBody], Field(min_length=1, max_length=256)]
    """The calls, in order."""
