"""`pravaha mcp`: an MCP server on standard input and output.

Its commands are about the other side: the MCP servers whose tools agents may call, what of them is approved,
and whether they work.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import EXIT_ERROR, EXIT_USAGE, one_sentence_errors
from app.commands.setting_options import (
    refuse_groups,
    refuse_remote_contradictions,
    setting_options,
)

if TYPE_CHECKING:
    from agents.mcp.results import Listing
    from agents.mcp.server import McpServer
    from agents.mcp.servers import McpServers

_GROUPS = ("engine", "guardrails", "agents", "remote")

mcp_app = typer.Typer()

NameArgument = Annotated[str, typer.Argument(help="The server's name in [mcp.servers.NAME].")]
YesOption = Annotated[
    bool, typer.Option("--yes", help="Do not ask: approve what is shown. For scripts.")
]


@mcp_app.callback(invoke_without_command=True)
@setting_options(*_GROUPS)
def mcp(
    context: typer.Context,
    agents_root: Annotated[
        Path | None,
        typer.Option(help="Folder whose files agents may read for the host; by default none."),
    ] = None,
    *,
    flags: dict[str, Any],
) -> None:
    """Be an MCP server on standard input and output, for a host that starts this command.

    Its tools ask the model, search documents and run agents; --attach uses the model of a running
    `pravaha --serve`, which has the same tools at /mcp. The commands below are about other MCP
    servers, whose tools agents may call.
    """
    given = {**(context.obj or {}), **flags}
    if agents_root is not None:
        given["agents_root"] = agents_root
    if context.invoked_subcommand is not None:
        reason = f"has no meaning for the command mcp {context.invoked_subcommand}"
        refuse_groups(given, *_GROUPS, "models", "server", reason=reason)
        return
    refuse_remote_contradictions(given)
    if "attach" in given:
        reason = "cannot be set with --attach: the server decides"
        refuse_groups(given, "guardrails", "agents", "models", "server", reason=reason)
    if sys.stdin.isatty():
        print(context.get_help())
        print(
            "pravaha: Nobody speaks MCP here: a host starts `pravaha mcp` with pipes.",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_USAGE)
    with one_sentence_errors():
        from app.commands.mcp_stdio import serve_stdio
        from app.settings.sources import load_settings

        status = serve_stdio(load_settings(given))
    raise typer.Exit(status)


@mcp_app.command("list")
def list_servers(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the configured servers and their approved tools. Starts none."""
    with one_sentence_errors():
        servers = _servers()
        rows = [_row(servers, one) for one in servers]
    if as_json:
        print(json.dumps({"servers": rows}, indent=2, ensure_ascii=False))
        return
    if not rows:
        print("No MCP server is configured: add [mcp.servers.NAME] to pravaha.toml.")
    for row in rows:
        tools = ", ".join(row["tools"]) or "no tool approved"
        print(f"{row['name']}  {_safe(row['runs'])}")
        print(
            f"  {tools}"
            if row["approved"]
            else f"  not approved: `pravaha mcp approve {row['name']}`"
        )


@mcp_app.command()
def approve(name: NameArgument, yes: YesOption = False) -> None:
    """Show what a server runs and offers, and approve it: first its start, then its tools.

    Shows changes since the last approval as a diff. Tools that are not approved cannot be called.
    """
    with one_sentence_errors():
        servers = _servers()
        server = servers.get(name)
        approved = servers.approved
        if not approved.may_start(server):
            print(_safe(json.dumps(server.shown(), indent=2, ensure_ascii=False)))
            if approved.other_configurations(server):
                print(f"Another configuration of {name} was approved before.")
            _confirm(f"May {name} be started like this?", yes=yes)
            approved.approve_start(server)
        asyncio.run(_approve_tools(servers, server, yes=yes))


