"""`engine_server`: the API of an engine on a free loopback port, served by a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.server.app import create_app
from app.server.process.config import ServerConfig
from app.server.process.server import DrainingServer, base_url, listen
from engine.runtime.engine import AsyncPravahaEngine


@contextmanager
def engine_server(engine: AsyncPravahaEngine, *, api_key: str) -> Iterator[str]:
    """Serve an engine, which the caller starts and shuts down; the server's URL."""
    config = ServerConfig(port=0, api_key=api_key)
    listener = listen(config)  # connections queue up here until the thread serves them
    server = DrainingServer(create_app(engine, config))
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="pravaha-api", daemon=True
    )
    thread.start()
    try:
        yield base_url(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
