"""`AgentTurn`: a turn that is an agent's run: its progress, its answer, and what it proposes to change."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp.exceptions import RequestError
from acp.helpers import start_tool_call, update_tool_call
from acp.schema import ToolCallUpdate

from agents.api.agent_spec import PermissionMode
from agents.api.errors import InvalidTask
from agents.service.run_request import RunRequest
from agents.tools.file_access import FileAccess
from app.acp.agent_updates import RunUpdates
from app.acp.asking import Asking
from app.acp.editor import Editor
from app.acp.tool_updates import changes_of, diff_content, text_content
from app.acp.updates import Updates

if TYPE_CHECKING:
    from agents.service.run_service import RunService

_STOP_S = 20.0
"""Seconds that a cancelled run gets to end by itself; its processes end at once."""
_TITLE_CHARS = 120


class AgentTurn:
    """One run. Use from one event loop.

    Args:
        service: runs it.
        updates: tells the client of it.
        asking: asks about its calls.
        woken: waits until something may have changed.
        cancelled: whether the client has asked to stop.
        folder: of the session.
    """

    def __init__(
        self,
        service: "RunService",
        updates: Updates,
        asking: Asking,
        *,
        woken: Callable[[], Awaitable[None]],
        cancelled: Callable[[], bool],
        folder: Path,
    ) -> None:
        self._service = service
        self._updates = updates
        self._asking = asking
        self._woken = woken
        self._cancelled = cancelled
        self._folder = folder

    async def start(self, request: RunRequest) -> str:
        """Start the run; its id.

        Raises:
            PravahaError: it cannot be started.
        """
        return await asyncio.to_thread(self._service.start, request)

    async def follow(self, run: str, name: str, paths: list[Path]) -> dict[str, Any]:
        """Tell what the run does until it has a result, which is returned; if the client leaves, stop it."""
        try:
            return await self._follow(run, name, paths)
        except asyncio.CancelledError:  # the client has left
            self._service.cancel(run)
            raise

    async def _follow(self, run: str, name: str, paths: list[Path]) -> dict[str, Any]:
        shown = RunUpdates(run, name, self._folder, paths)
        self._updates.tell(shown.begin())
        loop = asyncio.get_running_loop()
        seen, stop_by = 0, None
        while True:
            result = self._service.result(run)
            for event in self._service.events(run, seen):
                seen = event.sequence + 1
                for update in shown.take(event):
                    self._updates.tell(update)
            for approval, call in shown.announced.items():
                self._asking.announce(approval, call)
            shown.announced.clear()
            self._asking.look()
            if result is not None:
                break
            if self._cancelled() and stop_by is None:
                stop_by = loop.time() + _STOP_S
                self._service.cancel(run)
            if stop_by is not None and loop.time() > stop_by:
                result = {"state": "cancelled", "error": "It did not stop in time."}
                break
            await self._woken()
        error = str(result.get("error") or "")
        for update in shown.finish(failed=bool(error), error=error):
            self._updates.tell(update)
        return result


async def offer_changes(
    diff: str,
    folder: Path,
    call: str,
    *,
    mode: PermissionMode,
    files: FileAccess,
    updates: Updates,
    ask: Callable[[ToolCallUpdate], Awaitable[bool]],
) -> None:
    """Write what an agent proposes, if it fits the files and a person or the mode allows it.

    Deleted files stay. A file that has changed since the person saw the diff is not written.

    Args:
        diff: the unified diff.
        folder: its root.
        call: the id of the call that shows it.
        mode: `ask` asks, `auto` writes, `deny` does neither.
        files: reads and writes.
        updates: tells the client.
        ask: asks a person.
    """
    changes = await asyncio.to_thread(changes_of, diff, folder, files)
    writes = [(path, old, new) for path, (old, new) in changes.items() if new is not None]
    if not writes or mode == "deny":
        return
    content = await asyncio.to_thread(diff_content, diff, folder, files)
    title = f"change {', '.join(path for path, _, _ in writes)}"[:_TITLE_CHARS]
    updates.tell(start_tool_call(call, title, kind="edit", status="pending", content=content))
    if mode == "ask":
        await updates.sent()
        question = ToolCallUpdate(
            tool_call_id=call, title=title, kind="edit", status="pending", content=content
        )
        if not await ask(question):
            updates.tell(update_tool_call(call, status="failed"))
            return
    try:
        for path, old, new in writes:
            await asyncio.to_thread(_write_unchanged, files, folder, path, old, new)
    except InvalidTask as error:
        failed = [*content, *text_content(str(error))]
        updates.tell(update_tool_call(call, status="failed", content=failed))
    else:
        updates.tell(update_tool_call(call, status="completed"))


async def allows(editor: Editor, session: str, question: ToolCallUpdate) -> bool:
    """Whether a person allows it, this once."""
    with suppress(RequestError, ConnectionError, ValueError):
        return await editor.ask(session, question, always=False) in ("once", "always")
    return False


def _write_unchanged(files: FileAccess, folder: Path, path: str, old: str | None, new: str) -> None:
    try:
        current: str | None = files.read(folder, path).decode("utf-8", "replace")
    except InvalidTask:
        current = None
    if current != old:
        raise InvalidTask(f"{path} has changed meanwhile: it was not written.")
    files.write(folder, path, new.encode(), replace=old is not None)
