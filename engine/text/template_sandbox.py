"""`TemplateSandbox`: a Jinja environment for untrusted templates.

Jinja's immutable sandbox prevents access to Python's internals, but not endless loops or unbounded
memory use. Here every operation that can grow a value charges the current `TemplateBudget` first:

* loops, macros and calls charge steps (inserted into the syntax tree before compilation);
* `+`, `*`, `**`, `%`, `~`, join, replace, format, indent and tojson charge the size of their result in
advance;
* list and mapping displays charge their elements at every depth, so that no value is too large to
  compare, hash or print;
* other filters, globals and string methods that can grow text are removed.
"""

import json
import re
from collections.abc import Callable, Iterable, Sized
from datetime import datetime
from types import BuiltinMethodType
from typing import Any, TypeVar

from jinja2 import TemplateError, nodes
from jinja2.environment import Environment
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import do_batch, do_indent, do_round, make_attrgetter, sync_do_slice
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_environment
from jinja2.visitor import NodeTransformer

from engine.text.template_budget import TemplateLimitError, current_budget
from engine.text.template_formatting import (
    check_percent,
    expand_tabs,
    format_fields,
    format_mapping,
    padded,
)
from engine.text.template_values import check_plain, text_of

_Block = TypeVar("_Block", nodes.For, nodes.Macro, nodes.CallBlock)

# fmt: off
_FILTERS = frozenset((
    "abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
    "groupby", "int", "items", "last", "length", "list", "lower", "map", "max", "min", "reject",
    "rejectattr", "reverse", "safe", "select", "selectattr", "sort", "title", "trim", "truncate",
    "unique", "upper", "wordcount",
))
_REMOVED_STRING_METHODS = frozenset((
    "encode", "maketrans", "translate",
))
# fmt: on
_GLOBALS = ("cycler", "dict", "joiner", "namespace", "range")
_STRFTIME = re.compile(r"(?:[^%]|%[-_0^#]?[A-Za-z%])*")
_MAX_BITS = 1024
_MAX_INDENT = 16
_MAX_PRECISION = 99


