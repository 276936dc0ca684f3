"""Reading options from lines `name = value`."""

from collections.abc import Iterable, Mapping
from typing import Any

from options.schema import OPTIONS, convert


def parse(lines: Iterable[str], strict: bool = False) -> dict[str, str]:
    """The raw texts by name. Unknown names are left out, or refused if `strict`."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        name, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"line {number}: no '='")
        name = name.strip()
        if name not in OPTIONS:
            if strict:
                raise ValueError(f"line {number}: unknown option {name}")
            continue
        found[name] = value.strip()
    return found


def load(lines: Iterable[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """All options with their values; `APP_PORT` in the environment goes before a line `port = …`."""
    texts = parse(lines)
    for name in OPTIONS:
        variable = f"APP_{name.upper()}"
        if environment and variable in environment:
            texts[name] = environment[variable]
    return {
        name: convert(texts[name], option.kind) if name in texts else option.default
        for name, option in OPTIONS.items()
    }
