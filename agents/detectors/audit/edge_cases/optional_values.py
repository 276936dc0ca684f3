"""Parameters that may be None by their annotation, and parts of split text that may not be there."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.edge_cases.guards import guarded
from agents.detectors.audit.python_module import (
    FunctionNode,
    PythonModule,
    own_nodes,
    parameters,
    shape,
)
from agents.detectors.rule_file import RuleEntry, RuleFile

RULES = RuleFile(__file__, "optional_values", entry=RuleEntry)

_OPTIONAL = re.compile(r"^(?:typing\.)?Optional\[|\|\s*None$|^None\s*\|")


def check_optional_values(module: PythonModule) -> Iterator[Finding]:
    """Findings about optional parameters and split text."""
    for function in module.functions:
        yield from _optional_parameters(module, function)
    for node in module.of(ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            yield from _split(module, node)


def _optional_parameters(module: PythonModule, function: FunctionNode) -> Iterator[Finding]:
    optional = {
        one.arg
        for one in parameters(function)
        if one.annotation is not None and _OPTIONAL.search(shape(one.annotation))
    }
    if not optional:
        return
    reported: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            optional.discard(node.id)
    for node in own_nodes(function):
        if not isinstance(node, ast.Attribute | ast.Subscript) or not isinstance(
            node.value, ast.Name
        ):
            continue
        name = node.value.id
        if (
            name not in optional
            or name in reported
            or guarded(module, node, node.value, "AttributeError", "TypeError")
        ):
            continue
        reported.add(name)
        yield RULES["none-used"].at(
            module.file,
            node.lineno,
            f"{name} may be None, as its annotation says: test it before.",
            confidence=0.8,
        )


def _split(module: PythonModule, node: ast.Subscript) -> Iterator[Finding]:
    """`line.split(" ")[2]`: a shorter text has fewer parts."""
    value, index = node.value, node.slice
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        index = index.operand
        first = 2
    else:
        first = 1
    if (
        not isinstance(index, ast.Constant)
        or not isinstance(index.value, int)
        or index.value < first
    ):
        return
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return
    if value.func.attr not in ("split", "rsplit", "splitlines") or isinstance(
        value.func.value, ast.Constant
    ):
        return
    receiver = value.func.value
    text = module.file.quote(node.lineno)
    if guarded(module, node, receiver, "IndexError", "LookupError") or guarded(
        module, node, value, "IndexError"
    ):
        return
    if re.search(
        r"__version__|version|platform\.|sys\.|__name__|__qualname__|__module__|os\.sep", text
    ):
        return
    yield RULES["split-index"].at(
        module.file,
        node.lineno,
        f"A text with fewer parts has no part {index.value + 1 if first == 1 else index.value}: check their number.",
        confidence=0.7,
    )
