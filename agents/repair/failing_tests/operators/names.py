"""Names and keys: a neighbour's key or attribute, swapped arguments, a sibling of a called function."""

import ast
import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator

from agents.repair.failing_tests.operators.place import Change, Place

_SIBLINGS = (
    ("min", "max"), ("any", "all"), ("strip", "lstrip", "rstrip"), ("startswith", "endswith"),
    ("lower", "upper"), ("append", "extend"), ("floor", "ceil"), ("find", "rfind"), ("split", "rsplit"),
    ("partition", "rpartition"), ("index", "rindex"), ("removeprefix", "removesuffix"),
    ("isalpha", "isalnum"),
    ("intersection", "union", "difference"), ("popleft", "pop"), ("appendleft", "append"),
    ("keys", "values", "items"), ("heappush", "heappushpop"), ("date", "time"), ("discard", "add"),
)  # fmt: skip
MAX_NAMES = 8


def keys(place: Place) -> Iterator[Change]:
    """Another key that the file uses."""
    texts = Counter(
        node.slice.value
        for node in place.module.nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )
    texts.update(_elements(place))
    known = [text for text, _ in texts.most_common(MAX_NAMES)]
    known += [one for one in _documented(place, known) if one not in known]
    for node in place.nodes:
        key: ast.AST | None = None
        if isinstance(node, ast.Subscript):
            key = node.slice
        elif isinstance(node, ast.Call) and _asks_key(node):
            key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            quote = place.source(key)[:1]
            for text in known:
                if (
                    text != key.value
                    and quote in "\"'"
                    and text.isprintable()
                    and quote not in text
                ):
                    yield place.replace(key, f"{quote}{text}{quote}", f"the key {text!r}", 2)


def _asks_key(node: ast.Call) -> bool:
    """Whether it is a call of `get` and the like."""
    named = isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop", "setdefault")
    return named and bool(node.args)


def _documented(place: Place, known: list[str]) -> list[str]:
    """Words of the docstring that look like a key."""
    if not isinstance(place.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    words = re.findall(r"[A-Za-z_]\w*", ast.get_docstring(place.node) or "")
    near = (one for one in words if difflib.get_close_matches(one, known, 1, 0.5))
    return list(dict.fromkeys(near))[:MAX_NAMES]


def _elements(place: Place) -> Iterator[str]:
    """Short texts in the file's lists, tuples and dictionaries, which may be names of columns."""
    for node in place.module.nodes:
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        for one in parts:
            if (
                isinstance(one, ast.Constant)
                and isinstance(one.value, str)
                and one.value.isidentifier()
            ):
                yield one.value


def attributes(place: Place) -> Iterator[Change]:
    """Another attribute that the file reads of an object of the same name."""
    known: dict[str, set[str]] = {}
    called = {id(node.func) for node in place.module.nodes if isinstance(node, ast.Call)}
    for node in place.module.nodes:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and id(node) not in called
        ):
            known.setdefault(node.value.id, set()).add(node.attr)
    for node in place.nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        if id(node) in called or not isinstance(node.ctx, ast.Load):
            continue
        for attribute in sorted(known[node.value.id])[:MAX_NAMES]:
            if attribute != node.attr:
                new = f"{node.value.id}.{attribute}"
                yield place.replace(node, new, f"{new} for {node.value.id}.{node.attr}", 2)


def arguments(place: Place) -> Iterator[Change]:
    """Two neighbouring arguments, indexes or targets exchanged."""
    for node in place.nodes:
        if isinstance(node, ast.Call):
            for one, other in zip(node.args, node.args[1:], strict=False):
                if ast.dump(one) != ast.dump(other):
                    yield place.swap(one, other, "two arguments swapped", 2)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
            yield place.swap(node.value.slice, node.slice, "two indexes swapped", 2)
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            yield place.swap(node.elts[0], node.elts[1], "the two elements swapped", 2)
        if isinstance(node, ast.IfExp):
            yield place.swap(node.body, node.orelse, "the two values swapped", 2)


def siblings(place: Place) -> Iterator[Change]:
    """`max` for `min`, `rstrip` for `strip` and the like."""
    for node in place.nodes:
        if not isinstance(node, ast.Call):
            continue
        attribute = isinstance(node.func, ast.Attribute)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else place.source(node.func)
        for group in _SIBLINGS:
            if name in group:
                for other in group:
                    if other != name:
                        start, end = place.range(node.func)
                        start = end - len(name) if attribute else start
                        edit = (start, end, other)
                        yield Change((edit,), f"{other!r} for {name!r}", 2, node.lineno)


def sorting(place: Place) -> Iterator[Change]:
    """The other direction of a sort, as a whole or in one part of its key."""
    for node in place.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else place.source(node.func)
        if name not in ("sort", "sorted", "min", "max", "nlargest", "nsmallest"):
            continue
        given = {one.arg: one.value for one in node.keywords}
        key, reverse = given.get("key"), given.get("reverse")
        if isinstance(reverse, ast.Constant):
            yield place.replace(reverse, str(not reverse.value), "the other direction", 1)
        elif name in ("sort", "sorted"):
            end = place.range(node)[1] - 1
            comma = "" if not (node.args or node.keywords) else ", "
            if place.text[:end].rstrip().endswith(","):
                comma = " "
            edit = (end, end, f"{comma}reverse=True")
            yield Change((edit,), "sorted in the other direction", 1, node.lineno)
        if isinstance(key, ast.Lambda):
            body = key.body
            parts = body.elts if isinstance(body, ast.Tuple) else [body]
            for part in parts:
                if not isinstance(part, ast.UnaryOp):
                    text = place.source(part)
                    text = text if not isinstance(part, ast.BinOp | ast.IfExp) else f"({text})"
                    yield place.replace(part, f"-{text}", f"the key -{text}"[:80], 1)
            for one, other in itertools.pairwise(parts):
                yield place.swap(one, other, "two parts of the key swapped", 2)
