"""`session_figures`: what the prompts of conversations have cost, for the stats of the screen."""

from collections.abc import Callable, Sequence
from typing import Any

from app.server.process.sessions import Session, Sessions
from engine.clients.engine_client import EngineClient


def session_figures(
    own: Sessions, clients: Callable[[], list[Session]] | None
) -> Callable[[], Sequence[Session]]:
    """The sessions of the screen, then those of the clients that it serves."""
    return lambda: [*own.recent(), *(clients() if clients is not None else ())]


def remote_session_figures(client: EngineClient) -> Callable[[], Sequence[Session]]:
    """The sessions of an attached server, as of its last answer."""
    ask: Callable[[], list[dict[str, Any]]] = getattr(client, "sessions", list)
    return lambda: [found for one in ask() if (found := _session(one)) is not None]


def _session(data: dict[str, Any]) -> Session | None:
    """A session of `GET /v1/sessions`; None if it has not its members."""
    try:
        return Session(
            str(data["id"]),
            requests=int(data["requests"]),
            prompt_tokens=int(data["prompt_tokens"]),
            new_tokens=int(data["new_tokens"]),
            computed_tokens=int(data["computed_tokens"]),
            reread_tokens=int(data["reread_tokens"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
