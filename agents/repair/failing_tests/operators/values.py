"""Defaults, None, and names that mean something else than it looks: closures, shadowed and shared values."""

import ast
import re
from collections.abc import Iterator

from agents.detectors.audit.python_module import LOOPS
from agents.repair.failing_tests.operators.place import Change, Place

_EMPTY = {"[]", "{}", "set()", "list()", "dict()"}


def defaults(place: Place) -> Iterator[Change]:
    """The other truth value, None where the annotation allows it, and no shared list or dictionary."""
    if not isinstance(place.node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _flags(place)
        return
    given = place.node.args
    positional = [*given.posonlyargs, *given.args]
    pairs = list(
        zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)
    )
    pairs += [
        (one, two) for one, two in zip(given.kwonlyargs, given.kw_defaults, strict=True) if two
    ]
    for parameter, default in pairs:
        text = place.source(default)
        annotation = "" if parameter.annotation is None else place.source(parameter.annotation)
        if isinstance(default, ast.Constant) and isinstance(default.value, bool):
            new = str(not default.value)
            yield place.replace(default, new, f"{parameter.arg}={new} by default", 1)
        elif text != "None" and re.search(r"\bNone\b|Optional", annotation):
            yield place.replace(default, "None", f"{parameter.arg}=None by default", 1)
        if text in _EMPTY:
            yield from _own_value(place, parameter.arg, default, text, annotation, parameter)
    yield from _flags(place)


def _own_value(
    place: Place, name: str, default: ast.expr, text: str, annotation: str, parameter: ast.arg
) -> Iterator[Change]:
    """Each call gets a list or dictionary of its own."""
    first = place.first_statement
    if first is None:
        return
    change = place.insert_before(first, f"if {name} is None:\n    {name} = {text}", "", 0)
    if change is None:
        return
    edits = [*change.edits, (*place.range(default), "None")]
    if parameter.annotation is not None and not re.search(r"\bNone\b|Optional|Any", annotation):
        edits.append((*place.range(parameter.annotation), f"{annotation} | None"))
    yield Change(tuple(edits), f"{name} is a new value in each call", 0, default.lineno)


def _flags(place: Place) -> Iterator[Change]:
    """The other truth value in an argument, an assignment or a result."""
    for node in place.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            parent = place.module.parent.get(node)
            if not isinstance(parent, ast.arguments):
                yield place.replace(
                    node, str(not node.value), f"{not node.value} for {node.value}", 2
                )


def none_guards(place: Place) -> Iterator[Change]:
    """What may be None is not touched: a parameter, or a name that was assigned from a call."""
    first = place.first_statement
    if first is None:
        return
    for parameter in place.parameters:
        annotation = "" if parameter.annotation is None else place.source(parameter.annotation)
        if re.search(r"\bNone\b|Optional", annotation):
            for result in _results(place):
                lines = f"if {parameter.arg} is None:\n    return{result}"
                change = place.insert_before(
                    first, lines, f"returns{result} without {parameter.arg}", 1
                )
                if change is not None:
                    yield change
    assigned = {
        target.id
        for node in place.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    } | {one.arg for one in place.parameters}
    for node in place.nodes:
        if not isinstance(node, ast.If | ast.While | ast.IfExp):
            continue
        for name in sorted(assigned):
            if not _reads_of(node.test, name) or f"{name} is not None" in place.source(node.test):
                continue
            text = place.source(node.test)
            text = f"({text})" if isinstance(node.test, ast.BoolOp | ast.IfExp) else text
            new = f"{name} is not None and {text}"
            yield place.replace(node.test, new, f"nothing is done without {name}", 1)


def _reads_of(node: ast.AST, name: str) -> bool:
    """Whether an attribute or element of a name is read, or it is compared with anything but None."""

    def is_name(one: ast.AST) -> bool:
        return isinstance(one, ast.Name) and one.id == name

    for one in ast.walk(node):
        if isinstance(one, ast.Attribute | ast.Subscript) and is_name(one.value):
            return True
        if isinstance(one, ast.Compare) and any(map(is_name, [one.left, *one.comparators])):
            return not any(isinstance(sign, ast.Is | ast.IsNot) for sign in one.ops)
    return False


