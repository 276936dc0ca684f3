"""`pravaha plugins`: what is registered, and by whom."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.plugins.registry import PluginInfo, Registry

_SAMPLE = (
    "Ann's card 4111 1111 1111 1111, ann@example.com, +44 20 7946 0958 and 192.0.2.1.\n"
    'password = "x7Kq9!vTz2"; ![](https://example.com/a.png?q=c2VjcmV0IGRhdGE) <|im_start|>[INST]\u200b\n'
)

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
    """Load every plugin, try its guardrails, and say what is wrong with those that cannot be used."""
    from agents.plugins.registry import load_registry

    with one_sentence_errors():
        registry = load_registry()
    failures = _tried_guardrails(registry)
    for one in registry.plugins:
        broken = [
            f"guardrail {name} raised {reason}"
            for name, reason in failures.items()
            if name.partition(".")[0] in one.provides.get("guardrails", ())
        ]
        verdict = one.error or "; ".join(broken) or "ok"
        print(f"{one.name} {one.version}: {verdict}".replace("  ", " "))
        for kind in ("guardrails", "reducers"):
            if names := one.provides.get(kind):
                print(f"  {kind}: {', '.join(names)}")
    if failures or any(one.error for one in registry.plugins):
        raise typer.Exit(EXIT_ERROR)


def _tried_guardrails(registry: "Registry") -> "Mapping[str, str]":
    """What the guardrails raise on a text that has something of everything, by their names."""
    from agents.guardrails.guardrails import Guardrails

    guardrails = Guardrails(recognizers=registry.guardrails)
    guardrails.check_input(_SAMPLE)
    check = guardrails.output_check()
    check.feed(_SAMPLE)
    check.finish()
    return guardrails.failures


def _provides(plugin: "PluginInfo") -> str:
    if plugin.error:
        return f"not loaded: {plugin.error}"
    counts = {kind.replace("_", " "): len(names) for kind, names in plugin.provides.items()}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing"
