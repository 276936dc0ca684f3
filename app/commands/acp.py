"""`pravaha acp`: chat and agents for an editor, over standard input and output."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from app.commands.exit_signals import exit_on_signals
from app.commands.outcome import one_sentence_errors
from app.commands.setting_options import refuse_remote_contradictions, setting_options

if TYPE_CHECKING:
    from app.acp.host import OpeningHost
    from app.settings.settings import Settings


@setting_options("engine", "models", "sampling", "guardrails", "agents", "runs", "remote")
def acp(context: typer.Context, *, flags: dict[str, Any]) -> None:
    """Be an agent for an editor that speaks the Agent Client Protocol (ACP), and starts this command.

    The editor shows the chat with its tools, and asks before they change anything; /NAME and @NAME
    run agents. --attach uses the model, the agents and the files of a running `pravaha --serve`.
    Standard output has the protocol alone; warnings go to the log file.
    """
    given = {**(context.obj or {}), **flags}
    refuse_remote_contradictions(given)
    with one_sentence_errors():
        from app.settings.sources import load_settings

        status = serve_editor(load_settings(given))
    raise typer.Exit(status)


def serve_editor(settings: "Settings") -> int:
    """Serve until standard input ends, or the client stops reading; the exit status."""
    from app.acp.host import OpeningHost
    from app.commands.log_file import log_to_file

    log_to_file(settings.log)
    if sys.stdin.isatty():
        print(
            "pravaha: an editor starts this command and talks to it; docs/acp.md has their settings. "
            "Ctrl+C ends it.",
            file=sys.stderr,
        )
    source, sink = _take_standard_streams()
    opening = OpeningHost(settings)
    try:
        asyncio.run(_serve(opening, source, sink))
    finally:
        opening.close()
    return 0


async def _serve(opening: "OpeningHost", source: int, sink: int) -> None:
    from app.acp.server import AcpServer
    from app.acp.transport import LineTransport

    exit_on_signals(opening.close)
    opening.start()
    await AcpServer(opening).serve(LineTransport(source, sink))


def _take_standard_streams() -> tuple[int, int]:
    """Descriptors of standard input and output that nothing else has.

    What is printed later, by this process or by those that it starts, goes to standard error; whatever reads
    standard input finds it empty.
    """
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink
