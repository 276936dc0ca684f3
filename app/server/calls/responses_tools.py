"""`ResponseTools`: the tools of a response: what the model is offered, and as what its calls come back.

The model is offered functions only. A custom tool, whose input is free text or of a grammar, is offered as a
function with the one argument `input`; the functions of a namespace under `NAMESPACE__NAME`. Their calls are
turned back into the client's form, and so are those of the shells and of `apply_patch`
(`responses_client_tools`). `file_search` is answered by this server, and so are calls of MCP servers
(`responses_mcp`). Tools of other kinds are skipped and named in the response, because a refusal would stop an
agent for good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from app.server.calls.responses_client_tools import CLIENT_TOOLS, ClientToolKind
from app.server.calls.responses_mcp import WantedMcp, unsent, wanted_mcp
from app.server.wire.errors import ApiError, bad_request
from engine.grammar.regular_lark import NotRegular, lark_regex

INPUT = "input"
"""The argument of a custom tool that is offered as a function."""
SEPARATOR = "__"

_MODES = ("auto", "none", "required")


@dataclass(frozen=True, slots=True)
class ToolForm:
    """As what the calls of an offered function come back.

    Attributes:
        kind: of the client's tool.
        name: the client's name of it.
        namespace: that it belongs to; None for none.
    """

    kind: Literal["function", "custom"] | ClientToolKind
    name: str
    namespace: str | None = None


@dataclass(slots=True)
class ResponseTools:
    """The tools of one response.

    Attributes:
        offered: functions in the form of chat completions.
        paths: the path of each offered function in the request, for errors.
        forms: by the name under which a function is offered.
        skipped: tools that the model is not offered, such as `web_search`.
        not_enforced: custom tools whose grammar no regular expression can express.
        file_search: the tool of that type, if there is one.
        mcp: the tools of that type.
        ignored: paths of members that have no effect.
    """

    offered: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    forms: dict[str, ToolForm] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    not_enforced: list[str] = field(default_factory=list)
    file_search: Mapping[str, Any] | None = None
    mcp: list[WantedMcp] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def form_of(self, name: str) -> ToolForm:
        """The form of a call; of a function that was not offered, its own."""
        return self.forms.get(name) or ToolForm("function", name)

    def _add(self, path: str, form: ToolForm, function: dict[str, Any]) -> None:
        name = offered_name(form.name, form.namespace)
        if name in self.forms:
            raise bad_request(f"There are two tools of the name {name[:80]!r}.", param=path)
        self.forms[name] = form
        self.paths.append(path)
        self.offered.append({"type": "function", "function": {"name": name, **function}})


def offered_name(name: str, namespace: str | None) -> str:
    """The name under which a function is offered."""
    if not namespace:
        return name
    return namespace + name if namespace.endswith(SEPARATOR) else namespace + SEPARATOR + name


def read_tools(given: Sequence[Mapping[str, Any]]) -> ResponseTools:
    """The tools of a request.

    Raises:
        ApiError: 400 for one that lacks what its type needs.
    """
    tools = ResponseTools()
    for index, tool in enumerate(given):
        _read_tool(tools, tool, f"tools[{index}]", namespace=None)
    return tools


def _read_tool(
    tools: ResponseTools, tool: Mapping[str, Any], path: str, *, namespace: str | None
) -> None:
    kind = tool.get("type", "function")
    if not isinstance(kind, str):
        raise bad_request(f"`{path}.type` is not valid: it must be a string.", param=f"{path}.type")
    if kind == "function":
        name, function = _function(tool, path)
        tools._add(path, ToolForm("function", name, namespace), function)
    elif kind == "custom":
        name = _name(tool, path)
        grammar, is_enforced = _grammar(tool, path)
        if not is_enforced:
            tools.not_enforced.append(f"{offered_name(name, namespace)}:grammar")
        tools._add(path, ToolForm("custom", name, namespace), _custom_function(tool, grammar))
    elif kind == "namespace" and namespace is None and isinstance(tool.get("tools"), list):
        name = _name(tool, path)
        for index, inner in enumerate(tool["tools"]):
            if isinstance(inner, dict):
                _read_tool(tools, inner, f"{path}.tools[{index}]", namespace=name)
    elif kind == "file_search" and namespace is None and tools.file_search is None:
        tools.file_search = tool
    elif kind in CLIENT_TOOLS and namespace is None and not _is_elsewhere(tool):
        client_kind = cast(ClientToolKind, kind)
        function = dict(CLIENT_TOOLS[client_kind].function)
        tools._add(path, ToolForm(client_kind, client_kind), function)
    elif kind == "mcp" and namespace is None:
        tools.mcp.append(wanted_mcp(tool, path))
        tools.ignored += unsent(tool, path)
    else:
        tools.skipped.append(str(kind)[:64])


def _is_elsewhere(tool: Mapping[str, Any]) -> bool:
    """Whether a shell is one in a container of OpenAI's."""
    environment = tool.get("environment")
    return isinstance(environment, dict) and environment.get("type") != "local"


