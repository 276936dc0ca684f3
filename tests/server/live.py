"""A server on a free port of this machine, in a thread."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agents.guardrails.guardrails import Guardrails
from app.server.app import create_app
from app.server.process.config import ServerConfig
from app.server.process.context import ServerContext
from app.server.process.server import DrainingServer, base_url, listen
from app.server.retrieval.service import RetrievalService
from engine.retrieval.parsing.image_reader import ImageReader


@dataclass
class Live:
    url: str
    context: ServerContext
    server: DrainingServer

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=30)


@contextmanager
def live(
    engine: Any,
    *,
    run_service: Any = None,
    guardrails: Guardrails | None = None,
    moderation: Guardrails | None = None,
    retrieval: RetrievalService | None = None,
    image_reader: ImageReader | None = None,
    **config: Any,
) -> Iterator[Live]:
    settings = ServerConfig(**{"port": 0} | config)
    app = create_app(
        engine,
        settings,
        run_service=run_service,
        guardrails=guardrails,
        moderation=moderation,
        retrieval=retrieval,
        image_reader=image_reader,
    )
    listener = listen(settings)  # connections queue up here until the thread serves them
    server = DrainingServer(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Live(base_url(listener), app.state.server, server)
    finally:
        server.should_exit = True
        thread.join()
