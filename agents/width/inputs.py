"""`generated_calls`: arguments for a function, to compare candidates on (`agents.width.agreement`).

They come from the arguments of examples, changed without changing their types, and from annotations. An
argument of which neither is known is guessed from the values that a program usually takes. The same
function and examples give the same calls.
"""

import ast
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from agents.width.probe_run import Call
from agents.width.signature import Function

MAX_CALLS = 48
_TRIES = 6
_WORDS = ("a", "ab", "abc", "hello", "Hello World", "racecar", "a1b2", "xyz xyz", "AbC", "")
_LETTERS = "abcxyzABC 019"
_GUESSES: tuple[Any, ...] = (
    0, 1, 2, 5, 10, -3, 2.5, "abc", "", "Hello World", [], [1, 2, 3], [3, -1, 2, 2], ["a", "bb", "a"], True,
)  # fmt: skip
_NAMES: dict[str, type] = {
    "n": int, "k": int, "m": int, "i": int, "x": int, "y": int, "num": int, "number": int, "count": int,
    "size": int, "index": int, "s": str, "text": str, "string": str, "word": str, "name": str, "line": str,
    "sentence": str, "path": str, "key": str, "lst": list, "arr": list, "array": list, "nums": list,
    "numbers": list, "items": list, "values": list, "xs": list, "l": list, "words": list,
}  # fmt: skip


def generated_calls(
    function: Function, name: str, examples: Sequence[Call] = (), *, limit: int = MAX_CALLS
) -> list[Call]:
    """Calls of a function with generated arguments, those of the examples first.

    Args:
        function: its definition, for parameters and annotations.
        name: how it is called.
        examples: calls whose arguments are known to be of the right kind.
        limit: at most so many calls.
    """
    draw = random.Random(0)  # noqa: S311 - not for secrets
    parameters = _positional(function)
    if not parameters:
        return [_call(name, [])]
    read = [one for one in map(_arguments, examples) if one is not None]
    known = [_in_order(given, keywords, parameters) for given, keywords in read]
    known = [one for one in known if 0 < len(one) <= len(parameters)]
    found: dict[str, Call] = {}
    for arguments in known:
        _add(found, name, arguments)
    makers = _makers(parameters, known, draw)
    for attempt in range(limit * _TRIES):
        if len(found) >= limit:
            break
        if known and attempt % 4:
            base = list(known[attempt % len(known)])
            at = draw.randrange(len(base))
            changed = mutated(base[at], draw, _pool(known, at))
            base[at] = changed
            if draw.random() < 0.3 and len(base) > 1:
                other = draw.randrange(len(base))
                base[other] = mutated(base[other], draw, _pool(known, other))
        else:
            base = [make() for make in makers]
        _add(found, name, base)
    return list(found.values())[:limit]


def _add(found: dict[str, Call], name: str, arguments: Sequence[Any]) -> None:
    call = _call(name, arguments)
    if len(call.shown) <= 2000:
        found.setdefault(call.setup, call)


def _call(name: str, arguments: Sequence[Any]) -> Call:
    """A call that keeps its arguments, so that what becomes of them can be compared, too."""
    given = "".join(f"{one!r}, " for one in arguments)
    shown = f"{name}({given.removesuffix(', ')})"
    return Call(f"{name}(*_arguments)", f"_arguments = ({given})", after="_arguments", shown=shown)


def _positional(function: Function) -> list[ast.arg]:
    """The parameters that must be given; those with a default are left out."""
    given = [*function.args.posonlyargs, *function.args.args]
    return given[: len(given) - len(function.args.defaults)] or given


def _arguments(call: Call) -> tuple[list[Any], dict[str, Any]] | None:
    """The literal arguments of a call, or None; a call around it, such as `round`, is looked through."""
    try:
        node: ast.AST = ast.parse(call.expression, mode="eval").body
    except SyntaxError:
        return None
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    for one in reversed(calls):
        try:
            given = [ast.literal_eval(argument) for argument in one.args]
            keywords = {k.arg: ast.literal_eval(k.value) for k in one.keywords if k.arg}
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if not isinstance(one.func, ast.Name) or one.func.id not in ("round", "sorted", "list"):
            return given, keywords
    return None


def _in_order(
    given: Sequence[Any], keywords: dict[str, Any], parameters: Sequence[ast.arg]
) -> list[Any]:
    ordered = list(given)
    for one in parameters[len(ordered) :]:
        if one.arg not in keywords:
            break
        ordered.append(keywords[one.arg])
    return ordered


