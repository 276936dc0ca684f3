"""XML parsers of Python whose external entities are switched on by hand."""

import ast
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.python_module import PythonModule
from agents.detectors.python_names import argument, is_true
from agents.detectors.security.taint.rules import RULES, advice
from agents.detectors.security.taint.value import SinkKind

_FEATURES = ("feature_external_ges", "feature_external_pes")


def entities_switched_on(module: PythonModule) -> Iterator[Finding]:
    """`parser.setFeature(feature_external_ges, True)`."""
    for call, name in module.calls:
        if not name.endswith(".setFeature") or not call.args:
            continue
        feature, value = ast.unparse(call.args[0]), argument(call, 1)
        on = is_true(value) or (isinstance(value, ast.Constant) and value.value == 1)
        if on and feature.endswith(_FEATURES):
            text = f"External entities are switched on. {advice(SinkKind.XML)}"
            yield RULES[SinkKind.XML].at(module.file, call.lineno, text)
