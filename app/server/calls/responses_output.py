"""`ResponseOutput`: the output items of a response, and the events that tell of them.

One item is open at a time: it is announced, grows, and is completed before the next one is announced. An item
has the same id in every event and in the final response.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import orjson

from app.server.calls.responses_client_tools import (
    CLIENT_TOOLS,
    ClientToolKind,
    empty_members,
    parsed_members,
)
from app.server.calls.responses_tools import INPUT, ResponseTools
from app.server.wire.json_member import StringMember
from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)

Event = dict[str, Any]
"""An event without its number."""

ItemStatus = Literal["completed", "incomplete"]


def new_id(prefix: str) -> str:
    """An id as OpenAI writes them."""
    return f"{prefix}_{uuid.uuid4().hex}"


class ResponseOutput:
    """The items of one response.

    Attributes:
        items: as they are so far; those that are announced are in it.
    """

    def __init__(self, tools: ResponseTools, *, summarizes: bool = False) -> None:
        """Nothing is generated yet.

        Args:
            tools: of the response.
            summarizes: whether the reasoning comes as the summary of its item.
        """
        self.items: list[dict[str, Any]] = []
        self._tools = tools
        self._reasoning = _SummarizedReasoning if summarizes else _Reasoning
        self._open: _OpenItem | None = None
        self._calls: dict[int, _OpenItem] = {}
        self._mcp_calls: dict[str, _McpCall] = {}

    def add_complete(
        self, item: dict[str, Any], stages: Sequence[str] = (), **begun: Any
    ) -> Iterator[Event]:
        """An item whose work is done.

        Args:
            item: the item.
            stages: events between its announcement and its end.
            **begun: its members when it was announced, as far as they were others.
        """
        yield from self._close("completed")
        index = len(self.items)
        self.items.append(item)
        place = {"output_index": index}
        yield {"type": "response.output_item.added", **place, "item": {**item, **begun}}
        for stage in stages:
            yield {"type": stage, **place, "item_id": item["id"]}
        yield {"type": "response.output_item.done", **place, "item": item}

    def feed(
        self, parts: Sequence[AnswerPart], logprobs: Sequence[dict[str, Any]] = ()
    ) -> Iterator[Event]:
        """The events of new parts; `logprobs` are those of the text in them."""
        for part in parts:
            match part:
                case AnswerText(text):
                    message = self._opened(_Message)
                    yield from message[1]
                    yield from message[0].grow(text, logprobs)
                    logprobs = ()
                case AnswerReasoning(text):
                    reasoning = self._opened(self._reasoning)
                    yield from reasoning[1]
                    yield from reasoning[0].grow(text)
                case CallBegun(index, id_, name):
                    yield from self._close("completed")
                    yield from self._announce(self._call(index, id_, name))
                case CallArguments(index, text):
                    call = self._calls.get(index)
                    if call is not None and call is self._open:
                        yield from call.grow(text)

    def begin_mcp_call(
        self, call_id: str, label: str, name: str, arguments: str, approval: str | None
    ) -> Iterator[Event]:
        """The events of a call that this server makes; `approval` is the id of what asked for it."""
        yield from self._close("completed")
        self._mcp_calls[call_id] = call = _McpCall(
            len(self.items), label, name, arguments, approval
        )
        yield from self._announce(call)

    def end_mcp_call(self, call_id: str, result: str, *, failed: bool) -> Iterator[Event]:
        """The events of the end of a call that this server has made."""
        call = self._mcp_calls.pop(call_id, None)
        if call is not None and call is self._open:
            call.take(result, failed=failed)
            yield from self._close("completed")

    def finish(
        self, status: ItemStatus, annotations: Sequence[dict[str, Any]] = ()
    ) -> Iterator[Event]:
        """The events at the end of the answer; an answer that says nothing has an empty message."""
        unseen = ("reasoning", "file_search_call", "mcp_list_tools", "mcp_call")
        if status == "completed" and all(one["type"] in unseen for one in self.items):
            yield from self._opened(_Message)[1]
        if isinstance(self._open, _Message):
            yield from self._open.annotate(annotations)
        yield from self._close(status)

    def _call(self, index: int, call_id: str, name: str) -> "_OpenItem":
        form, index_of_item = self._tools.form_of(name), len(self.items)
        call: _OpenItem
        if form.kind == "custom":
            call = _CustomCall(index_of_item, call_id, form.name, form.namespace)
        elif form.kind == "function":
            call = _FunctionCall(index_of_item, call_id, form.name, form.namespace)
        else:
            call = _ClientToolCall(index_of_item, call_id, form.kind)
        self._calls[index] = call
        return call

    def _opened(self, kind: "type[_Item]") -> "tuple[_Item, list[Event]]":
        """The open item of a kind, and the events that open it."""
        if isinstance(self._open, kind):
            return self._open, []
        events = list(self._close("completed"))
        item = kind(len(self.items))
        return item, [*events, *self._announce(item)]

    def _announce(self, item: "_OpenItem") -> Iterator[Event]:
        self._open = item
        self.items.append(item.item)
        yield from item.begin()

    def _close(self, status: ItemStatus) -> Iterator[Event]:
        item, self._open = self._open, None
        if item is not None:
            yield from item.end(status)
            self.items[item.index] = item.item


class _OpenItem:
    """An item that grows."""

    def __init__(self, index: int, item: dict[str, Any]) -> None:
        self.index = index
        self.item = item

    def event(self, kind: str, **fields: Any) -> Event:
        """An event of this item."""
        return {
            "type": f"response.{kind}",
            "item_id": self.item["id"],
            "output_index": self.index,
            **fields,
        }

    def begin(self) -> Iterator[Event]:
        """The events before the first piece."""
        yield self._lifecycle("added", self.item)

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        """The events of a piece."""
        raise NotImplementedError

    def end(self, status: ItemStatus) -> Iterator[Event]:
        """The events after the last piece."""
        self.item = {**self.item, "status": status}
        yield self._lifecycle("done", self.item)

    def _lifecycle(self, stage: str, item: dict[str, Any]) -> Event:
        return {
            "type": f"response.output_item.{stage}",
            "output_index": self.index,
            "item": dict(item),
        }


class _Message(_OpenItem):
    """Text that the user reads."""

    def __init__(self, index: int) -> None:
        item = {
            "id": new_id("msg"),
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        super().__init__(index, item)
        self._texts: list[str] = []
        self._logprobs: list[dict[str, Any]] = []
        self._annotations: list[dict[str, Any]] = []

    def begin(self) -> Iterator[Event]:
        yield from super().begin()
        yield self.event("content_part.added", content_index=0, part=self._part())

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        self._texts.append(text)
        self._logprobs += logprobs
        yield self.event("output_text.delta", content_index=0, delta=text, logprobs=list(logprobs))

    def annotate(self, annotations: Sequence[dict[str, Any]]) -> Iterator[Event]:
        """The events of citations."""
        for number, annotation in enumerate(annotations):
            self._annotations.append(annotation)
            yield self.event(
                "output_text.annotation.added",
                content_index=0,
                annotation_index=number,
                annotation=annotation,
            )

    def end(self, status: ItemStatus) -> Iterator[Event]:
        part = self._part()
        yield self.event(
            "output_text.done", content_index=0, text=part["text"], logprobs=self._logprobs
        )
        yield self.event("content_part.done", content_index=0, part=part)
        self.item = {**self.item, "content": [part]}
        yield from super().end(status)

    def _part(self) -> dict[str, Any]:
        return {
            "type": "output_text",
            "text": "".join(self._texts),
            "annotations": list(self._annotations),
            "logprobs": list(self._logprobs),
        }


class _Reasoning(_OpenItem):
    """What the model thought before its answer.

    Attributes:
        member: of the item, which has the text in its one part.
        part_type: type of the part.
        part_event, text_event: the kinds of the events of the part, and of its text.
        index_name: what the events call the number of the part.
    """

    member = "content"
    part_type = "reasoning_text"
    part_event, text_event = "content_part", "reasoning_text"
    index_name = "content_index"

    def __init__(self, index: int) -> None:
        super().__init__(
            index,
            {
                "id": new_id("rs"),
                "type": "reasoning",
                "status": "in_progress",
                "summary": [],
                "content": [],
            },
        )
        self._texts: list[str] = []

    def begin(self) -> Iterator[Event]:
        yield from super().begin()
        yield self._event(f"{self.part_event}.added", part=self._part())

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        self._texts.append(text)
        yield self._event(f"{self.text_event}.delta", delta=text)

    def end(self, status: ItemStatus) -> Iterator[Event]:
        part = self._part()
        yield self._event(f"{self.text_event}.done", text=part["text"])
        yield self._event(f"{self.part_event}.done", part=part)
        self.item = {**self.item, self.member: [part]}
        yield from super().end(status)

    def _event(self, kind: str, **fields: Any) -> Event:
        return self.event(kind, **{self.index_name: 0}, **fields)

    def _part(self) -> dict[str, Any]:
        return {"type": self.part_type, "text": "".join(self._texts)}


class _SummarizedReasoning(_Reasoning):
    """Reasoning for a client that asks for a summary: the summary is all of it."""

    member = "summary"
    part_type = "summary_text"
    part_event, text_event = "reasoning_summary_part", "reasoning_summary_text"
    index_name = "summary_index"


class _FunctionCall(_OpenItem):
    """A call of a function; its arguments are JSON text."""

    def __init__(self, index: int, call_id: str, name: str, namespace: str | None) -> None:
        item = {
            "id": new_id("fc"),
            "type": "function_call",
            "status": "in_progress",
            "call_id": call_id,
            "name": name,
            "arguments": "",
        }
        if namespace is not None:
            item["namespace"] = namespace
        super().__init__(index, item)
        self._texts: list[str] = []

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        self._texts.append(text)
        yield self.event("function_call_arguments.delta", delta=text)

    def end(self, status: ItemStatus) -> Iterator[Event]:
        arguments = "".join(self._texts)
        yield self.event(
            "function_call_arguments.done", name=self.item["name"], arguments=arguments
        )
        self.item = {**self.item, "arguments": arguments}
        yield from super().end(status)


class _CustomCall(_OpenItem):
    """A call of a custom tool; its input is taken out of the function's argument while it arrives."""

    def __init__(self, index: int, call_id: str, name: str, namespace: str | None) -> None:
        item = {
            "id": new_id("ctc"),
            "type": "custom_tool_call",
            "status": "in_progress",
            "call_id": call_id,
            "name": name,
            "input": "",
        }
        if namespace is not None:
            item["namespace"] = namespace
        super().__init__(index, item)
        self._arguments: list[str] = []
        self._member = StringMember(INPUT)
        self._texts: list[str] = []

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        self._arguments.append(text)
        yield from self._more(self._member.feed(text))

    def end(self, status: ItemStatus) -> Iterator[Event]:
        if not self._member.found:  # the model gave the input in another form
            yield from self._more(_only_text("".join(self._arguments)))
        whole = "".join(self._texts)
        yield self.event("custom_tool_call_input.done", input=whole)
        self.item = {**self.item, "input": whole}
        yield from super().end(status)

    def _more(self, text: str) -> Iterator[Event]:
        if text:
            self._texts.append(text)
            yield self.event("custom_tool_call_input.delta", delta=text)


