"""`template_of`: a text that code builds of parts, with NUL in the place of each value."""

import ast

from agents.detectors.audit.edge_cases.guards import definition
from agents.detectors.audit.python_module import shape
from agents.procedures.audit.fixers.edits import Target


def assigned(target: Target, node: ast.AST, name: str) -> ast.expr | None:
    """The value of a name at a place, if it is assigned once."""
    return definition(target.module, node, name)


def template_of(target: Target, text: ast.expr) -> tuple[str, list[str]] | None:
    """The text with NUL for each value, and the values' source; None if it is built in another way."""
    if isinstance(text, ast.JoinedStr):
        return _of_f_string(text)
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Mod):
        return _of_percent(target, text)
    if isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute):
        return _of_format(target, text, text.func)
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        return _of_sum(target, text)
    return None


def _of_f_string(text: ast.JoinedStr) -> tuple[str, list[str]] | None:
    pieces: list[str] = []
    values: list[str] = []
    for value in text.values:
        if isinstance(value, ast.Constant):
            pieces.append(str(value.value))
        elif (
            isinstance(value, ast.FormattedValue)
            and value.format_spec is None
            and value.conversion == -1
        ):
            # In Python 3.11 the parts of an f-string have no exact places.
            pieces.append("\0")
            values.append(shape(value.value))
        else:
            return None
    return "".join(pieces), values


def _of_percent(target: Target, text: ast.BinOp) -> tuple[str, list[str]] | None:
    if not (isinstance(text.left, ast.Constant) and isinstance(text.left.value, str)):
        return None
    given = text.right.elts if isinstance(text.right, ast.Tuple) else [text.right]
    parts = text.left.value.replace("%%", "\1").split("%s")
    if len(parts) != len(given) + 1 or "%" in "".join(parts):
        return None
    return "\0".join(parts).replace("\1", "%"), [target.source(one) for one in given]


def _of_format(target: Target, text: ast.Call, func: ast.Attribute) -> tuple[str, list[str]] | None:
    if func.attr != "format" or not isinstance(func.value, ast.Constant) or text.keywords:
        return None
    parts = str(func.value.value).split("{}")
    if len(parts) != len(text.args) + 1 or "{" in "".join(parts):
        return None
    return "\0".join(parts), [target.source(one) for one in text.args]


def _of_sum(target: Target, text: ast.BinOp) -> tuple[str, list[str]] | None:
    operands: list[ast.expr] = []
    node: ast.expr = text
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        operands.append(node.right)
        node = node.left
    pieces: list[str] = []
    values: list[str] = []
    for operand in [node, *reversed(operands)]:
        if isinstance(operand, ast.Constant) and isinstance(operand.value, str):
            pieces.append(operand.value)
            continue
        converted = isinstance(operand, ast.Call) and shape(operand.func) == "str"
        if isinstance(operand, ast.Call) and converted and len(operand.args) == 1:
            operand = operand.args[0]
        pieces.append("\0")
        values.append(target.source(operand))
    return "".join(pieces), values
