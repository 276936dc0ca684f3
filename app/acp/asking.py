"""`Asking`: the approvals of one turn, which a person gives in the editor.

```
announced by an event ──▶ waits among the approvals ──▶ asked by a task of its own ──▶ decided
```

A turn goes on while a person thinks. What cannot be asked is denied.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp.exceptions import RequestError
from acp.schema import ToolCallUpdate

from agents.runs.approvals import ApprovalRequest, Decision
from agents.tools.file_access import FileAccess
from app.acp.editor import Editor
from app.acp.tool_updates import (
    arguments_of,
    diff_content,
    kind_of,
    locations_of,
    text_content,
    title_of,
)
from app.acp.updates import Updates
from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from agents.service.run_service import RunService


class Asking:
    """Asks about the calls of one turn. Use from one event loop."""

    def __init__(
        self,
        service: "RunService",
        editor: Editor,
        updates: Updates,
        session: str,
        folder: Path,
        files: FileAccess,
    ) -> None:
        """Ask `editor` about approvals that wait in `service`."""
        self._service = service
        self._editor = editor
        self._updates = updates
        self._session = session
        self._folder = folder
        self._files = files
        self._announced: dict[str, tuple[str, list[Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    def announce(self, approval: str, call: str, content: list[Any] | None = None) -> None:
        """Expect an approval.

        Args:
            approval: its id.
            call: the client's id of the call.
            content: what the call will change, if that is known.
        """
        if not self._ended:
            self._announced[approval] = call, content or []

    def look(self) -> None:
        """Begin to ask about the expected approvals that wait."""
        if not self._announced:
            return
        for request in self._service.approvals():
            announced = self._announced.pop(request.id, None)
            if announced is not None:
                task = asyncio.create_task(self._ask(request, *announced))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def end(self) -> None:
        """Deny what was not answered: the turn is over."""
        self._ended = True
        self._announced.clear()
        for task in self._tasks:
            task.cancel()

    async def _ask(self, request: ApprovalRequest, call: str, content: list[Any]) -> None:
        decision: Decision | None
        reason = ""
        try:
            await self._updates.sent()  # the call is shown before it is asked about
            update = await self._question(request, call, content)
            decision = await self._editor.ask(self._session, update)
        except asyncio.CancelledError:
            await self._decide(request.id, "deny", "the turn was cancelled")
            raise
        except (RequestError, ConnectionError, ValueError) as error:
            decision, reason = "deny", f"the editor could not ask: {error}"
        if decision is None:
            decision, reason = "deny", "the turn was cancelled"
        await self._decide(request.id, decision, reason)

    async def _question(
        self, request: ApprovalRequest, call: str, content: list[Any]
    ) -> ToolCallUpdate:
        """The call as a person is asked about it: its diff, its target, and why it is asked."""
        arguments: Mapping[str, Any] = arguments_of(request.arguments)
        if not content and request.diff and not arguments:
            folder = Path(request.folder or self._folder)
            content = await asyncio.to_thread(diff_content, request.diff, folder, self._files)
        words = [request.target, f"Asked because {request.reason}." if request.reason else ""]
        if not content and request.target not in arguments.values():
            words.append(request.arguments)
        return ToolCallUpdate(
            tool_call_id=call,
            title=title_of(request.tool, arguments or {"arguments": request.target}),
            kind="edit" if content else kind_of(request.tool),
            status="pending",
            content=[*content, *text_content("\n\n".join(word for word in words if word))],
            locations=locations_of(arguments, self._folder) or None,
            raw_input=dict(arguments) or request.arguments,
        )

    async def _decide(self, approval: str, decision: Decision, reason: str) -> None:
        decide = partial(self._service.decide, approval, decision, reason=reason)
        with suppress(PravahaError):
            await asyncio.shield(asyncio.to_thread(decide))
