"""A server on a free port of this machine, in a thread."""

import json
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


def post_and_stay(url: str, path: str, body: dict[str, Any]) -> socket.socket:
    """A connection on which a request was sent; closing it is a client that leaves before the answer."""
    host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    return connection


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
