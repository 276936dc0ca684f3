"""`Updates`: what a session tells its client, in its order."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from app.acp.editor import Editor

_log = logging.getLogger(__name__)
Send = Callable[[], Coroutine[Any, Any, None]]


class Updates:
    """A queue that one task empties. Use from one event loop; `close` it."""

    def __init__(self, editor: Editor, session: str) -> None:
        """Tell `editor` what happens in `session`."""
        self._editor = editor
        self._session = session
        self._waiting: asyncio.Queue[Send] = asyncio.Queue()
        self._closed = False
        self._sender = asyncio.create_task(self._send())

    def tell(self, update: Any) -> None:
        """Send an update after those before it."""
        self.later(partial(self.send, update))

    async def send(self, update: Any) -> None:
        """Send an update at once, from what `later` was given.

        Raises:
            ConnectionError: the client has left.
        """
        await self._editor.update(self._session, update)

    def later(self, send: Send) -> None:
        """Send what has to be made first, after the updates before it; nothing once closed."""
        if not self._closed:
            self._waiting.put_nowait(send)

    async def sent(self) -> None:
        """Wait until everything was sent."""
        await self._waiting.join()

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True
        self._sender.cancel()
        while not self._waiting.empty():
            self._waiting.get_nowait()
            self._waiting.task_done()

    async def _send(self) -> None:
        while True:
            send = await self._waiting.get()
            try:
                await send()
            except ConnectionError:
                pass  # the client has left; the server ends the session
            except Exception:
                _log.exception("an update was not sent")
            finally:
                self._waiting.task_done()
