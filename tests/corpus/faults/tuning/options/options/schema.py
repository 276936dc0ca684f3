"""The options of a program: names, types and defaults."""

from dataclasses import dataclass
from typing import Any

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}


@dataclass(frozen=True)
class Option:
    name: str
    kind: type
    default: Any
    help: str = ""


OPTIONS = {
    option.name: option
    for option in (
        Option("host", str, "127.0.0.1", "address to listen on"),
        Option("port", int, 8080, "port to listen on"),
        Option("timeout", float, 30.0, "seconds until a request is given up"),
        Option("debug", bool, False, "show errors in the browser"),
        Option("workers", int, 4, "processes"),
    )
}


def convert(text: str, kind: type) -> Any:
    """A text as a value of a kind."""
    if kind is bool:
        lowered = text.strip().lower()
        if lowered in TRUE:
            return True
        if lowered in FALSE:
            return False
        raise ValueError(f"{text!r} is neither true nor false")
    return kind(text)