class _ClientToolCall(_OpenItem):
    """A call of a tool of OpenAI's that the client runs; its arguments are told when they are complete."""

    def __init__(self, index: int, call_id: str, kind: ClientToolKind) -> None:
        item = {
            "id": new_id(CLIENT_TOOLS[kind].id_prefix),
            "type": f"{kind}_call",
            "status": "in_progress",
            "call_id": call_id,
            **empty_members(kind),
        }
        super().__init__(index, item)
        self._kind = kind
        self._arguments: list[str] = []

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        self._arguments.append(text)
        yield from ()

    def end(self, status: ItemStatus) -> Iterator[Event]:
        members = parsed_members(self._kind, "".join(self._arguments))
        if members is None:  # cut, or of another form: there is nothing to run
            status = "incomplete"
        else:
            self.item = {**self.item, **members}
        if self._kind == "shell":
            for index, command in enumerate(self.item["action"]["commands"]):
                yield self._command("added", index, command="")
                yield self._command("delta", index, delta=command)
                yield self._command("done", index, command=command)
        yield from super().end(status)

    def _command(self, stage: str, index: int, **text: str) -> Event:
        """An event of a command of `shell`; these name no item."""
        return {
            "type": f"response.shell_call_command.{stage}",
            "output_index": self.index,
            "command_index": index,
            **text,
        }


