"""Formatting of text in chat templates, with bounded results: `%`, `str.format` and padding.

Python's own create strings of any size from a few characters (`'{:>999999999}'`), and `str.format` also
reads attributes and items of its arguments (`'{0.__class__}'`). Here a field names an argument and
nothing inside it.
"""

import re
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from jinja2 import Undefined

from engine.text.template_budget import TemplateLimitError, current_budget
from engine.text.template_values import text_of

MAX_WIDTH = 999
"""Largest width and precision of a number or a padded text."""

_DIRECTIVE = re.compile(
    r"%(?:\((?P<name>[^()]*)\))?[-#0 +]*(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)",
    re.DOTALL,
)
_NESTED_NAME = re.compile(r"%\([^)]*\(")
_SPEC = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?(?P<width>\d*)[_,]?(?:\.(?P<precision>\d+))?[a-zA-Z%]?"
)
_REPR_GROWTH = 10
"""Longest representation of one character, such as `\\U0001f600`."""
_NUMBER_LENGTH = 400
"""Longest form of a number without a width: `%f` of the largest float has 309 digits."""


def check_percent(text: str, values: Any) -> None:
    """Charge the result of `text % values`, at most.

    Raises:
        TemplateLimitError: a field is very wide, or a value is not plain data.
    """
    if _NESTED_NAME.search(text):
        raise TemplateLimitError("it formats a field with a parenthesis in its name")
    budget, total = current_budget(), len(text)
    unnamed = iter(values if isinstance(values, tuple) else (values,))
    for directive in _DIRECTIVE.finditer(text):
        if directive["kind"] == "%":
            continue
        _check_width(directive["width"])
        _check_width(directive["precision"])
        name = directive["name"]
        is_named = name is not None and isinstance(values, Mapping)
        value = values.get(name) if is_named else next(unnamed, None)
        growth = _REPR_GROWTH if directive["kind"] in "ra" else 1
        total += max(growth * len(text_of(value)), _NUMBER_LENGTH) + MAX_WIDTH
        budget.step()
    budget.text(total)


def format_fields(text: str, *args: Any, **kwargs: Any) -> str:
    """`str.format`, without access to what is inside an argument.

    Raises:
        TemplateLimitError: a field is very wide, reaches into an argument, or its value is not plain data.
        LookupError, ValueError: as `str.format`.
    """
    numbered = iter(range(len(args)))

    def argument(name: str) -> Any:
        if not name:
            return args[next(numbered, len(args))]
        return args[int(name)] if name.isdecimal() else kwargs[name]

    return _formatted(text, argument)


def format_mapping(text: str, mapping: Mapping[str, Any]) -> str:
    """`str.format_map`, with the bounds of `format_fields`."""
    return _formatted(text, lambda name: mapping[name])


def _formatted(text: str, argument: Callable[[str], Any]) -> str:
    budget, parts, total = current_budget(), [], 0
    for literal, name, spec, conversion in Formatter().parse(text):
        parts.append(literal)
        if name is not None:
            budget.step()
            parts.append(_field(_plain_name(name), spec or "", conversion, argument))
            total += len(parts[-1])
        total += len(literal)
        budget.text(total if total > 1 << 20 else len(parts[-1]))
    budget.text(total)
    return "".join(parts)


def _plain_name(name: str) -> str:
    if "." in name or "[" in name:
        raise TemplateLimitError("it formats a part of a value, as in {0.name} or {0[1]}")
    return name


def _field(name: str, spec: str, conversion: str | None, argument: Callable[[str], Any]) -> str:
    value = argument(name)
    if conversion in ("r", "a"):
        current_budget().text(_REPR_GROWTH * len(text_of(value)))
        value = repr(value) if conversion == "r" else ascii(value)
    elif conversion == "s" or isinstance(value, Undefined | list | tuple | dict | None):
        value = text_of(value)
    elif not isinstance(value, str | int | float):
        raise TemplateLimitError(f"it formats a {type(value).__name__}, which is not text")
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise TemplateLimitError(f"it formats a value as {spec!r:.40}")
    _check_width(match["width"])
    if not isinstance(value, str):  # of a text it is the most characters that are kept
        _check_width(match["precision"])
    elif match["precision"] and len(match["precision"]) > 9:
        raise TemplateLimitError("it formats a very wide field")
    return format(value, spec)


def _check_width(digits: str | None) -> None:
    if digits == "*" or (digits and (len(digits) > 9 or int(digits) > MAX_WIDTH)):
        raise TemplateLimitError("it formats a very wide field")


def padded(method: Callable[..., str]) -> Callable[..., str]:
    """`str.center`, `ljust`, `rjust` or `zfill`, charged before."""

    def pad(text: str, width: int, *fill: str) -> str:
        current_budget().text(max(len(text), width))
        return method(text, width, *fill)

    return pad


def expand_tabs(text: str, tabsize: int = 8) -> str:
    """`str.expandtabs`, charged before."""
    current_budget().text(len(text) + text.count("\t") * max(0, tabsize))
    return text.expandtabs(tabsize)