async def _approve_tools(servers: "McpServers", server: "McpServer", *, yes: bool) -> None:
    from agents.mcp.connection import opened
    from agents.mcp.definition import changes_of

    async with opened(server) as connection:
        listing = await connection.list_tools()
    _print_refused(listing)
    changes = changes_of(servers.approved.tools(server), listing.tools)
    if not (changes.need_approval or changes.removed):
        print(f"{server.name}: all {len(listing.tools)} tools are approved as they are.")
        return
    print(_safe(changes.shown()))
    if changes.need_approval:
        _confirm(f"May agents call these tools of {server.name}, when you allow the call?", yes=yes)
    servers.approved.approve_tools(server, listing.tools)
    print(f"{server.name}: {len(listing.tools)} tools are approved.")


@mcp_app.command()
def forget(name: NameArgument) -> None:
    """Withdraw the approvals of a server, configured or not."""
    with one_sentence_errors():
        if not _servers().approved.forget(name):
            print(f"pravaha: Nothing of {name} is approved.", file=sys.stderr)
            raise typer.Exit(EXIT_ERROR)
    print(f"{name} is no longer approved.")


@mcp_app.command()
def doctor() -> None:
    """Start every approved server and say what is wrong with those that cannot be used."""
    with one_sentence_errors():
        servers = _servers()
        problems = asyncio.run(_check_all(servers))
    if not problems:
        print("No MCP server is configured: add [mcp.servers.NAME] to pravaha.toml.")
    for name, problem in problems.items():
        print(f"{name}: {_safe(problem) or 'ok'}")
    if any(problems.values()):
        raise typer.Exit(EXIT_ERROR)


async def _check_all(servers: "McpServers") -> dict[str, str]:
    names = [one.name for one in servers]
    found = await asyncio.gather(*(_problem_of(servers, one) for one in servers))
    return dict(zip(names, found, strict=True))


async def _problem_of(servers: "McpServers", server: "McpServer") -> str:
    from agents.mcp.connection import opened
    from agents.mcp.definition import changes_of
    from agents.mcp.errors import McpError

    hint = f"`pravaha mcp approve {server.name}`"
    try:
        if not servers.approved.may_start(server):
            return f"not started, because it is not approved: {hint}"
        async with opened(server) as connection:
            listing = await connection.list_tools()
        changes = changes_of(servers.approved.tools(server), listing.tools)
    except McpError as error:
        return str(error)
    problems = [f"a tool was left out, because {one}" for one in listing.refused]
    if changes.added:
        problems.append(f"{len(changes.added)} tools are not approved: {hint}")
    if changes.changed:
        problems.append(f"{len(changes.changed)} tools have changed: {hint}")
    if changes.removed:
        problems.append(f"it no longer offers {', '.join(changes.removed)}")
    return "; ".join(problems)


def _row(servers: "McpServers", server: "McpServer") -> dict[str, Any]:
    approved = servers.approved
    return {
        "name": server.name,
        "runs": server.url or " ".join([server.command, *server.args]),
        "approved": approved.may_start(server),
        "tools": [one.name for one in approved.tools(server)],
    }


def _print_refused(listing: "Listing") -> None:
    for reason in listing.refused:
        print(f"A tool was left out, because {_safe(reason)}.", file=sys.stderr)


def _confirm(question: str, *, yes: bool) -> None:
    """Ask in the terminal.

    Raises:
        typer.Exit: it was denied, or there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        print("pravaha: There is nobody to ask here: pass --yes to approve.", file=sys.stderr)
        raise typer.Exit(EXIT_ERROR)
    if not typer.confirm(question, default=False):
        print("Not approved.", file=sys.stderr)
        raise typer.Exit(EXIT_ERROR)


def _servers() -> "McpServers":
    from agents.mcp.servers import McpServers
    from app.settings.sources import load_settings

    settings = load_settings()
    return McpServers(settings.mcp.configured(), settings.mcp_approved)


def _safe(text: str) -> str:
    from app.text.safe_text import safe_text

    return safe_text(text)
