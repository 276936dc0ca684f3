"""Hot spots that the source shows: work repeated in loops, blocking calls in asynchronous code."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import COMPREHENSIONS, PythonModule, own_nodes
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_MEDIUM = Severity.MEDIUM
RULES = RuleFile(__file__, "performance", entry=RuleEntry)
_Loop = ast.For | ast.AsyncFor | ast.While
_QUERIES = re.compile(r"\.(execute|executemany|fetchone|fetchall|objects\.(get|filter)|query|get_or_create)$|"
                      r"^(requests|httpx|urllib\.request)\.(get|post|put|urlopen|request)$|session\.(get|query)$")  # fmt: skip
_BLOCKING = re.compile(r"^(time\.sleep|requests\.\w+|urllib\.request\.urlopen|subprocess\.(run|call|check_output|check_call)|"
                       r"os\.system|socket\.create_connection|input)$")  # fmt: skip


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context, tests=False):
        yield from _module(module)
    for file in workspace.of("javascript", "typescript", "tsx"):
        context.check_cancelled()
        yield from _script(file)


def _module(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    lists = _list_names(module)
    for call in module.of(ast.Call):
        name = module.call_name(call)
        loop = module.loop_of(call)
        function = module.function_of(call)
        if isinstance(function, ast.AsyncFunctionDef) and _BLOCKING.search(name):
            yield RULES["blocking-async"].at(
                file, call.lineno, f"{name} stops the whole event loop."
            )
        if loop is None:
            continue
        if name in ("re.compile",) and call.args and isinstance(call.args[0], ast.Constant):
            yield RULES["repeated-compile"].at(file, call.lineno)
        elif _QUERIES.search(name) and _depends_on(loop, call):
            yield RULES["repeated-io"].at(
                file, call.lineno, f"{name} runs once for every element: ask once for all."
            )
        elif (
            name == "open"
            and isinstance(loop, ast.For)
            and call.args
            and not _depends_on(loop, call)
        ):
            yield RULES["repeated-io"].at(file, call.lineno)
        elif (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("read_text", "read_bytes", "readlines")
            and isinstance(loop, ast.For)
            and not _depends_on(loop, call)
            and not (_contains(loop.iter, call))
        ):
            yield RULES["repeated-io"].at(file, call.lineno, "The same file is read in every pass.")
        elif (
            name.endswith(".insert")
            and call.args
            and isinstance(call.args[0], ast.Constant)
            and call.args[0].value == 0
        ):
            yield RULES["front-of-list"].at(file, call.lineno)
        elif (
            name.endswith(".pop")
            and len(call.args) == 1
            and isinstance(call.args[0], ast.Constant)
            and call.args[0].value == 0
        ):
            yield RULES["front-of-list"].at(
                file, call.lineno, "pop(0) moves the whole list: use deque.popleft."
            )
        elif (name == "sorted" or name.endswith(".sort")) and not _depends_on(loop, call):
            if not (isinstance(loop, ast.For) and _contains(loop.iter, call)):
                yield RULES["sort-in-loop"].at(file, call.lineno)
        elif name.endswith(".iterrows"):
            yield RULES["row-iteration"].at(file, call.lineno)
        elif name in ("pd.concat", "pandas.concat") or (
            name.endswith(".append") and "df" in name.lower().split(".")[0]
        ):
            yield RULES["row-iteration"].at(
                file,
                call.lineno,
                "The frame is copied in every pass: collect, then concat once.",
                severity=_MEDIUM,
            )
    for node in module.of(ast.For):
        if isinstance(node.iter, ast.Call) and module.call_name(node.iter).endswith(".iterrows"):
            yield RULES["row-iteration"].at(file, node.lineno)
        yield from _nested(module, node)
    for compare in module.of(ast.Compare):
        if not _repeats(module, compare) or not isinstance(compare.ops[0], ast.In | ast.NotIn):
            continue
        right = compare.comparators[0]
        if isinstance(right, ast.Name) and (module.function_of(compare), right.id) in lists:
            text = f"{right.id} is a list: each test looks at all of it. Use a set."
            yield RULES["list-membership"].at(file, compare.lineno, text)
    for grown in module.of(ast.AugAssign):
        loop = module.loop_of(grown)
        text_ = isinstance(grown.value, ast.JoinedStr) or (
            isinstance(grown.value, ast.Constant) and isinstance(grown.value.value, str)
        ) or (isinstance(grown.value, ast.BinOp) and isinstance(grown.value.right, ast.Constant)
              and isinstance(grown.value.right.value, str))  # fmt: skip
        if loop is not None and isinstance(grown.op, ast.Add) and text_:
            yield RULES["string-concat"].at(file, grown.lineno)
    for function in module.functions:
        for decorator in function.decorator_list:
            written = ast.unparse(decorator)
            method = module.class_of(function) is not None
            unbounded = re.search(
                r"\bcache\b$|lru_cache\(maxsize=None\)|lru_cache\(None\)", written
            )
            if (unbounded and (method or parameters_of(function))) and method:
                text = "The cache keeps every instance alive: bound it, or keep it in the instance."
                yield RULES["unbounded-cache"].at(file, decorator.lineno, text)


def _repeats(module: PythonModule, node: ast.AST) -> bool:
    """Whether a node runs for every element of a loop or comprehension."""
    if module.loop_of(node) is not None:
        return True
    child = node
    for ancestor in module.ancestors(node):
        if isinstance(ancestor, ast.stmt):
            return False
        if isinstance(ancestor, COMPREHENSIONS):
            first = ancestor.generators[0]
            if child is not first and not _contains(first.iter, node):
                return True
            if child is first and any(_contains(test, node) for test in first.ifs):
                return True
        child = ancestor
    return False


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """The positional parameters of a function."""
    return [*function.args.posonlyargs, *function.args.args]


def _list_names(module: PythonModule) -> set[tuple[ast.AST | None, str]]:
    """Names that are lists by their only kind of assignment, with the function that they are local to."""
    found: dict[tuple[ast.AST | None, str], bool] = {}
    assignments = [one for one in module.nodes if isinstance(one, ast.Assign | ast.AnnAssign)]
    for node in assignments:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        is_list = isinstance(value, ast.List | ast.ListComp) or (
            isinstance(value, ast.Call) and module.call_name(value) in ("list", "sorted")
        )
        small = isinstance(value, ast.List) and 0 < len(value.elts) <= 8
        for target in targets:
            if isinstance(target, ast.Name):
                key = module.function_of(node), target.id
                found[key] = found.get(key, True) and is_list and not small
    for function in module.functions:
        for parameter in (*parameters_of(function), *function.args.kwonlyargs):
            annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
            if re.match(r"(typing\.)?(list|List|Sequence)\[", annotation):
                found.setdefault((function, parameter.arg), True)
    return {key for key, is_list in found.items() if is_list}


def _contains(tree: ast.AST, node: ast.AST) -> bool:
    return any(one is node for one in ast.walk(tree))


def _loop_names(loop: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "extend", "add", "update", "insert", "pop", "remove"):
                names |= {one.id for one in ast.walk(node.func.value) if isinstance(one, ast.Name)}
    return names


def _depends_on(loop: _Loop, call: ast.Call) -> bool:
    """Whether the call's arguments or object change in the loop."""
    used = {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}
    return bool(used & _loop_names(loop))