class RefusedMessagesError(TemplateError):
    """The template called `raise_exception`: it rejects the messages."""


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """An environment with the names that transformers provides to chat templates, and limits."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, now: Callable[[], datetime] = datetime.now) -> None:
        # Not optimized: constant expressions would be evaluated during compilation, without a budget.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, _GenerationBlocks],
            optimized=False,
            finalize=_printable,
        )
        self.filters = {name: self.filters[name] for name in _FILTERS} | {
            "batch": _batch,
            "center": _center,
            "format": _format,
            "indent": _indent,
            "join": _join,
            "list": _list,
            "replace": _replace,
            "round": _round,
            "slice": _slice,
            "string": _string,
            "sum": _sum,
            "tojson": _to_json,
        }
        self.globals = {name: self.globals[name] for name in _GLOBALS} | {
            "raise_exception": _raise_exception,
            "strftime_now": lambda pattern: _strftime(now(), pattern),
        }

    def step(self) -> str:
        """Called by compiled templates in every loop iteration and at the start of a macro."""
        current_budget().step()
        return ""

    def concatenate(self, *values: Any) -> str:
        """The `~` operator."""
        return _joined("", values)

    def counted(self, value: Any) -> Any:
        """Charge the elements of a list, tuple or mapping display, and return it."""
        current_budget().nodes(_count_elements(value))
        return value

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Jinja's rules, without string methods whose result `call` does not bound."""
        if isinstance(obj, str) and attr in _REMOVED_STRING_METHODS:
            return False
        if isinstance(obj, int | float | bytes):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 (jinja's own signature keeps `self` free for templates)
        """A call in a template, with bounded replacements of string methods that can grow text."""
        current_budget().step()
        if isinstance(__obj, BuiltinMethodType) and isinstance(__obj.__self__, str):
            bounded = _BOUNDED_STRING_METHODS.get(__obj.__name__)
            if bounded is not None:
                for scope in ("_loop_vars", "_block_vars"):  # jinja's, meant for Context.call
                    kwargs.pop(scope, None)
                return bounded(__obj.__self__, *args, **kwargs)
        result = super().call(__context, __obj, *args, **kwargs)
        return __self.counted(result) if isinstance(result, dict) else result

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """No replacement of str.format by jinja's: `call` has one, with bounds."""
        return None

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The intercepted operators, rejected if the result would be too large."""
        match operator:
            case "+":
                _check_sum(left, right)
            case "*":
                _check_product(left, right)
            case "**":
                if isinstance(left, int) and isinstance(right, int):
                    _check_bits(left.bit_length() * max(right, 0))
            case "%" if isinstance(left, str):
                check_percent(left, right)
        return super().call_binop(context, operator, left, right)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        return _Instrument().visit(tree)  # type: ignore[no-any-return]


class _Instrument(NodeTransformer):
    """Inserts the calls that charge the budget into the syntax tree."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 (jinja's visitor protocol)
        return self._with_step(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802
        return self._with_step(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        return self._with_step(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _environment_call("concatenate", node.nodes)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        return self._counted(node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        return self._counted(node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        return self._counted(node) if node.ctx == "load" else node

    def _counted(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return _environment_call("counted", [node])

    def _with_step(self, node: _Block) -> _Block:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_environment_call("step", [])))
        return node


def _environment_call(method: str, arguments: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None)


class _GenerationBlocks(Extension):
    """`{% generation %}…{% endgeneration %}`, which marks answers for training: renders its body."""

    tags = {"generation"}  # noqa: RUF012 (jinja declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _count_elements(value: Any) -> int:
    """Number of elements of a nested value, at every depth, repeated ones counted each time."""
    budget, total, pending = current_budget(), 0, [value]
    while pending:
        item = pending.pop()
        children: Iterable[Any] = ()
        if isinstance(item, dict):
            children = [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            children = item
        total += 1
        if children:
            budget.nodes(total + len(pending))  # before the traversal continues: it may be endless
            pending.extend(children)
    return total


def _printable(value: Any) -> str:
    """The text of `{{ … }}`."""
    text = text_of(value)
    current_budget().text(len(text))
    return text


def _joined(separator: str, values: Iterable[Any]) -> str:
    budget, parts, length = current_budget(), [], 0
    for value in values:
        part = text_of(value)
        parts.append(part)
        length += len(part) + len(separator)
        budget.text(length if length > 1 << 20 else len(part))
    budget.text(length)
    return separator.join(parts)


@pass_environment
def _join(
    environment: Environment, value: Iterable[Any], d: str = "", attribute: str | None = None
) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return _joined(text_of(d), value)


def _replace(text: Any, old: str, new: str, count: int = -1) -> str:
    source, old, new = text_of(text), text_of(old), text_of(new)
    found = source.count(old)
    times = found if count is None or count < 0 else min(found, count)
    current_budget().text(len(source) + times * max(0, len(new) - len(old)))
    return source.replace(old, new, times)


def _split(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _check_parts(text, sep, maxsplit)
    return text.split(sep, maxsplit)


def _rsplit(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _check_parts(text, sep, maxsplit)
    return text.rsplit(sep, maxsplit)


def _splitlines(text: str, keepends: bool = False) -> list[str]:
    _check_parts(text, None, -1)
    return text.splitlines(keepends)


def _check_parts(text: str, separator: str | None, most: int) -> None:
    cuts = text.count(separator) if separator else len(text) // 2  # at worst every other character
    current_budget().nodes(min(cuts, most) if most >= 0 else cuts)


def _list(value: Iterable[Any]) -> list[Any]:
    if isinstance(value, Sized):
        current_budget().nodes(len(value))
    return list(value)


def _batch(value: Iterable[Any], linecount: int, fill_with: Any = None) -> list[list[Any]]:
    items = _list(value)
    current_budget().nodes(len(items) + (linecount if fill_with is not None else 0))
    return list(do_batch(items, linecount, fill_with))


def _slice(value: Iterable[Any], slices: int, fill_with: Any = None) -> list[list[Any]]:
    items = _list(value)
    current_budget().nodes(len(items) + 2 * slices)
    return list(sync_do_slice(items, slices, fill_with))


def _center(text: Any, width: int = 80) -> str:
    source = text_of(text)
    current_budget().text(max(len(source), width))
    return source.center(width)


def _indent(text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    size = len(width) if isinstance(width, str) else int(width)
    if not 0 <= size <= _MAX_INDENT:
        raise TemplateLimitError(f"it indents by more than {_MAX_INDENT}")
    source = text_of(text)
    current_budget().text(len(source) + (source.count("\n") + 1) * size)
    return do_indent(source, width, first, blank)


def _string(value: Any) -> str:
    return text_of(value)


def _format(text: Any, *args: Any, **kwargs: Any) -> str:
    """Jinja's filter `format`, which is the operator `%`."""
    source, values = text_of(text), kwargs or args
    check_percent(source, values)
    return source % values


def _round(value: Any, precision: int = 0, method: str = "common") -> float:
    if not -_MAX_PRECISION <= precision <= _MAX_PRECISION:
        raise TemplateLimitError("it rounds to very many digits")
    return do_round(value, precision, method)  # type: ignore[arg-type]


@pass_environment
def _sum(
    environment: Environment, values: Iterable[Any], attribute: str | None = None, start: Any = 0
) -> Any:
    """The sum of numbers: that of lists would grow."""
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    total = start
    for value in values:
        if not isinstance(value, int | float) or not isinstance(total, int | float):
            raise TemplateLimitError("it adds up something other than numbers")
        current_budget().step()
        total += value
    return total


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML escapes, with the arguments of transformers' filter."""
    if indent is not None and not 0 <= indent <= _MAX_INDENT:
        raise TemplateLimitError(f"it indents by more than {_MAX_INDENT}")
    if separators is not None and sum(map(len, separators)) > _MAX_INDENT:
        raise TemplateLimitError("it uses very long JSON separators")
    check_plain(value)
    text = json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
    current_budget().text(len(text))
    return text


def _check_sum(left: Any, right: Any) -> None:
    if isinstance(left, str) and isinstance(right, str):
        current_budget().text(len(left) + len(right))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        current_budget().nodes(_count_elements(left) + _count_elements(right))


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
        return
    sequence, times = (right, left) if isinstance(left, int) else (left, right)
    if not isinstance(times, int):
        return
    if isinstance(sequence, str):
        current_budget().text(len(sequence) * max(times, 0))
    elif isinstance(sequence, list | tuple):
        current_budget().nodes(_count_elements(sequence) * max(times, 0))


def _check_bits(bits: int) -> None:
    if bits > _MAX_BITS:
        raise TemplateLimitError("it computes a very large number")


def _raise_exception(message: Any) -> None:
    raise RefusedMessagesError(str(message))


def _strftime(moment: datetime, pattern: Any) -> str:
    """The formatted time, without glibc's field widths (`%999999999d`)."""
    if not isinstance(pattern, str) or len(pattern) > 200 or not _STRFTIME.fullmatch(pattern):
        raise TemplateLimitError("it formats the time in a way that is not supported")
    return moment.strftime(pattern)


_BOUNDED_STRING_METHODS: dict[str, Callable[..., Any]] = {
    "center": padded(str.center),
    "expandtabs": expand_tabs,
    "format": format_fields,
    "format_map": format_mapping,
    "join": _joined,
    "ljust": padded(str.ljust),
    "replace": _replace,
    "rjust": padded(str.rjust),
    "rsplit": _rsplit,
    "split": _split,
    "splitlines": _splitlines,
    "zfill": padded(str.zfill),
}
