"""`ModelCalls`: the calls of tools of one turn, from the events of the model's loop."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from acp.helpers import start_tool_call, update_agent_thought_text, update_tool_call

from agents.tool_loop.values import LoopEvent, LoopEventType
from agents.tools.file_access import FileAccess
from app.acp.asking import Asking
from app.acp.tool_updates import (
    arguments_of,
    edit_content,
    kind_of,
    locations_of,
    text_content,
    title_of,
    todo_plan,
)
from app.acp.updates import Updates

MAX_SHOWN_OUTPUT = 8_000
"""Characters of a command's output that are shown while it runs."""


class ModelCalls:
    """Shows the calls, and announces what has to be asked. Use from one event loop."""

    def __init__(
        self,
        updates: Updates,
        asking: Asking,
        folder: Path,
        files: FileAccess,
        new_id: Callable[[str], str],
    ) -> None:
        """Calls that act in `folder`; `new_id` gives ids that are unique in the session."""
        self._updates = updates
        self._asking = asking
        self._folder = folder
        self._files = files
        self._new_id = new_id
        self._running: dict[str, str] = {}  # the client's id by the loop's
        self._changes: dict[str, list[Any]] = {}  # what a call changes, by the client's id
        self._output: dict[str, str] = {}

    def take(self, event: LoopEvent) -> None:
        """Show an event."""
        data, name = event.data, str(event.data.get("name", ""))
        if event.type is LoopEventType.CALL_STARTED:
            call = self._running[event.call] = self._new_id("call")
            arguments = arguments_of(str(data.get("arguments", "")))
            if name == "todo" and (plan := todo_plan(arguments)) is not None:
                self._updates.tell(plan)
            self._updates.later(partial(self._tell_call, call, name, arguments))
            return
        call = self._running.get(event.call, "")
        match event.type:
            case LoopEventType.NOTE:
                self._updates.tell(update_agent_thought_text(f"{data.get('text', '')}\n"))
            case LoopEventType.APPROVAL_REQUESTED:
                if not call:  # of an MCP server, before the first call
                    call = self._new_id("call")
                    self._updates.tell(start_tool_call(call, name, kind="other", status="pending"))
                    self._running[str(data.get("approval"))] = call
                self._announce(str(data.get("approval")), call)
            case LoopEventType.APPROVAL_RESOLVED:
                of_server = self._running.pop(str(data.get("approval")), None)
                if of_server is not None:
                    allowed = bool(data.get("allowed"))
                    self._updates.tell(
                        update_tool_call(of_server, status="completed" if allowed else "failed")
                    )
            case LoopEventType.CALL_PERMITTED if call:
                self._updates.tell(update_tool_call(call, status="in_progress"))
            case LoopEventType.CALL_OUTPUT if call:
                shown = self._output.get(call, "") + str(data.get("text", ""))
                self._output[call] = shown[:MAX_SHOWN_OUTPUT]
                content = text_content(self._output[call])
                self._updates.tell(update_tool_call(call, content=content))
            case LoopEventType.CALL_FINISHED if call:
                del self._running[event.call]
                state, result = str(data.get("state")), str(data.get("result", ""))
                self._updates.later(partial(self._tell_result, call, state, result))
            case _:
                pass

    def end(self) -> None:
        """Show the calls that did not finish as failed."""
        for call in self._running.values():
            self._updates.tell(update_tool_call(call, status="failed"))
        self._running.clear()

    def _announce(self, approval: str, call: str) -> None:
        async def announce() -> None:  # after the call was shown, whose changes are known then
            self._asking.announce(approval, call, self._changes.get(call))
            self._asking.look()

        self._updates.later(announce)

    async def _tell_call(self, call: str, name: str, arguments: dict[str, Any]) -> None:
        content = await asyncio.to_thread(edit_content, name, arguments, self._folder, self._files)
        self._changes[call] = content
        await self._updates.send(
            start_tool_call(
                call,
                title_of(name, arguments),
                kind=kind_of(name),
                status="pending",
                content=content or None,
                locations=locations_of(arguments, self._folder),
                raw_input=arguments,
            )
        )

    async def _tell_result(self, call: str, state: str, result: str) -> None:
        changes, ok = self._changes.get(call, []), state == "ok"
        content = changes if ok and changes else [*changes, *text_content(result)]
        await self._updates.send(
            update_tool_call(
                call,
                status="completed" if ok else "failed",
                content=content or None,
                raw_output={"state": state, "text": result},
            )
        )
