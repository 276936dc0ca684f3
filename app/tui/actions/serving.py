"""`/serve`: the screen's own engine over HTTP, for other terminals and programs of this machine.

Starting imports the server's modules and stopping waits for connections, so both run on a worker thread.
"""

import asyncio
from typing import Protocol

from app.tui.chat_screen import ChatScreen
from engine.api.errors import InvalidRequest, PravahaError

MAX_PORT = 65535


class EngineServer(Protocol):
    """Serves the screen's engine over HTTP. Who creates it stops it after the screen has ended."""

    @property
    def url(self) -> str | None:
        """The address while the engine is served, else None. Never waits."""
        ...

    def start(self, port: int | None = None) -> str:
        """Serve the engine and return the address; None takes the port of the settings. May take a second.

        Raises:
            InvalidRequest: it is served already.
            PravahaError: the port cannot be bound.
        """
        ...

    def stop(self) -> None:
        """End running answers and close the port; may take seconds. Idempotent."""
        ...


class ServingActions:
    """Starts and ends the server.

    Args:
        server: serves the engine; None if there is no engine in this process.
        attached_to: the address of the server that has the engine; None in a replay.
    """

    def __init__(
        self, screen: ChatScreen, server: EngineServer | None, *, attached_to: str | None
    ) -> None:
        self._screen = screen
        self._server = server
        self._attached_to = attached_to

    @property
    def url(self) -> str | None:
        """The address while the engine is served, else None."""
        return None if self._server is None else self._server.url

    def run(self, argument: str) -> None:
        """`/serve [PORT|off]`.

        Raises:
            InvalidRequest: the argument is neither, or this screen has no engine to serve.
        """
        server = self._server
        if server is None:
            raise InvalidRequest(
                f"The engine is on {self._attached_to}, which serves it already."
                if self._attached_to
                else "A replay has no engine to serve."
            )
        off = argument == "off"
        work = self._stop(server) if off else self._start(server, read_port(argument))
        self._screen.run_worker(work, group="serving", exit_on_error=False)

    async def _start(self, server: EngineServer, port: int | None) -> None:
        try:
            url = await asyncio.to_thread(server.start, port)
        except InvalidRequest as error:
            self._screen.notify_safely(f"{error} /serve off ends it.", "warning")
            return
        except PravahaError as error:
            self._screen.notify_safely(f"{error} /serve PORT takes another port.", "warning")
            return
        self._screen.notify_safely(
            f"The API is at {url}/v1; `pravaha --attach {url}` opens a second screen of this engine. "
            "/serve off ends it."
        )
        self._screen.draw_all()

    async def _stop(self, server: EngineServer) -> None:
        if server.url is None:
            self._screen.notify_safely("The engine is not served; /serve starts it.")
            return
        await asyncio.to_thread(server.stop)
        self._screen.notify_safely("The engine is no longer served.")
        self._screen.draw_all()


def read_port(argument: str) -> int | None:
    """The port of `/serve PORT`; None if the argument is empty.

    Raises:
        InvalidRequest: it is not a port.
    """
    if not argument:
        return None
    number = argument.isascii() and argument.isdecimal() and len(argument) <= len(str(MAX_PORT))
    if not number or int(argument) > MAX_PORT:
        raise InvalidRequest(f"/serve takes a port up to {MAX_PORT}, off or nothing.")
    return int(argument)
