"""`AgentNames`: the agents and pipelines for the command palette, read once in the background."""

import asyncio
import logging
from typing import Any

from agents.service.run_service import RunService
from app.tui.chat_screen import ChatScreen
from engine.api.errors import PravahaError

log = logging.getLogger(__name__)


class AgentNames:
    """Used on the app's event loop.

    Args:
        service: None if no agents can be run.

    Attributes:
        known: entries of `RunService.catalogue`; empty until they are read.
    """

    def __init__(self, service: RunService | None) -> None:
        self.known: tuple[dict[str, Any], ...] = ()
        self._service = service
        self._began = False

    def begin(self, screen: ChatScreen) -> bool:
        """Begin to read them, once; whether they are being read. Then the screen's clock is woken."""
        if self._service is None or self.known:
            return False
        if not self._began:
            self._began = True
            screen.run_worker(self._read_and_wake(screen), exit_on_error=False)
        return True

    async def _read_and_wake(self, screen: ChatScreen) -> None:
        try:
            await self.read()
        finally:
            self._began = False
            screen.wake()

    async def read(self) -> None:
        """Read them, unless that is done; a server that does not answer leaves them unknown."""
        if self._service is None or self.known:
            return
        try:
            self.known = tuple(await asyncio.to_thread(self._service.catalogue))
        except PravahaError as error:
            log.info("agents are not listed: %s", error)
