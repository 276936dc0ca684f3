"""`pravaha plugins`: what is registered, and by whom."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors

if TYPE_CHECKING:
    from agents.plugins.registry import PluginInfo

plugins_app = typer.Typer(no_args_is_help=True, help="List and check plugins.")


@plugins_app.command("list")
def list_plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the built-in parts and the installed plugins, with what each registers."""
    from rich.table import Table
    from rich.text import Text

    from agents.plugins.registry import load_registry
    from app.commands.console import console

    with one_sentence_errors():
        plugins = load_registry().plugins
    if as_json:
        fields = [
            {
                "name": one.name,
                "version": one.version,
                "provides": {kind: list(names) for kind, names in one.provides.items()},
                "error": one.error or None,
            }
            for one in plugins
        ]
        print(json.dumps({"plugins": fields}, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("PLUGIN", "VERSION", "REGISTERS"):
        table.add_column(title)
    for one in plugins:
        table.add_row(one.name, one.version, Text(_provides(one)))
    console().print(table)


@plugins_app.command()
def doctor() -> None:
    """Load every plugin and say what is wrong with those that cannot be used."""
    from agents.plugins.registry import load_registry

    with one_sentence_errors():
        plugins = load_registry().plugins
    for one in plugins:
        print(f"{one.name} {one.version}: {one.error or 'ok'}".replace("  ", " "))
    if any(one.error for one in plugins):
        raise typer.Exit(EXIT_ERROR)


def _provides(plugin: "PluginInfo") -> str:
    if plugin.error:
        return f"not loaded: {plugin.error}"
    counts = {kind.replace("_", " "): len(names) for kind, names in plugin.provides.items()}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing"
