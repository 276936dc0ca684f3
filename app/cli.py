"""The `pravaha` command. Heavy modules are imported on use, to keep `--help` and `--version` fast."""

import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.acp import acp
from app.commands.agents.command import agents_app
from app.commands.bench.command import bench
from app.commands.chat import chat
from app.commands.decide import decide
from app.commands.decide_questions import DecideCommand
from app.commands.doctor import doctor
from app.commands.launch import launch
from app.commands.mcp import mcp_app
from app.commands.memory import memory_app
from app.commands.models import models_app
from app.commands.outcome import EXIT_INTERRUPTED, one_sentence_errors
from app.commands.pipelines import pipelines_app
from app.commands.plugins import plugins_app
from app.commands.rag_ask import rag_app
from app.commands.run import run
from app.commands.setting_options import (
    refuse_groups,
    refuse_remote_contradictions,
    setting_options,
)
from app.commands.web import web
from app.settings.options import GROUPS

cli = typer.Typer(
    name="pravaha",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_TAKE_GUARDRAILS = {"run", "chat", "mcp", "web", "acp"}
_ANSWER_FROM_DOCUMENTS = {"chat", "web"}
_RUN_AGENTS = {"agents", "pipelines", "acp"}
_USE_TOOLS = {"agents", "pipelines", "doctor", "mcp", "acp"}
_TAKE_SETTINGS = {
    "agents",
    "pipelines",
    "bench",
    "run",
    "decide",
    "chat",
    "doctor",
    "mcp",
    "web",
    "acp",
    "launch",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pravaha {metadata.version('pravaha')}")
        raise typer.Exit


@cli.callback(invoke_without_command=True)
@setting_options(*GROUPS)
def pravaha(
    context: typer.Context,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Serve an OpenAI-compatible API, and MCP at /mcp, instead of the screen.",
        ),
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Chat line by line, without a screen.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Record the screen's session to a file, what is said included.",
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            help="Play a recording; no model is needed. Space pauses, q quits.",
        ),
    ] = None,
    replay_speed: Annotated[
        float, typer.Option("--replay-speed", min=0.01, max=1000, help="Speed of --replay.")
    ] = 1.0,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Talk to a language model that runs on this machine.

    Without a command, opens the full-screen chat. Every option is also a setting: PRAVAHA_MODEL in
    the environment, or model in pravaha.toml.
    """
    modes = {"--serve": serve, "--plain": plain, "--record": record, "--replay": replay}
    given = [name for name, value in modes.items() if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{given[0]} and {given[1]} exclude each other")
    if context.invoked_subcommand is not None:
        if given:
            raise typer.BadParameter(
                f"{given[0]} cannot be combined with the command {context.invoked_subcommand}"
            )
        _refuse_for(context.invoked_subcommand, flags)
        context.obj = flags
        return
    if serve and "attach" in flags:
        raise typer.BadParameter("--serve and --attach exclude each other")
    refuse_remote_contradictions(flags, serving=serve)
    if serve:
        refuse_groups(
            flags, "sampling", "documents", "screen", reason="has no meaning with --serve"
        )
    else:
        refuse_groups(flags, "server", reason="needs --serve")
    with one_sentence_errors():
        if serve:
            status = _serve(flags)
        elif plain:
            from app.commands.chat import chat_plain

            refuse_groups(flags, "models", "agents", "runs", reason="has no meaning with --plain")
            status = chat_plain(flags)
        elif replay:
            from app.commands.screen import replay_screen

            refuse_groups(
                flags,
                "engine",
                "models",
                "sampling",
                "documents",
                "remote",
                "guardrails",
                "agents",
                "runs",
                reason="has no meaning with --replay",
            )
            status = replay_screen(flags, replay, speed=replay_speed)
        else:
            from app.commands.screen import open_screen

            if "attach" in flags:
                reason = "cannot be set with --attach: the server decides"
                refuse_groups(flags, "agents", "runs", reason=reason)
            status = open_screen(flags, record=record)
    raise typer.Exit(status)


def _refuse_for(command: str, flags: dict[str, Any]) -> None:
    """Refuse options before a command's name that the command does not take."""
    reason = f"has no meaning for the command {command}"
    refuse_groups(flags, "models", "server", "screen", reason=reason)
    if command not in _USE_TOOLS:
        refuse_groups(flags, "agents", reason=reason)
    if command not in _RUN_AGENTS:
        refuse_groups(flags, "runs", reason=reason)
    if command not in _TAKE_SETTINGS:
        refuse_groups(flags, "engine", "sampling", "remote", reason=reason)
    if command not in _ANSWER_FROM_DOCUMENTS:
        refuse_groups(flags, "documents", reason=reason)
    if command not in _TAKE_GUARDRAILS:
        refuse_groups(flags, "guardrails", reason=reason)


def _serve(flags: dict[str, Any]) -> int:
    from app.commands.fetch_bar import fetch_bar
    from app.commands.serve import run_server
    from app.runtime.served import open_served_models
    from app.settings.sources import load_settings

    settings = load_settings(flags)
    with fetch_bar() as progress:
        models = open_served_models(settings, progress)
    return run_server(
        models,
        host=settings.host,
        port=settings.port,
        api_key=settings.plain_api_key,
        allowed_hosts=settings.allowed_hosts,
        cors_origins=settings.cors_origin,
        strict_fields=settings.strict_fields,
        tool_call_form=settings.tool_call_form,
        tool_decision=settings.tool_decision,
        max_body_bytes=settings.max_body_bytes,
        max_upload_bytes=settings.max_upload_bytes,
        drain_seconds=settings.drain_seconds,
        settings=settings,
    )


cli.command()(run)
cli.command(cls=DecideCommand)(decide)
cli.command()(chat)
cli.command()(web)
cli.command()(acp)
cli.command()(launch)
cli.command()(doctor)
cli.add_typer(models_app, name="models")
cli.add_typer(agents_app, name="agents")
cli.add_typer(pipelines_app, name="pipelines")
cli.add_typer(plugins_app, name="plugins")
cli.add_typer(mcp_app, name="mcp")
cli.add_typer(memory_app, name="memory")
cli.add_typer(rag_app, name="rag")
cli.command()(bench)


def main() -> None:
    """Entry point of the `pravaha` script."""
    for stream in (sys.stdout, sys.stderr):
        # A model may write characters that the locale cannot encode: print a question mark.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        cli()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
