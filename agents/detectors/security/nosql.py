"""JavaScript in MongoDB queries that Python code builds: `{"$where": "this.name == '" + name + "'"}`."""

import ast
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule
from agents.detectors.python_names import constant
from agents.detectors.security.taint.rules import RULES, advice
from agents.detectors.security.taint.value import SinkKind

_CODE_KEYS = frozenset(["$where", "$accumulator", "$function"])


def code_in_queries(module: PythonModule) -> Iterator[Finding]:
    """The dictionaries whose code is not constant."""
    if "$where" not in module.file.text and "$function" not in module.file.text:
        return
    for node in module.of(ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            varies = isinstance(
                value, ast.JoinedStr | ast.BinOp | ast.Call | ast.Name | ast.Subscript
            )
            if key is not None and constant(key) in _CODE_KEYS and varies:
                yield RULES[SinkKind.NOSQL].at(
                    module.file,
                    value.lineno,
                    f"{constant(key)} runs code made of data. {advice(SinkKind.NOSQL)}",
                )
