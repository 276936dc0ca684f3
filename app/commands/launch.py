"""`pravaha launch`: a coding agent on this machine's model: its settings, and its start."""

import difflib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors
from app.commands.setting_options import refuse_remote_contradictions, setting_options

if TYPE_CHECKING:
    from app.launch.clients import Client, Server
    from app.launch.settings_file import SettingsFile
    from app.settings.settings import Settings


@setting_options("engine", "remote")
def launch(
    context: typer.Context,
    client: Annotated[
        str | None, typer.Argument(help="The coding agent; without it, lists those that are known.")
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments for it; put -- before its options.")
    ] = None,
    printed: Annotated[
        bool, typer.Option("--print", help="Print settings and command; write and start nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write its settings without asking.")] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Put its settings back as they were before.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(help="Port of the server; by default that of the settings, 8000.")
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Start a coding agent on the model of this machine.

    Its settings are changed once, after you have seen the difference; --undo puts them back. It uses
    the server that runs, or the one of --attach; if none runs, one is started, and stopped when the
    agent ends. Nothing is installed.
    """
    given = {**(context.obj or {}), **flags}
    if port is not None:
        given["port"] = port
    refuse_remote_contradictions(given, serving=True)
    if printed + yes + undo > 1:
        raise typer.BadParameter("--print, --yes and --undo exclude each other")
    if client is None and (printed or yes or undo):
        raise typer.BadParameter(
            "--print, --yes and --undo need a client: `pravaha launch` lists them"
        )
    with one_sentence_errors():
        from app.settings.sources import load_settings

        settings = load_settings(given)
        if client is None:
            status = _list(settings)
        elif undo:
            status = _undo(_client(client), settings)
        else:
            status = _launch(_client(client), settings, arguments or [], printed=printed, yes=yes)
    raise typer.Exit(status)


def _client(name: str) -> "Client":
    from app.launch.clients import CLIENTS
    from app.slash.names import did_you_mean, near_names

    if name in CLIENTS:
        return CLIENTS[name]
    hint = did_you_mean(near_names(name, CLIENTS)) or f"There are {', '.join(CLIENTS)}."
    raise typer.BadParameter(f"there is no client {name!r:.60}. {hint}")


def _list(settings: "Settings") -> int:
    """Print the clients: whether they are installed, where their settings are, whether they use us."""
    from app.launch.clients import CLIENTS
    from app.launch.errors import SettingsError

    rows = [("client", "installed", "settings")]
    for one in CLIENTS.values():
        file = _file_of(one, settings)
        where = "none needed: environment and arguments"
        if file is not None:
            try:
                state = "" if file.written() is None else " (written by launch)"
            except SettingsError:
                state = " (the backup's note is damaged)"
            where = f"{file.path}{state}"
        installed = shutil.which(one.program) or "no"
        rows.append((one.name, installed, where + (" – not tried" if one.untried else "")))
    widths = [max(len(row[at]) for row in rows) for at in (0, 1)]
    for name, installed, where in rows:
        print(f"{name:<{widths[0]}}  {installed:<{widths[1]}}  {where}")
    return 0


def _undo(client: "Client", settings: "Settings") -> int:
    file = _file_of(client, settings)
    if file is None:
        print(f"{client.title} has no settings that launch writes.")
        return 0
    print(f"{file.undo()} is as it was before.")
    return 0


def _launch(
    client: "Client", settings: "Settings", arguments: list[str], *, printed: bool, yes: bool
) -> int:
    from app.commands.launched_server import find_server, planned_server, served
    from app.commands.log_file import log_to_file
    from app.launch.clients import environment_of

    program = shutil.which(client.program)
    if program is None and not printed:
        print(
            f"pravaha: {client.title} is not installed ({client.program} is not on PATH), and launch "
            f"installs nothing. `pravaha launch {client.name} --print` shows its settings.",
            file=sys.stderr,
        )
        return EXIT_ERROR
    log_to_file(settings.log)
    running = find_server(settings)
    server = running or planned_server(settings)
    command = [client.program, *client.arguments(server), *arguments]
    if printed:
        _print(client, server, settings, command)
        return 0
    if not _write(client, server, settings, yes=yes):
        return EXIT_ERROR
    with ExitStack() as stack:
        if running is None:
            print(f"Starting a server at {server.url} with {server.model}…", file=sys.stderr)
            stack.enter_context(served(settings))
        # The client reads the terminal, so Ctrl+C is its own.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        stack.callback(signal.signal, signal.SIGINT, before)
        done = subprocess.run(
            [program or client.program, *command[1:]],
            env=environment_of(client, server),
            check=False,
            preexec_fn=_default_interrupt,  # an ignored signal is inherited otherwise
        )
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _print(client: "Client", server: "Server", settings: "Settings", command: list[str]) -> None:
    file = _file_of(client, settings)
    if file is not None and client.new_text is not None:
        print(f"# {file.path}")
        print(client.new_text("", server, file.path.name).rstrip())
        print()
    print("# command")
    variables = [
        f"{name}={shlex.quote(value)}" for name, value in client.environment(server).items()
    ]
    print(" ".join([*variables, shlex.join(command)]))


def _write(client: "Client", server: "Server", settings: "Settings", *, yes: bool) -> bool:
    """Change the settings after a question; whether the client can be started."""
    file = _file_of(client, settings)
    if file is None or client.new_text is None:
        return True
    before, text = file.read(), file.text()
    changed = client.new_text(text, server, str(file.path))
    if changed == text:
        return True
    lines = difflib.unified_diff(
        text.splitlines(),
        changed.splitlines(),
        f"{file.path} now",
        f"{file.path} then",
        lineterm="",
    )
    print("\n".join(lines))
    if not yes:
        if not _can_ask():
            print(
                "pravaha: There is nobody to ask here: pass --yes to write, or --print to see all.",
                file=sys.stderr,
            )
            return False
        if not typer.confirm("Write this?", default=False):
            print("Nothing was written.", file=sys.stderr)
            return False
    file.write(changed, before=before)
    print(f"Written. `pravaha launch {client.name} --undo` puts it back.", file=sys.stderr)
    return True


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _file_of(client: "Client", settings: "Settings") -> "SettingsFile | None":
    from app.launch.settings_file import SettingsFile

    if client.path is None:
        return None
    folder: Path = settings.data_dir / "launch"
    return SettingsFile(client.name, client.path(os.environ), folder)
