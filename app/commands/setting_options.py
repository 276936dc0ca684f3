"""Settings as command-line options, from the table `app.settings.options`.

`@setting_options("engine", "sampling")` adds the groups' options to a command and passes the given
ones to it as one dictionary, `flags`, for `load_settings`, which checks them.
"""

import functools
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

import typer

from app.settings.options import GROUPS
from app.settings.row import Row, names, rows_of, rules

_SEPARATORS: dict[object, str] = {names: ",", rules: ";"}
"""Of each way to read several values from one string: what stands between them."""


def setting_options(*groups: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a command that takes a keyword argument `flags: dict[str, Any]`.

    Typer reads a command's signature, in which the decorated one has a parameter for each option.
    """
    options = [parameter for group in groups for parameter in _parameters(group)]
    rows = {name: row for group in groups for name, row in rows_of(GROUPS[group][1]).items()}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_flags(*args: Any, **values: Any) -> Any:
            flags = {one.name: values.pop(one.name) for one in options}
            _divide_repeated(flags, rows)
            given = {
                name: _SEPARATORS[rows[name].read].join(value) if isinstance(value, list) else value
                for name, value in flags.items()
                if value is not None and value != []
            }
            return command(*args, flags=given, **values)

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [*(p for p in own if p.name != "flags"), *options]
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_flags

    return decorate


def _divide_repeated(flags: dict[str, Any], rows: dict[str, Row]) -> None:
    """Put the values after the first, of options that take several, into the settings for those.

    Raises:
        typer.BadParameter: the command takes one.
    """
    for name, row in rows.items():
        if row.more is None or not flags.get(name):
            continue
        first, *further = flags[name]
        flags[name] = first
        if further and row.more not in rows:
            raise typer.BadParameter(
                f"--{name} is given several times; the screen and --serve take several"
            )
        if further:
            flags[row.more] = [*further, *(flags[row.more] or [])]


def refuse_groups(flags: dict[str, Any], *groups: str, reason: str) -> None:
    """Refuse options that would have no effect.

    Raises:
        typer.BadParameter: an option of these groups was given.
    """
    for group in groups:
        for name in names_of(group):
            if name in flags:
                raise typer.BadParameter(f"--{name.replace('_', '-')} {reason}")


def refuse_remote_contradictions(flags: dict[str, Any], *, serving: bool = False) -> None:
    """Refuse engine options for a remote engine, and a key without a server.

    Raises:
        typer.BadParameter: such an option was given.
    """
    if "attach" in flags:
        refuse_groups(
            flags, "engine", "models", reason="cannot be set with --attach: the server decides"
        )
    elif "api_key" in flags and not serving:
        raise typer.BadParameter("--api-key needs --attach or --serve")


def names_of(group: str) -> tuple[str, ...]:
    """The settings of a group."""
    return tuple(rows_of(GROUPS[group][1]))


def _parameters(group: str) -> list[inspect.Parameter]:
    panel, options = GROUPS[group]
    return [
        _parameter(name, row, _kind(options, name, row), getattr(options, name, None), panel)
        for name, row in rows_of(options).items()
    ]


def _kind(options: type, name: str, row: Row) -> Any:
    """What Typer converts to; `load_settings` reads the rest from strings.

    A list may be given in several options.
    """
    declared = options.__annotations__[name].__origin__
    if get_origin(declared) is tuple or row.more is not None:
        return list[str]
    kinds = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    if row.read is None and kinds[0] in (bool, int, float):
        return kinds[0]
    return str


def _parameter(name: str, row: Row, kind: Any, default: Any, panel: str) -> inspect.Parameter:
    flag = f"--{name.replace('_', '-')}"
    if kind is bool and default is not False:
        flag = f"{flag}/--no{flag[1:]}"
    option = typer.Option(flag, *filter(None, [row.short]), help=row.help, rich_help_panel=panel)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )
