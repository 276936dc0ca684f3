"""A test that a function gives the same results before and after a change, on ordinary values.

A reproducing test shows that the defect is gone; this one shows that nothing else changed. It calls both
versions with the same arguments and compares results, changed arguments and the kinds of exceptions, but for
the exception that the change is to prevent. Functions with effects are not called.
"""

import ast
import json
import textwrap

from agents.api.finding import Finding
from agents.detectors.audit.python_module import FunctionNode, PythonModule, module_of, shape
from agents.outputs.test_file import TestFile
from agents.procedures.audit.reproducers.boundaries import RAISED
from agents.procedures.audit.reproducers.calls import call_of, function_at, ordinary_value
from agents.procedures.audit.test_generator import loading_code, test_module
from agents.workspace.workspace import Workspace

_PURE = frozenset(
    ["abc", "array", "ast", "base64", "bisect",
     "collections", "copy", "dataclasses", "datetime", "decimal", "enum",
     "fractions", "functools", "hashlib", "heapq", "hmac",
     "html", "itertools", "json", "math", "numbers", "numpy",
     "operator", "re", "statistics", "string", "struct", "textwrap", "typing", "unicodedata", "zoneinfo"]
)  # fmt: skip
"""Modules whose use leaves no trace outside of the process."""
_EFFECTS = frozenset(["open", "exec", "eval", "input", "print", "__import__", "breakpoint"])
_VALUES = {
    "1": "[0, 1, 2, 7, -3]",
    "1.0": "[0.0, 1.0, 2.5, -3.0]",
    '"a"': '["", "a", "b c", "Z9"]',
    "True": "[True, False]",
    'b"a"': '[b"", b"a", b"bc"]',
    "[1, 2]": "[[], [1], [1, 3], [3, 1, 2], [2, 2]]",
    "{}": '[{}, {"a": 1}]',
    "(1, 2)": "[(), (1,), (1, 2)]",
    "{1, 2}": "[set(), {1}, {1, 2}]",
}
MAX_CALLS = 400


def comparison_test(finding: Finding, before: Workspace, before_path: str) -> TestFile:
    """The test; `cannot_do` if the function cannot be called without effects or knowing more.

    Args:
        finding: the place of the change.
        before: the files before the change.
        before_path: where the file as it was will lie while the test runs, beside the changed one.
    """
    file = before.get(finding.file)
    module = module_of(file) if file is not None else None
    function = function_at(module, finding.line) if module is not None else None
    if module is None or function is None:
        return TestFile(cannot_do="The change is in no function.")
    call = call_of(module, function, {})
    if call is None:
        return TestFile(cannot_do=f"{function.name} needs values that nothing tells."[:300])
    effect = _effect(module)
    if effect:
        return TestFile(cannot_do=f"{function.name} lies in a file that uses {effect}."[:300])
    lists = _value_lists(function, call)
    if lists is None:
        return TestFile(cannot_do=f"{function.name} has no values to vary."[:300])
    return TestFile(
        path=f"tests/test_pravaha_comparison_{finding.id}.py",
        code=_code(finding, before, before_path, call, lists),
        kind="behaviour",
        finding_ids=[finding.id],
        reason=f"{function.name} gives the same results as before on ordinary values.",
    )


def _effect(module: PythonModule) -> str:
    """An import or call with effects, or empty."""
    for name in sorted(set(module.imports.values())):
        root = name.split(".")[0]
        if root not in _PURE and root != "__future__":
            return name
    for node in module.nodes:
        if isinstance(node, ast.Call) and module.call_name(node) in _EFFECTS:
            return module.call_name(node)
    return ""


def _value_lists(function: FunctionNode, call: str) -> dict[str, str] | None:
    """Source of the values by required parameter; None without any."""
    found = {}
    for parameter in [*function.args.args, *function.args.kwonlyargs]:
        if f"{parameter.arg}=" in call:
            value = ordinary_value(parameter, function)
            found[parameter.arg] = _VALUES.get(value or "", f"[{value}]")
            if parameter.annotation is None and value in ("1", "[1, 2]", '"a"'):
                found[parameter.arg] = (
                    f"{_VALUES['1']} + {_VALUES['[1, 2]']} + {_VALUES[chr(34) + 'a' + chr(34)]}"
                )
            elif value == "[1, 2]" and "str" in shape(parameter.annotation or ast.Constant("")):
                found[parameter.arg] = '[[], ["a"], ["b", "a c"], ["a", "a"]]'
    return found or None


def _code(
    finding: Finding, before: Workspace, before_path: str, call: str, lists: dict[str, str]
) -> str:
    changed = call.replace("module.", "versions[0].", 1)
    names = ", ".join(lists)
    template = changed
    for name in lists:
        start = template.index(f"{name}=")
        template = _with_variable(template, start + len(name) + 1, name)
    old = RAISED.get(finding.rule, "")
    body = (
        loading_code(finding.file, before, name="changed")
        + loading_code(before_path, before, name="original", file="BEFORE")
        + textwrap.dedent(
            f"""
            def outcome(version, given):
                versions = [version]
                {names}, = copied = copy.deepcopy(given)
                try:
                    result = {template}
                    return "returned", type(result).__name__, repr(result), repr(copied)
                except Exception as error:
                    return "raised", type(error).__name__, "", repr(copied)

            compared = 0
            lists = [{", ".join(lists.values())}]
            for given in itertools.islice(itertools.product(*lists), {MAX_CALLS}):
                expected = outcome(original, given)
                kinds = ("TypeError", "AttributeError", {json.dumps(old)})
                wrong_kind = expected[0] == "raised" and expected[1] in kinds
                if wrong_kind or expected != outcome(original, given):
                    continue
                assert outcome(changed, given) == expected, given
                compared += expected[0] == "returned"
            if not compared:
                pytest.skip("no ordinary value gives a result")
            """
        ).lstrip("\n")
    )
    return test_module(
        f"Compares {finding.file} with what it was.",
        ["asyncio", "copy", "itertools"],
        f"SOURCE = ROOT / {finding.file!r}\nBEFORE = ROOT / {before_path!r}\n",
        f"def test_comparison():\n{textwrap.indent(body, '    ', lambda line: bool(line.strip()))}",
        pytest=True,
    )


def _with_variable(call: str, start: int, name: str) -> str:
    """The call with the argument that begins at `start` replaced by a variable."""
    depth = 0
    quoted = ""
    for at in range(start, len(call)):
        mark = call[at]
        if quoted:
            quoted = "" if mark == quoted else quoted
        elif mark in "\"'":
            quoted = mark
        elif mark in "([{":
            depth += 1
        elif mark in ")]}" and depth:
            depth -= 1
        elif mark in ",)" and not depth:
            return call[:start] + name + call[at:]
    return call
