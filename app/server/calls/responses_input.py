"""The items of a response's input as the messages of a chat.

Items follow each other as they happened: reasoning, text and calls of one turn of the assistant are items of
their own there and one message here. Items that no model here reads, such as the web searches of another
server, are left out and listed in the response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.server.calls.responses_client_tools import (
    CALL_ITEMS,
    CLIENT_TOOLS,
    OUTPUT_ITEMS,
    ClientToolKind,
)
from app.server.calls.responses_tools import INPUT, offered_name
from app.server.wire.compaction import SUMMARY_HEAD, read_compaction
from app.server.wire.errors import ApiError, bad_request

ROLES = ("user", "assistant", "system", "developer")
_COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_READ_ANEW = frozenset({"file_search_call"})
"""Items of this server's own answers that say nothing to the model."""


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """A call that an earlier answer has asked an approval for, and that was approved.

    Attributes:
        request_id: of the item that asked.
        label: of the MCP server.
        name, arguments: of the call; the arguments are JSON text.
        path: of the approval in the request.
    """

    request_id: str
    label: str
    name: str
    arguments: str
    path: str


@dataclass(slots=True)
class ChatInput:
    """Messages of a chat completion.

    Attributes:
        messages: the messages.
        paths: the path of each message's item in the request, for errors; None for a kept one.
        ignored: paths of what was left out.
        approved: calls of MCP servers that the client has approved now.
        listed: labels of the MCP servers whose tools an earlier answer has listed.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str | None] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    approved: list[ApprovedCall] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)

    def add(self, message: dict[str, Any], path: str | None) -> None:
        """A message of its own."""
        self.messages.append(message)
        self.paths.append(path)


def input_items(given: str | Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """The input as a list of items; a text is a message of the user."""
    if given is None:
        return []
    if isinstance(given, str):
        content = [{"type": "input_text", "text": given}]
        return [{"type": "message", "role": "user", "content": content}]
    return [dict(one) for one in given]


def chat_input(
    instructions: str | None,
    history: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    servers: Mapping[str, str] | None = None,
) -> ChatInput:
    """The messages of a conversation.

    Args:
        instructions: the first message, of the system.
        history: items that the server has kept.
        new: items of the request.
        servers: the names of the MCP servers by their labels.

    Raises:
        ApiError: 400 that names the item.
    """
    reader = _Reader(servers or {})
    if instructions:
        reader.chat.add({"role": "system", "content": instructions}, "instructions")
    for item in history:
        reader.read(item, None)
    for index, item in enumerate(new):
        reader.read(item, f"input[{index}]")
    reader.finish()
    return reader.chat


class _Reader:
    """Reads items in order; text, reasoning and calls of one turn of the assistant become one message."""

    def __init__(self, servers: Mapping[str, str]) -> None:
        self.chat = ChatInput()
        self._servers = servers
        self._turn: dict[str, Any] | None = None  # of the assistant: the last message, it grows
        self._asked: dict[str, Mapping[str, Any]] = {}  # requests for an approval, by id

    def read(self, item: Mapping[str, Any], path: str | None) -> None:
        """Add one item; `path` is None for one that is not from the request."""
        where = path or "input"
        kind = item.get("type") or ("message" if "role" in item else "")
        if not isinstance(kind, str):
            raise bad_request(
                f"`{where}.type` is not valid: it must be a string.", param=f"{where}.type"
            )
        if kind == "message":
            self._message(item, path)
        elif kind == "reasoning":
            self._reasoning(item, path)
        elif kind in _CALLS:
            self._call(item, path, kind)
        elif kind in _OUTPUTS:
            self._output(item, path)
        elif kind in CALL_ITEMS:
            self._client_call(item, path, CALL_ITEMS[kind])
        elif kind in OUTPUT_ITEMS:
            self._client_output(item, path, OUTPUT_ITEMS[kind])
        elif kind == "mcp_call":
            self._mcp_call(item, path)
        elif kind == "mcp_list_tools":
            self.chat.listed.add(_text(item, "server_label", where))
        elif kind == "mcp_approval_request":
            self._asked[_text(item, "id", where)] = item
        elif kind == "mcp_approval_response":
            self._approval(item, path)
        elif kind in _COMPACTIONS:
            self._compaction(item, path)
        elif not kind:
            raise bad_request(f"`{where}` has neither a `type` nor a `role`.", param=where)
        elif kind not in _READ_ANEW:
            self.chat.ignored.append(f"{where}({str(kind)[:40]})")

    def finish(self) -> None:
        """End the last turn of the assistant."""
        turn, self._turn = self._turn, None
        if turn is not None and not _has_answer(turn):
            # Reasoning alone is no turn: the answer to it was never written.
            del self.chat.messages[-1], self.chat.paths[-1]

    def _finish_answer(self) -> None:
        """End the last turn of the assistant if it has more than reasoning."""
        if self._turn is not None and _has_answer(self._turn):
            self.finish()

    def _assistant(self, path: str | None) -> dict[str, Any]:
        if self._turn is None:
            self._turn = {"role": "assistant", "content": []}
            self.chat.add(self._turn, path)
        return self._turn

    def _message(self, item: Mapping[str, Any], path: str | None) -> None:
        role, where = item.get("role"), path or "input"
        if role not in ROLES:
            raise bad_request(
                f"`{where}.role` is not valid: it must be one of {', '.join(ROLES)}.",
                param=f"{where}.role",
            )
        parts = self._parts(item.get("content"), f"{where}.content")
        if role != "assistant":
            self.finish()
            self.chat.add({"role": role, "content": parts}, path)
            return
        self._finish_answer()  # two messages are two turns
        self._assistant(path)["content"] = parts

    def _parts(self, content: Any, where: str) -> list[dict[str, Any]]:
        """Content parts in the form of chat completions; empty texts are left out."""
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise bad_request(
                f"`{where}` is not valid: it must be a string or a list of content parts.",
                param=where,
            )
        return [self._part(part, f"{where}[{index}]") for index, part in enumerate(content)]

    def _part(self, part: Any, where: str) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
            return {"type": "text", "text": _text(part, "text", where)}
        if kind == "refusal":
            return {"type": "text", "text": _text(part, "refusal", where)}
        if kind in ("input_image", "image_url"):
            return _image(part, where)
        raise bad_request(
            f"`{where}` is not valid: content parts of type {str(kind)[:40]!r} are not supported.",
            param=where,
        )

    def _reasoning(self, item: Mapping[str, Any], path: str | None) -> None:
        parts = item.get("content") or item.get("summary") or []
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        text = "\n".join(one for one in texts if isinstance(one, str))
        if not text:
            return  # encrypted by another server
        self._finish_answer()
        turn = self._assistant(path)
        turn["reasoning_content"] = turn.get("reasoning_content", "") + text

    def _call(self, item: Mapping[str, Any], path: str | None, kind: str) -> None:
        where = path or "input"
        name, call_id = _text(item, "name", where), _text(item, "call_id", where)
        namespace = item.get("namespace")
        if kind == "custom_tool_call":
            arguments = orjson.dumps({INPUT: _text(item, "input", where)}).decode()
        else:
            arguments = _text(item, "arguments", where)
        offered = offered_name(name, namespace if isinstance(namespace, str) else None)
        self._add_call(call_id, offered, arguments, path)

    def _add_call(self, call_id: str, name: str, arguments: str, path: str | None) -> None:
        """Add a call to the turn of the assistant."""
        function = {"name": name, "arguments": arguments}
        calls = self._assistant(path).setdefault("tool_calls", [])
        calls.append({"id": call_id, "type": "function", "function": function})

    def _output(self, item: Mapping[str, Any], path: str | None) -> None:
        where = path or "input"
        call_id, output = _text(item, "call_id", where), item.get("output")
        self.finish()
        if output is None:
            parts = []
        elif isinstance(output, dict):  # older agents send what they would print
            parts = [{"type": "text", "text": orjson.dumps(output).decode()}]
        else:
            parts = self._parts(output, f"{where}.output")
        images = [part for part in parts if part["type"] == "image_url"]
        texts = [part for part in parts if part["type"] != "image_url"]
        self.chat.add({"role": "tool", "tool_call_id": call_id, "content": texts}, path)
        if images:  # only the user shows images
            self.chat.add({"role": "user", "content": images}, path)

    def _client_call(self, item: Mapping[str, Any], path: str | None, kind: ClientToolKind) -> None:
        """A call of a shell, or of `apply_patch`."""
        call_id = _text(item, "call_id", path or "input")
        arguments = orjson.dumps(CLIENT_TOOLS[kind].arguments(item)).decode()
        self._add_call(call_id, kind, arguments, path)

    def _client_output(
        self, item: Mapping[str, Any], path: str | None, kind: ClientToolKind
    ) -> None:
        call_id = item.get("call_id")
        if not isinstance(call_id, str):  # that of `local_shell` is called `id`
            call_id = _text(item, "id" if kind == "local_shell" else "call_id", path or "input")
        self.finish()
        content = CLIENT_TOOLS[kind].result(item)
        self.chat.add({"role": "tool", "tool_call_id": call_id, "content": content}, path)

    def _mcp_call(self, item: Mapping[str, Any], path: str | None) -> None:
        """A call that this server has made, with its result."""
        self._made_mcp_call(item, _mcp_result(item), path)

    def _made_mcp_call(self, item: Mapping[str, Any], result: str, path: str | None) -> None:
        where = path or "input"
        label, name = _text(item, "server_label", where), _text(item, "name", where)
        call_id, arguments = _text(item, "id", where), _text(item, "arguments", where)
        self._add_call(call_id, f"{self._servers.get(label, label)}.{name}", arguments, path)
        self.finish()
        self.chat.add({"role": "tool", "tool_call_id": call_id, "content": result}, path)

    def _approval(self, item: Mapping[str, Any], path: str | None) -> None:
        """What the client has decided about a call.

        An approved one is made for the request that approves it: later ones have its result.
        """
        where = path or "input"
        request_id = _text(item, "approval_request_id", where)
        asked = self._asked.get(request_id)
        if asked is None:
            raise bad_request(
                f"`{where}.approval_request_id` names {request_id[:80]!r}, for which no approval was asked.",
                param=f"{where}.approval_request_id",
            )
        if item.get("approve") is not True:
            reason = item.get("reason")
            why = f": {reason}" if isinstance(reason, str) and reason else "."
            self._made_mcp_call(asked, f"The user did not approve this call{why}", path)
        elif path is not None:
            self.chat.approved.append(
                ApprovedCall(
                    request_id,
                    _text(asked, "server_label", where),
                    _text(asked, "name", where),
                    _text(asked, "arguments", where),
                    path,
                )
            )

    def _compaction(self, item: Mapping[str, Any], path: str | None) -> None:
        where = path or "input"
        summary = read_compaction(item.get("encrypted_content"))
        if summary is None:
            self.chat.ignored.append(f"{where}({str(item.get('type'))[:40]})")
            return
        self.finish()
        self.chat.add({"role": "user", "content": f"{SUMMARY_HEAD}\n\n{summary}"}, path)


def _has_answer(turn: Mapping[str, Any]) -> bool:
    """Whether a turn of the assistant has text or calls, and not only reasoning."""
    return bool(turn["content"] or turn.get("tool_calls"))


def _text(item: Mapping[str, Any], name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        path = f"{where}.{name}"
        raise bad_request(f"`{path}` is not valid: it must be a string.", param=path)
    return value


def _mcp_result(item: Mapping[str, Any]) -> str:
    """What the model reads of the result of a call."""
    output, error = item.get("output"), item.get("error")
    if isinstance(output, str):
        return output
    return orjson.dumps(error).decode() if error else "It was not finished."


def _image(part: Mapping[str, Any], where: str) -> dict[str, Any]:
    url, file_id = part.get("image_url"), part.get("file_id")
    if isinstance(url, dict):
        url = url.get("url")
    if url is None and isinstance(file_id, str):
        url = file_id
    if not isinstance(url, str) or not url:
        raise bad_request(f"`{where}` has no `image_url`.", param=f"{where}.image_url")
    return {"type": "image_url", "image_url": {"url": url}}


def item_not_found(item_id: str, path: str) -> ApiError:
    """The refusal of a reference to an item that is not kept."""
    return ApiError(
        404, f"There is no item {item_id[:80]!r}.", param=f"{path}.id", code="item_not_found"
    )
