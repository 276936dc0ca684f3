"""`Row`: what is said about a setting where it is declared, without importing pydantic.

`pravaha --help` reads rows, and pydantic would double the time that it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from app.text.byte_size import parse_size
from engine.api.keep_alive import keep_alive_seconds

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Row:
    """The annotation of a setting.

    Attributes:
        help: one line for `--help` and the documentation.
        short: a short form of its command-line option.
        ge: the least value; `gt`, `le` and `lt` are the other bounds.
        min_length: the least number of characters.
        read: converts what a source gives, which may be a string, before it is checked.
        user_only: a project's `pravaha.toml`, which others wrote, cannot set it.
        secret: its value is not shown in messages.
        more: the setting of the further values, where the option may be given several times.
        words: further words by which people look for it, separated by spaces.
    """

    help: str
    short: str | None = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    read: Callable[[object], object] | None = None
    user_only: bool = False
    secret: bool = False
    more: str | None = None
    words: str = ""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        """The checks, for pydantic."""
        from pydantic import BeforeValidator, Field

        bounds = {name: getattr(self, name) for name in ("ge", "gt", "le", "lt", "min_length")}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        kind: Any = Annotated[source, Field(**given)] if given else source
        if self.read is not None:
            kind = Annotated[kind, BeforeValidator(self.read)]
        return handler.generate_schema(kind)


def rows_of(settings: type) -> dict[str, Row]:
    """The rows of the settings that a class declares, by their names, its own before those of its bases."""
    return {
        name: row
        for one in settings.__mro__
        for name, kind in vars(one).get("__annotations__", {}).items()
        for row in getattr(kind, "__metadata__", ())
        if isinstance(row, Row)
    }


# What `read` may be. A value that is no string comes from a file and is left as it is.


def size(value: object) -> object:
    """A number of bytes, such as `512MiB`."""
    return parse_size(value) if isinstance(value, str) else value


def duration(value: object) -> object:
    """A number of seconds, or a duration such as `5m`; a negative one is for ever."""
    return value if value is None else keep_alive_seconds(value)


def folder(value: object) -> object:
    """A path, which may begin with `~`."""
    return Path(value).expanduser() if isinstance(value, str) else value


def rules(value: object) -> object:
    """Parts between semicolons."""
    if not isinstance(value, str):
        return value
    return tuple(rule for rule in (part.strip() for part in value.split(";")) if rule)


def names(value: object) -> object:
    """Words between commas or spaces."""
    return tuple(filter(None, value.replace(",", " ").split())) if isinstance(value, str) else value


def none_if_empty(value: object) -> object:
    """An empty string stands for None."""
    return None if value == "" else value


def none_if_none(value: object) -> object:
    """An empty string, or `none`, stands for None."""
    return None if value in ("", "none") else value


def flattened(value: object) -> object:
    """TOML parses `pane.kv = "f4"` as a nested table; join it to one name."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, object] = {}
    for name, entry in value.items():
        if isinstance(entry, dict):
            flat |= {f"{name}.{inner}": keys for inner, keys in entry.items()}
        else:
            flat[name] = entry
    return flat
