"""`suspects_of`: the functions that a failing test's fault may lie in, the most suspicious first.

Spectrum-based fault localization (Jones et al. 2002): a line is suspicious that failing tests run and
passing ones do not. The measure is that of Ochiai, f / √(F · (f + p)): f failing and p passing tests run
the line, F fail. A function is as suspicious as its worst line; functions that the failure names or its
traceback passes come a little earlier, the innermost first, and among equal ones the longest. Values that
the suspects read from the file's or a class's own assignments follow, at half of that.
"""

import ast
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agents.detectors.audit.python_module import FunctionNode, PythonModule, module_of
from agents.procedures.execution.traceback_parser import parse_trace
from agents.repair.failing_tests.trials import TrialResult
from agents.repair.protected_files import is_protected
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MAX_SUSPECTS = 8
_BONUS = 0.15
"""Added to the measure, for the order alone, of functions that the failure names or its traceback passes."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A function or an assignment.

    Attributes:
        path: its file.
        name: its name with those of its classes, such as `Desk.overdue`.
        first, last: its lines, decorators included, from 1.
        score: how suspicious it is, in (0, 1].
        lines: those of its lines that the failing test runs, with their own measures.
        in_trace: whether the traceback passes it.
        is_function: whether it is a function, which a model can be asked to write anew.
    """

    path: str
    name: str
    first: int
    last: int
    score: float
    lines: Mapping[int, float] = field(default_factory=dict)
    in_trace: bool = False
    is_function: bool = True


def suspects_of(test: str, spectrum: TrialResult, workspace: Workspace) -> list[Suspect]:
    """The suspects of one failing test, at most `MAX_SUSPECTS`.

    Args:
        test: its node id.
        spectrum: outcomes and lines of all tests.
        workspace: the project's files.
    """
    frames = trace_places(spectrum.texts.get(test, ""), workspace)
    measures = _ochiai(spectrum)
    covered: dict[str, set[int]] = {
        path: set(lines) for path, lines in spectrum.lines.get(test, {}).items()
    }
    for path, line in frames:
        covered.setdefault(path, set()).add(line)
    found: list[Suspect] = []
    for path, lines in covered.items():
        file = workspace.get(path)
        module = None if file is None or is_protected(path) else module_of(file)
        if file is None or module is None or not _is_utf8(file):
            continue
        functions = list(_in_lines(module, path, lines, measures, frames))
        found += functions
        found += _values(module, path, functions)
    said = [
        line for line in spectrum.texts.get(test, "").split("\n") if line.startswith(("E ", ">"))
    ]
    called = set(re.findall(r"(\w+)\(", "\n".join(said)))
    depth = {place: at for at, place in enumerate(frames)}

    def order(one: Suspect) -> tuple[float, ...]:
        deepest = max(
            (
                at
                for (path, line), at in depth.items()
                if path == one.path and one.first <= line <= one.last
            ),
            default=-1,
        )
        named = one.name.rpartition(".")[2] in called
        score = one.score + _BONUS * (one.in_trace or named)
        return (not one.is_function, -round(score, 6), -deepest, one.first - one.last)

    return sorted(found, key=order)[:MAX_SUSPECTS]


def _is_utf8(file: SourceFile) -> bool:
    """Whether a file can be patched: diffs and changed texts are UTF-8."""
    try:
        file.data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def trace_places(text: str, workspace: Workspace) -> list[tuple[str, int]]:
    """File and line of the frames of a failure that lie in the project's own code, outermost first."""
    trace = parse_trace(text)
    if trace is None:
        return []
    places = []
    for frame in trace.frames:
        path = _known_path(frame.file, workspace)
        if path and not is_protected(path):
            places.append((path, frame.line))
    return places


def _known_path(name: str, workspace: Workspace) -> str:
    """The project's path for a frame's file, which may be absolute."""
    parts = name.replace("\\", "/").split("/")
    for start in range(len(parts)):
        path = "/".join(parts[start:])
        if workspace.get(path) is not None:
            return path
    return ""


def _ochiai(spectrum: TrialResult) -> dict[tuple[str, int], float]:
    """The measure of each line that a failing test runs."""
    failing: Counter[tuple[str, int]] = Counter()
    passing: Counter[tuple[str, int]] = Counter()
    for test, files in spectrum.lines.items():
        outcome = spectrum.outcomes.get(test)
        counts = {"failed": failing, "passed": passing}.get(outcome or "")
        if counts is not None:
            counts.update((path, line) for path, lines in files.items() for line in lines)
    total = len(spectrum.failed)
    return {
        place: count / math.sqrt(total * (count + passing[place]))
        for place, count in failing.items()
    }


def _in_lines(
    module: PythonModule,
    path: str,
    lines: Collection[int],
    measures: Mapping[tuple[str, int], float],
    frames: Sequence[tuple[str, int]],
) -> Iterator[Suspect]:
    """The functions of a file that the failing test runs."""
    for name, function in functions_of(module.tree):
        first, last = span(function)
        body = function.body[0].lineno
        own = {line: measures.get((path, line), 0.0) for line in lines if body <= line <= last}
        if not own:
            continue
        in_trace = any(file == path and first <= line <= last for file, line in frames)
        score = max(*own.values(), 0.0)
        yield Suspect(path, name, first, last, score or 0.01, own, in_trace)


def functions_of(tree: ast.Module) -> Iterator[tuple[str, FunctionNode]]:
    """The functions at the top and the methods of classes by dotted names; none inside of functions."""
    work: list[tuple[str, Sequence[ast.stmt]]] = [("", tree.body)]
    while work:
        prefix, body = work.pop()
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{node.name}", node
            elif isinstance(node, ast.ClassDef):
                work.append((f"{prefix}{node.name}.", node.body))
            elif isinstance(node, ast.If | ast.Try):
                work.append((prefix, [*node.body, *node.orelse]))


def span(node: FunctionNode) -> tuple[int, int]:
    """First and last line of a function, decorators included."""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def _values(module: PythonModule, path: str, functions: Sequence[Suspect]) -> Iterator[Suspect]:
    """Assignments at the top and in classes whose names the suspected functions read."""
    read: dict[str, float] = {}
    for node in module.nodes:
        name = ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            name = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        if name:
            line = getattr(node, "lineno", 0)
            score = max((s.score for s in functions if s.first <= line <= s.last), default=0.0)
            read[name] = max(read.get(name, 0.0), score)
    bodies = [module.tree.body, *(one.body for one in module.of(ast.ClassDef))]
    for statement in (one for body in bodies for one in body):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        name = next((one.id for one in targets if isinstance(one, ast.Name)), "")
        if read.get(name):
            last = statement.end_lineno or statement.lineno
            yield Suspect(path, name, statement.lineno, last, read[name] / 2, is_function=False)
