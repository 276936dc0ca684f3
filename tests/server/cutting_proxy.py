"""A TCP relay to a server that cuts or loses connections: a network that goes away while the server stays."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class CuttingProxy:
    """Relays to `target`. `cut_after` is called for each connection: how many bytes of answers it passes.

    None passes everything. `delay_s` delays every piece of data in both directions.
    """

    def __init__(
        self,
        target: tuple[str, int],
        cut_after: Callable[[], int | None] = lambda: None,
        *,
        delay_s: float = 0.0,
    ) -> None:
        self.url = ""
        self.cuts = 0
        self.requests: list[str] = []
        self.up = True
        self.silent = False
        """Whether data are kept back: a network that loses every packet for a while."""
        self._lost: set[asyncio.StreamWriter] = set()
        self._target = target
        self._cut_after = cut_after
        self._delay_s = delay_s
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Cut all connections; refuse new ones until `up` is set."""
        self.up = False
        self._loop.call_soon_threadsafe(self._abort_all)

    def lose(self) -> None:
        """Never pass anything on open connections again, without closing them; new ones work."""
        self._loop.call_soon_threadsafe(lambda: self._lost.update(self._writers))

    async def _passes(self, writer: asyncio.StreamWriter) -> None:
        while self.silent or writer in self._lost:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)

    def _abort_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await stop.wait()
        server.close()
        self._abort_all()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.up:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(*self._target)
        self._writers |= {writer, back}
        left = self._cut_after()
        sending = asyncio.create_task(self._send(reader, back))
        with suppress(OSError, asyncio.CancelledError):
            while data := await there.read(65536):
                await asyncio.sleep(self._delay_s)
                await self._passes(writer)
                if left is not None and len(data) > left:
                    writer.write(data[:left])
                    await writer.drain()
                    self.cuts += 1
                    break
                left = None if left is None else left - len(data)
                writer.write(data)
                await writer.drain()
        sending.cancel()
        for one in (writer, back):
            one.close()
        self._writers -= {writer, back}

    async def _send(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(65536):
                if data[:5] in (b"POST ", b"GET /", b"DELET"):
                    self.requests.append(data.split(b"\r\n", 1)[0].decode())
                await asyncio.sleep(self._delay_s)
                await self._passes(back)
                back.write(data)
                await back.drain()
            back.close()


@contextmanager
def cutting_proxy(
    target: tuple[str, int],
    cut_after: Callable[[], int | None] = lambda: None,
    *,
    delay_s: float = 0.0,
) -> Iterator[CuttingProxy]:
    """A running proxy in a thread."""
    proxy = CuttingProxy(target, cut_after, delay_s=delay_s)
    started, stop = threading.Event(), asyncio.Event()
    loop = proxy._loop

    def run() -> None:
        loop.run_until_complete(proxy.serve(started, stop))
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