def _function(tool: Mapping[str, Any], path: str) -> tuple[str, dict[str, Any]]:
    """The name and the rest of a function, from the flat form or that of chat completions."""
    inner = tool.get("function")
    if isinstance(inner, dict) and "name" not in tool:
        tool, path = inner, f"{path}.function"
    given = {
        "description": tool.get("description"),
        "parameters": tool.get("parameters"),
        "strict": tool.get("strict"),
    }
    if given["parameters"] is not None and not isinstance(given["parameters"], dict):
        raise bad_request(
            f"`{path}.parameters` is not valid: it must be an object.", param=f"{path}.parameters"
        )
    return _name(tool, path), {name: one for name, one in given.items() if one is not None}


def _name(tool: Mapping[str, Any], path: str) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request(f"`{path}.name` is missing.", param=f"{path}.name")
    return name


def _grammar(tool: Mapping[str, Any], path: str) -> tuple[str | None, bool]:
    """The regular expression of a custom tool's input, and whether it says all that its grammar says.

    Raises:
        ApiError: 400 for a grammar that is none.
    """
    form = tool.get("format")
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return None, True
    definition, syntax = form.get("definition"), form.get("syntax")
    where = f"{path}.format.definition"
    if not isinstance(definition, str):
        raise bad_request(f"`{where}` is missing.", param=where)
    if syntax == "regex":
        return definition, True
    if syntax != "lark":
        return None, False
    try:
        return lark_regex(definition), True
    except NotRegular:
        return None, False
    except ValueError as error:
        raise bad_request(f"`{where}` is not valid: {error}.", param=where) from error


def _custom_function(tool: Mapping[str, Any], grammar: str | None) -> dict[str, Any]:
    """A function that takes the input of a custom tool as its one argument."""
    given: dict[str, Any] = {"type": "string"}
    if grammar is not None:
        given["pattern"] = f"^(?:{grammar})$"
    description = tool.get("description")
    function = {
        "parameters": {
            "type": "object",
            "properties": {INPUT: given},
            "required": [INPUT],
            "additionalProperties": False,
        }
    }
    return function | ({"description": description} if isinstance(description, str) else {})


def chat_tool_choice(choice: str | Mapping[str, Any] | None, tools: ResponseTools) -> Any:
    """The `tool_choice` of chat completions; None where the request has none, or nothing to choose from.

    Raises:
        ApiError: 400 for a choice of an unknown kind, or of a tool that is not there.
    """
    if isinstance(choice, str):
        if choice not in _MODES:
            raise _bad_choice(
                "it must be 'auto', 'none', 'required', or an object with a `type`", "tool_choice"
            )
        return choice if tools.offered else None
    if choice is None:
        return None
    kind = str(choice.get("type"))
    if kind in ("function", "custom"):
        return _function_choice(_chosen(choice, tools, "tool_choice"))
    if kind in CLIENT_TOOLS:
        return _function_choice(_chosen({"name": kind}, tools, "tool_choice"))
    if kind == "allowed_tools":
        return _allowed(choice, tools)
    # A tool of the server's: it is skipped, or searches files whenever it is there.
    return "auto" if tools.offered else None


def _allowed(choice: Mapping[str, Any], tools: ResponseTools) -> Any:
    mode, listed = choice.get("mode", "auto"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise _bad_choice("it must be 'auto' or 'required'", "tool_choice.mode")
    if not isinstance(listed, list):
        raise _bad_choice("it must be a list", "tool_choice.tools")
    names = []
    for index, one in enumerate(listed):
        kind = str(one.get("type", "function")) if isinstance(one, dict) else ""
        if kind == "mcp" and str(one.get("server_label")) not in {it.label for it in tools.mcp}:
            where = f"tool_choice.tools[{index}]"
            raise _bad_choice("its `server_label` names no MCP server of `tools`", where)
        if kind in CLIENT_TOOLS:
            one = {"name": kind}
        elif kind not in ("function", "custom"):
            continue
        names.append(_chosen(one, tools, f"tool_choice.tools[{index}]"))
    if not names:
        return "none" if tools.offered else None
    allowed = {"mode": mode, "tools": [_function_choice(name) for name in names]}
    return {"type": "allowed_tools", "allowed_tools": allowed}


def _chosen(choice: Mapping[str, Any], tools: ResponseTools, path: str) -> str:
    """The name under which the chosen tool is offered."""
    name, namespace = choice.get("name"), choice.get("namespace")
    if isinstance(choice.get("function"), dict) and name is None:
        name = choice["function"].get("name")
    for offered, form in tools.forms.items():
        if name in (form.name, offered) and namespace in (None, form.namespace):
            return offered
    raise _bad_choice(f"there is no tool {str(name)[:80]!r} in `tools`", path)


def _function_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _bad_choice(reason: str, path: str) -> ApiError:
    return bad_request(f"`{path}` is not valid: {reason}.", param=path)
