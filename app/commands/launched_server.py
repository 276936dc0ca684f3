"""The server that a client uses: one that runs already, or one that is started for it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.launch.clients import Server
from app.launch.errors import SettingsError
from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from app.settings.settings import Settings

_PROBE_S = 3.0


def address_of(settings: "Settings") -> str:
    """The URL of the server that the settings name, or of the one that they would start."""
    if settings.attach is not None:
        return settings.attach.rstrip("/")
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def find_server(settings: "Settings") -> Server | None:
    """The running server; None if none answers at its address.

    Raises:
        PravahaError: what answers is no server of ours, or refuses the key; with `attach`, nobody answers.
    """
    from engine.clients.http_client import HttpClient

    url, key = address_of(settings), settings.plain_api_key
    if settings.attach is None and not _listens(url):
        return None
    client = HttpClient(url, api_key=key)
    try:
        names = client.served_models(wait_s=_PROBE_S)
    except PravahaError as error:
        if settings.attach is not None:
            raise
        raise SettingsError(
            f"Something else than a server of Pravāha listens at {url}: choose another --port. ({error})"
        ) from error
    finally:
        client.close()
    if not names:
        raise SettingsError(f"The server at {url} has no model.")
    return Server(url, names[0], key)


def planned_server(settings: "Settings") -> Server:
    """The server that `served` would start.

    Raises:
        PravahaError: the model is not installed.
    """
    from engine.models.store import ModelStore

    try:
        model = ModelStore(settings.models).get(settings.model).name
    except PravahaError:
        model = settings.model  # fetched, or refused, when the server starts
    # It is bound to this machine alone, whatever the settings say of `pravaha --serve`.
    return Server(f"http://127.0.0.1:{settings.port}", model, settings.plain_api_key)


@contextmanager
def served(settings: "Settings") -> "Iterator[None]":
    """A server in this process, in the background, until the context ends.

    Raises:
        PravahaError: the model cannot be loaded, or the port cannot be bound.
    """
    from functools import partial

    from app.commands.background_server import BackgroundServer
    from app.commands.fetch_bar import fetch_bar
    from app.runtime.guardrails import open_guardrails
    from app.runtime.opening import open_client, wait_loaded

    with ExitStack() as stack:
        with fetch_bar() as progress:
            opened = stack.enter_context(open_client(settings, progress))
        opened.start()
        wait_loaded(opened.client)
        if opened.engine is None:
            raise SettingsError("A server is not started for a server.")
        server = BackgroundServer(
            opened.engine,
            port=settings.port,
            api_key=settings.plain_api_key,
            tool_call_form=settings.tool_call_form,
            tool_decision=settings.tool_decision,
            guardrails=partial(open_guardrails, settings),
            responses_file=settings.responses,
        )
        stack.callback(server.stop)
        server.start()
        yield


def _listens(url: str) -> bool:
    """Whether anybody accepts connections at an address."""
    import socket

    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_PROBE_S):
            return True
    except OSError:
        return False