def _results(place: Place) -> list[str]:
    """What a function may return early: what its annotation names, else None."""
    returns = getattr(place.node, "returns", None)
    text = "" if returns is None else place.source(returns)
    if not text or re.search(r"\bNone\b|Optional", text):
        return [" None"] if text not in ("", "None") else [""]
    kinds = {
        "list": " []",
        "dict": " {}",
        "str": ' ""',
        "int": " 0",
        "float": " 0.0",
        "bool": " False",
    }
    return [kinds[name] for name in kinds if text.startswith(name)]


def closures(place: Place) -> Iterator[Change]:
    """A function made in a loop keeps the loop's value of then, not its last one."""
    for node in place.nodes:
        if not isinstance(node, ast.Lambda):
            continue
        targets = _loop_names(place, node)
        free = [
            name
            for name in targets
            if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node.body))
        ]
        own = {one.arg for one in [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]}
        kept = [name for name in free if name not in own]
        if not kept or node.args.vararg or node.args.kwonlyargs:
            continue
        bound = ", ".join(f"{name}={name}" for name in kept)
        start, body = place.range(node)[0], place.range(node.body)[0]
        head = place.text[start:body]
        given = head.removeprefix("lambda").rpartition(":")[0].strip()
        new = f"lambda {given}, {bound}: " if given else f"lambda {bound}: "
        yield Change(((start, body, new),), f"the function keeps {', '.join(kept)}", 0, node.lineno)


def _loop_names(place: Place, node: ast.AST) -> list[str]:
    names: list[str] = []
    for outer in place.module.ancestors(node):
        if isinstance(outer, ast.For | ast.AsyncFor):
            names += [one.id for one in ast.walk(outer.target) if isinstance(one, ast.Name)]
        for part in getattr(outer, "generators", []):
            names += [one.id for one in ast.walk(part.target) if isinstance(one, ast.Name)]
        if outer is place.node:
            break
    return list(dict.fromkeys(names))


def shadowed(place: Place) -> Iterator[Change]:
    """A loop's name that hides a value of the function gets another one."""
    if not isinstance(place.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    outside = {one.arg for one in place.parameters}
    for node in place.nodes:
        if isinstance(node, ast.Assign):
            outside |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    for loop in place.nodes:
        if not isinstance(loop, ast.For | ast.AsyncFor):
            continue
        for target in ast.walk(loop.target):
            if isinstance(target, ast.Name) and target.id in outside:
                new = f"each_{target.id}"
                inside = [loop.target, *loop.body]
                names = [
                    one
                    for part in inside
                    for one in ast.walk(part)
                    if isinstance(one, ast.Name) and one.id == target.id
                ]
                edits = tuple((*place.range(one), new) for one in names)
                yield Change(edits, f"the loop no longer changes {target.id}", 0, loop.lineno)


def resets(place: Place) -> Iterator[Change]:
    """A value that is set before a loop is set again in it."""
    for loop in place.nodes:
        if not isinstance(loop, LOOPS):
            continue
        block = next((one for one in place.blocks if loop in one), [])
        before = block[: block.index(loop)] if loop in block else []
        for statement in before:
            if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
                continue
            if not isinstance(statement.value, ast.Constant | ast.List | ast.Dict | ast.Set):
                continue
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if not isinstance(target, ast.Name):
                continue
            text = f"{target.id} = {place.source(statement.value)}"
            for inner in _inner_blocks(loop):
                last = inner[-1]
                if isinstance(last, ast.Return | ast.Continue | ast.Break | ast.Raise):
                    change = place.insert_before(last, text, f"{text} again", 2)
                else:
                    change = place.insert_after(last, text, f"{text} again", 2)
                if change is not None:
                    yield change
            first = place.insert_before(loop.body[0], text, f"{text} in each turn", 2)
            if first is not None:
                yield first


def _inner_blocks(loop: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(loop):
        if isinstance(node, ast.If):
            yield node.body
            if node.orelse and not isinstance(node.orelse[0], ast.If):
                yield node.orelse