def _nested(module: PythonModule, outer: ast.For) -> Iterator[Finding]:
    written = ast.unparse(outer.iter)
    if not isinstance(outer.iter, ast.Name | ast.Attribute):
        return
    for inner in own_nodes(outer):
        if isinstance(inner, ast.For) and ast.unparse(inner.iter) == written:
            text = (
                f"Every element of {written[:40]} is compared with every other: use a dictionary."
            )
            yield RULES["nested-loop"].at(module.file, inner.lineno, text, severity=_MEDIUM)


_SYNC = re.compile(
    r"\bfs\.(readFileSync|writeFileSync|existsSync|readdirSync|statSync)\(|\bexecSync\("
)
_HANDLER = re.compile(
    r"\((req|request|ctx)\b[^)]*\)\s*(=>|\{)|async\s+function|app\.(get|post|put|use)\("
)


def _script(file: SourceFile) -> Iterator[Finding]:
    depth: list[tuple[int, bool]] = []
    for number, line in enumerate(file.lines, 1):
        if len(line) > 2_000:
            continue
        indent = len(line) - len(line.lstrip())
        while depth and line.strip() and indent <= depth[-1][0]:
            depth.pop()
        loops = any(kind for _, kind in depth)
        handler = any(not kind for _, kind in depth)
        if _SYNC.search(line) and handler:
            yield RULES["blocking-async"].at(file, number)
        if (
            loops
            and re.search(r"\bawait\b", line)
            and not re.search(r"for\s+await|Promise\.all", line)
        ):
            yield RULES["await-in-loop"].at(file, number)
        if re.match(r"\s*(for|while)\s*\(", line):
            depth.append((indent, True))
        elif _HANDLER.search(line):
            depth.append((indent, False))


PERFORMANCE = Detector(
    "performance",
    "Looks for work repeated in loops, quadratic idioms and blocking calls in asynchronous code.",
    _detect,
    RULES,
)
