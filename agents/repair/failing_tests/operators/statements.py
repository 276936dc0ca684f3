"""Statements: a missing return, a cache that is not emptied, a step that other methods take."""

import ast
from collections.abc import Iterator

from agents.repair.failing_tests.operators.place import Change, Place


def returns(place: Place) -> Iterator[Change]:
    """A result that is computed and dropped is returned."""
    if not isinstance(place.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    name = place.node.name
    for block in place.blocks:
        for statement in block:
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                continue
            text = place.source(statement.value)
            if place.source(statement.value.func).rpartition(".")[2] == name:
                yield place.replace(statement, f"return {text}", f"returns {text}"[:80], 1)
                margin = place.margin(statement)
                lines = f"found = {text}\n{margin}if found is not None:\n{margin}    return found"
                if "found" not in {getattr(one, "id", "") for one in place.nodes}:
                    yield place.replace(statement, lines, f"returns what {text} finds"[:80], 1)
    last = place.node.body[-1]
    if isinstance(last, ast.Return | ast.Raise) or place.node.returns is None:
        return
    if place.source(place.node.returns) == "None":
        return
    assigned = dict.fromkeys(
        target.id
        for node in place.node.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    )
    for name in assigned:
        change = place.insert_after(last, f"return {name}", f"returns {name}", 1)
        if change is not None:
            yield change


def caches(place: Place) -> Iterator[Change]:
    """What the class keeps of earlier answers is forgotten where its inputs change."""
    owner = place.module.class_of(place.node) if hasattr(place.node, "args") else None
    last = place.first_statement
    if owner is None or last is None or getattr(place.node, "name", "") == "__init__":
        return
    body = [one for one in place.node.body if not isinstance(one, ast.Pass)]  # type: ignore[attr-defined]
    own = place.source(place.node)
    for attribute in sorted(_kept(owner)):
        texts = [f"self.{attribute}.clear()"]
        texts += [f"self.{attribute}.pop({one.arg}, None)" for one in place.parameters]
        for tier, text in enumerate(texts):
            if f"self.{attribute}[" in own or text in own:
                continue
            end = body[-1]
            insert = place.insert_before if isinstance(end, ast.Return) else place.insert_after
            change = insert(end, text, text, 1 if tier == 0 else 2)
            if change is not None:
                yield change


def _kept(owner: ast.ClassDef) -> set[str]:
    """Attributes that a method fills only where they do not have a value yet."""
    found: set[str] = set()
    for node in ast.walk(owner):
        if not isinstance(node, ast.If):
            continue
        asked = {
            part.attr
            for part in ast.walk(node.test)
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
        }
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assign):
                for target in inner.targets:
                    kept = target.value if isinstance(target, ast.Subscript) else None
                    if isinstance(kept, ast.Attribute) and kept.attr in asked:
                        found.add(kept.attr)
    return found


def transplants(place: Place) -> Iterator[Change]:
    """A statement about the object that another method of the class ends with."""
    owner = place.module.class_of(place.node) if hasattr(place.node, "args") else None
    if owner is None or not isinstance(place.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    own = place.source(place.node)
    names = {one.arg for one in place.parameters} | {"self", "cls", "None", "True", "False"}
    seen: set[str] = set()
    for method in owner.body:
        if not isinstance(method, ast.FunctionDef) or method is place.node:
            continue
        for statement in method.body:
            text = place.source(statement)
            used = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
            effect = (
                isinstance(statement, ast.Expr | ast.AugAssign | ast.Assign) and "self." in text
            )
            if not effect or "\n" in text or text in own or text in seen or not used <= names:
                continue
            seen.add(text)
            end = place.node.body[-1]
            insert = place.insert_before if isinstance(end, ast.Return) else place.insert_after
            change = insert(end, text, f"{text}, as {method.name} does"[:100], 2)
            if change is not None:
                yield change