def _pool(known: Sequence[Sequence[Any]], at: int) -> list[Any]:
    return [one[at] for one in known if at < len(one)]


# Making values.


def _makers(
    parameters: Sequence[ast.arg], known: Sequence[Sequence[Any]], draw: random.Random
) -> list[Callable[[], Any]]:
    """How to make a value for each parameter."""
    makers: list[Callable[[], Any]] = []
    for at, one in enumerate(parameters):
        pool = _pool(known, at)
        made = None if one.annotation is None else _of_annotation(one.annotation, draw)
        if pool and (made is None or _bare(one.annotation)):
            makers.append(lambda pool=pool: mutated(draw.choice(pool), draw, pool))  # type: ignore[misc]
        elif made is not None:
            makers.append(made)
        elif one.arg.lower() in _NAMES:
            kind = ast.Name(_NAMES[one.arg.lower()].__name__)
            makers.append(_of_annotation(kind, draw) or (lambda: None))
        else:
            makers.append(lambda: draw.choice(_GUESSES))
    return makers


def _bare(annotation: ast.expr | None) -> bool:
    """Whether an annotation leaves the elements of a container open: examples show them."""
    return isinstance(annotation, ast.Name) and annotation.id in ("list", "dict", "tuple", "set")


def _of_annotation(node: ast.expr, draw: random.Random) -> Callable[[], Any] | None:
    """How to make a value of an annotated type, or None for a type that is not known."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return lambda: None
        if isinstance(node.value, str):
            try:
                return _of_annotation(ast.parse(node.value, mode="eval").body, draw)
            except SyntaxError:
                return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _one_of([node.left, node.right], draw)
    if isinstance(node, ast.Attribute):
        return _of_annotation(ast.Name(node.attr), draw)
    if isinstance(node, ast.Name):
        return _plain(node.id, draw)
    if isinstance(node, ast.Subscript):
        return _generic(node, draw)
    return None


def _plain(name: str, draw: random.Random) -> Callable[[], Any] | None:
    match name:
        case "int":
            return lambda: draw.choice([0, 1, 2, 3, 7, 10, -1, -5, draw.randint(-20, 100)])
        case "float" | "Number" | "Real":
            return lambda: draw.choice([0.0, 1.0, 2.5, -1.5, round(draw.uniform(-20, 20), 2)])
        case "bool":
            return lambda: draw.random() < 0.5
        case "str" | "Text" | "AnyStr":
            return lambda: draw.choice(_WORDS) if draw.random() < 0.6 else _text(draw)
        case "bytes":
            return lambda: _text(draw).encode()
        case "list" | "List" | "Sequence" | "Iterable" | "Collection":
            return lambda: [draw.randint(-10, 20) for _ in range(draw.randint(0, 6))]
        case "tuple" | "Tuple":
            return lambda: tuple(draw.randint(-10, 20) for _ in range(draw.randint(0, 4)))
        case "set" | "Set" | "frozenset" | "FrozenSet":
            return lambda: {draw.randint(-10, 20) for _ in range(draw.randint(0, 5))}
        case "dict" | "Dict" | "Mapping":
            return lambda: {draw.choice(_WORDS): draw.randint(0, 9) for _ in range(3)}
        case "Any" | "object":
            return lambda: draw.choice(_GUESSES)
    return None


def _generic(node: ast.Subscript, draw: random.Random) -> Callable[[], Any] | None:
    base = node.value.attr if isinstance(node.value, ast.Attribute) else ""
    base = node.value.id if isinstance(node.value, ast.Name) else base
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    match base:
        case "Optional":
            return _one_of([*inside, ast.Constant(None)], draw)
        case "Union":
            return _one_of(inside, draw)
        case "Literal":
            values = [one.value for one in inside if isinstance(one, ast.Constant)]
            return (lambda: draw.choice(values)) if values else None
    makers = [_of_annotation(one, draw) for one in inside if not _is_ellipsis(one)]
    known = [one for one in makers if one is not None]
    if len(known) != len(makers) or not known:
        return None
    first = known[0]
    match base:
        case "list" | "List" | "Sequence" | "Iterable" | "Collection" | "Iterator":
            return lambda: [first() for _ in range(draw.randint(0, 6))]
        case "set" | "Set" | "frozenset" | "FrozenSet":
            return lambda: {first() for _ in range(draw.randint(0, 5))}
        case "dict" | "Dict" | "Mapping" | "defaultdict" if len(known) == 2:
            return lambda: {first(): known[1]() for _ in range(draw.randint(0, 4))}
        case "tuple" | "Tuple" if any(map(_is_ellipsis, inside)):
            return lambda: tuple(first() for _ in range(draw.randint(0, 5)))
        case "tuple" | "Tuple":
            return lambda: tuple(make() for make in known)
    return None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _one_of(nodes: Sequence[ast.expr], draw: random.Random) -> Callable[[], Any] | None:
    makers = [one for one in (_of_annotation(node, draw) for node in nodes) if one is not None]
    return (lambda: draw.choice(makers)()) if makers else None


def _text(draw: random.Random) -> str:
    return "".join(draw.choice(_LETTERS) for _ in range(draw.randint(0, 8)))


# Changing values.


def mutated(value: Any, draw: random.Random, pool: Sequence[Any] = ()) -> Any:
    """A value of the same type near a given one; `pool` has others of its kind."""
    match value:
        case bool():
            return not value
        case int():
            return _number(value, draw, pool)
        case float():
            near = [value + 1.0, value - 1.0, value * 2, value / 2, -value, 0.0]
            return draw.choice([one for one in near if math.isfinite(one)])
        case str():
            return _mutated_text(value, draw, pool)
        case list():
            return _mutated_list(value, draw, pool)
        case tuple():
            return tuple(mutated(one, draw) if draw.random() < 0.6 else one for one in value)
        case set() | frozenset():
            return type(value)(_mutated_list(sorted(value, key=repr), draw, ()))
        case dict():
            return _mutated_dict(value, draw)
        case _ if pool:
            return draw.choice(list(pool))
    return value


def _number(value: int, draw: random.Random, pool: Sequence[Any]) -> int:
    near = [value + 1, value - 1, value + 2, value // 2, value + draw.randint(1, 10)]
    numbers = [one for one in pool if isinstance(one, int)]
    if any(one <= 0 for one in numbers):
        near += [-value, 0]
    if value <= 1000:
        near.append(value * 2)
    changed = draw.choice(near)
    # Where all examples are positive, a negative number is rather a wrong use than a test.
    return abs(changed) if numbers and all(one >= 0 for one in numbers) else changed


def _mutated_text(value: str, draw: random.Random, pool: Sequence[Any]) -> str:
    letters = "".join(one for one in pool if isinstance(one, str)) or _LETTERS
    at = draw.randint(0, len(value))
    match draw.randrange(7):
        case 0:
            return value[:at] + value[at + 1 :]
        case 1:
            return value[:at] + draw.choice(letters) + value[at:]
        case 2:
            return value[:at] + draw.choice(letters) + value[at + 1 :]
        case 3:
            return value[::-1]
        case 4:
            other = [one for one in pool if isinstance(one, str)]
            return value + (draw.choice(other) if other else value)
        case 5:
            return value[:at] + value[at : at + 3] * 2 + value[at + 3 :]
        case _:
            shuffled = list(value)
            draw.shuffle(shuffled)
            return "".join(shuffled)


def _mutated_list(value: list[Any], draw: random.Random, pool: Sequence[Any]) -> list[Any]:
    elements = [one for other in pool if isinstance(other, list) for one in other] or value
    at = draw.randint(0, max(0, len(value) - 1))
    changed = list(value)
    match draw.randrange(7):
        case 0 if changed:
            del changed[at]
        case 1 if elements:
            changed.insert(at, draw.choice(elements))
        case 2 if changed:
            changed[at] = mutated(changed[at], draw, elements)
        case 3:
            draw.shuffle(changed)
        case 4:
            changed = changed[: draw.randint(0, len(changed))]
        case 5 if elements:
            changed = [draw.choice(elements) for _ in range(draw.randint(1, 6))]
        case _ if changed:
            changed = [mutated(one, draw, elements) for one in changed]
    return changed


def _mutated_dict(value: dict[Any, Any], draw: random.Random) -> dict[Any, Any]:
    changed = dict(value)
    if changed and draw.random() < 0.3:
        del changed[draw.choice(list(changed))]
    elif changed:
        key = draw.choice(list(changed))
        changed[key] = mutated(changed[key], draw, list(changed.values()))
    return changed
