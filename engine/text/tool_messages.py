"""Tool calls and their results in a conversation, as chat templates read them, and for the encoder."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from engine.api.chat import ChatMessage, replace_content, text_of
from engine.api.errors import InvalidRequest
from engine.api.tools import Tool
from engine.text.tool_calls.call_ids import short_id
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.written_calls import written_calls

TemplateTool = Mapping[str, Any]
"""A tool as chat templates read it: `{"type": "function", "function": {"name", "description",
"parameters"}}`."""


def template_tools(tools: Sequence[Tool]) -> list[TemplateTool]:
    """Tools as chat templates read them; equal tools are rendered equally in every turn."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]


def with_offer(messages: Sequence[ChatMessage], tools: Sequence[TemplateTool]) -> list[ChatMessage]:
    """The conversation with the tools described in its first system message.

    For templates that render no tools. The calls that it asks for are those of the form `hermes`.
    """
    lines = "\n".join(_json(tool) for tool in tools)
    offer = _OFFER.format(tools=lines)
    first = messages[0] if messages else None
    if first is None or first["role"] != "system":
        return [{"role": "system", "content": offer}, *messages]
    content = first["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{offer}" if content else offer
    else:
        content = [*content, {"type": "text", "text": "\n\n" + offer}]
    return [{**first, "content": content}, *messages[1:]]


def with_system(
    messages: Sequence[ChatMessage], tools: Sequence[TemplateTool]
) -> Sequence[ChatMessage]:
    """The conversation with a system message, for templates that write the tools only there."""
    if messages and messages[0]["role"] == "system":
        return messages
    return [{"role": "system", "content": ""}, *messages]


def with_system_tools(
    messages: Sequence[ChatMessage], tools: Sequence[TemplateTool]
) -> Sequence[ChatMessage]:
    """The conversation with the tools as a member of its system message, for Phi-4-mini's template."""
    first, *rest = with_system(messages, tools)
    return [{**first, "tools": _json([tool["function"] for tool in tools])}, *rest]


_OFFER = """You can call these tools:
<tools>
{tools}
</tools>
To call a tool, write its name and its arguments as JSON between these tags, one pair of tags for each call:
<tool_call>
{{"name": "the tool's name", "arguments": {{"an argument's name": "its value"}}}}
</tool_call>
The results follow between <tool_response> and </tool_response>. Answer in words if no tool is needed."""


def nested_too_deep() -> InvalidRequest:
    """The error for arguments whose nesting exceeds Python's recursion limit."""
    return InvalidRequest("The arguments of a tool call are nested too deep.", param="messages")


def uses_tools(messages: Sequence[ChatMessage]) -> bool:
    """Whether a conversation has a tool call or a result."""
    return any(one["role"] == "tool" or one.get("tool_calls") for one in messages)


def as_plain_messages(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation for a template that renders no tool calls: calls and results as text.

    The text is in the form that `with_offer` asks for, so that the model sees calls as it is to write them.
    Calls follow the assistant's text; consecutive results become one message of the user, because templates
    may demand that user and assistant alternate.

    Raises:
        RecursionError: the arguments of a call are nested too deep.
    """
    plain: list[ChatMessage] = []
    follows_result = False
    for message in messages:
        if message["role"] == "tool":
            text = f"<tool_response>\n{text_of(message['content'])}\n</tool_response>"
            if follows_result:
                plain[-1]["content"] += "\n" + text
            else:
                plain.append({"role": "user", "content": text})
        else:
            plain.append({"role": message["role"], "content": _content_with_calls(message)})
        follows_result = message["role"] == "tool"
    return plain


def with_written_calls(messages: Sequence[ChatMessage], form: CallForm) -> list[ChatMessage]:
    """The conversation for a template that renders tools and results, but no calls: those as text.

    The templates of LFM2 and Granite 3 expect the call among the assistant's text, as the model wrote it.

    Raises:
        RecursionError: the arguments of a call are nested too deep.
    """
    written: list[ChatMessage] = []
    for message in messages:
        calls = message.get("tool_calls")
        if calls:
            content = text_of(message["content"]) + written_calls(form, calls)
            message = {**message, "content": content}
            del message["tool_calls"]
        written.append(message)
    return written


def with_single_calls(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with each call in a message of its own, followed by its result.

    For templates that render one call in a message.
    """
    single: list[ChatMessage] = []
    moved: set[str] = set()
    for at, message in enumerate(messages):
        calls = message.get("tool_calls") or []
        if len(calls) < 2:
            if message.get("tool_call_id") not in moved:
                single.append(message)
            continue
        # Ids may recur in later turns, so only the results behind these calls count.
        behind = takewhile(lambda one: one["role"] == "tool", messages[at + 1 :])
        results, moved = {one["tool_call_id"]: one for one in behind}, set()
        for number, call in enumerate(calls):
            rest = message if number == 0 else {"role": message["role"], "content": ""}
            single.append({**rest, "tool_calls": [call]})
            if call["id"] in results and call["id"] not in moved:
                single.append(results[call["id"]])
                moved.add(call["id"])
    return single


def with_short_ids(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with ids of calls in the form that some templates demand (`short_id`)."""
    return with_ids(messages, short_id)


def with_ids(messages: Sequence[ChatMessage], rename: Callable[[str], str]) -> list[ChatMessage]:
    """The conversation with other ids of calls, in their results too."""
    renamed: list[ChatMessage] = []
    for message in messages:
        message = _with_calls(message, lambda call: {**call, "id": rename(call["id"])})
        if "tool_call_id" in message:
            message = {**message, "tool_call_id": rename(message["tool_call_id"])}
        renamed.append(message)
    return renamed


def with_argument_texts(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with the arguments of calls as JSON text."""
    return [_with_calls(message, _with_argument_text) for message in messages]


def _with_argument_text(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else _json(arguments)
    return {**call, "function": {**function, "arguments": text}}


def _with_calls(
    message: ChatMessage, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> ChatMessage:
    """The message with each of its calls changed."""
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [change(call) for call in message["tool_calls"]]}


def with_numbered_ids(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation with ids as Kimi's models know them: the tool's name and the number of the call."""
    numbered: list[ChatMessage] = []
    new_ids: dict[str, str] = {}
    count = 0
    for message in messages:
        if message.get("tool_calls"):
            calls = []
            for call in message["tool_calls"]:
                new_ids[call["id"]] = f"functions.{call['function']['name']}:{count}"
                calls.append({**call, "id": new_ids[call["id"]]})
                count += 1
            message = {**message, "tool_calls": calls}
        if "tool_call_id" in message:
            given = message["tool_call_id"]
            message = {**message, "tool_call_id": new_ids.get(given, given)}
        numbered.append(message)
    return numbered


def replace_texts(message: ChatMessage, replace: Callable[[str], str]) -> ChatMessage:
    """The message with every text that its author wrote replaced, in a fixed order.

    Raises:
        RecursionError: the arguments of a call are nested too deep.
    """
    replaced = {**message, "content": replace_content(message["content"], replace)}
    if "reasoning_content" in message:
        replaced["reasoning_content"] = replace(message["reasoning_content"])
    if "tool_calls" in message:
        replaced["tool_calls"] = [_replace_in_call(call, replace) for call in message["tool_calls"]]
    for member in ("tool_call_id", "name"):
        if member in message:
            replaced[member] = replace(message[member])
    return replaced


def texts_in(messages: Sequence[ChatMessage]) -> list[str]:
    """What `replace_texts` is given of each message, in order."""
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    for message in messages:
        replace_texts(message, collect)
    return texts


def _replace_in_call(call: dict[str, Any], replace: Callable[[str], str]) -> dict[str, Any]:
    function = call["function"]
    return {
        **call,
        "id": replace(call["id"]),
        "function": {
            "name": replace(function["name"]),
            "arguments": replace_in_value(function["arguments"], replace),
        },
    }


def replace_in_value(value: Any, replace: Callable[[str], str]) -> Any:
    """A JSON value with every text of it, names of members included, replaced, in its order."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, dict):
        return {replace(name): replace_in_value(member, replace) for name, member in value.items()}
    if isinstance(value, list):
        return [replace_in_value(member, replace) for member in value]
    return value


def _content_with_calls(message: ChatMessage) -> Any:
    """The content with the calls after it."""
    if not message.get("tool_calls"):
        return message["content"]
    content = text_of(message["content"])
    calls = [
        f"<tool_call>\n{_json(_named_call(call['function']))}\n</tool_call>"
        for call in message["tool_calls"]
    ]
    return "\n".join([content, *calls] if content else calls)


def _named_call(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": function["name"], "arguments": function["arguments"]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
