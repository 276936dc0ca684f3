"""State that all routes share: the engine, the settings, the drain and the server's counters."""

import time
from dataclasses import dataclass, field

from starlette.requests import Request

from app.server.process.config import ServerConfig
from app.server.process.counters import ServerCounters
from app.server.process.drain import Drain
from engine.runtime.engine import AsyncPravahaEngine


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One per application, at `app.state.server`."""

    engine: AsyncPravahaEngine
    config: ServerConfig
    drain: Drain = field(default_factory=Drain)
    counters: ServerCounters = field(default_factory=ServerCounters)
    created: int = field(default_factory=lambda: int(time.time()))


def server_context(request: Request) -> ServerContext:
    """The context of the application that serves this request."""
    context: ServerContext = request.app.state.server
    return context
