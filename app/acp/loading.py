"""Waiting for the engine and its model, which a client sees as a call that runs."""

import asyncio
from collections.abc import Callable

from acp.helpers import start_tool_call, update_tool_call

from app.acp.host import Host
from app.acp.updates import Updates
from engine.api.errors import EngineUnavailable
from engine.api.snapshot import EngineSnapshot, EngineState

_POLL_S = 0.1


async def show_waiting(
    updates: Updates,
    call: str,
    status: Callable[[], str],
    done: Callable[[], bool],
    stopped: Callable[[], bool],
) -> None:
    """Wait, and show what for.

    Args:
        updates: tells the client.
        call: the id of the call that shows it.
        status: what is waited for, in a few words.
        done: whether it is there; may raise, which ends the waiting.
        stopped: whether to wait no longer.
    """
    shown = status()
    updates.tell(start_tool_call(call, shown, kind="other", status="in_progress"))
    succeeded = False
    try:
        while not (succeeded := done()) and not stopped():
            await asyncio.sleep(_POLL_S)
            if status() != shown:
                shown = status()
                updates.tell(update_tool_call(call, title=shown))
    finally:
        updates.tell(update_tool_call(call, status="completed" if succeeded else "failed"))


async def wait_for_model(
    host: Host, model: str | None, updates: Updates, call: str, stopped: Callable[[], bool]
) -> None:
    """Wait until a model is loaded; return also if `stopped`.

    Args:
        host: its engine.
        model: the one of several; None for the only one.
        updates, call, stopped: as of `show_waiting`.

    Raises:
        PravahaError: it cannot be loaded, or there is none.
    """

    def snapshot() -> EngineSnapshot:
        client = host.client if host.models is None else host.models.client(model)
        return client.snapshot()

    def loading() -> bool:
        if host.models is not None:
            return host.models.awaits(model)  # begins to load it
        now = snapshot()
        return now.state is EngineState.LOADING or now.changes_model

    def status() -> str:
        now = snapshot()
        name = model or now.next_model or (now.model.name if now.model else "the model")
        return f"Loading {name} {10 * int(now.loading_progress * 10)} %"

    if loading():
        await show_waiting(updates, call, status, lambda: not loading(), stopped)
    now = snapshot()
    if host.models is None and now.state in (
        EngineState.UNLOADED,
        EngineState.FAILED,
        EngineState.STOPPED,
    ):
        raise EngineUnavailable(now.last_error or "No model is loaded.")
