"""`pravaha web`: the screen in a browser."""

import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import one_sentence_errors
from app.commands.setting_options import (
    names_of,
    refuse_remote_contradictions,
    setting_options,
)
from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from app.settings.settings import Settings

_MISSING = (
    "pravaha web needs textual-serve, which is not installed: pip install 'pravaha[web]', or "
    "pip install textual-serve."
)


@setting_options("engine", "sampling", "guardrails", "remote", "screen")
def web(
    context: typer.Context,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to serve the page on; any but loopback needs a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0 takes a free one.")
    ] = 8080,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="PRAVAHA_WEB_TOKEN",
            help="What browsers must send: open /?token=TOKEN.",
        ),
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Open the screen in a browser; every tab shares one engine.

    The engine runs in this process, or is the server that --attach names.
    """
    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    with one_sentence_errors():
        _serve_page(given, host=host, port=port, token=token or None)


def _serve_page(flags: dict[str, Any], *, host: str, port: int, token: str | None) -> None:
    """Serve the page until SIGINT or SIGTERM.

    Raises:
        PravahaError: textual-serve is missing, the address is public and there is no token, or it or the
            model cannot be used.
    """
    from app.server.process.config import ServerConfig, is_loopback
    from app.server.process.server import base_url, listen
    from app.settings.sources import load_settings

    try:
        from app.web.guard import Guard
        from app.web.page_server import PageServer
    except ModuleNotFoundError as error:
        raise PravahaError(_MISSING) from error
    if not is_loopback(host) and token is None:
        raise PravahaError(
            f"Refusing to serve the screen on {host} without a token: give one with --token or "
            "PRAVAHA_WEB_TOKEN, or stay on 127.0.0.1."
        )
    settings = load_settings(flags)
    with listen(ServerConfig(host=host, port=port, api_key=token)) as listener:
        page = base_url(listener)

        def announce() -> None:
            suffix = "" if token is None else "/?token=TOKEN"
            print(f"Open {page}{suffix} in a browser; Ctrl+C ends.", flush=True)

        with _engine(settings) as (url, api_key):
            os.environ.update(tab_environment(flags, url=url, api_key=api_key))
            guard = Guard(on_loopback=is_loopback(host), token=token)
            PageServer(tab_command(), guard, announce).run(listener)


def tab_command() -> str:
    """The shell command of a tab; its settings are in the environment, which other users cannot read."""
    return shlex.join([sys.executable, "-c", "from app.cli import main; main()"])


def tab_environment(flags: Mapping[str, Any], *, url: str, api_key: str | None) -> dict[str, str]:
    """The variables of a tab's process: the engine to attach to, and the given options of the screen."""
    of_tabs = [name for group in ("sampling", "guardrails", "screen") for name in names_of(group)]
    passed = {name: flags[name] for name in of_tabs if name in flags}
    passed |= {"attach": url} | ({} if api_key is None else {"api_key": api_key})
    colors = {"COLORTERM": "truecolor"}  # what the page's terminal shows
    return colors | {f"PRAVAHA_{name.upper()}": str(value) for name, value in passed.items()}


@contextmanager
def _engine(settings: "Settings") -> Iterator[tuple[str, str | None]]:
    """URL and key of the engine's server: a given one, or one in this process with a key of its own."""
    if settings.attach is not None:
        yield settings.attach, settings.plain_api_key
        return
    from app.commands.fetch_bar import fetch_bar
    from app.runtime.opening import embedder, engine_config
    from app.web.engine_server import engine_server
    from engine.models.store import ModelStore
    from engine.runtime.engine import AsyncPravahaEngine

    with fetch_bar() as progress:
        config = engine_config(settings, progress)
    engine = AsyncPravahaEngine(
        config, embedder=embedder(settings), models=ModelStore(settings.models)
    )
    key = secrets.token_urlsafe(32)
    try:
        engine.start()
        with engine_server(engine, api_key=key) as url:
            yield url, key
    finally:
        engine.shutdown()
