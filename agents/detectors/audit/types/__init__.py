"""Type errors and gaps: mypy where it is installed, and what the syntax tree shows."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.external import copied, run_module
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule, is_test_path, own_nodes, parameters
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.workspace import Workspace

_LOW, _MEDIUM, _HIGH = Severity.LOW, Severity.MEDIUM, Severity.HIGH
MYPY_ERROR = Rule("type-error", _MEDIUM, "Type error", cwe=704)
MISSING_ANNOTATION = Rule("missing-annotation", Severity.INFO, "Public function without types")
WRONG_RETURN = Rule("wrong-return-type", _HIGH, "Returned value has another type", cwe=704)
WRONG_DEFAULT = Rule("wrong-default-type", _MEDIUM, "Default has another type", cwe=704)
IMPLICIT_OPTIONAL = Rule("implicit-optional", _LOW, "None as default of another type")
MIXED_COMPARISON = Rule("mixed-comparison", _MEDIUM, "Text compared with a number", cwe=697)
ANY_LEAK = Rule("explicit-any", Severity.INFO, "any switches the check off")
IGNORED = Rule("type-ignore", Severity.INFO, "Check switched off without a reason")
RULES = (
    MYPY_ERROR, MISSING_ANNOTATION, WRONG_RETURN, WRONG_DEFAULT, IMPLICIT_OPTIONAL, MIXED_COMPARISON, ANY_LEAK,
    IGNORED,
)  # fmt: skip
MYPY_S = 120.0
_MYPY = re.compile(r"^(.+?):(\d+): error: (.+?)(?:  \[([\w-]+)\])?$")
_KEPT = frozenset(
    ["arg-type", "return-value", "assignment", "call-arg", "operator", "index", "union-attr", "attr-defined",
     "return", "dict-item", "list-item", "typeddict-item", "override", "comparison-overlap", "misc-type"]
)  # fmt: skip
_HIGH_CODES = frozenset(["call-arg", "return-value", "operator"])
_PLAIN = {"int": (int,), "str": (str,), "bool": (bool,), "float": (float, int), "bytes": (bytes,)}
_LITERALS = {"list": ast.List, "dict": ast.Dict, "set": ast.Set, "tuple": ast.Tuple}


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context, tests=False):
        for node in module.functions:
            yield from _function(module, node)
        for compare in module.of(ast.Compare):
            yield from _comparison(module, compare)
    yield from _mypy(workspace, context)
    for file in workspace.of("typescript", "tsx"):
        context.check_cancelled()
        for number, line in enumerate(file.lines, 1):
            code = line.split("//")[0]
            if re.search(r":\s*any\b(?!\w)|<any>|\bas any\b", code):
                yield ANY_LEAK.at(file, number, "any switches the check off here.", severity=_LOW)
            if re.search(r"@ts-(ignore|nocheck)", line):
                yield IGNORED.at(
                    file,
                    number,
                    "The check is off: use @ts-expect-error with a reason.",
                    severity=_LOW,
                )


def _annotation(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


def _is_concrete(annotation: str) -> bool:
    """Whether an annotation names one built-in type, which None is not."""
    return annotation in _PLAIN or ("|" not in annotation and annotation.split("[")[0] in _LITERALS)


def _fits(annotation: str, value: ast.expr) -> bool | None:
    """Whether a literal has the annotated type; None if that cannot be told."""
    if isinstance(value, ast.Constant) and value.value is not None and value.value is not ...:
        if annotation in _PLAIN:
            right = isinstance(value.value, _PLAIN[annotation])
            return right and (annotation == "bool" or not isinstance(value.value, bool))
        return False if "|" not in annotation and annotation.split("[")[0] in _LITERALS else None
    if isinstance(value, ast.JoinedStr) and annotation in _PLAIN:
        return annotation == "str"
    if isinstance(value, ast.List | ast.Dict | ast.Set):
        base = annotation.split("[")[0]
        if "|" in annotation:
            return None
        if base in _PLAIN:
            return False
        return isinstance(value, _LITERALS[base]) if base in _LITERALS else None
    return None


def _function(
    module: PythonModule, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Finding]:
    file = module.file
    returns = _annotation(node.returns)
    generator = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(node))
    for one in own_nodes(node):
        if not isinstance(one, ast.Return) or generator:
            continue
        if one.value is None or (isinstance(one.value, ast.Constant) and one.value.value is None):
            promised = _is_concrete(returns)
            if promised:
                yield WRONG_RETURN.at(
                    file, one.lineno, f"None is returned where {returns} is promised."
                )
        elif returns and _fits(returns, one.value) is False:
            yield WRONG_RETURN.at(
                file, one.lineno, f"The value is no {returns}, which is promised."
            )
        elif returns == "None":
            yield WRONG_RETURN.at(
                file, one.lineno, "A value is returned where None is promised.", severity=_MEDIUM
            )
    arguments = [*node.args.posonlyargs, *node.args.args]
    pairs = list(
        zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults, strict=True)
    )
    pairs += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d]
    for argument, default in pairs:
        written = _annotation(argument.annotation)
        if isinstance(default, ast.Constant) and default.value is None:
            if _is_concrete(written):
                text = f"{argument.arg} may be None: write {written} | None."
                yield IMPLICIT_OPTIONAL.at(file, argument.lineno, text)
        elif written and _fits(written, default) is False:
            yield WRONG_DEFAULT.at(
                file, argument.lineno, f"The default of {argument.arg} is no {written}."
            )
    public = not node.name.startswith("_") and module.function_of(node) is None
    named = [one for one in parameters(node) if one.arg not in ("self", "cls")]
    if public and named and not any(one.annotation for one in named) and node.returns is None:
        if "import typing" in file.text or "from typing" in file.text or "->" in file.text:
            yield MISSING_ANNOTATION.at(file, node.lineno, f"{node.name} has no types.")


def _comparison(module: PythonModule, node: ast.Compare) -> Iterator[Finding]:
    """A value that was just read as text, compared with a number."""
    if len(node.ops) != 1 or not isinstance(
        node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq
    ):
        return
    sides = [node.left, node.comparators[0]]
    number = next(
        (one for one in sides if isinstance(one, ast.Constant) and type(one.value) in (int, float)),
        None,
    )
    if number is None:
        return
    other = sides[1] if sides[0] is number else sides[0]
    texts = set()
    function = module.function_of(node)
    for one in own_nodes(function) if function is not None else ():
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            name = one.targets[0].id
            if isinstance(one.value, ast.Call) and module.call_name(one.value) in (
                "input",
                "os.getenv",
                "os.environ.get",
            ):
                texts.add(name)
            else:
                texts.discard(name)
    reads = isinstance(other, ast.Call) and module.call_name(other) in (
        "input",
        "os.getenv",
        "os.environ.get",
    )
    if reads or (isinstance(other, ast.Name) and other.id in texts):
        text = f"{ast.unparse(other)[:60]} is text and is compared with a number: convert it."
        yield MIXED_COMPARISON.at(module.file, node.lineno, text, severity=_HIGH)


def _mypy(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    files = [
        file
        for file in workspace.of("python")
        if file.python is not None and not is_test_path(file.path)
    ]
    if not files:
        return
    context.check_cancelled()
    with copied(files) as folder:
        arguments = [
            "--config-file=", "--cache-dir=/dev/null", "--ignore-missing-imports", "--follow-imports=silent",
            "--no-error-summary", "--no-color-output", "--explicit-package-bases", "--check-untyped-defs",
            "--show-error-codes", "--hide-error-context", "--no-site-packages", ".",
        ]  # fmt: skip
        done = run_module("mypy", arguments, folder=folder, timeout_s=MYPY_S)
    if done is None or done.returncode not in (0, 1):
        context.note("mypy is not installed or failed: types were checked by simple rules only.")
        return
    for line in done.stdout.splitlines():
        match = _MYPY.match(line)
        file = None if match is None else workspace.get(match[1].removeprefix("./"))
        if match is None or file is None or match[4] not in _KEPT:
            continue
        severity = _HIGH if match[4] in _HIGH_CODES else _MEDIUM
        text = f"{match[3]} (mypy: {match[4]})"
        yield MYPY_ERROR.at(file, int(match[2]), text, severity=severity, confidence=0.85)


TYPES = Detector(
    "types",
    "Runs mypy where it is installed, and looks for wrong literals, returns and defaults.",
    _detect,
    RULES,
)