class _McpCall(_OpenItem):
    """A call of a tool of an MCP server, which this server makes itself; its arguments are complete."""

    def __init__(
        self, index: int, label: str, name: str, arguments: str, approval: str | None
    ) -> None:
        item = {
            "id": new_id("mcp"),
            "type": "mcp_call",
            "status": "in_progress",
            "server_label": label,
            "name": name,
            "arguments": "",
            "approval_request_id": approval,
            "output": None,
            "error": None,
        }
        super().__init__(index, item)
        self._arguments = arguments

    def begin(self) -> Iterator[Event]:
        yield from super().begin()
        yield self.event("mcp_call.in_progress")
        yield self.event("mcp_call_arguments.delta", delta=self._arguments)
        yield self.event("mcp_call_arguments.done", arguments=self._arguments)
        self.item["arguments"] = self._arguments

    def take(self, result: str, *, failed: bool) -> None:
        """Take the result."""
        error = {
            "type": "mcp_tool_execution_error",
            "content": [{"type": "text", "text": result}],
        }
        self.item |= {"error": error} if failed else {"output": result}

    def end(self, status: ItemStatus) -> Iterator[Event]:
        failed = self.item["error"] is not None
        if status == "completed":
            yield self.event("mcp_call.failed" if failed else "mcp_call.completed")
        self.item = {**self.item, "status": "failed" if failed else status}
        yield self._lifecycle("done", self.item)


_Item = _Message | _Reasoning


def _only_text(arguments: str) -> str:
    """The input in arguments without a member of its name: the only text in them, else all of them."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return value if isinstance(value, str) else arguments
